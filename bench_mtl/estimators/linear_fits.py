"""What a fit of linear tasks is, and such fits as solutions of a registered problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array, Certificate, Iterate, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget, Solution, installed, solve, solver_for, warm_up
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.model.protocols import Problem


@dataclass(frozen=True)
class FittedTasks:
    """Coefficients of every task, and how they were found."""

    coefficients: Array
    """d x m."""
    n_iter: int
    is_met: bool
    """Whether the fit ended as it should."""
    message: str
    certificate: Certificate | None = None
    """None where the model is not convex."""
    parts: Mapping[str, Array] = field(default_factory=dict)
    """Matrices that the coefficients are the sum of, d x m, by the name of their attribute."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the estimator is to have, by name."""


class Solving(Protocol):
    """The parameters of an estimator that say how its problem is solved."""

    solver: str | None
    solver_options: dict[str, Any] | None
    tol: float
    max_iter: int
    max_seconds: float | None


Preferred = Sequence[tuple[str, Mapping[str, Any]]]


def solved(
    how: Solving,
    problem_name: str,
    data: TaskData,
    parameters: Mapping[str, Any],
    preferred: Preferred,
    parts: tuple[str, ...] = (),
    *,
    rotated: str | None = None,
) -> FittedTasks:
    """The solution of a registered problem on these data.

    Parameters
    ----------
    how : the estimator
    preferred : where it names no solver the first of these that can take the problem, with its options
    parts : attributes for the matrices of a point that is a stack of them; the coefficients are their sum
    rotated : the loss, where the problem is one of the predictions and the singular values of its point alone, so that wide data can be
        taken in the space of their rows (`RowSpace`)

    Raises
    ------
    InputError : a parameter that is not allowed, a solver that does not exist or does not fit the problem.
    BenchError : the solver fails.
    """
    Budget(how.max_iter, how.max_seconds)  # its parameters are checked before anything is computed
    tol = real_number("tol", how.tol, strict=True)

    def problem_on(some: TaskData) -> Problem:
        return installed().problem(problem_name).from_data(some, **parameters)

    def solution_of(problem: Problem, start: Iterate | None = None) -> Solution:
        return solve(problem, solver_for(problem, how.solver, how.solver_options, preferred), tol, budget, start)

    space = None if rotated is None else RowSpace.of(data, squares=rotated == "squared")
    first = problem_on(data if space is None else space.data)
    if how.max_seconds is not None:
        warm_up(solver_for(first, how.solver, how.solver_options, preferred), first)
    budget = Budget(how.max_iter, how.max_seconds)  # its clock begins here
    if space is None:
        solution = solution_of(first)
    else:
        problem, found = problem_on(data), solution_of(first)
        point = problem.repair(space.coefficients(found.point))
        start = Iterate(point, space.dual(found.dual))
        solution = found._replace(point=point, certificate=problem.certify(start))
        # What rounding has done to an ill-conditioned basis is left to do with all features.
        if found.is_met and not Tolerance(tol).met_by(solution.certificate, problem.scale()):
            solution = solution_of(problem, start)
    point = solution.point
    return FittedTasks(
        coefficients=point.sum(axis=0) if parts else point,
        n_iter=budget.steps,
        is_met=solution.is_met,
        message=solution.message,
        certificate=solution.certificate,
        parts=dict(zip(parts, point, strict=True)) if parts else {},
    )
