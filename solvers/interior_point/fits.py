"""Smooth losses under an l1,inf norm."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.losses import Squared
from bench_mtl.model.regularisers import Penalty
from bench_mtl.solvers.interior_point.equations import Direction, Equations, Residuals, State
from bench_mtl.solvers.interior_point.system import NewtonSystem

if TYPE_CHECKING:
    from bench_mtl.solvers.interior_point.kernels import Quadratic

#: The share that a given point is moved towards zero.
_RETREAT = 0.1
#: Second derivatives below this share of the largest are raised to it, so that they can be divided by.
_LEAST_CURVATURE = 1e-20
_NOTHING = np.empty(0)
#: Multiplications of all blocks up to which steps of squares are compiled: calls of linear algebra take longer than what they compute.
_FEW_PRODUCTS = 5e5


class FitEquations(Equations):
    """`Equations` of a `LinearForm` with a smooth loss, with a dual point r that has no bounds::

        r = -f'(X W)     G = X^T r

    E are the second derivatives of f in the predictions. What is missing of the first equation costs the gap its square only. The form
    has penalties above 0, and is of two matrices where there are entries.
    """

    together = True
    # Rows nearer to the level are so long on the central path that many at once throw the predictions far off.
    highest_norm = 0.5

    def __init__(self, form: LinearForm, threads: int | None = 1) -> None:
        system = NewtonSystem(form.design, threads, intercept=form.fit.intercept)
        entries = next((part.weight for part in form.parts[1:] if isinstance(part, Penalty)), None)
        super().__init__(system, form.radius, form.penalty, slacked=False, entry_penalty=entries)
        self._whole, self.fit = form.fit, replace(form.fit, intercept=False)
        self.is_linear = isinstance(self.fit.loss, Squared)
        self._known: tuple[Array, Array | None, Array, Array] | None = None
        self._sides: tuple[Residuals, Array] | None = None
        self._nothing = np.zeros(form.design.n_examples)
        self._quadratic = self._by_grams() if self.is_linear and form.design.n_tasks * float(system.d) ** 3 <= _FEW_PRODUCTS else None

    def _by_grams(self) -> Quadratic | None:
        """Return the loss by Gram matrices, with its penalties; None with a radius or intercepts."""
        if self.radius is not None or self.penalty is None or self._whole.intercept:
            return None
        from bench_mtl.solvers.interior_point.kernels import Quadratic

        design, fit = self.system.design, self.fit
        weights = np.broadcast_to(fit.weights, design.output_shape)
        is_one = design.is_shared and bool((weights == weights[:, :1]).all())
        halves = [
            np.sqrt(design.task_outputs(weights, k))[:, None] * dense(design.block(k)) for k in range(1 if is_one else design.n_tasks)
        ]
        linear = np.ascontiguousarray(design.adjoint(weights * fit.targets).T)
        return Quadratic(np.stack([X.T @ X for X in halves]), linear, np.array([self.penalty, self.entry_penalty or 0.0]))

    def after(self, x: State, *, correctors: int, rule: tuple[float, ...]) -> State | None:
        if self._quadratic is None:
            return None
        from bench_mtl.solvers.interior_point.kernels import Point, gram_iteration

        shape = (2 + 2 * self.layout.has_entries, *self.layout.shape)
        new = Point(x.W.copy(), x.mu.copy(), x.slack.reshape(shape).copy(), x.dual.reshape(shape).copy())
        if not gram_iteration(self._quadratic, new, correctors, rule):
            return None
        self.system.count()
        state = State(new.W, new.mu, new.slack.ravel(), new.dual.ravel())
        return replace(state, free=self._at(state)[1])

    @property
    def scale(self) -> float:
        return self._whole.value(np.zeros(self.fit.targets.shape))

    def dual_point(self, x: State) -> Array:
        assert x.free is not None
        return self._whole.admissible(self.system.design.unstack(x.free))

    def objective(self, x: State) -> float:
        value = self._whole.value(self.into_radius(x.W) * self._at(x)[0])
        if self.entry_penalty is not None:
            value += self.entry_penalty * float(np.abs(self.entries(x)).sum())
        return value if self.penalty is None else value + self.penalty * float(np.abs(x.W).max(axis=0).sum())

    def residuals(self, x: State) -> Residuals:
        assert x.free is not None
        return self.norm_residuals(x, x.free, r=_NOTHING, s=_NOTHING, free=self._at(x)[1] - x.free)

    def missing(self, x: State) -> tuple[float, float]:
        assert x.free is not None
        free = self._at(x)[1] - x.free
        return float(np.abs(free).sum()), 0.5 * float((free**2 / self._weights(x)).sum())

    def _weights(self, x: State) -> Array:
        curvatures = self.fit.curvatures(self._at(x)[0])
        return self.system.design.stack(np.maximum(curvatures, _LEAST_CURVATURE * float(curvatures.max())))

    def completed(self, x: State, residuals: Residuals, direction: Direction) -> Direction:
        assert direction.free is not None
        sides = self._example_sides(x, residuals, _NOTHING)
        return replace(direction, free=self.system.completed(sides, self.coefficients(direction), direction.free, direction.b))

    def _example_sides(self, x: State, residuals: Residuals | None, target: Array) -> Array:
        if residuals is None:
            return self._nothing
        if self._sides is None or self._sides[0] is not residuals:
            assert residuals.free is not None
            self._sides = residuals, residuals.free / self._weights(x)
        return self._sides[1]

    def _at(self, x: State) -> tuple[Array, Array]:
        """Return the predictions at x, and minus the derivatives of f there, stacked; those of the last x are known."""
        if self._known is None or self._known[0] is not x.W or self._known[1] is not x.b:
            predictions = self.system.design.unstack(self.predictions(x))
            self._known = x.W, x.b, predictions, self.system.design.stack(-self.fit.derivatives(predictions))
        return self._known[2:]

    def _best_at(self, W: Array) -> tuple[Array | None, Array]:
        """Return the best intercepts to W (m x d), if there are any, and minus the derivatives of f there, stacked."""
        predictions = self.system.design.forward(W.T)
        b = self._whole.intercepts(predictions) if self._whole.intercept else None
        self.system.work += 0.5
        return b, self.system.design.stack(-self._whole.derivatives(predictions))

    def start(self, W: Array) -> State | None:
        """Return a point near W that misses no equation but r = -f'(X W), of which r is a multiple; None where W = 0 is optimal."""
        full = self.system.adjoint(self._best_at(np.zeros(self.layout.shape))[1])
        if not full.any():
            return None
        retreat = _RETREAT if W.any() else 1.0
        rows, S = (1.0 - retreat) * W if self.layout.has_entries else ((1.0 - retreat) * W, None)
        b, r = self._best_at(rows if S is None else rows + S)
        bounds = self.bounds_at(rows, retreat * self._extent(full), self.system.adjoint(r), full, S)
        return State(rows, bounds.mu, bounds.slack, bounds.dual, bounds.scale * r, b)

    def _extent(self, full: Array) -> float:
        """Return `radius_or` with the step along minus the gradient at zero, `full`, to the minimum of a quadratic model."""
        design = self.system.design
        scaled = full / float(np.abs(full).max())
        curvatures = self.fit.curvatures(self._whole.shifted(np.zeros(self.fit.targets.shape)))
        rises = design.forward(scaled.T)
        if self._whole.intercept:  # which takes up what all predictions of a task rise by
            rises = rises - design.per_example(design.task_sums(curvatures * rises) / design.task_sums(curvatures))
        bent = float((curvatures * rises**2).sum())
        length = float((full * scaled).sum()) / bent if bent > 0.0 else 0.0
        return self.radius_or(length * float(np.abs(scaled).max(axis=0).sum()))
