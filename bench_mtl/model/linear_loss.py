"""Losses of linear predictions, with their conjugates and the lower bounds that these prove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import Design, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.losses import (
    binary_entropies,
    entropy,
    half_squared,
    highest_on_segment,
    hinge,
    hinge_dual,
    log_sum_exp,
    logistic_dual,
    soft_max,
)

_TINY = float(np.finfo(np.float64).tiny)

#: Loss functions of a linear prediction t and its target y.
LOSSES = ("squared", "logistic", "hinge", "multiclass")

#: Their largest second derivatives; the hinge has none.
_CURVATURES = {"squared": 1.0, "logistic": 0.25, "multiclass": 0.5}

#: How the losses of a task's examples are put together.
REDUCTIONS = ("mean", "sum")


def example_weights(design: Design, reduction: str) -> Array:
    """1 / n_k ("mean") or 1 ("sum") for the examples of every task, read-only, in the output shape of the design."""
    per_task = 1.0 / np.asarray(design.sizes) if reduction == "mean" else np.ones(design.n_tasks)
    return frozen(np.ascontiguousarray(np.broadcast_to(design.per_example(per_task), design.output_shape)))


def prediction_error(loss: str, predictions: Array, targets: Array) -> float:
    """The share of examples that are predicted wrongly (a prediction of 0 is); "squared": of the squares of the targets not explained."""
    if loss == "squared":
        total = float((targets**2).sum())
        return float(((targets - predictions) ** 2).sum()) / total if total > 0.0 else 0.0
    if loss == "multiclass":
        return float(np.mean(predictions.argmax(axis=1) != targets.argmax(axis=1)))
    return float(np.mean(predictions * targets <= 0.0))


@dataclass(frozen=True)
class LinearFit:
    """A weighted loss of linear predictions, f(W) = sum_k sum_i weights_ki loss(x_ki.w_k, y_ki)::

        squared     loss(t, y) = 1/2 (y - t)^2
        logistic    loss(t, y) = log(1 + exp(-y t))
        hinge       loss(t, y) = max(0, 1 - y t)
        multiclass  loss(t, y) = log sum_r exp(t_r) - y.t     of a row of predictions of a shared design; y is the indicator of a class

    A *slope* is the derivative of f in the predictions, weights included: at the optimum minus a dual point.
    """

    design: Design
    targets: Array
    """In the output shape of the design: real, -1 or +1 (logistic, hinge), or rows with one 1 and else 0 (multiclass)."""
    loss: str
    weights: Array
    """Above 0: in the output shape of the design, for "multiclass" a column, n x 1."""

    def value(self, predictions: Array) -> float:
        """f at these predictions."""
        y, t = self.targets, predictions
        if self.loss == "squared":
            return 0.5 * float((self.weights * (y - t) ** 2).sum())
        if self.loss == "logistic":
            return float((self.weights * np.logaddexp(0.0, -y * t)).sum())
        if self.loss == "hinge":
            return float((self.weights * hinge(y * t)).sum())
        return float((self.weights[:, 0] * (log_sum_exp(t) - (y * t).sum(axis=1))).sum())

    def slopes(self, predictions: Array) -> Array:
        """The derivative of f in the predictions (of the hinge, one of its subgradients)."""
        y, t = self.targets, predictions
        if self.loss == "squared":
            return np.asarray(self.weights * (t - y))
        if self.loss == "logistic":
            return np.asarray(-self.weights * y * logistic_dual(y * t))
        if self.loss == "hinge":
            return np.asarray(-self.weights * y * hinge_dual(y * t))
        return np.asarray(self.weights * (soft_max(t) - y))

    def curvatures(self, predictions: Array) -> Array:
        """The second derivative of f in every prediction; "hinge" has none, and those of "multiclass" are coupled (see `shares`)."""
        if self.loss == "squared":
            return np.asarray(self.weights)
        if self.loss != "logistic":
            raise InputError(f"loss '{self.loss}' has no second derivatives of single predictions")
        p = logistic_dual(self.targets * predictions)
        return np.asarray(self.weights * p * (1.0 - p))

    def lipschitz(self) -> float:
        """Of the gradient of f in W: sigma_max(X_k)^2 times the largest weight of the task and second derivative of the loss."""
        if self.loss not in _CURVATURES:
            raise InputError(f"loss '{self.loss}' has no Lipschitz constant of its gradient")
        norms, weights = self.design.norms(), np.broadcast_to(self.weights, self.design.output_shape)
        largest = np.array([self.design.task_outputs(weights, k).max() for k in range(self.design.n_tasks)])
        return _CURVATURES[self.loss] * float((largest * norms**2).max())

    def shares(self, predictions: Array) -> Array:
        """The probabilities of the classes, n x m, by the "multiclass" loss."""
        return soft_max(predictions)

    def admissible(self, dual: Array) -> Array:
        """The nearest dual point (nearly so for "multiclass") at which the conjugate of f is finite; unchanged where it is already."""
        y = self.targets
        if self.loss == "squared":
            return dual
        if self.loss != "multiclass":
            return np.asarray(y * np.clip(y * dual, 0.0, self.weights))
        shares = np.clip(y - np.clip(dual, -self.weights, self.weights) / self.weights, 0.0, 1.0)
        sums = shares.sum(axis=1, keepdims=True)
        return np.asarray(self.weights * (y - np.where(sums > 0.0, shares / np.where(sums > 0.0, sums, 1.0), y)))

    def normalised(self, dual: Array) -> Array:
        """The largest admissible multiple of an admissible dual point; of "squared", where all are, the one with a largest entry of 1.

        So the best multiple of it is found among the smaller ones, and products with it are not lost among the smallest doubles, where
        they would prove more than is true, nor beyond the largest.
        """
        top = float((np.abs(dual) if self.loss == "squared" else self.targets * dual / self.weights).max(initial=0.0))
        return dual / top if top > 0.0 else dual

    def bound(self, dual: Array, support: float, limit: float = np.inf) -> float:
        """max over 0 <= c <= limit of -f*(-c dual) - c support, a lower bound on min f over any set with max <X^T dual, W> = support.

        `dual` must be admissible, and `normalised` before its support is taken. f* is the conjugate of f as a function of the
        predictions. At least 0, which c = 0 proves.
        """
        y, w = self.targets, self.weights
        size = float(np.abs(dual).max(initial=0.0))
        if size == 0.0:
            return 0.0
        if self.loss == "squared":
            r, limit = dual / size, limit * size  # only its direction matters, and squares of tiny or huge entries would not
            slope, squares = float(np.vdot(r, y)) - support / size, float((r * r / w).sum())
            c = min(max(slope / squares, 0.0), limit)
            return max(0.0, c * slope - 0.5 * c * c * squares)
        limit = min(limit, 1.0)
        if self.loss == "hinge":
            return max(0.0, limit * (float(np.vdot(y, dual)) - support))
        return self._entropy_bound(dual, support, limit)

    def norm_bound(
        self, dual: Array, dual_norm: Callable[[Array], float], *, radius: float | None = None, penalty: float | None = None
    ) -> float:
        """A proven lower bound on min f(W) subject to ||W|| <= radius, or on min f(W) + penalty ||W||, from any dual point.

        `dual_norm` of G (d x m) is max <G, W> over ||W|| <= 1; an upper bound on it will do. One of `radius` and `penalty` is given.
        """
        r = self.normalised(self.admissible(dual))
        size = float(np.abs(r).max())
        if size == 0.0:
            return 0.0
        height = dual_norm(self.design.adjoint(r / size))  # of tiny or huge entries squares would leave the range of doubles
        if radius is not None:
            return self.bound(r, size * radius * height)
        assert penalty is not None
        return self.bound(r, 0.0, penalty / height / size if height > 0.0 else np.inf)

    def model(self, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """f in CVXPY for the coefficients vec(W), column by column ("squared" and "logistic").

        Residuals or margins are variables, so that the multiplier of their constraint has a dual point. A shared dense X with more rows
        than columns enters the squared loss through its QR factors, ||Y - X W||^2 = ||Q^T Y - R W||^2 + const, where the weights of a task
        are all the same: that makes the model smaller and changes nothing else.

        Returns
        -------
        f, the constraint, and what makes a dual point of the constraint's multiplier.
        """
        import cvxpy as cp

        design = self.design
        if self.loss == "squared":
            X, y, outside, as_dual = self._least_squares()
            r = cp.Variable(len(y))
            return half_squared(outside) + 0.5 * cp.sum_squares(r), r == y - X @ coefficients, as_dual
        if self.loss != "logistic":
            raise InputError(f"loss '{self.loss}' has no model here")
        y = design.stack(self.targets)
        margins = cp.Variable(len(y))
        fit = margins == cp.multiply(y, design.stacked() @ coefficients)
        # Stationarity in a margin t gives the multiplier weight / (1 + exp(t)).
        return design.stack(self.weights) @ cp.logistic(-margins), fit, lambda multiplier: design.unstack(multiplier * y)

    def _least_squares(self) -> tuple[sp.csr_array, Array, Array, Callable[[Array], Array]]:
        """f = 1/2 ||r||^2 + 1/2 ||outside||^2 with r = y - X vec(W): X, y, outside, and the dual point of a multiplier of that equation.

        Rows are scaled by the roots of their weights. Stationarity in r gives minus the multiplier.
        """
        design, roots = self.design, np.sqrt(self.weights)
        scaled = roots * self.targets
        tall = design.is_shared and design.output_shape[0] > design.n_features
        if not tall or design.is_sparse or np.any(roots != roots[:1]):
            X = design.stacked()
            stretched = X if np.all(roots == 1.0) else sp.csr_array(X * design.stack(roots)[:, None])
            return stretched, design.stack(scaled), np.zeros(0), lambda multiplier: -roots * design.unstack(multiplier)
        basis, triangle = np.linalg.qr(design.block(0))
        reduced = basis.T @ scaled
        outside = scaled - basis @ reduced
        X = sp.csr_array(sp.kron(sp.diags_array(roots[0]), sp.csr_array(triangle), format="csr"))
        return X, reduced.T.ravel(), outside, lambda multiplier: roots * (outside - basis @ multiplier.reshape(design.n_tasks, -1).T)

    def _entropy_bound(self, dual: Array, support: float, limit: float) -> float:
        """-f*(-c dual) is the sum of weighted entropies of probabilities p(c) = start + c step."""
        y, w = self.targets, self.weights
        multiclass = self.loss == "multiclass"
        start, step = (y, -dual / w) if multiclass else (np.zeros_like(y), y * dual / w)

        def value(c: float) -> float:
            p = np.clip(start + c * step, 0.0, 1.0)
            return float((w * (entropy(p) if multiclass else binary_entropies(p))).sum()) - c * support

        def slope(c: float) -> float:
            p = start + c * step
            rise = -np.log(np.maximum(p, _TINY))
            if not multiclass:
                rise += np.log(np.maximum(1.0 - p, _TINY))
            return float((w * step * rise).sum()) - support

        return highest_on_segment(value, slope, limit)
