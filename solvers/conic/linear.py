"""CVXPY interfaces to solvers of linear programmes that it has none for, or whose own does not do: each is a function of a programme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.types import Array


@dataclass(frozen=True)
class Programme:
    """Minimise costs'x over x without bounds, lower <= rows x <= upper."""

    costs: Array
    rows: Any
    """CSR."""
    lower: Array
    upper: Array


@dataclass(frozen=True)
class Solved:
    """What a solver answers."""

    ending: str
    """ "OPTIMAL", "PRIMAL_INFEASIBLE", "DUAL_INFEASIBLE", "TIME_LIMIT", or its own word for another one."""
    primal: Array
    """Empty where there is none."""
    dual: Array
    """One number a row, at least 0 where only `lower` binds."""
    seconds: float
    iterations: int


Prepared = Callable[[Mapping[str, Any]], Solved]
"""Solves a programme with these options, as often as it is called."""


def linear_interface(name: str, prepare: Callable[[Programme], Prepared]) -> Any:
    """Return a CVXPY interface that prepares a programme once, while it is compiled, and returns the seconds and steps that are stated."""
    import cvxpy.settings as words
    from cvxpy.reductions.solution import Solution
    from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver

    statuses = {"OPTIMAL": words.OPTIMAL, "PRIMAL_INFEASIBLE": words.INFEASIBLE, "DUAL_INFEASIBLE": words.UNBOUNDED}

    class Linear(ConicSolver):  # type: ignore[misc]
        def name(self) -> str:
            return name

        def cite(self, data: Any) -> str:
            return ""

        def import_solver(self) -> None:
            """Do nothing: it is imported when a programme is prepared."""

        def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            data, inverse = super().apply(problem)
            lower = -data[words.B]
            upper = np.where(np.arange(lower.size) < data[words.DIMS].zero, lower, np.inf)
            return {**data, "prepared": prepare(Programme(data[words.C], (-data[words.A]).tocsr(), lower, upper))}, inverse

        def solve_via_data(self, data: Any, warm_start: bool, verbose: bool, solver_opts: Any, solver_cache: Any = None) -> dict[str, Any]:
            solved = data["prepared"](solver_opts)
            equalities = data[words.DIMS].zero
            return {
                "status": statuses.get(solved.ending, words.USER_LIMIT),
                "value": float(data[words.C] @ solved.primal) if solved.primal.size else float("-inf"),
                "primal": solved.primal,
                "eq_dual": solved.dual[:equalities],
                "ineq_dual": solved.dual[equalities:],
                "attr": {words.SOLVE_TIME: solved.seconds, words.NUM_ITERS: solved.iterations},
                "out_of_time": solved.ending == "TIME_LIMIT",
            }

        def invert(self, solution: dict[str, Any], inverse_data: Any) -> Any:
            inverted = super().invert(solution, inverse_data)
            return Solution(inverted.status, inverted.opt_val, inverted.primal_vars, inverted.dual_vars, solution["attr"])

    return Linear()
