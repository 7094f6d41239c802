"""Problems and solvers as experiments take them: from the registry, to a proven gap."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from bench_mtl import BenchError, Limits, Problem, Status, Tolerance, load_registry, run
from bench_mtl.engine import Registry
from papers import Array


class Enclosed(NamedTuple):
    """A point with what is known of the optimum."""

    point: Array
    objective: float
    """Objective at the point, recomputed."""
    bound: float
    """Lower bound on the optimum."""
    relative_gap: float
    status: Status
    """`VERIFIED` where the wanted gap is proven, otherwise `INACCURATE`."""
    reason: str


@cache
def registry() -> Registry:
    """Load the registry of what is installed, once."""
    return load_registry()


def solve_to_gap(problem: Problem, name: str, target: float, seconds: float) -> Enclosed:
    """Return the best point that a solver finds, and what it proves.

    Parameters
    ----------
    name : of the solver, which is warmed up before its clock runs
    target : the relative gap to prove
    seconds : on the solver's clock, at most

    Raises
    ------
    BenchError : the solver fails.
    """
    solver = registry().solver(name)
    solver.warm_up()
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=seconds))
    if record.solution is None or record.best is None or record.status.is_failure:
        raise BenchError(f"{name} ended as {record.status}: {record.reason}")
    status = Status.VERIFIED if record.status is Status.VERIFIED else Status.INACCURATE
    best = record.best
    return Enclosed(record.solution, problem.objective(record.solution), best.dual, best.relative_gap, status, record.reason)
