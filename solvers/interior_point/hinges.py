"""Hinges under an l1,inf norm: a linear programme."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.forms import Hinges
from bench_mtl.model.intercepts import root_of_falling
from bench_mtl.solvers.interior_point.equations import Equations, Residuals, State
from bench_mtl.solvers.interior_point.system import NewtonSystem, Solution

#: The share that a given point is moved towards zero.
_RETREAT = 0.1
#: Duals far from the centre of their box would be worse than a residual, which the first steps remove.
_LEAST_BELOW = 0.1
#: Residuals where there are none.
_NONE: Array = np.empty(0)


def _central_slacks(short: Array, width: float) -> tuple[Array, Array]:
    """Return xi and r with xi r = width^2 and xi - r = short, one minus the margins; a / b = xi / r then gives r a = xi b."""
    root = np.hypot(short, 2.0 * width)
    xi = np.where(short > 0.0, 0.5 * (short + root), 2.0 * width**2 / (root - short))
    return xi, width**2 / xi


class HingeEquations(Equations):
    """`Equations` of `Hinges` under an l1,inf norm. With margins = y X w, and the dual a in its box 0 <= a <= s::

        r = margins + xi - 1     a + b = s     G = X^T (a y)     r a = xi b = 0

    The form has a penalty above 0, or a radius.
    """

    def __init__(self, form: Hinges, threads: int | None = 1) -> None:
        super().__init__(NewtonSystem(form.design, threads, intercept=form.has_intercept), form.radius, form.penalty, slacked=True)
        self._form = form
        self.labels, self.weights = form.design.stack(form.labels), form.design.stack(form.weights)

    @property
    def scale(self) -> float:
        return float(self.weights.sum())

    def dual_point(self, x: State) -> Array:
        return self.system.design.unstack(np.minimum(x.dual[self.layout.r], self.weights))

    def objective(self, x: State) -> float:
        return self._form.objective(self.into_radius(x.W) * x.W.T)

    def residuals(self, x: State) -> Residuals:
        at, slack, dual = self.layout, x.slack, x.dual
        return self.norm_residuals(
            x,
            self.labels * dual[at.r],
            r=self.labels * self.predictions(x) + slack[at.xi] - 1.0 - slack[at.r],
            s=self.weights - dual[at.r] - dual[at.xi],
        )

    def _weights(self, x: State) -> Array:
        spread = x.slack[self.layout.examples] / x.dual[self.layout.examples]
        return np.asarray(1.0 / (spread[self.layout.r] + spread[self.layout.xi]))

    def _example_sides(self, x: State, residuals: Residuals | None, target: Array) -> Array:
        from bench_mtl.solvers.interior_point.kernels import hinge_sides

        out = np.empty(len(self.labels))
        s, r = (_NONE, _NONE) if residuals is None else (residuals.s, residuals.r)
        hinge_sides(self.labels, (x.slack, x.dual), target, s, r, out)
        return out

    def _example_changes(
        self, x: State, residuals: Residuals | None, target: Array, solution: Solution, dslack: Array, ddual: Array
    ) -> None:
        from bench_mtl.solvers.interior_point.kernels import hinge_changes

        s = _NONE if residuals is None else residuals.s
        hinge_changes(self.labels, (x.slack, x.dual), target, s, solution.a, (dslack, ddual))

    def start(self, W: Array) -> State | None:
        """Return a point near W (m x d) that meets all linear equations; None where the data are so that W = 0 is optimal.

        With a small penalty p - q = G is missed. All products of examples, r a and xi b, start equal to s_k times the same number.
        """
        system, labels, weights = self.system, self.labels, self.weights
        full = system.adjoint(labels * system.design.stack(self._form.dual_at_zero()))
        if not full.any():
            return None
        retreat = _RETREAT if W.any() else 1.0
        W = (1.0 - retreat) * W
        predictions, b = system.forward(W), None
        if self._form.has_intercept:
            b = self._balancing(predictions, retreat)
            predictions = predictions + np.repeat(b, system.design.sizes)
        xi, r = _central_slacks(1.0 - labels * predictions, retreat)
        a = weights * (xi / (xi + r))
        bounds = self.bounds_at(W, retreat * self._extent(full), system.adjoint(labels * a), full)
        if bounds.scale < 1.0:
            a = max(bounds.scale, _LEAST_BELOW) * a
        return State(W, bounds.mu, np.concatenate([r, xi, bounds.slack]), np.concatenate([a, weights - a, bounds.dual]), b=b)

    def _balancing(self, predictions: Array, width: float) -> Array:
        """Return intercepts at which the signed duals of the start add up to 0 in every task."""
        design, labels, weights = self.system.design, self.labels, self.weights
        reach = np.full(design.n_tasks, 1.0 + float(np.abs(predictions).max(initial=0.0)) + 1e3 * width)

        def value_and_slope(b: Array) -> tuple[Array, Array]:
            xi, r = _central_slacks(1.0 - labels * (predictions + np.repeat(b, design.sizes)), width)
            share = xi / (xi + r)
            slope = weights * share * (1.0 - share) / (xi + r) * 2.0
            return design.task_sums(design.unstack(weights * labels * share)), design.task_sums(design.unstack(slope))

        return root_of_falling(value_and_slope, -reach, reach, design.task_sums(design.unstack(weights)))

    def _extent(self, full: Array) -> float:
        """Return `radius_or` with Polyak's step from zero, where the gradient is -`full`."""
        largest = float(np.abs(full).max())
        scaled = full / largest
        polyak = self.scale / largest / float((scaled**2).sum()) * float(np.abs(scaled).max(axis=0).sum())
        return self.radius_or(polyak)
