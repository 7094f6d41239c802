"""What a fit of linear tasks is, and such fits as solutions of a registered problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench_mtl.checks import real_number
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget, installed, solve, solver_for
from bench_mtl.types import Array, Certificate


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
    how: Solving, problem_name: str, data: TaskData, parameters: Mapping[str, Any], preferred: Preferred, parts: tuple[str, ...] = ()
) -> FittedTasks:
    """The solution of a registered problem on these data.

    Parameters
    ----------
    how : the estimator
    preferred : where it names no solver the first of these that can take the problem, with its options
    parts : attributes for the matrices of a point that is a stack of them; the coefficients are their sum

    Raises
    ------
    InputError : a parameter that is not allowed, a solver that does not exist or does not fit the problem.
    BenchError : the solver fails.
    """
    budget = Budget(how.max_iter, how.max_seconds)
    tol = real_number("tol", how.tol, strict=True)
    problem = installed().problem(problem_name).from_data(data, **parameters)
    solution = solve(problem, solver_for(problem, how.solver, how.solver_options, preferred), tol, budget)
    point = solution.point
    return FittedTasks(
        coefficients=point.sum(axis=0) if parts else point,
        n_iter=budget.steps,
        is_met=solution.is_met,
        message=solution.message,
        certificate=solution.certificate,
        parts=dict(zip(parts, point, strict=True)) if parts else {},
    )
