"""Commands as a user gives them, and results folders from hand-made runs."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench_mtl.cli import main
from bench_mtl.core.types import Certificate, Limits, Record, Sample, Status, Times
from bench_mtl.engine.suite import Case, Instance, Suite
from bench_mtl.results import Outcome, Store

TARGETS = (1e-2, 1e-4, 1e-6)

MACHINE = {
    "bench_mtl": "0.1.0",
    "python": "3.11",
    "packages": {"numpy": "2.0", "ecos": None},
    "system": "Linux x86_64",
    "processor": "quick one",
    "logical_cores": 4,
    "memory_gib": 16.0,
    "threads": 1,
}


class Result(NamedTuple):
    """What a command came to: its exit code and its lines."""

    code: object
    out: list[str]
    err: list[str]

    @property
    def text(self) -> str:
        """All lines, those of standard error last."""
        return "\n".join([*self.out, *self.err])


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs a command in this process, in a folder and with variables of its environment: a new process starts for longer than most run."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("bench_mtl.cli._end_soon", lambda code: None)

    def run(*arguments: object, cwd: Path | None = None, **environment: str) -> Result:
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            if cwd is not None:
                changed.chdir(cwd)
            changed.setattr("sys.argv", ["bench-mtl", *map(str, arguments)])
            with pytest.raises(SystemExit) as end:
                main()
        shown = capsys.readouterr()
        return Result(end.value.code, shown.out.splitlines(), shown.err.splitlines())

    return run


@pytest.fixture
def new_process() -> Callable[..., Result]:
    """Runs a command as `command` does, in a process of its own."""

    def run(*arguments: object, cwd: Path | None = None, **environment: str) -> Result:
        words = [sys.executable, "-m", "bench_mtl", *map(str, arguments)]
        ended = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=os.environ | environment, timeout=300, check=False)
        return Result(ended.returncode, ended.stdout.splitlines(), ended.stderr.splitlines())

    return run


def _case(run: Mapping[str, Any], targets: tuple[float, ...]) -> Case:
    label = run.get("problem", "hinge")
    data = run.get("data", {"name": "synthetic", "features": 5})
    parameters = run.get("parameters", {"radius": 1.0})
    instance = Instance(run.get("family", label), label, data, parameters, run.get("seed", 0), fingerprint=run.get("fingerprint", "f"))
    solver = run.get("solver", "pg")
    limits = Limits(seconds=run.get("limit", 60.0))
    options = run.get("options", {})
    return Case(instance, solver, run.get("label", solver), options, targets[-1], limits, run.get("threads", 1), run.get("repetition", 0))


def _record(run: Mapping[str, Any]) -> Record:
    primal = run.get("optimum", 1.0)
    gaps = [(0.0, 0.5)]
    if "seconds" in run:
        gaps.append((run["seconds"], run.get("gap", 5e-7)))
    samples = [Sample(seconds, step, 1.0, Certificate(primal, primal - gap * abs(primal), 0.0)) for step, (seconds, gap) in enumerate(gaps)]
    status = Status(run.get("status", "verified" if "seconds" in run else "timeout"))
    return Record(status, "as it is", tuple(samples), Times(solve=samples[-1].seconds))


@pytest.fixture
def make_results(tmp_path: Path) -> Callable[..., Path]:
    """Makes the results folder `name` of runs given as tables.

    A run starts at the relative gap 0.5 and ends after `seconds` at the relative gap `gap` (5e-7, below every target) of the
    optimum `optimum`; without `seconds` it goes no further. `environment` overrides entries of the machine's description.
    """

    def make(name: str, runs: Iterable[Mapping[str, Any]], targets: tuple[float, ...] = TARGETS) -> Path:
        suite = Suite("hand", "", targets, (), (), Limits(), 1, (0,), 1, "")
        with Store.create(tmp_path / name, suite) as store:
            for run in runs:
                outcome = Outcome(_record(run), {"n": 7, "d": 5, "m": 2}, (), run.get("version", "1.0"))
                store.add(_case(run, targets), outcome, store.add_environment({**MACHINE, **run.get("environment", {})}))
        return tmp_path / name

    return make


@pytest.fixture(scope="session")
def leave_figures_out() -> Callable[[pytest.MonkeyPatch], None]:
    """Makes reports with the name of its format in place of every figure, which would take a second each."""

    def leave_out(patch: pytest.MonkeyPatch) -> None:
        patch.setattr("bench_mtl.report.figures.gallery.Entry.draw", lambda _: None)
        patch.setattr("bench_mtl.report.figures.style.files", lambda _, formats: {form: form.encode() for form in formats})

    return leave_out


@pytest.fixture
def drawing() -> None:
    """Asks `undrawn` for real figures."""


@pytest.fixture
def undrawn(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, leave_figures_out: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Leaves figures out of the reports of a test, unless it has the fixture `drawing`."""
    if "drawing" not in request.fixturenames:
        leave_figures_out(monkeypatch)


@pytest.fixture
def rewritten() -> Callable[..., None]:
    """Change what a results folder holds by SQL statements, and give it the checksums of that, as a program that knows them would."""

    def change(folder: Path, *statements: str) -> None:
        from bench_mtl.results import FILE_NAME
        from bench_mtl.results.digests import seal

        with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
            seal(connection)

    return change
