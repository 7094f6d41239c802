"""Multi-task regression or classification with a row-sparse part that tasks share and a sparse part of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import number_or_share, one_of
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import StackedFitProblem
from bench_mtl.model.linear_loss import REDUCTIONS, LinearFit, example_weights
from bench_mtl.model.losses import loss_named
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Capability, ConicModel
from bench_mtl.model.task_data import TaskData
from bench_mtl.projections import norm_l1inf, norm_linf1, prox_l1inf, soft_threshold

LOSSES = ("squared", "logistic")

_CONES = {"squared": frozenset({"linear", "quadratic"}), "logistic": frozenset({"linear", "exponential"})}


class DirtyModel(StackedFitProblem):
    """Least squares or logistic regression for m tasks that share some of their features: coefficients B + S, B with few rows, S sparse.

    ::

        min_{B,S}  sum_k s_k sum_i loss(x_ki.(b_k + s_k), y_ki) + lambda_b sum_j max_k |B_jk| + lambda_s sum_jk |S_jk|

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``). S = 0 at some optimum if lambda_b <= lambda_s, and B = 0 if
    lambda_b >= m lambda_s.

    A point is the stack (B, S), 2 x d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss
    in the predictions, s_k included. With G = (X_k^T r_k)_k the bounds are, for the best c >= 0 with c max_j sum_k |G_jk| <= lambda_b and
    c max_jk |G_jk| <= lambda_s,

        squared:   D(c) = c <r, y> - c^2/2 sum_ki r_ki^2 / s_k
        logistic:  D(c) = sum_ki s_k H(c a_ki / s_k),   a = r y clipped to [0, s_k],   c <= 1,   H(p) = -p log p - (1-p) log(1-p)

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    lambda_b : weight of the l1,inf norm of B, at least 0 (with 0 the bound is void); or "0.1 max", a share of max_j sum_k |G_jk| of the
        residuals at B = S = 0
    lambda_s : weight of the l1 norm of S, at least 0 (with 0 the bound is void); or "0.1 max", a share of max_jk |G_jk| likewise. B = S = 0
        is optimal just where both weights are at least the whole.
    loss : "squared" or "logistic"
    reduction : "mean" or "sum" over the examples of a task

    Raises
    ------
    InputError : a negative weight, labels other than -1/+1 or 0/1 for the logistic loss, an unknown loss or reduction.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010 (least squares, means).
    """

    name: ClassVar[str] = "dirty_model"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.CONIC})
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": _CONES["squared"]}

    def __init__(
        self, data: TaskData, *, lambda_b: float | str, lambda_s: float | str, loss: str = "squared", reduction: str = "mean"
    ) -> None:
        self.loss = loss_named(loss, LOSSES)
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        self.conic_forms = {"epigraph": _CONES[self.loss.name]}  # type: ignore[misc] # those of the class are of the squared loss
        self.design: Design = data.design
        targets, self.notes = self.loss.targets(data)
        self.fit = LinearFit(self.design, targets, self.loss, example_weights(self.design, self.reduction))
        self.lambda_b = number_or_share("lambda_b", lambda_b, lambda: norm_linf1(self._first_gradient()))
        self.lambda_s = number_or_share("lambda_s", lambda_s, lambda: float(np.abs(self._first_gradient()).max()))
        self._held_out = None if data.held_out is None else (data.held_out.design, self.loss.targets(data.held_out)[0])

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = rng.standard_normal((d, m)) * ((rng.random((d, 1)) < 0.4) | (rng.random((d, m)) < 0.2))
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = X @ W + 0.3 * rng.standard_normal((n, m))
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [Xk @ W[:, k] + 0.3 * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
        labels, signs_of_tasks = np.where(Y > 0.0, 1.0, -1.0), [np.where(yk > 0.0, 1.0, -1.0) for yk in ys]
        csr_tasks = [sp.csr_array(Xk) for Xk in Xs]
        yield cls(TaskData.shared(X, Y, name="tiny shared"), lambda_b=0.3, lambda_s=0.2)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), lambda_b="0.2 max", lambda_s="0.2 max")
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), lambda_b=2.0, lambda_s=1.2, reduction="sum")
        yield cls(TaskData.per_task(csr_tasks, ys, name="tiny per task CSR"), lambda_b=1.0, lambda_s=0.6, reduction="sum")
        shares = {"lambda_b": "0.15 max", "lambda_s": "0.2 max", "loss": "logistic"}
        yield cls(TaskData.shared(X, labels, name="tiny labels"), **shares)
        yield cls(TaskData.per_task(Xs, signs_of_tasks, name="tiny labels per task"), **shares)
        yield cls(TaskData.shared(sparse, labels, name="tiny labels CSR"), **shares, reduction="sum")
        yield cls(TaskData.per_task(csr_tasks, signs_of_tasks, name="tiny labels per task CSR"), **shares, reduction="sum")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("B", "S")

    def repair(self, point: Array) -> Array:
        return point

    def infeasibility(self, point: Array) -> float:
        return 0.0

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self.fit.norm_bound(self.dual_at(point, dual), self._dual_norm, penalty=1.0)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Of entries above a millionth of the largest of their part: rows of B and entries of S that have one, and features that either
        uses; on held-out examples the share of errors (squared loss: of squares not explained)."""
        sizes = np.abs(point)
        used = sizes > NEGLIGIBLE_ENTRY * sizes.max(axis=(1, 2), keepdims=True)
        found = {
            "rows of B": float(np.count_nonzero(used[0].any(axis=1))),
            "non-zeros of S": float(np.count_nonzero(used[1])),
            "features used": float(np.count_nonzero(used.any(axis=(0, 2)))),
        }
        if self._held_out is not None:
            design, targets = self._held_out
            found["held-out error"] = self.loss.error(design.forward(point[0] + point[1]), targets)
        return found

    def prox(self, point: Array, step_size: float) -> Array:
        """The proximal operator of step_size * lambda_b times the l1,inf norm for B, the soft threshold at step_size * lambda_s for S."""
        return np.stack([prox_l1inf(point[0], step_size * self.lambda_b), soft_threshold(point[1], step_size * self.lambda_s)])

    def prox_value(self, point: Array) -> float:
        return self.lambda_b * norm_l1inf(point[0]) + self.lambda_s * float(np.abs(point[1]).sum())

    def to_cvxpy(self, form: str = "epigraph") -> ConicModel:
        """The problem with residuals or margins as variables, and row bounds mu: -mu_j <= B_jk <= mu_j."""
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        _, d, m = self.point_shape
        B, S, mu = cp.Variable((d, m)), cp.Variable((d, m)), cp.Variable(d, nonneg=True)
        rows = cp.reshape(mu, (d, 1), order="C") @ np.ones((1, m))
        loss, fit, as_dual = self.fit.model(cp.vec(B + S, order="F"))
        penalty = self.lambda_b * cp.sum(mu) + self.lambda_s * cp.sum(cp.abs(S))

        def recover() -> tuple[Array, Array | None]:
            return np.stack([B.value, S.value]), None if fit.dual_value is None else as_dual(np.asarray(fit.dual_value))

        return ConicModel(cp.Problem(cp.Minimize(loss + penalty), [fit, rows >= B, rows >= -B]), recover)

    def _first_gradient(self) -> Array:
        """Of the loss at B = S = 0."""
        return self.design.adjoint(self.fit.derivatives(np.zeros(self.dual_shape)))

    def _dual_norm(self, G: Array) -> float:
        """max <G, B + S> over lambda_b ||B||_{1,inf} + lambda_s ||S||_1 <= 1."""
        if not G.any():
            return 0.0
        norms = (norm_linf1(G), self.lambda_b), (float(np.abs(G).max()), self.lambda_s)
        return max(norm / weight if weight > 0.0 else np.inf for norm, weight in norms)
