"""Results from hand-made runs, for tests of the store."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench_mtl.core.types import Array, Certificate, Limits, Record, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.model.patterns import patterns_of
from bench_mtl.results import FILE_NAME, Outcome, Store

ROOT = Path(__file__).resolve().parents[3]

MACHINE = {"processor": "quick one", "logical_cores": 4, "memory_gib": 16.0, "threads": 1}


def suite(name: str = "hand", text: str = 'name = "hand"\n', targets: tuple[float, ...] = (1e-2, 1e-4)) -> Suite:
    return Suite(name, "made by hand", targets, (), (), Limits(), 1, (0,), 1, text)


def case(number: int, problem: str = "lasso", solver: str = "pg") -> Case:
    """The case of this number, whatever its labels."""
    instance = Instance("family", problem, {"name": "synthetic"}, {"radius": 1.0}, None)
    return Case(instance, "kind", solver, {"number": number}, 1e-4, Limits(), 1, 0)


def outcome(
    samples: int | Sequence[Sample] = 3, status: Status = Status.VERIFIED, reason: str = "as it is", value: float = 1.0,
    solution: Mapping[str, Array] | None = None,
) -> Outcome:  # fmt: skip
    if isinstance(samples, int):
        samples = [Sample(0.1 * i, i, 1.0 + i, Certificate(value, value / (i + 3.0), 0.0)) for i in range(samples)]
    record = Record(status, reason, tuple(samples), Times(solve=0.5))
    return Outcome(
        record, {"n": 7, "d": 3, "m": 2}, ("a note",), "1.0", wall_seconds=2.0, patterns=patterns_of(solution or {})
    )  # fmt: skip


def fill(
    folder: Path, outcomes: Mapping[int, Outcome] | Iterable[int], *, plan: Sequence[Case] | None = None, of: Suite | None = None,
    **machine: Any,
) -> Path:  # fmt: skip
    """Add runs to `folder` by the number of their case, on a machine that differs from the usual one in `machine`."""
    made = dict(outcomes) if isinstance(outcomes, Mapping) else {number: outcome() for number in outcomes}
    with Store.create(folder, of or suite()) as store:
        store.plan([case(number) for number in made] if plan is None else plan)
        environment = store.add_environment({**MACHINE, **machine})
        for number, result in made.items():
            store.add(case(number), result, environment)
    return folder


def changed(folder: Path, *statements: str) -> Path:
    """Change what the file in `folder` holds, and leave its digests as they are."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return folder


def numbers(folder: Path) -> list[int]:
    """Of the cases that are listed, in their order."""
    with Store.open(folder) as store:
        return [json.loads(options)["number"] for options in store.runs()["options"]]


def finished_in(folder: Path) -> set[str]:
    """Keys of the cases that have a row that counts."""
    with Store.open(folder) as store:
        return store.finished()


def require_whole(folder: Path, samples: int) -> int:
    """Assert that the file opens clean and that every run in it has all its samples; returns the number of runs."""
    with Store.open(folder) as store:
        runs, counts = store.runs(), store.samples().groupby("run_id").size()
    assert (counts.reindex(runs["id"], fill_value=0) == samples).all()
    assert len(counts) == len(runs)
    return len(runs)


#: What every script of `in_python` begins with.
_HEAD = """
import os, sqlite3, sys
from pathlib import Path
from hand_made import case, outcome, require_whole, suite
from bench_mtl.results import Store
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
"""


def in_python(script: str, *arguments: str | Path, head: str = _HEAD) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own that has this module."""
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    command = [sys.executable, "-c", head + script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=120, check=False)


def content(folder: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def results_bytes(folder: Path) -> bytes:
    return (folder / FILE_NAME).read_bytes()
