"""The process in which cases run: kept warm, told what to run through a pipe, killed from outside when it must be."""

from __future__ import annotations

import ctypes
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench_mtl.driver import describe, run
from bench_mtl.errors import BenchError
from bench_mtl.protocols import Problem
from bench_mtl.registry import Registry, load_registry
from bench_mtl.suite import Case
from bench_mtl.types import Certificate, Iterate, Record, Status, Tolerance


def work(pipe: Connection, deadline: Any, plugins: Path | None, data_dir: Path | None) -> None:
    """Serve cases until the pipe closes.

    Sends ("problem", dimensions, notes, certificate of the zero point), ("solver", version), ("phase", name, seconds) and
    ("sample", Sample) as they come, then ("record", Record).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    _die_with_parent()
    registry = load_registry(plugins)
    pipe.send(("ready",))
    built: tuple[str, Problem, Certificate] | None = None
    while True:
        try:
            case: Case = pipe.recv()
        except EOFError:
            return
        try:
            if built is None or built[0] != case.instance.key:
                built = None  # let the old one go before the new one is built
                problem = case.instance.build(registry, data_dir)
                built = (case.instance.key, problem, problem.certify(Iterate(problem.zero())))
        except Exception as error:
            pipe.send(("record", Record(Status.ERROR, f"the problem cannot be built: {describe(error)}")))
            continue
        _, problem, baseline = built
        pipe.send(("problem", dict(problem.dimensions), problem.notes, baseline))
        pipe.send(("record", _run(case, problem, registry, pipe, deadline)))


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies, however it dies; elsewhere the closed pipe ends it."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _run(case: Case, problem: Problem, registry: Registry, pipe: Connection, deadline: Any) -> Record:
    try:
        solver = registry.solver(case.solver, case.options)
        pipe.send(("solver", solver.version))
        if solver.misfit(problem) is None:
            solver.warm_up()
    except BenchError as error:
        return Record(Status.ERROR, describe(error))
    except Exception as error:
        return Record(Status.ERROR, f"warm-up failed: {describe(error)}")
    record = run(
        problem,
        solver,
        tolerance=Tolerance(case.target),
        limits=case.limits,
        on_sample=lambda sample: pipe.send(("sample", sample)),
        on_phase=lambda phase, seconds: pipe.send(("phase", phase, seconds)),
        deadline=deadline,
    )
    # Samples went ahead one by one and solutions are not stored.
    return Record(record.status, record.reason, (), record.times, None, record.info)
