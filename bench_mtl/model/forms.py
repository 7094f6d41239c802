"""What a problem is made of, for solvers that need more than its operators: the data themselves, frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import Design, SharedDesign, frozen
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
from bench_mtl.model.margins import MulticlassFit
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.projections import norm_l1inf, norm_l12, norm_linf1, project_l1_ball, prox_l1inf, prox_l12, soft_threshold

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Hinges:
    """Weighted hinges f(W) = sum_k sum_i weights_ki max(0, 1 - labels_ki x_ki.w_k) = max_{0 <= a <= weights} sum a - <a, K W>.

    K W are the margins labels_ki x_ki.w_k.
    """

    design: Design
    labels: Array
    """-1 or +1, in the output shape of the design."""
    weights: Array
    """At least 0, shaped like the labels; the same for all examples of a task."""

    def margins(self, W: Array) -> Array:
        """K W."""
        return np.asarray(self.labels * self.design.forward(W))

    def pull(self, dual: Array) -> Array:
        """K^T a, the d x m matrix G_jk = sum_i a_ki labels_ki x_ki,j."""
        return self.design.adjoint(dual * self.labels)

    def loss(self, margins: Array) -> float:
        """f at these margins."""
        return float(np.vdot(self.weights, hinge(margins)))

    def slopes(self, margins: Array) -> Array:
        """A dual point a with f = sum a (1 - margin); minus `pull` of it is a subgradient of f."""
        return np.asarray(self.weights * hinge_dual(margins))

    def smoothed(self, margins: Array, smoothing: float) -> tuple[float, Array]:
        """max over 0 <= a <= s of sum a (1 - margin) - smoothing/2 sum a^2 / s, and this a: at most smoothing/2 sum s below f."""
        slack = 1.0 - margins
        share = np.clip(slack / smoothing, 0.0, 1.0)
        a = self.weights * share
        return float(np.vdot(a, slack)) - 0.5 * smoothing * float(np.vdot(a, share)), a

    def smoothed_lipschitz(self, smoothing: float) -> float:
        """max_k s_k sigma_max(X_k)^2 / smoothing, a Lipschitz constant of the gradient of `smoothed` in W."""
        per_task = np.array([self.design.task_outputs(self.weights, k)[0] for k in range(self.design.n_tasks)])
        return float((per_task * self.design.norms() ** 2).max()) / smoothing


@dataclass(frozen=True)
class HingeForm(Hinges):
    """Weighted hinges under an l1,inf norm, f the function of `Hinges`::

    radius given:   min_W  f(W)  subject to  sum_j max_k |W_jk| <= radius
    penalty given:  min_W  f(W) + penalty * sum_j max_k |W_jk|
    """

    radius: float | None
    penalty: float | None

    def objective(self, W: Array, predictions: Array) -> float:
        """At a feasible W with these predictions X_k w_k."""
        value = self.loss(self.labels * predictions)
        return value if self.penalty is None else value + self.penalty * norm_l1inf(W)

    def bound(self, dual: Array, G: Array) -> float:
        """What a dual point a in its box proves, with G its `pull`, by its sum and the norm max_j sum_k |G_jk|.

        With a radius sum a - radius * norm, or 0, which a = 0 proves; with a penalty the sum of a scaled until its norm is at most that.
        """
        total, norm = float(dual.sum()), norm_linf1(G)
        if self.radius is not None:
            return max(0.0, total - self.radius * norm)
        assert self.penalty is not None
        return total * min(1.0, self.penalty / norm) if norm > 0.0 else total

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """A point along G = K^T a of the size to expect of a solution: as far as the loss may fall, but within the radius.

        `total` is f at 0, which bounds the penalty at the optimum.
        """
        radius = self.radius if self.radius is not None else total / self.penalty if self.penalty else np.inf
        largest = float(np.abs(G).max(axis=1).sum())
        return G * (min(radius, largest / curvature) / largest) if largest > 0.0 else G


@dataclass(frozen=True)
class BallForm(Hinges):
    """Weighted hinges with a ball for every task, f the function of `Hinges`::

    min_W  f(W)  subject to  ||w_k|| <= radii_k for every task k
    """

    balls: TaskBalls

    def objective(self, W: Array, predictions: Array) -> float:
        """At a feasible W with these predictions X_k w_k."""
        return self.loss(self.labels * predictions)

    def bound(self, dual: Array, G: Array) -> float:
        """What a dual point a in its box proves, with G its `pull`: sum_k max(0, sum_i a_ki - radii_k ||g_k||_dual); a_k = 0 proves 0."""
        totals = self.design.task_sums(dual)
        return float(np.maximum(totals - self.balls.radii * self.balls.dual_norms(G), 0.0).sum())

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """As of `HingeForm`, task by task."""
        norms = self.balls.norms(G)
        return np.asarray(G * (np.minimum(self.balls.radii, norms / curvature) / np.where(norms > 0.0, norms, 1.0)))


@dataclass(frozen=True)
class SplitForm:
    """A loss of one linear prediction by a sparse plus a low-rank matrix.

    ::

        min_{P,Q}  sum_k sum_i loss(x_ki.(p_k + q_k), targets_ki) + gamma sum |P|   subject to  ||Q||_* <= tau
    """

    design: Design
    targets: Array
    """In the output shape of the design: real for the squared loss, -1 or +1 for the logistic one."""
    loss: str
    """"squared" (half the square of the residual) or "logistic"."""
    gamma: float
    tau: float


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


def l1inf_vertex(direction: Array, radius: float) -> Array:
    """argmin <direction, W> subject to sum_j max_k |W_jk| <= radius.

    W_j = -radius sign(direction_j) in the row j of `direction` with the largest l1 norm, all else 0.
    """
    vertex = np.zeros(direction.shape)
    row = int(np.abs(direction).sum(axis=1).argmax())
    vertex[row] = np.where(direction[row] > 0.0, -radius, radius)
    return vertex


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


@dataclass(frozen=True)
class L1Form:
    """A loss of linear predictions under an l1 norm, f the function of a `LinearFit`::

        radius given:   min_W  f(W)  subject to  sum_j |W_jk| <= radius for every task k (balls "task")
                                     or          sum_jk |W_jk| <= radius                 (balls "all")
        penalty given:  min_W  f(W) + penalty sum_jk |W_jk|

    and, with `nonneg`, W_jk orientation_jk >= 0 besides (W >= 0 where `orientation` is None).
    """

    fit: LinearFit
    radius: float | None
    penalty: float | None
    balls: str = "task"
    nonneg: bool = False
    orientation: Array | None = None
    """Signs, d x m; only with `nonneg`."""

    def project(self, W: Array, *, method: str = "newton") -> Array:
        """argmin_V 1/2 ||V - W||^2 over the feasible set; `method` as in `project_l1_ball`."""
        if self.radius is None:
            return self.oriented(np.maximum(self.oriented(W), 0.0)) if self.nonneg else W
        if self.balls == "task":
            return self.oriented(project_l1_ball(self.oriented(W), self.radius, method=method, axis=0, nonneg=self.nonneg))
        flat = project_l1_ball(np.ascontiguousarray(self.oriented(W)).ravel(), self.radius, method=method, nonneg=self.nonneg)
        return self.oriented(flat.reshape(W.shape))

    def prox(self, W: Array, step_size: float, *, method: str = "newton") -> Array:
        """`project` with a radius; with a penalty argmin_V 1/2 ||V - W||^2 + step_size penalty sum |V| over V that point the right way."""
        if self.radius is not None:
            return self.project(W, method=method)
        assert self.penalty is not None
        threshold = step_size * self.penalty
        return self.oriented(np.maximum(self.oriented(W) - threshold, 0.0)) if self.nonneg else soft_threshold(W, threshold)

    def support(self, G: Array) -> float:
        """max <G, W> over the set with radius 1; the dual norm of the penalty (0 where only W = 0 attains it, with `nonneg`)."""
        heights = np.maximum(self.oriented(G), 0.0) if self.nonneg else np.abs(G)
        largest = heights.max(axis=0)
        together = self.balls == "task" and self.radius is not None
        return float(largest.sum() if together else largest.max())

    def bound(self, dual: Array) -> float:
        """A proven lower bound on the optimum, from any dual point."""
        return self.fit.norm_bound(dual, self.support, radius=self.radius, penalty=self.penalty)

    def vertex(self, direction: Array) -> Array:
        """argmin <direction, W> over the feasible set of a form with a radius: at most one entry a ball."""
        assert self.radius is not None
        W = np.zeros(direction.shape)
        heights = self.oriented(-direction) if self.nonneg else np.abs(direction)
        signs = self.oriented(np.ones(direction.shape)) if self.nonneg else np.where(direction > 0.0, -1.0, 1.0)
        if self.balls == "task":
            places: tuple[Any, ...] = (heights.argmax(axis=0), np.arange(direction.shape[1]))
        else:
            places = tuple(np.array([i]) for i in np.unravel_index(int(heights.argmax()), direction.shape))
        chosen = heights[places] > 0.0
        W[places] = np.where(chosen, self.radius * signs[places], 0.0)
        return W

    def oriented(self, W: Array) -> Array:
        """W in coordinates in which what may not be negative is W itself, and back."""
        return W if self.orientation is None else W * self.orientation


@dataclass(frozen=True)
class SimplexForm:
    """A feasible set as the image of simplices: W = mass orientation (U - V), U >= 0, V >= 0, V = 0 unless `signed`.

    The entries of U and V add up to 1, or with `slack` to at most 1: those of every column (`balls` "task") or all (`balls` "all").
    """

    mass: float
    signed: bool
    slack: bool
    balls: str = "task"
    orientation: Array | None = None
    """Signs, shaped like W; None: all +1."""


@dataclass(frozen=True)
class CurvedForm:
    """Smooth convex losses of linear predictions over a simplex, or over its part in a box::

    min_w  f(X w)   subject to  sum_j w_j = mass,  lower <= w <= upper,      f(t) = sum_i loss_i(t_i)
    """

    design: Design
    """Of one task."""
    derivatives: Callable[[Array], tuple[float, Array, Array]]
    """f, and the first and second derivatives of every loss_i, at predictions of a feasible point (in the output shape of the design)."""
    mass: float
    lower: Array
    """d bounds; some w within all of them has the mass."""
    upper: Array

    def vertex(self, direction: Array) -> Array:
        """argmin <direction, w> over the feasible set, all of length d: of least price first, up to the bound, until the mass is spent."""
        order = np.argsort(direction, kind="stable")
        room = (self.upper - self.lower)[order]
        w = np.empty(direction.shape)
        w[order] = np.clip(self.mass - self.lower.sum() - (np.cumsum(room) - room), 0.0, room)
        return np.asarray(np.clip(self.lower + w, self.lower, self.upper))


@dataclass(frozen=True)
class RidgeForm:
    """min_W  f(W) + ridge ||W||_F^2, f the function of a `LinearFit`."""

    fit: LinearFit
    ridge: float


@dataclass(frozen=True)
class RelationshipForm:
    """Squared norms of coefficients under a loss, f the function of a `LinearFit`::

        min_W  f(W) + ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2

    where ||W||_*^2 = min tr(W Omega^-1 W^T) over relationships of the tasks: Omega, m x m, positive semidefinite, tr Omega = 1.
    """

    fit: LinearFit
    ridge: float
    coupling: float


#: Norms of a matrix that add up norms of its rows, l2, l-infinity and l1.
ROW_NORMS = ("l12", "l1inf", "l1")


def positive_dual_norms(G: Array, norm: str) -> Array:
    """||max(G_j, 0)||_* of every row of G (J x K), J numbers: the largest <G_j, w> over w >= 0 with ||w|| <= 1 in this one of `ROW_NORMS`.

    The dual norms are l2 ("l12"), l1 ("l1inf") and l-infinity ("l1").
    """
    above = np.maximum(G, 0.0)
    if norm == "l12":
        top = above.max(axis=1, initial=0.0)  # so that no square overflows or vanishes
        scale = np.where(top > 0.0, top, 1.0)
        return np.asarray(scale * np.sqrt(((above / scale[:, None]) ** 2).sum(axis=1)))
    return np.asarray(above.sum(axis=1) if norm == "l1inf" else above.max(axis=1, initial=0.0))


@dataclass(frozen=True)
class GroupForm:
    """A loss of the scores of classes under a sum of norms of rows, f the function of a `MulticlassFit`::

    min_W  f(H W) + nu sum_j ||W_j||   subject to  W >= 0

    with the l2 norm of a row ("l12"), its largest entry ("l1inf") or its sum ("l1").
    """

    fit: MulticlassFit
    nu: float
    norm: str

    def penalty(self, W: Array) -> float:
        """nu sum_j ||W_j||, W >= 0."""
        norm = norm_l12(W) if self.norm == "l12" else norm_l1inf(W) if self.norm == "l1inf" else float(W.sum())
        return self.nu * norm

    def prox(self, W: Array, step_size: float) -> Array:
        """argmin_V 1/2 ||V - W||^2 + step_size nu sum_j ||V_j|| subject to V >= 0."""
        weight, above = step_size * self.nu, np.maximum(W, 0.0)
        if self.norm == "l12":
            return np.asarray(prox_l12(above, weight))
        if self.norm == "l1inf":
            return np.asarray(prox_l1inf(above, weight, nonneg=True))
        return np.maximum(above - weight, 0.0)

    def dual_norms(self, G: Array) -> Array:
        """`positive_dual_norms` of this norm."""
        return positive_dual_norms(G, self.norm)

    def violations(self, dual: Array) -> Array:
        """`dual_norms` of G = H^T R(U), J numbers: at the optimum none above nu, and nu where W_j != 0."""
        return self.dual_norms(self.fit.design.adjoint(self.fit.residuals(dual)))

    def bound(self, dual: Array, others: Callable[[Array], float] | None = None) -> float:
        """A proven lower bound on the optimum, from any dual point.

        With `others`, the largest violation among weak learners outside H for given residuals, it holds for the problem over all of them.
        """
        U = self.fit.normalised(self.fit.admissible(dual))
        R = self.fit.residuals(U)
        largest = float(self.dual_norms(self.fit.design.adjoint(R)).max(initial=0.0))
        if others is not None:
            largest = max(largest, others(R))
        return self.fit.best_gain(U, self.nu / largest if largest > 0.0 else np.inf)

    def restricted(self, rows: NDArray[np.intp]) -> GroupForm:
        """The same with only these rows of W, the columns of H with these numbers."""
        X = self.fit.design.block(0)
        return replace(self, fit=self.fit.restricted(SharedDesign(X[:, rows], self.fit.design.n_tasks)))
