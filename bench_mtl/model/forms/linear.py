"""Forms of a loss of linear predictions: under an l1 norm, squared norms, and of a sparse plus a low-rank matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss
from bench_mtl.model.protocols import ObjectiveForm, Problem
from bench_mtl.projections import project_l1_ball, soft_threshold


@dataclass(frozen=True)
class L1Form(ObjectiveForm):
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

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + (self.penalty or 0.0) * float(np.abs(point).sum())

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives, and the derivatives of the loss with its values; the form has either a radius or a penalty."""
        super().check(problem, rng)
        assert (self.radius is None) != (self.penalty is None), "a form has either a radius or a penalty"
        self.fit.check_derivatives(rng)

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
class RidgeForm(ObjectiveForm):
    """min_W  f(W) + ridge ||W||_F^2, f the function of a `LinearFit`."""

    fit: LinearFit
    ridge: float

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + self.ridge * float((point**2).sum())


@dataclass(frozen=True)
class RelationshipForm(ObjectiveForm):
    """Squared norms of coefficients under a loss, f the function of a `LinearFit`::

        min_W  f(W) + ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2

    where ||W||_*^2 = min tr(W Omega^-1 W^T) over relationships of the tasks: Omega, m x m, positive semidefinite, tr Omega = 1.
    """

    fit: LinearFit
    ridge: float
    coupling: float

    def objective(self, point: Array) -> float:
        values = np.linalg.svd(point, compute_uv=False)
        penalties = self.ridge * float(values @ values) + self.coupling * float(values.sum()) ** 2
        return self.fit.smooth_value(point) + 0.5 * penalties


@dataclass(frozen=True)
class SplitForm(ObjectiveForm):
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

    def objective(self, point: Array) -> float:
        predictions = self.design.forward(point[0] + point[1])
        return float(self.loss.values(predictions, self.targets).sum()) + self.gamma * float(np.abs(point[0]).sum())
