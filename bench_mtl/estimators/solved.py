"""Linear models of many tasks that are solutions of a registered problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Iterate, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget, Solution, installed, solve, solver_for, warm_up
from bench_mtl.estimators.linear import FittedTasks, LinearTasks
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.model.protocols import Problem, Solver

Preferred = Sequence[tuple[str, Mapping[str, Any]]]
"""Names and options of solvers, the best first."""


@dataclass(eq=False, repr=False, kw_only=True)
class SolvedTasks(LinearTasks):
    """A linear model whose coefficients a registered solver finds. `LinearTasks` explains the parameters."""

    solver: str | None = None
    solver_options: dict[str, Any] | None = None
    max_seconds: float | None = None

    def _solve(
        self,
        problem_name: str,
        data: TaskData,
        parameters: Mapping[str, Any],
        preferred: Preferred,
        parts: tuple[str, ...] = (),
        *,
        rotated: str | None = None,
    ) -> FittedTasks:
        """Solve a registered problem on these data.

        Parameters
        ----------
        preferred : the solvers to choose from where `solver` is None: the first that can take the problem
        parts : attributes for the matrices of a point that is a stack of them; the coefficients are their sum
        rotated : the loss, where the problem is one of the predictions and the singular values of its point alone, so that wide data can be
            taken in the space of their rows (`RowSpace`)

        Raises
        ------
        InputError : a parameter that is not allowed, a solver that does not exist or does not fit the problem.
        BenchError : the solver fails.
        """
        Budget(self.max_iter, self.max_seconds)  # its parameters are checked before anything is computed
        tol = real_number("tol", self.tol, strict=True)

        def problem_on(some: TaskData) -> Problem:
            return installed().problem(problem_name).from_data(some, **parameters)

        def solver_of(problem: Problem) -> Solver:
            return solver_for(problem, self.solver, self.solver_options, preferred)

        def solution_of(problem: Problem, start: Iterate | None = None) -> Solution:
            return solve(problem, solver_of(problem), tol, budget, start)

        space = None if rotated is None else RowSpace.of(data, squares=rotated == "squared")
        first = problem_on(data if space is None else space.data)
        if self.max_seconds is not None:
            warm_up(solver_of(first), first)
        budget = Budget(self.max_iter, self.max_seconds)  # its clock begins here
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
