"""Nesterov's smoothing of a nonsmooth loss, minimised by an accelerated proximal gradient method while the smoothing falls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver

STEP_RULES = ("local", "lipschitz")
#: The smallest smoothing: margins are of the order of 1, and less than this is lost in rounding.
_SMALLEST_SMOOTHING = 1e-13
#: The smoothed problem is solved when its value changes between two checks by no more than this share of what smoothing hides.
_SETTLED = 1e-9
#: What a value loses in rounding, as a share of it.
_ROUNDING = 1e-16
#: Steps between two checks; after 20 checks only they yield iterates.
_CHECK_EVERY = 10


@dataclass(frozen=True)
class SmoothedGradient(SteppingSolver):
    """Continuation in mu of the accelerated proximal gradient method for f_mu + r, f_mu <= f the smoothing of the loss f::

        W_{i+1} = prox_{r/L}(V_i - grad f_mu(V_i) / L),   V_{i+1} = W_{i+1} + (t_i - 1) / t_{i+1} (W_{i+1} - W_i)

    with t_{i+1} = (1 + sqrt(1 + 4 t_i^2)) / 2, and t = 1 again when the momentum points uphill or mu falls.

    Every 10 steps the objective F = f + r and the best lower bound D so far are computed, and mu falls as soon as
    F - D <= F - f_mu - r: what is left to prove is no more than what the smoothing hides. (At the minimum of the smoothed problem
    f_mu + r <= D, so that this happens after finitely many steps.) It also falls when f_mu + r hardly moves any more, as far as its
    rounding shows that, for problems whose bounds prove nothing. A good start finds its mu by the same rule.

    The dual point of an iterate is the best of all so far: those that give the gradients, and their averages since the last
    restart with the weights t_i. A check costs 1.5 passes, a step one.

    Parameters
    ----------
    smoothing : the first mu, above 0
    reduction : mu falls by this factor, in (0, 1)
    step_rule : "lipschitz" takes the problem's Lipschitz constant of grad f_mu as L; "local" the largest ||dG||^2 / <dG, dV> of successive
        search points, forgotten by a fifth a step and never above that constant: with a small mu few examples bend
        f_mu at a time. A heuristic that converges two or three times faster.

    References
    ----------
    Nesterov, Mathematical Programming 103, 2005, sections 2 to 4 (smoothing, dual average); O'Donoghue, Candes, Foundations
    of Computational Mathematics 15, 2015 (restart).
    """

    smoothing: float = 1.0
    reduction: float = 0.5
    step_rule: str = "local"

    name: ClassVar[str] = "smoothed_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTHED, Capability.PROX})
    takes_shards: ClassVar[bool] = True
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        real_number("smoothing", self.smoothing, strict=True)
        real_number("reduction", self.reduction, strict=True, below=1.0)
        one_of("step_rule", self.step_rule, STEP_RULES)

    def stepper(self, problem: Problem) -> SmoothedStepper:
        return SmoothedStepper(problem, self)


@dataclass
class State:
    """Where a run is."""

    point: Array
    best_point: Array
    search_point: Array
    search_before: Array
    """The last search point, and the gradient there; what they are is no matter where they are not known."""
    gradient_before: Array
    dual: Array
    best_dual: Array
    average: Array
    """The sum of the dual points since the last restart, with their weights."""
    smoothing: float
    curvature: float
    average_weight: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf
    smoothed_before: float = math.inf
    momentum: float = 1.0
    model: float = 0.0
    """The smoothed loss at the point, but for its distance from the plane at the search point."""
    is_known: bool = False
    since_check: int = 0
    step: int = 0
    work: float = 0.0


class SmoothedStepper(Stepper):
    """The rules by which a state becomes the next."""

    def __init__(self, problem: Problem, options: SmoothedGradient) -> None:
        self.problem, self.options = problem, options
        # L(mu) <= L(1) / mu for mu <= 1, and exactly so for a loss without a smooth part.
        self._lipschitz = problem.smoothed_lipschitz(options.smoothing) * options.smoothing
        self._no_dual = np.zeros(problem.dual_shape)

    def start(self, at: Iterate) -> State:
        """Compute bounds at the start, and choose the smoothing that suits them."""
        point, none, smoothing = at.primal, self._no_dual, self.options.smoothing
        now = State(point, point, point, point, point, none, none, none, smoothing, self._largest_curvature(smoothing))
        now.lowest = self._bound(now, [] if at.dual is None else [at.dual])
        while True:
            value, _, dual = self.problem.smoothed(point, now.smoothing)
            now.work += 1.5
            self._keep(now, dual, self.problem.dual_bound(point, dual))
            if not self._lower_smoothing(now, now.lowest, value + self.problem.prox_value(point)):
                now.curvature = self._largest_curvature(now.smoothing)
                return now

    def step(self, now: State) -> State:
        while True:
            self._advance(now)
            if now.since_check == _CHECK_EVERY:
                self._check(now)
                return now
            if now.step <= 20 * _CHECK_EVERY:
                return now

    def iterate(self, now: State) -> Iterate:
        """Return the best point and dual point after a check, and the last ones elsewhere."""
        best = now.since_check == 0
        return Iterate(now.best_point if best else now.point, now.best_dual if best else now.dual, now.step, now.work)

    def _largest_curvature(self, smoothing: float) -> float:
        return self._lipschitz / smoothing or 1.0  # where the gradient is constant, any step size will do

    def _advance(self, now: State) -> None:
        """Take one step from the search point: one pass over the data."""
        problem, search_point = self.problem, now.search_point
        value, gradient, now.dual = problem.smoothed(search_point, now.smoothing)
        now.step += 1
        now.work += 1.0
        now.since_check += 1
        now.average_weight, now.average = now.average_weight + now.momentum, now.average + now.momentum * now.dual
        self._update_curvature(now, gradient)
        new = problem.prox(search_point - gradient / now.curvature, 1.0 / now.curvature)
        now.model = value + float(np.vdot(gradient, new - search_point))
        uphill = float(np.vdot(search_point - new, new - now.point)) > 0.0
        before, now.point = now.point, new
        if uphill:
            self._restart(now)
            return
        following = 0.5 * (1.0 + (1.0 + 4.0 * now.momentum * now.momentum) ** 0.5)
        now.search_point = new + (now.momentum - 1.0) / following * (new - before)
        now.momentum = following

    def _check(self, now: State) -> None:
        """Compute bounds, keep the best, and lower the smoothing where it is what keeps them apart."""
        now.since_check = 0
        objective = self._bound(now, [now.dual, now.average / now.average_weight] if now.average_weight > 1.0 else [now.dual])  # of several
        if objective < now.lowest:
            now.lowest, now.best_point = objective, now.point
        # The smoothed loss at the new point is known up to its distance from the plane at the search point.
        if self._lower_smoothing(now, objective, now.model + self.problem.prox_value(now.point)):
            now.is_known = False
            now.curvature = min(now.curvature / self.options.reduction, self._largest_curvature(now.smoothing))
            self._restart(now)

    def _lower_smoothing(self, now: State, objective: float, smoothed_objective: float) -> bool:
        hidden = objective - smoothed_objective
        proven = objective - now.highest <= hidden
        decrease, now.smoothed_before = now.smoothed_before - smoothed_objective, smoothed_objective
        moves = _SETTLED * hidden  # below rounding the value may stand still by chance
        settled = abs(decrease) <= moves and moves > _ROUNDING * abs(smoothed_objective)
        if now.smoothing <= _SMALLEST_SMOOTHING or not (proven or settled):
            return False
        now.smoothing *= self.options.reduction
        now.smoothed_before = math.inf
        return True

    def _bound(self, now: State, duals: Sequence[Array]) -> float:
        """Return the objective at the point, and keep the best of some dual points."""
        now.work += 0.5 + 0.5 * len(duals)
        objective, bounds = self.problem.bounds(now.point, duals)
        for dual, bound in zip(duals, bounds, strict=True):
            self._keep(now, dual, bound)
        return objective

    def _keep(self, now: State, dual: Array, bound: float) -> None:
        if bound > now.highest:
            now.highest, now.best_dual = bound, dual

    def _update_curvature(self, now: State, gradient: Array) -> None:
        """Set a local L to the curvature met in the last step, or to four fifths of L where that is larger."""
        if self.options.step_rule == "lipschitz":
            return
        if now.is_known:
            change, move = gradient - now.gradient_before, now.search_point - now.search_before
            inner = float(np.vdot(change, move))
            here = float(np.vdot(change, change)) / inner if inner > 0.0 else 0.0
            now.curvature = min(max(here, 0.8 * now.curvature), self._largest_curvature(now.smoothing))
        now.is_known, now.search_before, now.gradient_before = True, now.search_point, gradient

    def _restart(self, now: State) -> None:
        now.search_point, now.momentum, now.average_weight, now.average = now.point, 1.0, 0.0, self._no_dual
