"""The projected gradient method (PG) of the sparse + low-rank paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, LinearForm, loss_under
from bench_mtl.model.normal_equations import cheaper_than_data, factorisable, normal_blocks
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import SHOWN_SHARE, Capability, Problem, Solver
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.projections import METHODS
from bench_mtl.solvers.scaled_problem import ScaledProblem

STEP_RULES = ("lipschitz", "line_search")

GRAM_RULES = ("auto", "always", "never")

Prox: TypeAlias = Callable[[Array, float], Array]


@dataclass(frozen=True)
class ProjectedGradient(SteppingSolver):
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

    def stepper(self, problem: Problem) -> Stepper:
        if uses_gram(self.gram, problem):
            return GramStepper(self, problem, accelerated=False, restarted=False)
        return ProjectedStepper(self, problem)


class State(NamedTuple):
    point: Array
    value: float
    gradient: Array
    lipschitz: float
    objective_before: float = math.inf
    step: int = 0
    work: float = 1.0


class ProjectedStepper(Stepper):
    def __init__(self, solver: ProjectedGradient, problem: Problem) -> None:
        self._solver, self._problem, self._prox = solver, problem, prox_of(problem, solver.projection)

    def start(self, at: Iterate) -> State:
        solver, problem = self._solver, self._problem
        lipschitz = problem.lipschitz() if solver.step_rule == "lipschitz" else solver.initial_lipschitz
        return State(at.primal, *problem.value_and_gradient(at.primal), lipschitz)

    def step(self, now: State) -> State | None:
        solver, problem, objective = self._solver, self._problem, now.value + self._problem.prox_value(now.point)
        if small_change(now.objective_before, objective, solver.objective_change):
            return None
        is_searched = solver.step_rule == "line_search"
        new, L, trials = prox_step(problem, self._prox, now.point, now.value, now.gradient, now.lipschitz, search=is_searched)
        value, gradient = problem.value_and_gradient(new)
        return State(new, value, gradient, L, objective, now.step + 1, now.work + 1.0 + 0.5 * trials)

    def iterate(self, now: State) -> Iterate:
        return Iterate(now.point, None, now.step, now.work)


def prox_step(
    problem: Problem | ScaledProblem, prox: Prox, point: Array, value: float, gradient: Array, L: float, *, search: bool
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


def small_change(previous: float, objective: float, bound: float | None) -> bool:
    """The papers' stopping rule: |change of the objective| < bound."""
    return bound is not None and abs(previous - objective) < bound


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


class GramStepper(Stepper):
    """Gradient steps on least squares, by blocks of X_k^T X_k: the cost of a step is independent of the examples.

    The change of the objective that stops it is computed from the step itself, so it has digits that a difference of objectives lacks.
    """

    kept = ("_loop", "_scalars", "_step", "_shows_before")

    def __init__(self, solver: Any, problem: Problem, *, accelerated: bool, restarted: bool) -> None:
        import bench_mtl.solvers.kernels.split as kernels

        form = problem.form(LinearForm)
        blocks = normal_blocks(form.design)
        target = np.ascontiguousarray(form.design.adjoint(form.fit.targets).T)
        self._solver, self._problem = solver, problem
        self._kernels: Any = kernels
        self._blocks, self._rule = (
            blocks,
            kernels.Descent(
                *form.penalty_and_radius, accelerated, restarted, solver.step_rule == "line_search", solver.objective_change or 0.0
            ),
        )
        self._fixed = tuple(blocks), target, tuple(self._rule)  # plain tuples, which Numba recognises sooner
        #: (P, Q, H(P + Q)) of the last iterate, then of the one before; room for a step.
        self._loop, self._scratch = np.zeros((2, 6, *target.shape))
        self._step, self._shows_before = 0, False

    def start(self, at: Iterate) -> GramStepper:
        loop = self._loop
        loop[:2] = at.primal.transpose(0, 2, 1)
        self._kernels.apply_blocks(self._blocks, loop[0] + loop[1], loop[2])
        loop[3:] = loop[:3]
        lipschitz = self._solver.initial_lipschitz if self._rule.searched else self._problem.lipschitz()
        self._scalars = np.array([0.0, 1.0, lipschitz, 1.0, 0.0])
        return self

    def step(self, now: GramStepper) -> GramStepper | None:
        """Take some steps; of the last ones the iterate before the last is shown first."""
        is_over, steps = bool(self._scalars[self._kernels.STOPPED]), self._kernels.gradient_steps
        if is_over and not self._shows_before:
            return None
        if is_over:
            self._shows_before = False
            return self
        made = steps(*self._fixed, self._loop, self._scratch, self._scalars, 1 + self._step // SHOWN_SHARE)
        self._step += made
        self._shows_before = made > 1 and bool(self._scalars[self._kernels.STOPPED])
        return self

    def iterate(self, now: GramStepper) -> Iterate:
        products, earlier = float(self._scalars[self._kernels.PRODUCTS]), int(self._shows_before)
        return Iterate(_as_point(self._loop[3 * earlier :][:2]), None, self._step - earlier, products - earlier)


def _as_point(pair: Array) -> Array:
    """(P, Q) held task by task as a point of its own."""
    return np.array(pair.transpose(0, 2, 1), order="C")
