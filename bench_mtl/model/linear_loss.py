"""A weighted loss of linear predictions, with the lower bounds that its conjugate proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench_mtl.core.designs import Design, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import UNIT, Interval, up
from bench_mtl.core.types import Array
from bench_mtl.model.intercepts import centred_norms, exactly_balanced, kinked_slopes, scaled_to_balance, smoothed_intercepts
from bench_mtl.model.losses import Loss
from bench_mtl.model.regularisers import Regulariser

#: How the losses of a task's examples are put together.
REDUCTIONS = ("mean", "sum")
#: Weights such as 1/n_k are stored with one rounding: bounds of a loss that is never negative, and of a norm, allow for it, and hold for
#: the weights as stored and for those that are meant.
OF_WEIGHTS = Interval(1.0 - 4.0 * UNIT, 1.0 + 4.0 * UNIT)


def example_weights(design: Design, reduction: str, v: Array | None = None) -> Array:
    """Return 1 / n_k ("mean") or 1 ("sum") for the examples of every task, read-only, in the output shape of the design.

    Where examples have weights v these are v_ki / sum_i v_ki, or v_ki, so that a whole number counts as so many copies. Of examples in
    shards they are one row, seen as many.
    """
    if v is not None:
        if reduction == "sum":
            return v
        totals = np.array([math.fsum(design.task_outputs(v, k)) for k in range(design.n_tasks)])  # rounded once
        return frozen(v / design.per_example(totals))
    per_task = 1.0 / np.asarray(design.sizes) if reduction == "mean" else np.ones(design.n_tasks)
    spread = np.broadcast_to(design.per_example(per_task), design.output_shape)
    return spread if design.is_in_shards else frozen(np.ascontiguousarray(spread))


def limited(bound: Interval, limit: Interval, largest_multiple: float) -> Interval:
    """Return what a dual point proves, from what its best multiple below the lower end of a limit does that is known between bounds.

    What multiples prove is concave in them, and 0 at 0: up to the upper end, or the largest multiple that there is, it grows by no larger
    a share than they do. Where no multiple but 0 is below the lower end, nobody knows how much the others prove.
    """
    low, high = (min(end, largest_multiple) for end in limit.ends)
    if low == high or (low > 0.0 and not bound.ends[1] > 0.0):
        return bound
    return Interval(bound.lower, up(bound.upper * up(high / low)) if low > 0.0 else np.inf)


@dataclass(frozen=True)
class LinearFit:
    """A weighted loss of linear predictions, f(W) = sum_k sum_i weights_ki loss(x_ki.w_k, y_ki).

    Its derivatives are those of f in the predictions, weights included: at the optimum minus a dual point.
    """

    design: Design
    targets: Array
    """In the output shape of the design, as the loss wants them: real, -1 or +1, or rows with one 1 and else 0."""
    loss: Loss
    weights: Array
    """Above 0: in the output shape of the design, a column, n x 1, for a loss that couples tasks."""
    intercept: bool = False
    """Whether there is a free intercept: f(W) is the least over b of f at the predictions X W + b, see `bench_mtl.model.intercepts`."""

    def check_derivatives(self, rng: np.random.Generator) -> None:
        """Raise AssertionError unless derivatives agree with differences, give a plane below f, and are admissible as dual points."""
        predictions, change, direction = rng.standard_normal((3, *self.targets.shape))
        value, derivatives = self.value(predictions), self.derivatives(predictions)
        plane = value + float((derivatives * change).sum())
        assert plane <= self.value(predictions + change) + 1e-9 * (1 + abs(plane)), "the derivatives give no plane below the loss"
        step = 1e-5
        ahead, behind = self.value(predictions + step * direction), self.value(predictions - step * direction)
        along = float((derivatives * direction).sum())
        assert np.isclose((ahead - behind) / (2 * step), along, rtol=1e-4, atol=1e-6 * (1 + abs(ahead))), "the derivatives are wrong"
        assert np.allclose(self.admissible(-derivatives), -derivatives, rtol=1e-9, atol=1e-12), "a derivative is not admissible as a dual"

    def intercepts(self, predictions: Array) -> Array:
        """Return the best intercepts to predictions X W, m numbers; zeros where there are none."""
        if not self.intercept:
            return np.zeros(self.design.n_tasks)
        return self.loss.intercepts(predictions, self.targets, self.weights, self.design)

    def shifted(self, predictions: Array) -> Array:
        """Return predictions with their best intercepts."""
        return predictions + self.design.per_example(self.intercepts(predictions)) if self.intercept else predictions

    def value(self, predictions: Array) -> float:
        """Return f at these predictions."""
        return self.loss.total(self.shifted(predictions), self.targets, self.weights)

    def derivatives(self, predictions: Array) -> Array:
        """Return the derivative of f in the predictions; of a loss with kinks, one of its subgradients."""
        if self.intercept and not self.loss.is_smooth:  # one whose entries of a task add up to 0
            rises = self.loss.rises(self.targets)
            return np.asarray(-self.weights * kinked_slopes(self.targets - predictions, self.weights, rises, self.design))
        return np.asarray(self.weights * self.loss.derivatives(self.shifted(predictions), self.targets))

    def dual_at_zero(self) -> Array:
        """Return a dual point that belongs to W = 0, the same for examples of a task with one target.

        All hinges are active there; with intercepts, at which the label of fewer examples has active ones alone, those of the other have as
        much together.
        """
        if self.intercept and self.loss.is_of_labels and not self.loss.is_smooth:
            return scaled_to_balance(self.targets * self.weights, self.design)
        return -self.derivatives(np.zeros(self.targets.shape))

    def value_and_derivatives(self, predictions: Array) -> tuple[float, Array]:
        """Return `value` and `derivatives`."""
        return self.loss.total_and_derivatives(self.shifted(predictions), self.targets, self.weights)

    def smoothed(self, predictions: Array, smoothing: float) -> tuple[float, Array]:
        """Return `value` and `derivatives` of `Loss.smoothed`, at the intercepts that are best for it; with 0 those of the loss."""
        if smoothing == 0.0:
            return self.value(predictions), self.derivatives(predictions)
        if self.intercept and not self.loss.is_smooth:
            rises = self.loss.rises(self.targets)
            b = smoothed_intercepts(self.targets - predictions, self.weights, rises, smoothing, self.design)
            predictions = predictions + self.design.per_example(b)
        return self.loss.smoothed(predictions, self.targets, self.weights, smoothing)

    def smoothed_lipschitz(self, smoothing: float) -> float:
        """Return max_k s_k sigma_max(X_k)^2 / smoothing, a Lipschitz constant of the gradient of `smoothed` of a loss with kinks, in W."""
        return self._steepness() / smoothing

    def curvatures(self, predictions: Array) -> Array:
        """Return the second derivative of f in every prediction.

        Raises InputError: a loss that has none, or that couples predictions, as intercepts do.
        """
        if self.intercept:
            raise InputError("a loss with intercepts has no second derivatives of single predictions")
        return np.asarray(self.weights * self.loss.curvatures(predictions, self.targets))

    def lipschitz(self) -> float:
        """Return max_k sigma_max(X_k)^2 times the largest weight of task k and the largest second derivative of the loss.

        Raises InputError: a loss without a largest second derivative.
        """
        if self.loss.curvature is None:
            raise InputError(f"loss '{self.loss.name}' has no Lipschitz constant of its gradient")
        return self.loss.curvature * self._steepness()

    def _steepness(self) -> float:
        """Return max_k sigma_max(X_k)^2 times the largest weight of task k."""
        norms = centred_norms(self.design) if self.intercept else self.design.norms()
        weights = np.broadcast_to(self.weights, self.design.output_shape)
        largest = np.array([self.design.task_outputs(weights, k).max() for k in range(self.design.n_tasks)])
        return float((largest * norms**2).max())

    def admissible(self, dual: Array) -> Array:
        """Return the nearest dual point (or one near it) at which the conjugate of f is finite; unchanged where it is already."""
        within = self.loss.admissible(dual, self.targets, self.weights)
        return scaled_to_balance(within, self.design) if self.intercept else within

    def conjugate_gain(self, dual: Array) -> float:
        """Return -f*(-dual) of an admissible dual point, see `Loss.conjugate_gain`."""
        return self.loss.conjugate_gain(dual, self.targets, self.weights)

    def normalised(self, dual: Array) -> Array:
        """Return the multiple of an admissible dual point that `bound` wants, see `Loss.normalised`."""
        return self.loss.normalised(dual, self.targets, self.weights)

    def bound(self, dual: Array, support: float, limit: float = np.inf) -> float:
        """Return max over 0 <= c <= limit of -f*(-c dual) - c support, a lower bound on min f where max <X^T dual, W> = support.

        `dual` must be admissible, and `normalised` before its support is taken. f* is the conjugate of f as a function of the
        predictions. At least 0, which c = 0 proves (of a loss that is never below 0).
        """
        return self.loss.bound(dual, self.targets, self.weights, support, limit) if dual.any() else 0.0

    def enclose(self, predictions: Interval) -> Interval:
        """Return f between bounds that hold in exact arithmetic, at predictions that are known between bounds."""
        if self.intercept:
            predictions = predictions + self.design.per_example(self.intercepts(np.asarray(predictions.middle)))
        return self.loss.enclose_total(predictions, self.targets, self.weights)

    def enclose_bound(self, dual: Array, regulariser: Regulariser) -> Interval:
        """Return what any dual point proves of min f(W) + R(W), between bounds that hold in exact arithmetic."""
        within = self.admissible(dual)
        r = self.normalised(within) if regulariser.is_homogeneous else within
        if self.intercept:
            r = exactly_balanced(r, self.design)
        if not r.any():
            return Interval(0.0, 0.0)
        exact = self.loss.enclose_admissible(r, self.targets, self.weights)
        support, limit = regulariser.enclose_support_around(*self.design.adjoint_with_error(exact))
        return limited(self.loss.enclose_bound(r, self.targets, self.weights, support, limit.ends[0]), limit, self.loss.largest_multiple)

    def model(self, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """Return f in CVXPY for the coefficients vec(W), column by column, a constraint, and what makes a dual point of its multiplier.

        Residuals, margins, predictions or slacks are variables, so that the multiplier has one. Raises InputError: a loss without a model.
        """
        if not self.intercept:
            return self.loss.model(self, coefficients)
        import cvxpy as cp

        design = self.design.with_constant()
        W = cp.reshape(coefficients, (self.design.n_features, self.design.n_tasks), order="F")
        stacked = cp.vec(cp.vstack([W, cp.Variable((1, self.design.n_tasks))]), order="F")
        return self.loss.model(replace(self, design=design, intercept=False), stacked)
