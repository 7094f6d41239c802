"""Problems and solvers as experiments take them: from the registry, to a proven gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from bench_mtl import BenchError, Limits, Problem, Status, Tolerance, load_registry, run
from bench_mtl.engine.registry import Registry
from bench_mtl.runner import Found
from papers import Array


class Enclosed(NamedTuple):
    """A point with what is known of the optimum."""

    point: Array
    objective: float  # objective at the point, recomputed
    bound: float  # lower bound on the optimum
    relative_gap: float
    status: Status  # `VERIFIED` where the wanted gap is proven, otherwise `INACCURATE`
    reason: str

    def found(self, values: Mapping[str, Any]) -> Found:
        """Return what a cell has found that has looked at this point."""
        return Found({**values, "relative_gap": self.relative_gap}, self.status, self.reason)


@cache
def registry() -> Registry:
    """Load the registry of what is installed, once."""
    return load_registry()


def solve_to_gap(problem: Problem, name: str, target: float, seconds: float) -> Enclosed:
    """Return the best point that the solver of that name finds, on whose clock there are so many seconds, and what it proves.

    It is warmed up before its clock runs, and stops where it has proven the relative gap `target`. Raises BenchError: it fails.
    """
    solver = registry().solver(name)
    solver.warm_up()
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=seconds))
    if record.solution is None or record.best is None or record.status.is_failure:
        raise BenchError(f"{name} ended as {record.status}: {record.reason}")
    status = Status.VERIFIED if record.status is Status.VERIFIED else Status.INACCURATE
    best = record.best
    return Enclosed(record.solution, problem.objective(record.solution), best.dual, best.relative_gap, status, record.reason)


def point_after_steps(problem: Problem, name: str, options: Mapping[str, Any]) -> Enclosed:
    """Return the last point of an iterative solver that makes the steps that its options say, whatever these prove."""
    (last,) = deque(registry().solver(name, options).steps(problem), maxlen=1)  # type: ignore[attr-defined] # an iterative solver
    certificate, W = problem.certify_repaired(last)
    gap = certificate.relative_gap
    reason = f"ended after its steps, relative gap {gap:.1e} proven"
    return Enclosed(W, certificate.primal, certificate.dual, gap, Status.INACCURATE, reason)
