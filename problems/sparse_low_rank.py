"""Multi-task regression or classification with a sparse and a low-rank part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import Design, spectral_norm_bound
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import StackedFitProblem
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import loss_named
from bench_mtl.model.protocols import Capability, ConicModel, Form
from bench_mtl.model.task_data import TaskData, number_or_truth
from bench_mtl.model.trace_norm_models import conic_forms, trace_norm_model
from bench_mtl.projections import norm_trace, project_trace_ball, soft_threshold

LOSSES = ("squared", "logistic")


class SparseLowRank(StackedFitProblem):
    """Least squares or logistic regression for m tasks whose coefficients are a sparse plus a low-rank matrix.

    ::

        min_{P,Q}  sum_k sum_i loss(x_ki.(p_k + q_k), y_ki) + gamma sum_jk |P_jk|   subject to  ||Q||_* <= tau

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    A point is the stack (P, Q), 2 x d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the
    loss, which is the residual y - t, or y / (1 + exp(y t)). With G = (X_k^T r_k)_k the bounds are, for the best c in [0, gamma / max |G|],

        squared:   D(c) = c (<r, y> - tau ||G||_2) - c^2/2 ||r||^2
        logistic:  D(c) = sum_ki H(c a_ki) - c tau ||G||_2,  a = r y clipped to [0, 1], c <= 1, H(p) = -p log p - (1-p) log(1-p)

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    gamma : weight of the l1 norm, above 0 (with gamma = 0 the bound is void)
    tau : trace-norm radius, at least 0; "truth" takes the trace norm of the generator's own Q
    loss : "squared" or "logistic"

    Raises
    ------
    InputError : gamma not positive, tau negative, an unknown loss, labels other than -1/+1 or 0/1 for the logistic one.

    References
    ----------
    Chen, Liu, Ye, ACM TKDD 5(4), 2012, equation 45; equation 6 for any smooth convex loss.
    """

    name: ClassVar[str] = "sparse_low_rank"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (SplitForm,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = conic_forms("squared")

    def __init__(self, data: TaskData, *, gamma: float, tau: float | str, loss: str = "squared") -> None:
        self.gamma = real_number("gamma", gamma, strict=True)
        self.tau = number_or_truth("tau", tau, data, "Q", norm_trace)
        self.design: Design = data.design
        self.loss = loss_named(loss, LOSSES)
        self.targets, self.notes = self.loss.targets(data)
        if self.loss.name == "logistic":
            self.conic_forms = conic_forms(self.loss.name)  # type: ignore[misc] # those of the class are of the squared loss
        self.fit = LinearFit(self.design, self.targets, self.loss, np.broadcast_to(1.0, self.targets.shape))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        P = rng.standard_normal((d, m)) * (rng.random((d, m)) < 0.3)
        Q = np.outer(rng.standard_normal(d), rng.standard_normal(m))
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = X @ (P + Q) + 0.1 * rng.standard_normal((n, m))
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [Xk @ (P + Q)[:, k] + 0.1 * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
        yield cls(TaskData.shared(X, Y, name="tiny shared"), gamma=1.0, tau=2.0)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), gamma=0.5, tau=1.0)
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), gamma=2.0, tau=0.5)
        yield cls(TaskData.per_task([sp.csr_array(Xk) for Xk in Xs], ys, name="tiny per task CSR"), gamma=1.0, tau=1.5)
        labels, signs_of_tasks = np.where(Y > 0.0, 1.0, -1.0), [np.where(yk > 0.0, 1.0, -1.0) for yk in ys]
        yield cls(TaskData.shared(X, labels, name="tiny labels"), gamma=0.5, tau=2.0, loss="logistic")
        yield cls(TaskData.per_task(Xs, signs_of_tasks, name="tiny labels per task"), gamma=0.5, tau=0.7, loss="logistic")

    def repair(self, point: Array) -> Array:
        return np.stack([point[0], project_trace_ball(point[1], self.tau)])

    def infeasibility(self, point: Array) -> float:
        return max(0.0, norm_trace(point[1]) - self.tau) / (self.tau or 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        r = self.fit.normalised(self.fit.admissible(self.dual_at(point, dual)))
        size = float(np.abs(r).max())
        if size == 0.0:
            return 0.0
        G = self.design.adjoint(r / size)  # squares of tiny or huge entries would leave the range of doubles
        largest, height = float(np.abs(G).max()), self.tau * spectral_norm_bound(G)
        return self.fit.bound(r, size * height, self.gamma / largest / size if largest > 0.0 else np.inf)

    def prox(self, point: Array, step_size: float) -> Array:
        """Soft threshold of P at step_size * gamma, projection of Q onto the trace-norm ball."""
        return np.stack([soft_threshold(point[0], step_size * self.gamma), project_trace_ball(point[1], self.tau)])

    def prox_value(self, point: Array) -> float:
        return self.gamma * float(np.abs(point[0]).sum())

    def make_forms(self) -> tuple[Form, ...]:
        return (SplitForm(self.design, self.targets, self.loss, self.gamma, self.tau),)

    def to_cvxpy(self, form: str = "sdp") -> ConicModel:
        """The problem with the residuals as variables, so that their constraint's multiplier is a dual point.

        "sdp" writes the trace norm as a lifting, "nuclear_norm" leaves it to CVXPY; see `bench_mtl.model.trace_norm_models`.
        """
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        _, d, m = self.point_shape
        P = cp.Variable((d, m))
        Q, norm, factor = trace_norm_model(form, d, m)
        loss, fit, as_dual = self.fit.model(cp.vec(P + Q, order="F"))

        def recover() -> tuple[Array, Array | None]:
            return np.stack([P.value, Q.value]), None if fit.dual_value is None else as_dual(np.asarray(fit.dual_value))

        return ConicModel(cp.Problem(cp.Minimize(loss + self.gamma * cp.sum(cp.abs(P))), [fit, norm <= factor * self.tau]), recover)
