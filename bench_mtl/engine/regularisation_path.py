"""A regularisation path: one problem for every value of a parameter, each solved from its neighbour's solution, each certified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Record, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.patterns import numerical_rank, parts
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

#: Values of a parameter: each is a run with a solution that is kept.
MOST_VALUES = 10_000


@dataclass(frozen=True)
class PathPoint:
    """One value of the parameter and what came of it."""

    value: float
    record: Record
    parts: tuple[str, ...]
    """Names of the matrices of a solution."""


def regularisation_path(
    make_problem: Callable[[float], Problem],
    values: Iterable[float],
    solver: Solver,
    *,
    tolerance: Tolerance | None = None,
    limits: Limits | None = None,
    warm_start: bool = True,
    on_point: Callable[[PathPoint], None] | None = None,
) -> list[PathPoint]:
    """Solve `make_problem(value)` for every value, from the simplest solution on.

    A parameter that bounds (a radius, a trace norm) rises along the path, a weight of a penalty falls, so that solutions
    go from sparse to dense. With `warm_start` an iterative solver resumes from the last value's solution and dual point, made feasible
    for the next problem, and may keep what it has made of the data (`IterativeSolver.along_path`); a one-shot solver always starts anew.
    The driver certifies every point from the data of its own problem, so a bad start costs time and nothing else.

    Parameters
    ----------
    make_problem : the problem for a value; all of the same shape
    values : of the parameter, at least one; a value given twice is solved once
    tolerance, limits : of every single run, as for `bench_mtl.run`
    on_point : called with every point as it is made

    Returns
    -------
    The points in the order in which they were solved. Runs that fail have a record that says so.

    Raises
    ------
    InputError : no values, more than `MOST_VALUES`, one that is no finite number of at least 0, or whatever `make_problem` refuses.
    """
    ordered = sorted({real_number("values", value) for value in values})
    if not ordered:
        raise InputError("values must hold at least one number")
    if len(ordered) > MOST_VALUES:
        raise InputError("values", len(ordered), f"at most {MOST_VALUES}")
    if not _bounds(make_problem, ordered):
        ordered.reverse()
    if warm_start and isinstance(solver, IterativeSolver):
        solver = solver.along_path()
    points: list[PathPoint] = []
    start: Iterate | None = None
    for value in ordered:
        problem = make_problem(value)
        record = run(problem, solver, tolerance=tolerance, limits=limits, start=start, records_incomplete=True)
        points.append(PathPoint(value, record, problem.parts))
        if on_point is not None:
            on_point(points[-1])
        if warm_start and isinstance(solver, IterativeSolver) and record.solution is not None:
            start = Iterate(record.solution, record.dual)
    return points


def structure(point: Array, names: Sequence[str] | None = None) -> dict[str, int]:
    """What regularisation is meant to make small: the non-zero rows of W; the non-zeros of P and the rank of Q of a stack (P, Q), of
    another one the non-zeros of its parts, which have these names."""
    if point.ndim == 2:
        return {"rows": int(np.any(point != 0.0, axis=1).sum())}
    found = parts(point, names)
    if tuple(found) != ("P", "Q"):
        return {f"{name} non-zeros": int(np.count_nonzero(part)) for name, part in found.items()}
    return {"non-zeros": int(np.count_nonzero(found["P"])), "rank": numerical_rank(found["Q"])}


def _bounds(make_problem: Callable[[float], Problem], ordered: list[float]) -> bool:
    """Whether the parameter bounds the feasible set, so that a point far outside is further out at the lowest value than at the highest."""
    if len(ordered) == 1:
        return True
    lowest, highest = make_problem(ordered[0]), make_problem(ordered[-1])
    far = np.full(lowest.point_shape, 1e3 * max(1.0, ordered[-1]))
    return lowest.infeasibility(far) != highest.infeasibility(far)
