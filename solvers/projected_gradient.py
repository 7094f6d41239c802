"""The projected gradient method (PG) of the sparse + low-rank paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from bench_mtl.core.checks import one_of, real_number, unless_none
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, LinearForm, loss_under
from bench_mtl.model.normal_equations import cheaper_than_data, factorisable, normal_blocks
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import SHOWN_SHARE, Capability, IterativeSolver, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.projections import METHODS
from bench_mtl.solvers.scaled_problem import ScaledProblem

Prox: TypeAlias = Callable[[Array, float], Array]


@dataclass(frozen=True)
class GradientSolver(SteppingSolver):
    """The options of the gradient methods, and what they ask of a problem: see `ProjectedGradient`."""

    step_rule: str = "lipschitz"
    initial_lipschitz: float = 1.0
    objective_change: float | None = None
    gram: str = "auto"
    projection: str | None = None

    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("step_rule", self.step_rule, ("lipschitz", "line_search"))
        one_of("gram", self.gram, ("auto", "always", "never"))
        real_number("initial_lipschitz", self.initial_lipschitz, strict=True)
        unless_none(real_number, "objective_change", self.objective_change, strict=True)
        unless_none(one_of, "projection", self.projection, METHODS)

    def objection(self, problem: Problem) -> str | None:
        if self.step_rule == "lipschitz" and not problem.gradient_is_lipschitz:
            return f"{self.label} needs a step_rule that searches: the gradient of {problem.name} has no Lipschitz constant in this form"
        if self.gram == "always" and not _is_least_squares(problem):
            return f"{self.label} with gram 'always' needs a squared loss of a sparse plus a low-rank matrix, which {problem.name} is not"
        if self.gram == "always" and not factorisable(problem.form(LinearForm).design):
            return f"{self.label} with gram 'always' needs dense products X^T X, which are too large for this design"
        if self.projection is None or (problem.has_form(loss_under("smooth", L1)) and problem.form(LinearForm).radius is not None):
            return None
        return f"{self.label} needs an l1 ball to project onto, which {problem.name} has not in this form"

    def rehearsed(self) -> tuple[IterativeSolver, ...]:
        """Products with X_k^T X_k cost too much on tiny instances for "auto"."""
        return (self, replace(self, gram="always")) if self.gram == "auto" else (self,)

    @property
    def is_searched(self) -> bool:
        return self.step_rule == "line_search"

    def first_lipschitz(self, problem: Problem | ScaledProblem) -> float:
        return self.initial_lipschitz if self.is_searched else problem.lipschitz()

    def uses_gram(self, problem: Problem) -> bool:
        """Return whether the compiled loop is to run."""
        if self.gram == "never" or not _is_least_squares(problem):
            return False
        return self.gram == "always" or cheaper_than_data(problem.form(LinearForm).design)

    def prox_of(self, problem: Problem) -> Prox:
        """The problem's proximal operator, or its projection onto l1 balls by the method asked for."""
        return problem.prox if self.projection is None else partial(problem.form(LinearForm).prox, method=self.projection)


@dataclass(frozen=True)
class ProjectedGradient(GradientSolver):
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

    name: ClassVar[str] = "projected_gradient"

    @property
    def label(self) -> str:
        return "_".join(filter(None, (self.name, self.projection)))

    def stepper(self, problem: Problem) -> Stepper:
        if self.uses_gram(problem):
            return GramStepper(self, problem, accelerated=False, restarted=False)
        return GradientStepper(self, problem, self.prox_of(problem), restart="always")


class State(NamedTuple):
    point: Array
    previous: Array
    lipschitz: float
    objective: float = math.inf
    """At the point before, where its change is watched."""
    momentum_before: float = 0.0
    momentum: float = 1.0  # t_{-1} and t_0 of the paper: the first step has no momentum
    step: int = 0
    work: float = 0.0


class GradientStepper(Stepper):
    """Proximal gradient steps, from a point ahead unless `restart` drops the momentum: "always", "gradient" where it points uphill, "none".

    Before every step L is multiplied by `fall`.
    """

    def __init__(self, solver: GradientSolver, problem: Problem | ScaledProblem, prox: Prox, *, restart: str, fall: float = 1.0) -> None:
        self._solver, self._problem, self._prox, self._restart, self._fall = solver, problem, prox, restart, fall

    def start(self, at: Iterate) -> State:
        problem = self._problem
        point = problem.repair(problem.scaled(at.primal)) if isinstance(problem, ScaledProblem) else at.primal
        return State(point, point, self._solver.first_lipschitz(problem))

    def step(self, now: State) -> State | None:
        solver, problem, point, work, objective = self._solver, self._problem, now.point, now.work, now.objective
        search_point = point + (now.momentum_before - 1.0) / now.momentum * (point - now.previous)
        value, gradient = problem.value_and_gradient(search_point)
        if solver.objective_change is not None:
            if self._restart == "always" and isinstance(problem, Problem):  # the search point is the point
                objective = value + problem.prox_value(point)
            else:
                objective, work = problem.objective(point), work + 0.5
            if abs(now.objective - objective) < solver.objective_change:
                return None
        L = now.lipschitz * self._fall
        new, L, trials = prox_step(problem, self._prox, search_point, value, gradient, L, search=solver.is_searched)
        before, momentum = now.momentum, 0.5 * (1.0 + (1.0 + 4.0 * now.momentum * now.momentum) ** 0.5)
        drops = self._restart == "always" or (self._restart == "gradient" and float(((search_point - new) * (new - point)).sum()) > 0.0)
        if drops:
            before, momentum = 0.0, 1.0
        return State(new, new if drops else point, L, objective, before, momentum, now.step + 1, work + 1.0 + 0.5 * trials)

    def iterate(self, now: State) -> Iterate:
        problem = self._problem
        return Iterate(problem.unscaled(now.point) if isinstance(problem, ScaledProblem) else now.point, None, now.step, now.work)


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


def _is_least_squares(problem: Problem) -> bool:
    return problem.has_form(SPARSE_PLUS_LOW_RANK) and not problem.form(LinearForm).has_intercept


class GramStepper(Stepper):
    """Gradient steps on least squares, by blocks of X_k^T X_k: the cost of a step is independent of the examples.

    The change of the objective that stops it is computed from the step itself, so it has digits that a difference of objectives lacks.
    """

    kept = ("_loop", "_scalars", "_step", "_shows_before")

    def __init__(self, solver: GradientSolver, problem: Problem, *, accelerated: bool, restarted: bool) -> None:
        import bench_mtl.solvers.kernels.split as kernels

        form = problem.form(LinearForm)
        blocks = normal_blocks(form.design)
        target = np.ascontiguousarray(form.design.adjoint(form.fit.targets).T)
        self._solver, self._problem = solver, problem
        self._kernels: Any = kernels
        rule = kernels.Descent(*form.penalty_and_radius, accelerated, restarted, solver.is_searched, solver.objective_change or 0.0)
        self._blocks, self._fixed = blocks, (tuple(blocks), target, tuple(rule))  # plain tuples, which Numba recognises sooner
        #: (P, Q, H(P + Q)) of the last iterate, then of the one before; room for a step.
        self._loop, self._scratch = np.zeros((2, 6, *target.shape))
        self._step, self._shows_before = 0, False

    def start(self, at: Iterate) -> GramStepper:
        loop = self._loop
        loop[:2] = at.primal.transpose(0, 2, 1)
        self._kernels.apply_blocks(self._blocks, loop[0] + loop[1], loop[2])
        loop[3:] = loop[:3]
        self._scalars = np.array([0.0, 1.0, self._solver.first_lipschitz(self._problem), 1.0, 0.0])
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
        point = np.array(self._loop[3 * earlier :][:2].transpose(0, 2, 1), order="C")  # held task by task
        return Iterate(point, None, self._step - earlier, products - earlier)
