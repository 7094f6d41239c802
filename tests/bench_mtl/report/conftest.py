"""Small stores from hand-made runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.core.types import Certificate, Limits, Record, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store
from bench_mtl.results.frames import longest_attempts

TARGETS = (1e-2, 1e-4, 1e-6)

TEXT = 'name = "hand"\ndescription = "made by hand"\n# a fence: ```\n'

ENVIRONMENT = {"bench_mtl": "0.1.0", "python": "3.11", "packages": {"numpy": "2.0", "ecos": None}, "processor": "a | b", "threads": 1}


def _record(run: dict[str, Any]) -> Record:
    samples = tuple(
        Sample(seconds, step, passes, Certificate(primal, dual, run.get("infeasibility", 0.0)), asked, tuple(dict(*measures).items()))
        for seconds, step, passes, primal, dual, asked, *measures in run.get("samples", ())
    )
    spent = run.get("limit", 60.0) if run.get("status") == "timeout" else samples[-1].seconds if samples else 0.0
    times = Times(**run.get("times", {"solve": spent or 0.0, "certify": 0.5 if samples else 0.0}))
    reason = run.get("reason", "as it is")
    info = tuple(run.get("info", {}).items())
    return Record(Status(run.get("status", "verified")), reason, samples, times, info=info, peak_memory_mib=run.get("memory"))


def _case(run: dict[str, Any], number: int) -> Case:
    label = run.get("problem", "lasso")
    instance = Instance("family", label, run.get("data", {"name": "synthetic"}), {"radius": 1.0}, run.get("seed"))
    options = {"number": number}  # no two cases may be the same
    limits = Limits(seconds=run.get("limit", 60.0))
    kind = run.get("family", run["solver"])
    return Case(instance, kind, run["solver"], options, TARGETS[-1], limits, 1, run.get("repetition", 0))


def store_in(path: Path, *runs: dict[str, Any], environments: int = 1) -> Path:
    """Write a folder with the results of runs given as tables; a sample is (seconds, step, passes, primal, dual, asked), and perhaps
    a table of measures."""
    suite = Suite("hand", "made by hand", TARGETS, (), (), Limits(), 1, (0,), 1, TEXT)
    with Store.create(path, suite) as results:
        keys = [results.add_environment({**ENVIRONMENT, "threads": 1 + i}) for i in range(environments)]
        for number, run in enumerate(runs):
            notes = tuple(run.get("notes", ()))
            results.add(_case(run, number), Outcome(_record(run), {"n": 7, "d": 3, "m": 2}, notes, "1.0"), keys[number % environments])
    return path


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder as `store_in` does."""
    return lambda *runs, environments=1, folder="results": store_in(tmp_path / folder, *runs, environments=environments)


@pytest.fixture(scope="module")
def make_shared_store(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a folder for the tests of a module that leave it as it is."""
    return lambda *runs: store_in(tmp_path_factory.mktemp("shared") / "results", *runs)


@pytest.fixture
def frames() -> Callable[[Path], tuple[Any, Any]]:
    """Reads the runs and samples of a folder as a store returns them."""

    def read(folder: Path) -> tuple[Any, Any]:
        with Store.open(folder) as results:
            runs, samples = results.runs(), results.samples()
            runs["longest_attempt_seconds"] = runs["id"].map(longest_attempts(runs, samples, results.rungs()))
            return runs, samples

    return read
