"""The projected gradient method (PG) of the sparse + low-rank paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench_mtl.checks import one_of, real_number
from bench_mtl.protocols import Capability, IterativeSolver, Problem
from bench_mtl.types import Array, Iterate

STEP_RULES = ("lipschitz", "line_search")


@dataclass(frozen=True)
class ProjectedGradient(IterativeSolver):
    """T <- prox(T - grad f(T) / L).

    Parameters
    ----------
    step_rule : "lipschitz" takes the problem's Lipschitz constant (algorithm 3 of the paper); "line_search" starts at
        `initial_lipschitz` and doubles L until the quadratic model lies above f at the new point (algorithm 1)
    initial_lipschitz : L_0 of the line search, above 0
    objective_change : stop once the objective changes by less than this in one step, the papers' own rule. It proves
        nothing and is off by default.

    References
    ----------
    Chen, Liu, Ye, ACM TKDD 5(4), 2012, algorithms 1 and 3.
    """

    step_rule: str = "lipschitz"
    initial_lipschitz: float = 1.0
    objective_change: float | None = None

    name: ClassVar[str] = "projected_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})

    def __post_init__(self) -> None:
        check_gradient_options(self.step_rule, self.initial_lipschitz, self.objective_change)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        point = problem.repair(problem.zero() if start is None else start)
        L = problem.lipschitz() if self.step_rule == "lipschitz" else self.initial_lipschitz
        step, work, previous = 0, 0.0, None
        while True:
            value, gradient = problem.value_and_gradient(point)
            objective = value + problem.prox_value(point)
            work += 1.0
            yield Iterate(point, None, step, work)
            if small_change(previous, objective, self.objective_change):
                return
            previous = objective
            point, L, trials = prox_step(problem, point, value, gradient, L, search=self.step_rule == "line_search")
            work += 0.5 * trials
            step += 1


def prox_step(problem: Problem, point: Array, value: float, gradient: Array, L: float, *, search: bool) -> tuple[Array, float, int]:
    """prox(point - gradient / L), the L that it took, and how many values of f the search cost.

    With `search`, L doubles until f(new) <= value + <gradient, new - point> + L/2 ||new - point||^2.
    """
    trials = 0
    while True:
        new = problem.prox(point - gradient / L, 1.0 / L) if L > 0.0 else problem.prox(point, 1.0)
        if not search:
            return new, L, trials
        change = new - point
        model = value + float((gradient * change).sum()) + 0.5 * L * float((change * change).sum())
        trials += 1
        # The slack of a few ulp keeps rounding near the optimum from doubling L for ever.
        if problem.smooth_value(new) <= model + 1e-14 * abs(value):
            return new, L, trials
        L *= 2.0


def small_change(previous: float | None, objective: float, bound: float | None) -> bool:
    """The papers' stopping rule: |change of the objective| < bound."""
    return bound is not None and previous is not None and abs(previous - objective) < bound


def check_gradient_options(step_rule: str, initial_lipschitz: float, objective_change: float | None) -> None:
    """Refuse bad options shared by the gradient methods."""
    one_of("step_rule", step_rule, STEP_RULES)
    real_number("initial_lipschitz", initial_lipschitz, strict=True)
    if objective_change is not None:
        real_number("objective_change", objective_change, strict=True)
