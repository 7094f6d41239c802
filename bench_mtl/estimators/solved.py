"""Linear models of many tasks that are solutions of a registered problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, final

import numpy as np

from bench_mtl.core.checks import one_of, real_number, true_or_false
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate
from bench_mtl.data import TaskData
from bench_mtl.estimators.docstrings import choices
from bench_mtl.estimators.fitting import (
    Budget,
    Callback,
    Preferred,
    Solution,
    installed,
    solve,
    solve_path,
    solver_for,
    tolerance_of,
    warm_up,
)
from bench_mtl.estimators.linear import SHARED_PARAMETERS, FittedTasks, LinearTasks
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.model.intercepts import can_centre
from bench_mtl.model.protocols import Problem, Solver

AUTO: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}))

#: Solvers that hold the columns of the features that they have chosen, and up to how many bytes of examples in shards they are preferred.
_OF_COLUMNS, _MOST_COLUMNS = frozenset({"auto", "working_set"}), 2**30
#: Bytes of a number, and of one that a sparse matrix stores.
_DENSE, _SPARSE = 8, 12


@final
@dataclass(frozen=True)
class Specification:
    """The registered problem whose solution a model's coefficients are, but for its data."""

    problem: str
    parameters: Mapping[str, Any]
    preferred: Preferred = AUTO
    """The solvers to choose from where none is named: the first that can take the problem."""
    parts: tuple[str, ...] = ()
    """Attributes for the matrices of a point that is a stack of them; the coefficients are their sum."""
    rotates: bool = False
    """Whether the problem is one of the predictions and the singular values of its point alone, so that wide data can be taken in the
    space of their rows (`RowSpace`)."""

    def on(self, data: TaskData, **others: Any) -> Problem:
        """Make the problem on these data, with `others` in place of the parameters of these names."""
        return installed().problem(self.problem).from_data(data, **{**self.parameters, **others})

    def row_space(self, data: TaskData) -> RowSpace | None:
        """Return the space of the rows, where it is worth while. Turned examples have squares alone, and no constant feature."""
        has_squares = self.parameters.get("loss", "squared") == "squared" and not self.parameters.get("intercept")
        return RowSpace.of(data, squares=has_squares) if self.rotates else None

    def fitted(self, solution: Solution, steps: int, problem: Problem) -> FittedTasks:
        """Return what a solution of the problem is to a model."""
        point = solution.point
        return FittedTasks(
            coefficients=point.sum(axis=0) if self.parts else point,
            n_iter=steps,
            is_met=solution.is_met,
            message=solution.message,
            certificate=solution.certificate,
            intercepts=problem.intercepts(point) if self.parameters.get("intercept") else None,  # type: ignore[attr-defined]
            parts=dict(zip(self.parts, point, strict=True)) if self.parts else {},
        )


#: Losses with a number of their own after a colon, "huber:0.5".
_WITH_NUMBER = ("huber", "quantile")


def smooth_fits(
    problem: str, losses: Sequence[str] = ("squared", "logistic", "huber"), *, parts: tuple[str, ...] = (), rotates: bool = False
) -> dict[str, Specification]:
    """Return a problem that takes these losses by name."""
    return {loss: Specification(problem, {"loss": loss}, parts=parts, rotates=rotates) for loss in losses}


@dataclass(eq=False, repr=False, kw_only=True)
class SolvedTasks(LinearTasks):
    """A linear model whose coefficients a registered solver finds; its own parameters are those of the problem."""

    solver: str | None = None
    solver_options: dict[str, Any] | None = None
    max_seconds: float | None = None
    task_weights: Any = None
    warm_start: bool = False
    callback: Callback | None = None

    takes_shards = counts_weights = True
    fits: ClassVar[Mapping[str, Specification]]
    """The problems that it solves, by the loss that they are of."""

    def _specification(self) -> Specification:
        """Return the problem to solve; an unknown loss is an InputError."""
        name = str(self.loss).partition(":")[0]
        what = self.fits[one_of("loss", name if name in _WITH_NUMBER else self.loss, choices(self))]
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.init and each.name not in SHARED_PARAMETERS}
        loss = {"loss": self.loss} if name in _WITH_NUMBER else {}
        return replace(what, parameters={**own, **what.parameters, **loss})

    def _is_to_centre(self, design: Design) -> bool:
        return can_centre(design)

    def _specification_for(self, data: TaskData) -> Specification:
        """Return the problem to solve for these data, with a free intercept of its own where they are not centred for one."""
        what = self._specification()
        has_own = self.fit_intercept and not self._is_centred(data)
        return replace(what, parameters={**what.parameters, "intercept": True}) if has_own else what

    def _fit_data(self, data: TaskData) -> FittedTasks:
        """Solve the problem on these data.

        Raises InputError: a parameter that is not allowed, a solver that does not exist or does not fit the problem; BenchError: the solver
        fails.
        """
        tol, what, space, first, solver = self._prepared(data)
        start = self._last_fit(data, what, space)
        budget = Budget(self.max_iter, self.max_seconds)  # its clock begins here
        solution, problem = solve(first, solver, tol, budget, start, self.callback), first
        if space is not None:
            problem = what.on(data)
            solution = self._lifted(solution, space, problem, what, budget)
        return what.fitted(solution, budget.steps, problem)

    def _fit_path(self, data: TaskData, name: str, values: Sequence[float]) -> dict[float, FittedTasks]:
        """Solve the problem for every value of the parameter `name`, each from its neighbour's solution, each with a proof of its own.

        `max_iter` and `max_seconds` limit every single solve. Errors are those of `_fit_data`.
        """
        tol, what, space, _, solver = self._prepared(data, **{name: values[0]})
        reduced = data if space is None else space.data
        limits = Budget(self.max_iter, self.max_seconds).limits()
        found = solve_path(lambda value: what.on(reduced, **{name: value}), values, solver, tol, limits)
        fits: dict[float, FittedTasks] = {}
        for value, solution in found.items():
            budget = Budget(self.max_iter, self.max_seconds, solution.steps)
            problem = what.on(data, **{name: value})
            if space is not None:
                solution = self._lifted(solution, space, problem, what, budget)
            fits[value] = what.fitted(solution, budget.steps, problem)
        return fits

    def _last_fit(self, data: TaskData, what: Specification, space: RowSpace | None) -> Iterate | None:
        """Return the coefficients of the last fit, in the space where the problem is solved, if `warm_start` asks for them and they fit."""
        if not true_or_false("warm_start", self.warm_start):
            return None
        parts = [np.atleast_2d(getattr(self, name, 0.0)).T for name in what.parts or ("coef_",)]
        if any(W.shape != (data.n_features, data.n_tasks) for W in parts):
            return None
        parts = parts if space is None else [space.coordinates(W) for W in parts]
        return Iterate(np.stack(parts) if what.parts else np.ascontiguousarray(parts[0]))

    def _prepared(self, data: TaskData, **others: Any) -> tuple[float, Specification, RowSpace | None, Problem, Solver]:
        """Return the gap to prove, what is solved, in which space, the problem there, and its solver, once all is checked and compiled."""
        Budget(self.max_iter, self.max_seconds)
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback must be a function or None, not {self.callback!r}")
        tol, what = real_number("tol", self.tol, strict=True), self._specification_for(data)
        space = what.row_space(data)
        first = what.on(data if space is None else space.data, **others)
        solver = self._solver_of(first, what)
        if self.max_seconds is not None:
            warm_up(solver, first)
        return tol, what, space, first, solver

    def _lifted(self, found: Solution, space: RowSpace, problem: Problem, what: Specification, budget: Budget) -> Solution:
        """Return the solution of the problem with all features that one in the space of the rows gives, certified anew."""
        point = problem.repair(space.coefficients(found.point))
        start = Iterate(point, space.dual(found.dual))
        solution = found._replace(point=point, certificate=problem.certify(start))
        # What rounding has done to an ill-conditioned basis is left to do with all features.
        if found.is_met and not tolerance_of(problem, self.tol).met_by(solution.certificate, problem.scale()):
            return solve(problem, self._solver_of(problem, what), self.tol, budget, start, self.callback)
        return solution

    def _solver_of(self, problem: Problem, what: Specification) -> Solver:
        """Return the solver; of examples in shards without a name one of those that need not hold so many of their columns."""
        preferred = what.preferred
        if problem.is_in_shards:
            design = problem.design  # type: ignore[attr-defined]
            if design.n_stored * (_SPARSE if design.is_sparse else _DENSE) > _MOST_COLUMNS:
                preferred = [(name, options) for name, options in preferred if name not in _OF_COLUMNS]
        return solver_for(problem, self.solver, self.solver_options, preferred)
