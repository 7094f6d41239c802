"""Multi-task regression or classification with an l1,inf constraint or penalty: smooth losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import number_or_share, one_of
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import REDUCTIONS, LinearFit, example_weights
from bench_mtl.model.losses import loss_named
from bench_mtl.model.norms import l1inf_vertex
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Capability, ConicModel, NotOfferedError
from bench_mtl.model.task_data import TaskData, number_or_truth
from bench_mtl.projections import norm_l1inf, norm_linf1, project_l1inf_ball, prox_l1inf

LOSSES = ("squared", "logistic")

_CONES = {"squared": frozenset({"linear", "quadratic"}), "logistic": frozenset({"linear", "exponential"})}


class L1InfGLM(FitProblem):
    """Least squares or logistic regression for m tasks that select their features together.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j max_k |W_jk| <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki) + lambda sum_j max_k |W_jk|

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``).

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the predictions,
    s_k included. With G = (X_k^T r_k)_k and ||G||_{inf,1} = max_j sum_k |G_jk| the bounds are, for the best c >= 0,

        squared:   D(c) = c <r, y> - c^2/2 sum_ki r_ki^2 / s_k - c C ||G||_{inf,1}
        logistic:  D(c) = sum_ki s_k H(c a_ki / s_k) - c C ||G||_{inf,1},   c <= 1,   H(p) = -p log p - (1-p) log(1-p)

    with a = r y clipped to [0, s_k]. With a penalty the same without the last term, for c <= lambda / ||G||_{inf,1} (so it is void for
    lambda = 0).

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    loss : "squared" or "logistic"
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0, ||G||_{inf,1} of the residuals at W = 0
    reduction : "mean" or "sum" over the examples of a task

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1 for the logistic loss, a negative or missing radius or penalty, both given, an unknown loss
        or reduction.

    References
    ----------
    Turlach, Venables, Wright, Technometrics 47(3), 2005 (least squares, constrained); Quattoni, Carreras, Collins, Darrell, ICML 2009,
    section 2 (any convex loss); Negahban, Wainwright, IEEE Transactions on Information Theory 57(6), 2011 (least squares, penalised).
    """

    name: ClassVar[str] = "l1inf_glm"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": _CONES["squared"]}

    def __init__(
        self,
        data: TaskData,
        *,
        loss: str = "squared",
        radius: float | str | None = None,
        penalty: float | str | None = None,
        reduction: str = "mean",
    ) -> None:
        if (radius is None) == (penalty is None):
            raise InputError("give exactly one of radius (constrained) and penalty (penalised)")
        self.loss = loss_named(loss, LOSSES)
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        self.conic_forms = {"epigraph": _CONES[self.loss.name]}  # type: ignore[misc] # those of the class are of the squared loss
        self.design: Design = data.design
        targets, self.notes = self.loss.targets(data)
        self.fit = LinearFit(self.design, targets, self.loss, example_weights(self.design, self.reduction))
        self.radius = None if radius is None else number_or_truth("radius", radius, data, "W", norm_l1inf)
        self.penalty = None if penalty is None else number_or_share("penalty", penalty, self._largest_penalty)
        self._held_out = None if data.held_out is None else (data.held_out.design, self.loss.targets(data.held_out)[0])

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.5)
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = X @ W + 0.3 * rng.standard_normal((n, m))
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [Xk @ W[:, k] + 0.3 * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
        labels, signs_of_tasks = np.where(Y > 0.0, 1.0, -1.0), [np.where(yk > 0.0, 1.0, -1.0) for yk in ys]
        csr_tasks = [sp.csr_array(Xk) for Xk in Xs]
        yield cls(TaskData.shared(X, Y, name="tiny shared"), radius=1.0)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), penalty="0.3 max")
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), penalty=2.0, reduction="sum")
        yield cls(TaskData.per_task(csr_tasks, ys, name="tiny per task CSR"), radius=0.5, reduction="sum")
        yield cls(TaskData.shared(X, labels, name="tiny labels"), loss="logistic", radius=1.5)
        yield cls(TaskData.per_task(Xs, signs_of_tasks, name="tiny labels per task"), loss="logistic", penalty="0.2 max")
        yield cls(TaskData.shared(sparse, labels, name="tiny labels CSR"), loss="logistic", penalty=1.0, reduction="sum")
        yield cls(
            TaskData.per_task(csr_tasks, signs_of_tasks, name="tiny labels per task CSR"), loss="logistic", radius=0.7, reduction="sum"
        )

    def repair(self, point: Array) -> Array:
        return point if self.radius is None else project_l1inf_ball(point, self.radius)

    def infeasibility(self, point: Array) -> float:
        if self.radius is None:
            return 0.0
        return max(0.0, norm_l1inf(point) - self.radius) / (self.radius or 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self.fit.norm_bound(self.dual_at(point, dual), norm_linf1, radius=self.radius, penalty=self.penalty)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest, and the rows (features) that have one; on held-out examples the share of errors
        (squared loss: of squares not explained)."""
        size = np.abs(point)
        used = size > NEGLIGIBLE_ENTRY * size.max()
        found = {"non-zeros": float(np.count_nonzero(used)), "features used": float(np.count_nonzero(used.any(axis=1)))}
        if self._held_out is not None:
            design, targets = self._held_out
            found["held-out error"] = self.loss.error(design.forward(point), targets)
        return found

    def prox(self, point: Array, step_size: float) -> Array:
        """Projection onto the l1,inf ball, or the proximal operator of step_size * penalty times the norm."""
        if self.radius is not None:
            return project_l1inf_ball(point, self.radius)
        assert self.penalty is not None
        return prox_l1inf(point, step_size * self.penalty)

    def prox_value(self, point: Array) -> float:
        return 0.0 if self.penalty is None else self.penalty * norm_l1inf(point)

    def lmo(self, direction: Array) -> Array:
        """The row of `direction` with the largest l1 norm, j: W_j = -radius * sign(direction_j), all else 0."""
        if self.radius is None:
            raise NotOfferedError(self, Capability.LMO)
        return l1inf_vertex(direction, self.radius)

    def to_cvxpy(self, form: str = "epigraph") -> ConicModel:
        """The problem with residuals or margins as variables, and row bounds mu: -mu_j <= W_jk <= mu_j (, sum mu <= C).

        That mu >= 0 follows from the rest; Clarabel ends at optimal points more often when it is told.
        """
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        d, m = self.point_shape
        W, mu = cp.Variable((d, m)), cp.Variable(d, nonneg=True)
        rows = cp.reshape(mu, (d, 1), order="C") @ np.ones((1, m))
        loss, fit, as_dual = self.fit.model(cp.vec(W, order="F"))
        constraints = [fit, rows >= W, rows >= -W]
        if self.radius is not None:
            constraints.append(cp.sum(mu) <= self.radius)
        else:
            loss = loss + self.penalty * cp.sum(mu)

        def recover() -> tuple[Array, Array | None]:
            return np.asarray(W.value), None if fit.dual_value is None else as_dual(np.asarray(fit.dual_value))

        return ConicModel(cp.Problem(cp.Minimize(loss), constraints), recover)

    def _largest_penalty(self) -> float:
        """The smallest penalty that gives W = 0."""
        return norm_linf1(self.design.adjoint(self.fit.derivatives(np.zeros(self.dual_shape))))
