"""The projected gradient method (PG) of the sparse + low-rank paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, LinearForm, loss_under
from bench_mtl.model.normal_equations import cheaper_than_data, factorisable, normal_blocks
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import SHOWN_SHARE, Capability, IterativeSolver, Problem, Solver
from bench_mtl.model.solver_state import LiveStates, OwnState, state_of
from bench_mtl.projections import METHODS

STEP_RULES = ("lipschitz", "line_search")

GRAM_RULES = ("auto", "always", "never")

Prox: TypeAlias = Callable[[Array, float], Array]


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
    gram : "auto" runs a compiled loop for the squared loss of a sparse plus a low-rank matrix wherever products with X_k^T X_k (or with
        X_k itself for tasks with fewer examples than features) cost less than passes over the data: the same iterates to rounding, of
        which the first 32, then one in about 32, and the last two are handed over; "always" refuses problems without, "never" uses the
        problem's own gradient and proximal operator
    projection : of a problem under an l1 constraint, the method of `project_l1_ball` to use ("newton", "pivot", "sort"); by
        default the problem's own proximal operator

    References
    ----------
    Chen, Liu, Ye, ACM TKDD 5(4), 2012, algorithms 1 and 3.
    """

    step_rule: str = "lipschitz"
    initial_lipschitz: float = 1.0
    objective_change: float | None = None
    gram: str = "auto"
    projection: str | None = None

    name: ClassVar[str] = "projected_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_gradient_options(self.step_rule, self.initial_lipschitz, self.objective_change, self.gram, self.projection)

    @property
    def label(self) -> str:
        return "_".join(filter(None, (self.name, self.projection)))

    def incompatibility(self, problem: Problem) -> str | None:
        own = super().incompatibility(problem) or step_incompatibility(self, self.step_rule, problem)
        return own or gram_incompatibility(self, self.gram, problem) or projection_incompatibility(self, self.projection, problem)

    def warm_up(self) -> None:
        from bench_mtl.solvers.kernels.split import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        if uses_gram(self.gram, problem):
            rule = GramRule(self, False, False, self.step_rule == "line_search", self.initial_lipschitz, self.objective_change)
            yield from gram_steps(problem, start, rule)
            return
        own = OwnState.of(self, start)
        if own is None:
            point = problem.repair(start.primal)
            L = problem.lipschitz() if self.step_rule == "lipschitz" else self.initial_lipschitz
            step, work, previous = 0, 0.0, None
        else:
            point, L, previous = start.primal, own.number("lipschitz"), own.optional_number("objective_before")
            step, work = start.step, start.work - 1.0  # the gradient, which is computed again, is counted already
        prox = prox_of(problem, self.projection)
        while True:
            value, gradient = problem.value_and_gradient(point)
            objective = value + problem.prox_value(point)
            work += 1.0
            yield Iterate(point, None, step, work, state=partial(state_of, self, lipschitz=L, objective_before=previous))
            if small_change(previous, objective, self.objective_change):
                return
            previous = objective
            point, L, trials = prox_step(problem, prox, point, value, gradient, L, search=self.step_rule == "line_search")
            work += 0.5 * trials
            step += 1


class Smooth(Protocol):
    """What has a smooth part."""

    def smooth_value(self, point: Array, /) -> float: ...


def prox_step(
    problem: Smooth, prox: Prox, point: Array, value: float, gradient: Array, L: float, *, search: bool
) -> tuple[Array, float, int]:
    """prox(point - gradient / L), the L that it took, and how many values of f the search cost.

    With `search`, L doubles until f(new) <= value + <gradient, new - point> + L/2 ||new - point||^2, or to the largest double.
    """
    trials = 0
    while True:
        new = prox(point - gradient / L, 1.0 / L) if L > 0.0 else prox(point, 1.0)
        if not search:
            return new, L, trials
        change = new - point
        model = value + float((gradient * change).sum()) + 0.5 * L * float((change * change).sum())
        trials += 1
        # The slack of a few ulp keeps rounding near the optimum from doubling L for ever.
        if problem.smooth_value(new) <= model + 1e-14 * abs(value) or not math.isfinite(2.0 * L):
            return new, L, trials
        L *= 2.0


def prox_of(problem: Problem, projection: str | None) -> Prox:
    """The problem's proximal operator, or its projection onto l1 balls by the method asked for."""
    if projection is None:
        return problem.prox
    return partial(problem.form(LinearForm).prox, method=projection)


def projection_incompatibility(solver: Solver, projection: str | None, problem: Problem) -> str | None:
    """Why the methods of projection have no place here, as a sentence."""
    if projection is None:
        return None
    if not problem.has_form(loss_under("smooth", L1)) or problem.form(LinearForm).radius is None:
        return f"{solver.label} needs an l1 ball to project onto, which {problem.name} has not in this form"
    return None


def small_change(previous: float | None, objective: float, bound: float | None) -> bool:
    """The papers' stopping rule: |change of the objective| < bound."""
    return bound is not None and previous is not None and abs(previous - objective) < bound


def check_gradient_options(
    step_rule: str, initial_lipschitz: float, objective_change: float | None, gram: str, projection: str | None
) -> None:
    """Refuse bad options shared by the gradient methods."""
    one_of("step_rule", step_rule, STEP_RULES)
    one_of("gram", gram, GRAM_RULES)
    real_number("initial_lipschitz", initial_lipschitz, strict=True)
    if objective_change is not None:
        real_number("objective_change", objective_change, strict=True)
    if projection is not None:
        one_of("projection", projection, METHODS)


@dataclass(frozen=True)
class GramRule:
    """The gradient method that the compiled loop runs."""

    solver: Solver
    """Whose states its states are."""
    accelerated: bool
    restarted: bool
    searched: bool
    initial_lipschitz: float
    objective_change: float | None


def step_incompatibility(solver: Solver, step_rule: str, problem: Problem) -> str | None:
    """Why steps by this rule cannot be taken on `problem`; None where they can."""
    if step_rule == "lipschitz" and not problem.gradient_is_lipschitz:
        return f"{solver.label} needs a step_rule that searches: the gradient of {problem.name} has no Lipschitz constant in this form"
    return None


def gram_incompatibility(solver: Solver, gram: str, problem: Problem) -> str | None:
    """Why "always" cannot be had, as a sentence."""
    if gram != "always":
        return None
    if not _is_least_squares(problem):
        return f"{solver.label} with gram 'always' needs a squared loss of a sparse plus a low-rank matrix, which {problem.name} is not"
    if not factorisable(problem.form(LinearForm).design):
        return f"{solver.label} with gram 'always' needs dense products X^T X, which are too large for this design"
    return None


def uses_gram(gram: str, problem: Problem) -> bool:
    """Return whether the compiled loop is to run."""
    if gram == "never" or not _is_least_squares(problem):
        return False
    return gram == "always" or cheaper_than_data(problem.form(LinearForm).design)


def _is_least_squares(problem: Problem) -> bool:
    return problem.has_form(SPARSE_PLUS_LOW_RANK) and not problem.form(LinearForm).has_intercept


def gram_steps(problem: Problem, start: Iterate, rule: GramRule) -> Iterator[Iterate]:
    """The iterates of a gradient method on least squares, by blocks of X_k^T X_k: the cost of a step is independent of the examples.

    The change of the objective that stops it is computed from the step itself, so it has digits that a difference of objectives lacks.
    """
    from bench_mtl.solvers.kernels.split import PRODUCTS, STOPPED, Descent, apply_blocks, gradient_steps

    own = OwnState.of(rule.solver, start)
    point = problem.repair(start.primal) if own is None else start.primal
    step, work = (0, 0.0) if own is None else (start.step, start.work)
    yield Iterate(point, None, step, work, state=None if own is None else own.entries)
    form = problem.form(LinearForm)
    blocks = normal_blocks(form.design)
    target = np.ascontiguousarray(form.design.adjoint(form.fit.targets).T)
    state, scratch = np.zeros((6, *target.shape)), np.empty((6, *target.shape))
    state[:2] = point.transpose(0, 2, 1)
    if own is None:
        apply_blocks(blocks, state[0] + state[1], state[2])
        state[3:] = state[:3]
        scalars = np.array([0.0, 1.0, rule.initial_lipschitz if rule.searched else problem.lipschitz(), 1.0, 0.0])
    else:
        state[2:], scalars = own.array("loop", (4, *target.shape)), own.array("scalars", (5,)).copy()
    kind = Descent(*form.penalty_and_radius, rule.accelerated, rule.restarted, rule.searched, rule.objective_change or 0.0)
    fixed = tuple(blocks), target, tuple(kind)  # plain tuples, which Numba recognises sooner
    shown, states = step, LiveStates(rule.solver)
    while not scalars[STOPPED]:
        count = 1 + step // SHOWN_SHARE
        states.go_on()
        made = gradient_steps(*fixed, state, scratch, scalars, count)
        step += made
        last = step - 1
        if scalars[STOPPED] and last > shown:
            yield Iterate(_as_point(state[3:5]), None, last, float(scalars[PRODUCTS]) - 1.0)
        shown = step
        yield Iterate(_as_point(state[:2]), None, step, float(scalars[PRODUCTS]), state=states.now(loop=state[2:], scalars=scalars))


def _as_point(pair: Array) -> Array:
    """(P, Q) held task by task as a point of its own."""
    return np.ascontiguousarray(pair.transpose(0, 2, 1))
