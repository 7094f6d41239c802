"""Nesterov's smoothing of a nonsmooth loss, minimised by an accelerated proximal gradient method while the smoothing falls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem
from bench_mtl.model.solver_state import OwnState, state_of

STEP_RULES = ("local", "lipschitz")

#: The smallest smoothing: margins are of the order of 1, and less than this is lost in rounding.
_SMALLEST_SMOOTHING = 1e-13

#: The smoothed problem is solved when its value changes between two checks by no more than this share of what smoothing hides.
_SETTLED = 1e-9

#: Steps between two checks; after 20 checks only they yield iterates.
_CHECK_EVERY = 10


@dataclass(frozen=True)
class SmoothedGradient(IterativeSolver):
    """Continuation in mu of the accelerated proximal gradient method for f_mu + r, f_mu <= f the smoothing of the loss f::

        W_{i+1} = prox_{r/L}(V_i - grad f_mu(V_i) / L),   V_{i+1} = W_{i+1} + (t_i - 1) / t_{i+1} (W_{i+1} - W_i)

    with t_{i+1} = (1 + sqrt(1 + 4 t_i^2)) / 2, and t = 1 again when the momentum points uphill or mu falls.

    Every 10 steps the objective F = f + r and the best lower bound D so far are computed, and mu falls as soon as
    F - D <= F - f_mu - r: what is left to prove is no more than what the smoothing hides. (At the minimum of the smoothed problem
    f_mu + r <= D, so that this happens after finitely many steps.) It also falls
    when f_mu + r hardly moves any more, for problems whose bounds prove nothing. A good start finds its mu by the same rule.

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

    def __post_init__(self) -> None:
        real_number("smoothing", self.smoothing, strict=True)
        if real_number("reduction", self.reduction, strict=True) >= 1.0:
            raise InputError(f"reduction must be below 1, not {self.reduction:g}")
        one_of("step_rule", self.step_rule, STEP_RULES)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        own = OwnState.of(self, start)
        run = _Run(problem, self, problem.repair(start.primal) if own is None else start.primal)
        if own is None:
            run.certify_start(start.dual)
            yield run.incumbent
        else:
            run.restore(own, start)
            yield start
        while True:
            run.advance()
            checked = run.since_check == _CHECK_EVERY
            if checked:
                run.check()
            if checked or run.step <= 20 * _CHECK_EVERY:
                yield run.incumbent if checked else run.last


class _Run:
    """The state of one run: point, search point, momentum, smoothing, and the best bounds so far."""

    def __init__(self, problem: Problem, options: SmoothedGradient, start: Array) -> None:
        self.problem, self.options = problem, options
        self.step, self.work, self.since_check = 0, 0.0, 0
        self.smoothing = options.smoothing
        # L(mu) <= L(1) / mu for mu <= 1, and exactly so for a loss without a smooth part.
        self._lipschitz = problem.smoothed_lipschitz(options.smoothing) * options.smoothing
        self._curvature = self._largest_curvature
        self.point = self._best_point = start
        self._lowest, self._highest = np.inf, -np.inf
        self._smoothed_before = np.inf
        self.dual = self._dual = np.zeros(problem.dual_shape)
        self._known: tuple[Array, Array] | None = None  # the last search point and its gradient
        self._search_point, self._t = start, 1.0
        self._average = (0.0, np.zeros(problem.dual_shape))

    @property
    def incumbent(self) -> Iterate:
        return Iterate(self._best_point, self.dual, self.step, self.work, state=self._kept())

    @property
    def last(self) -> Iterate:
        return Iterate(self.point, self._dual, self.step, self.work, state=self._kept())

    def _kept(self) -> Callable[[], Mapping[str, Any]]:
        """Return what makes the state of this moment: arrays are replaced and never changed, so that it is enough to hold them."""
        return partial(_state, self.options, dict(vars(self)))

    def restore(self, own: OwnState, start: Iterate) -> None:
        """Be where the run was that has made the state of `start`."""
        of_point, of_dual = self.problem.point_shape, self.problem.dual_shape
        self.step, self.work, self.since_check = start.step, start.work, int(own.number("since_check"))
        self.smoothing, self._curvature = own.number("smoothing"), own.number("curvature")
        self.point, self._best_point = own.array("point", of_point), own.array("best_point", of_point)
        self._lowest, self._highest = own.number("lowest"), own.number("highest")
        self._smoothed_before = own.number("smoothed_before")
        self.dual, self._dual = own.array("best_dual", of_dual), own.array("dual", of_dual)
        self._search_point, self._t = own.array("search_point", of_point), own.number("momentum")
        self._average = own.number("average_weight"), own.array("average_total", of_dual)
        self._known = None
        if "known_gradient" in own.entries:
            self._known = own.array("known_point", of_point), own.array("known_gradient", of_point)

    @property
    def _largest_curvature(self) -> float:
        return self._lipschitz / self.smoothing or 1.0  # where the gradient is constant, any step size will do

    def certify_start(self, dual: Array | None) -> None:
        """Compute bounds at the start, and choose the smoothing that suits them."""
        self._lowest = self._bound([] if dual is None else [dual])
        while True:
            value, _, own = self.problem.smoothed(self.point, self.smoothing)
            self.work += 1.5
            self._keep(own, self.problem.dual_bound(self.point, own))
            if not self._lower_smoothing(self._lowest, value + self.problem.prox_value(self.point)):
                return

    def advance(self) -> None:
        """Take one step from the search point: one pass over the data."""
        problem, search_point = self.problem, self._search_point
        value, gradient, self._dual = problem.smoothed(search_point, self.smoothing)
        self.step += 1
        self.work += 1.0
        self.since_check += 1
        self._average = (self._average[0] + self._t, self._average[1] + self._t * self._dual)
        self._update_curvature(gradient)
        new = problem.prox(search_point - gradient / self._curvature, 1.0 / self._curvature)
        self._model = value + float(np.vdot(gradient, new - search_point)), new
        uphill = float(np.vdot(search_point - new, new - self.point)) > 0.0
        before, self.point = self.point, new
        if uphill:
            self._restart()
            return
        following = 0.5 * (1.0 + (1.0 + 4.0 * self._t * self._t) ** 0.5)
        self._search_point = new + (self._t - 1.0) / following * (new - before)
        self._t = following

    def check(self) -> None:
        """Compute bounds, keep the best, and lower the smoothing where it is what keeps them apart."""
        self.since_check = 0
        weight, total = self._average
        objective = self._bound([self._dual, total / weight] if weight > 1.0 else [self._dual])  # of more than one
        if objective < self._lowest:
            self._lowest, self._best_point = objective, self.point
        # The smoothed loss at the new point is known up to its distance from the plane at the search point.
        if self._lower_smoothing(objective, self._model[0] + self.problem.prox_value(self.point)):
            self._known = None
            self._curvature = min(self._curvature / self.options.reduction, self._largest_curvature)
            self._restart()

    def _lower_smoothing(self, objective: float, smoothed_objective: float) -> bool:
        hidden = objective - smoothed_objective
        proven = objective - self._highest <= hidden
        decrease, self._smoothed_before = self._smoothed_before - smoothed_objective, smoothed_objective
        settled = abs(decrease) <= _SETTLED * hidden
        if self.smoothing <= _SMALLEST_SMOOTHING or not (proven or settled):
            return False
        self.smoothing *= self.options.reduction
        self._smoothed_before = np.inf
        return True

    def _bound(self, duals: Sequence[Array]) -> float:
        """Return the objective at the point, and keep the best of some dual points."""
        self.work += 0.5 + 0.5 * len(duals)
        objective, bounds = self.problem.bounds(self.point, duals)
        for dual, bound in zip(duals, bounds, strict=True):
            self._keep(dual, bound)
        return objective

    def _keep(self, dual: Array, bound: float) -> None:
        if bound > self._highest:
            self._highest, self.dual = bound, dual

    def _update_curvature(self, gradient: Array) -> None:
        """Set a local L to the curvature met in the last step, or to four fifths of L where that is larger."""
        if self.options.step_rule == "lipschitz":
            return
        if self._known is not None:
            change, move = gradient - self._known[1], self._search_point - self._known[0]
            inner = float(np.vdot(change, move))
            here = float(np.vdot(change, change)) / inner if inner > 0.0 else 0.0
            self._curvature = min(max(here, 0.8 * self._curvature), self._largest_curvature)
        self._known = self._search_point, gradient

    def _restart(self) -> None:
        self._search_point, self._t = self.point, 1.0
        self._average = (0.0, np.zeros(self.problem.dual_shape))


def _state(solver: SmoothedGradient, run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of a run, whose attributes these are."""
    known_point, known_gradient = run["_known"] or (None, None)
    weight, total = run["_average"]
    return state_of(
        solver, since_check=run["since_check"], smoothing=run["smoothing"], curvature=run["_curvature"], point=run["point"],
        best_point=run["_best_point"], lowest=run["_lowest"], highest=run["_highest"], smoothed_before=run["_smoothed_before"],
        best_dual=run["dual"], dual=run["_dual"], search_point=run["_search_point"], momentum=run["_t"], average_weight=weight,
        average_total=total, known_point=known_point, known_gradient=known_gradient,
    )  # fmt: skip
