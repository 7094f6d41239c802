"""Frank-Wolfe for the hinge over the l1,inf ball: smoothed, with pairwise or away steps, the smoothing falling with the gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.checks import one_of, real_number
from bench_mtl.errors import InputError
from bench_mtl.protocols import Capability, IterativeSolver, Problem
from bench_mtl.types import Array, Iterate

VARIANTS = ("pairwise", "away", "plain")

#: Margins are of the order of 1, and so is what smoothing is measured in; below this it is lost in rounding.
_SMALLEST_SMOOTHING = 1e-13

#: Steps after which the slacks, which follow every step, are computed anew from the point, and the point from its atoms.
_REFRESH = 100


@dataclass(frozen=True)
class FrankWolfe(IterativeSolver):
    """W <- W + gamma D along a direction D between atoms, minimising the hinge smoothed by mu (as `Problem.smoothed` does)::

        f_mu(W) = sum_i max_{0 <= a_i <= s_i}  a_i slack_i - mu/2 a_i^2 / s_i,   slack_i = 1 - y_i x_i.w

    With G = grad f_mu(W), S = argmin <G, S> over the ball (`Problem.lmo`: one row of signs), and U the atom of W with the largest
    <G, U>, D is S - W ("plain"), S - U ("pairwise"), or the better of S - W and W - U ("away"). gamma minimises f_mu along D, exactly.
    The start is an atom like the others.

    The Frank-Wolfe gap <G, W - S> bounds f_mu(W) - min f_mu; the slope a of the smoothed hinge is a dual point, and the gap that
    W and a prove is <G, W - S> plus sum_i (s_i max(0, slack_i) - a_i slack_i), exactly. mu falls as soon as the first is at
    most `fraction` of the second. So both bounds cost nothing beyond the step, which is one pass.

    Parameters
    ----------
    variant : "pairwise", "away" or "plain"
    smoothing : the first mu, above 0
    reduction : mu falls by this factor, in (0, 1)
    fraction : see above, above 0

    References
    ----------
    Jaggi, ICML 2013, algorithm 1 and section 2 (gap); Lacoste-Julien, Jaggi, NeurIPS 2015, algorithms 1 and 2 (away and pairwise steps).
    """

    variant: str = "pairwise"
    smoothing: float = 1.0
    reduction: float = 0.5
    fraction: float = 1.0

    name: ClassVar[str] = "frank_wolfe"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTHED, Capability.LMO, Capability.HINGE})

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS)
        real_number("smoothing", self.smoothing, strict=True)
        if real_number("reduction", self.reduction, strict=True) >= 1.0:
            raise InputError(f"reduction must be below 1, not {self.reduction:g}")
        real_number("fraction", self.fraction, strict=True)

    @property
    def label(self) -> str:
        return self.name if self.variant == "pairwise" else f"{self.name}_{self.variant}"

    def misfit(self, problem: Problem) -> str | None:
        reason = super().misfit(problem)
        if reason is None and problem.hinge_form().radius is None:
            return f"{self.label} needs a bounded set, and a penalty bounds none: give {problem.name} a radius"
        return reason

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        run = _Run(problem, self, problem.repair(problem.start_point() if start is None else start))
        while True:
            run.judge()
            yield Iterate(run.best_point, run.best_dual, run.step, run.work)
            run.advance()


class _Run:
    """One run: its point as a sum of atoms, its slacks, its smoothing, and the best bounds so far."""

    def __init__(self, problem: Problem, options: FrankWolfe, start: Array) -> None:
        self._problem, self._options, self._form = problem, options, problem.hinge_form()
        self.step, self.work = 0, 0.0
        self._smoothing = options.smoothing
        self._atoms = _Atoms(start)
        self.point = self.best_point = start
        self.best_dual = np.zeros(problem.dual_shape)
        self._lowest, self._highest = np.inf, -np.inf
        self._slack = self._slack_anew()

    def judge(self) -> None:
        """Gradient, vertex and gap at the point; the smoothing falls where that is what keeps the bounds apart."""
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
            if self._smoothing <= _SMALLEST_SMOOTHING or self._gap > self._options.fraction * hidden:
                return
            self._smoothing *= self._options.reduction

    def advance(self) -> None:
        """One step, as long as the line search says."""
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
            self._slack = self._slack_anew()
        else:
            self.point = self.point + gamma * direction
            self._slack = self._slack - gamma * change

    def _slack_anew(self) -> Array:
        self.work += 0.5
        return 1.0 - self._form.labels * self._form.design.forward(self.point)


def line_search(slack: Array, change: Array, weights: Array, smoothing: float, longest: float) -> float:
    """argmin over 0 <= gamma <= longest of the smoothed hinge at slacks `slack - gamma change`; 0 where it does not fall.

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


class _Atoms:
    """The point as a convex combination of the start and of vertices, each one row of signs times the radius."""

    def __init__(self, start: Array) -> None:
        m = start.shape[1]
        self._start, self._start_weight = start, 1.0
        self._places: dict[tuple[int, bytes], int] = {}
        self._keys: list[tuple[int, bytes]] = []
        self._rows = np.zeros(16, dtype=np.int64)
        self._values = np.zeros((16, m))
        self._weights = np.zeros(16)

    def worst(self, gradient: Array) -> int:
        """The atom with the largest product with the gradient; -1 is the start."""
        n = len(self._keys)
        best, place = (float(np.vdot(gradient, self._start)), -1) if self._start_weight > 0.0 else (-np.inf, -1)
        if n:
            products = np.einsum("ij,ij->i", gradient[self._rows[:n]], self._values[:n])
            if float(products.max()) > best:
                place = int(products.argmax())
        return place

    def weight(self, place: int) -> float:
        return self._start_weight if place < 0 else float(self._weights[place])

    def dense(self, place: int) -> Array:
        if place < 0:
            return self._start
        out = np.zeros_like(self._start)
        out[self._rows[place]] = self._values[place]
        return out

    def total(self) -> Array:
        out = self._start_weight * self._start
        n = len(self._keys)
        np.add.at(out, self._rows[:n], self._weights[:n, None] * self._values[:n])
        return out

    def move(self, place: int | None, vertex: Array, gamma: float, *, all_of_it: bool) -> None:
        """gamma of the weight of one atom to the vertex."""
        assert place is not None
        if gamma > 0.0:
            self._add(vertex, gamma)
            self._set(place, 0.0 if all_of_it else self.weight(place) - gamma)

    def towards(self, vertex: Array, gamma: float) -> None:
        self._scale(1.0 - gamma)
        if gamma > 0.0:
            self._add(vertex, gamma)
        if gamma == 1.0:
            for place in range(len(self._keys) - 1, -1, -1):
                if self._weights[place] == 0.0:
                    self._drop(place)

    def away_from(self, place: int, gamma: float, *, all_of_it: bool) -> None:
        self._scale(1.0 + gamma)
        self._set(place, 0.0 if all_of_it else max(0.0, self.weight(place) - gamma))

    def _scale(self, factor: float) -> None:
        self._start_weight *= factor
        self._weights *= factor

    def _set(self, place: int, weight: float) -> None:
        if place < 0:
            self._start_weight = max(0.0, weight)
        elif weight > 0.0:
            self._weights[place] = weight
        else:
            self._drop(place)

    def _add(self, vertex: Array, weight: float) -> None:
        row = int(np.abs(vertex).max(axis=1).argmax())
        key = (row, np.signbit(vertex[row]).tobytes())
        place = self._places.get(key)
        if place is None:
            place = len(self._keys)
            if place == len(self._rows):
                self._grow()
            self._places[key] = place
            self._keys.append(key)
            self._rows[place], self._values[place], self._weights[place] = row, vertex[row], 0.0
        self._weights[place] += weight

    def _drop(self, place: int) -> None:
        """The last atom takes its place."""
        del self._places[self._keys[place]]
        last = len(self._keys) - 1
        if place != last:
            self._keys[place] = self._keys[last]
            self._places[self._keys[place]] = place
            for array in (self._rows, self._values, self._weights):
                array[place] = array[last]
        self._weights[last] = 0.0
        self._keys.pop()

    def _grow(self) -> None:
        self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
