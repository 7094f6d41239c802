"""What a problem is made of, for solvers that need more than its operators: the data themselves, frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design, SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss, hinge, hinge_dual
from bench_mtl.model.margins import MulticlassFit
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.projections import norm_l1inf, norm_l12, norm_linf1, project_l1_ball, prox_l1inf, prox_l12, soft_threshold


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

    def adjoint(self, dual: Array) -> Array:
        """K^T a, the d x m matrix G_jk = sum_i a_ki labels_ki x_ki,j."""
        return self.design.adjoint(dual * self.labels)

    def loss(self, margins: Array) -> float:
        """f at these margins."""
        return float(np.vdot(self.weights, hinge(margins)))

    def duals(self, margins: Array) -> Array:
        """A dual point a with f = sum a (1 - margin); minus `adjoint` of it is a subgradient of f."""
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
        """What a dual point a in its box proves, with G its `adjoint`, by its sum and the norm max_j sum_k |G_jk|.

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
        """The bound that a dual point a in its box gives, with G its `adjoint`: sum_k max(0, sum_i a_ki - radii_k ||g_k||_dual)."""
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
    loss: Loss
    """`Squared` or `Logistic`."""
    gamma: float
    tau: float


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
