"""Small results folders from hand-made runs, for tests of sites; and what tests read of pages."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench_mtl.core.types import Certificate, Limits, Record, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store

TARGETS = (1e-2, 1e-4)

MACHINE = {
    "bench_mtl": "0.1.0", "commit": "abc", "python": "3.11", "packages": {"numpy": "2.0"}, "system": "Linux x86_64",
    "processor": "quick one", "logical_cores": 4, "memory_gib": 16.0, "threads": 1,
}  # fmt: skip

PREFIX = {"specialised": "", "generic": "", "peer": "peer_"}


def run(solver: str, *seconds: float | None, **more: Any) -> dict[str, Any]:
    """Return a run as a table: seconds to each of the targets, None where it does not get there."""
    return {"solver": solver, "seconds": seconds, **more}


def _samples(given: Mapping[str, Any], targets: tuple[float, ...]) -> list[Sample]:
    primal = given.get("optimum", 1.0)
    asked = given.get("kind", "specialised") != "specialised"
    start = given.get("start", (primal, primal - 0.5))
    samples = [] if asked else [Sample(0.0, 0, 1.0, Certificate(*start, 0.0))]
    for step, (seconds, target) in enumerate(zip(given["seconds"], targets, strict=True), start=1):
        if seconds is not None:
            samples.append(Sample(seconds, step, 1.0, Certificate(primal, primal - target / 2, 0.0), target if asked else None))
    return samples


def _case(given: Mapping[str, Any], targets: tuple[float, ...]) -> Case:
    label = given.get("problem", "lasso")
    data = given.get("data", {"name": "synthetic_l1inf"})
    parameters = given.get("parameters", {"radius": 1.0, "of": label})  # a label is not among what tells instances apart
    instance = Instance(given.get("family", "l1inf_hinge"), label, data, parameters, given.get("seed"), fingerprint="f")
    kind = PREFIX[given.get("kind", "specialised")] + given.get("name", given["solver"])
    return Case(instance, kind, given["solver"], given.get("options", {}), targets[-1], Limits(seconds=60.0), 1, given.get("repetition", 0))


def fill(
    folder: Path, *runs: Mapping[str, Any], name: str = "hand", targets: tuple[float, ...] = TARGETS, started: str = "2026-01-02T03:04:05",
    description: str = "made by hand", text: str = 'name = "hand"\n', **machine: Any,
) -> Path:  # fmt: skip
    """Write a results folder of these runs."""
    suite = Suite(name, description, targets, (), (), Limits(), 1, (0,), 1, text)
    with patch("bench_mtl.results.database.datetime") as clock, Store.create(folder, suite) as store:
        clock.now.return_value.isoformat.return_value = started
        environment = store.add_environment({**MACHINE, **machine})
        for given in runs:
            samples = _samples(given, targets)
            status = Status(given.get("status", "verified" if given["seconds"][-1] is not None else "timeout"))
            spent = 60.0 if status == Status.TIMEOUT else samples[-1].seconds if samples else 0.0
            shown = () if status == Status.SKIPPED else tuple(samples)
            build = 0.5 if given.get("kind") == "generic" else 0.0
            record = Record(status, given.get("reason", "as it is"), shown, Times(build=build, solve=spent))
            dimensions = given.get("dimensions", {"n": 7, "d": 3, "m": 2})
            store.add(_case(given, targets), Outcome(record, dimensions, tuple(given.get("notes", ())), "1.0"), environment)
    return folder


class Page(HTMLParser):
    """What is in a page: links, places that can be linked to, elements, attributes that could act, and words."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.elements: list[str] = []
        self.acting: list[str] = []
        self.text = ""
        self.feed(content.decode())
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.places |= {value or "" for name, value in attrs if name == "id"}
        for name, value in attrs:
            leads_away = name == "href" and re.match(r"\s*(\w+:|//)", value or "")
            if name.startswith("on") or name in ("src", "style", "srcdoc", "action") or leads_away:
                self.acting.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] not in (["script"], ["style"]):
            self.text += f" {data}"
