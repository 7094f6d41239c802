"""Frank-Wolfe for the hinge over the ball of a norm of rows: smoothed, with pairwise or away steps, the smoothing falling with the gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm, NormHingeForm
from bench_mtl.model.protocols import Capability, Form, IterativeSolver, Problem
from bench_mtl.model.solver_state import OwnState, state_of
from bench_mtl.solvers.atoms import Atoms, HeldAtoms

VARIANTS = ("pairwise", "away", "plain")

#: The smallest smoothing: margins are of the order of 1, and less than this is lost in rounding.
_SMALLEST_SMOOTHING = 1e-13

#: Steps after which the slacks, which are updated in every step, are recomputed from the point, and the point from its atoms.
_REFRESH = 100


@dataclass(frozen=True)
class FrankWolfe(IterativeSolver):
    """W <- W + gamma D along a direction D between atoms, minimising the hinge smoothed by mu (as `Problem.smoothed` does)::

        f_mu(W) = sum_i max_{0 <= a_i <= s_i}  a_i slack_i - mu/2 a_i^2 / s_i,   slack_i = 1 - y_i x_i.w

    With G = grad f_mu(W), S = argmin <G, S> over the ball (`Problem.lmo`: one row of signs), and U the atom of W with the largest
    <G, U>, D is S - W ("plain"), S - U ("pairwise"), or the better of S - W and W - U ("away"). gamma minimises f_mu along D, exactly.
    The start is an atom like the others.

    The Frank-Wolfe gap <G, W - S> bounds f_mu(W) - min f_mu; the slope a of the smoothed hinge is a dual point, and the gap that
    W and a prove is <G, W - S> plus sum_i (s_i max(0, slack_i) - a_i slack_i), exactly. mu falls as soon as the first term is at most
    the second. So both bounds cost nothing beyond the step, which is one pass.

    Parameters
    ----------
    variant : "pairwise", "away" or "plain"
    smoothing : the first mu, above 0
    reduction : mu falls by this factor, in (0, 1)

    References
    ----------
    Jaggi, ICML 2013, algorithm 1 and section 2 (gap); Lacoste-Julien, Jaggi, NeurIPS 2015, algorithms 1 and 2 (away and pairwise steps).
    """

    variant: str = "pairwise"
    smoothing: float = 1.0
    reduction: float = 0.5

    name: ClassVar[str] = "frank_wolfe"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTHED, Capability.LMO})
    takes_shards: ClassVar[bool] = True
    takes: ClassVar[tuple[type[Form], ...]] = (HingeForm, NormHingeForm)

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS)
        real_number("smoothing", self.smoothing, strict=True)
        if real_number("reduction", self.reduction, strict=True) >= 1.0:
            raise InputError(f"reduction must be below 1, not {self.reduction:g}")

    @property
    def label(self) -> str:
        return self.name if self.variant == "pairwise" else f"{self.name}_{self.variant}"

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is None and _form_of(problem).radius is None:
            return f"{self.label} needs a bounded set, and a penalty bounds none: give {problem.name} a radius"
        return reason

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        own = OwnState.of(self, start)
        run = _Run(problem, self, problem.repair(start.primal) if own is None else start.primal)
        if own is not None:
            run.restore(own, start)
        while True:
            run.certify()
            yield Iterate(run.best_point, run.best_dual, run.step, run.work, state=run.kept())
            run.advance()


def _form_of(problem: Problem) -> HingeForm | NormHingeForm:
    return problem.form(HingeForm) if problem.has_form(HingeForm) else problem.form(NormHingeForm)


class _Run:
    """The state of one run: the point as a sum of atoms, its slacks, the smoothing, and the best bounds so far."""

    def __init__(self, problem: Problem, options: FrankWolfe, start: Array) -> None:
        self._problem, self._options, self._form = problem, options, _form_of(problem)
        self.step, self.work = 0, 0.0
        self._smoothing = options.smoothing
        self._atoms = Atoms(start)
        self.point = self.best_point = start
        self._lowest, self._highest = np.inf, -np.inf
        self._slack = self._recomputed_slack()
        self.best_dual = np.zeros(self._slack.shape)

    def kept(self) -> Callable[[], Mapping[str, Any]]:
        """Return what makes the state of this moment, between `certify` and `advance`: arrays of the run are replaced and never changed."""
        return partial(_state, self._options, dict(vars(self)), self._atoms.held())

    def restore(self, own: OwnState, start: Iterate) -> None:
        """Be where the run was that has made the state of `start`, before the last `certify`, which comes to the same once more."""
        of_point, of_dual = self._problem.point_shape, self._slack.shape
        self.step, self.work = start.step, start.work - 0.5
        self._smoothing = own.number("smoothing")
        self.point, self.best_point = own.array("point", of_point), own.array("best_point", of_point)
        self.best_dual, self._slack = own.array("best_dual", of_dual), own.array("slack", of_dual)
        self._lowest, self._highest = own.number("lowest"), own.number("highest")
        weights, rows = own.array("atom_weights", (None,)), own.array("atom_rows", (None,))
        values = own.array("atom_values", (len(rows), of_point[1]))
        if len(weights) != len(rows) or not np.isin(rows, np.arange(of_point[0])).all():
            raise InputError("the atoms of the state to go on from are no rows of the point with a weight each")
        self._atoms = Atoms.restored(own.array("atom_start", of_point), own.number("atom_start_weight"), rows, values, weights)

    def certify(self) -> None:
        """Compute gradient, vertex and bounds at the point; lower the smoothing as long as it hides more than the Frank-Wolfe gap."""
        form, slack = self._form, self._slack
        losses = form.weights * np.maximum(0.0, slack)
        objective = float(losses.sum())
        if objective < self._lowest:
            self._lowest, self.best_point = objective, self.point
        while True:
            a = form.weights * np.clip(slack / self._smoothing, 0.0, 1.0)
            self._gradient = -form.design.adjoint(a * form.labels)
            self.work += 0.5
            self._vertex = self._problem.lmo(self._gradient)
            self._gap = float(np.vdot(self._gradient, self.point - self._vertex))
            hidden = objective - float(np.vdot(a, slack))
            if objective - self._gap - hidden > self._highest:
                self._highest, self.best_dual = objective - self._gap - hidden, a
            if self._smoothing <= _SMALLEST_SMOOTHING or self._gap > hidden:
                return
            self._smoothing *= self._options.reduction

    def advance(self) -> None:
        """Take one step, its length by the line search."""
        self.step += 1
        atoms, gradient, variant = self._atoms, self._gradient, self._options.variant
        away = None if variant == "plain" else atoms.worst(gradient)
        if away is None:
            direction, longest = self._vertex - self.point, 1.0
        elif variant == "pairwise":
            direction, longest = self._vertex - atoms.dense(away), atoms.weight(away)
        else:
            direction, longest = self._vertex - self.point, 1.0
            backwards = self.point - atoms.dense(away)
            if float(np.vdot(gradient, backwards)) < float(np.vdot(gradient, direction)):
                weight = atoms.weight(away)
                direction, longest = backwards, weight / (1.0 - weight) if weight < 1.0 else np.inf
            else:
                away = None
        change = self._form.labels * self._form.design.forward(direction)
        self.work += 0.5
        gamma = line_search(self._slack, change, self._form.weights, self._smoothing, longest)
        if variant == "pairwise":
            atoms.move(away, self._vertex, gamma, all_of_it=gamma == longest)
        elif away is None:
            atoms.towards(self._vertex, gamma)
        else:
            atoms.away_from(away, gamma, all_of_it=gamma == longest)
        if self.step % _REFRESH == 0:
            self.point = atoms.total()
            self._slack = self._recomputed_slack()
        else:
            self.point = self.point + gamma * direction
            self._slack = self._slack - gamma * change

    def _recomputed_slack(self) -> Array:
        self.work += 0.5
        return 1.0 - self._form.labels * self._form.design.forward(self.point)


def _state(solver: FrankWolfe, run: Mapping[str, Any], atoms: HeldAtoms) -> Mapping[str, Any]:
    """Return the state of a run, whose attributes these are."""
    return state_of(
        solver, smoothing=run["_smoothing"], point=run["point"], best_point=run["best_point"], best_dual=run["best_dual"],
        slack=run["_slack"], lowest=run["_lowest"], highest=run["_highest"], atom_start=atoms.start, atom_start_weight=atoms.start_weight,
        atom_rows=atoms.rows, atom_values=atoms.values, atom_weights=atoms.weights,
    )  # fmt: skip


def line_search(slack: Array, change: Array, weights: Array, smoothing: float, longest: float) -> float:
    """Return argmin over 0 <= gamma <= longest of the smoothed hinge at slacks `slack - gamma change`; 0 where it does not fall.

    Its slope in gamma rises and is piecewise linear: Newton's method, kept inside a bracket, ends on the right piece.
    """
    scale = weights * change

    def slope(gamma: float) -> tuple[float, float]:
        share = (slack - gamma * change) / smoothing
        bent = (share > 0.0) & (share < 1.0)
        return -float(np.vdot(scale, np.clip(share, 0.0, 1.0))), float(np.vdot(scale, np.where(bent, change, 0.0))) / smoothing

    first, curvature = slope(0.0)
    if first >= 0.0:
        return 0.0
    if np.isfinite(longest) and slope(longest)[0] <= 0.0:
        return longest
    low, high = 0.0, longest
    gamma, value = 0.0, first
    for _ in range(100):
        if value < 0.0:
            low = gamma
        else:
            high = gamma
        newton = gamma - value / curvature if curvature > 0.0 else np.inf
        middle = 0.5 * (low + high) if np.isfinite(high) else 2.0 * max(low, 1.0)
        following = newton if low < newton < high else middle
        if following == gamma or not low < following < high:
            break
        gamma = following
        value, curvature = slope(gamma)
        if abs(value) <= 1e-14 * -first:
            break
    return gamma
