"""Multi-task regression or classification with coefficients of low rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import Design, frozen, leading_pair, spectral_norm_bound
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import loss_named
from bench_mtl.model.protocols import Capability, ConicModel, Form, NotOfferedError
from bench_mtl.model.task_data import TaskData, number_or_truth
from bench_mtl.model.trace_norm_models import conic_forms, trace_norm_model
from bench_mtl.projections import norm_trace, project_trace_ball, prox_trace

LOSSES = ("squared", "logistic")


class TraceNormGLM(FitProblem):
    """Least squares or logistic regression for m tasks whose coefficients have a small trace norm.

    ::

        min_W  sum_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||W||_* <= tau,   or with  + penalty ||W||_*  instead

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss, which is the
    residual y - t, or y / (1 + exp(y t)). With G = (X_k^T r_k)_k the bounds are, for the best c >= 0,

        squared:   D(c) = c (<r, y> - tau ||G||_2) - c^2/2 ||r||^2
        logistic:  D(c) = sum_ki H(c a_ki) - c tau ||G||_2,  a = r y clipped to [0, 1], c <= 1, H(p) = -p log p - (1-p) log(1-p)

    and with a penalty the same without ||G||_2, for c <= penalty / ||G||_2.

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    tau : trace-norm radius, at least 0; "truth" takes the trace norm of the generator's own W (or P + Q). Exactly one of `tau` and
        `penalty` is given.
    penalty : at least 0
    loss : "squared" or "logistic"

    Raises
    ------
    InputError : tau or penalty negative or missing, both given, an unknown loss, labels other than -1/+1 or 0/1 for the logistic one.

    References
    ----------
    Ji, Ye, ICML 2009 (penalty); Chen, Liu, Ye, ACM TKDD 5(4), 2012, equation 45 without its sparse part ("TraceNorm" of section 7).
    """

    name: ClassVar[str] = "trace_norm_glm"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (LinearFit,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = conic_forms("squared")

    def __init__(self, data: TaskData, *, tau: float | str | None = None, penalty: float | None = None, loss: str = "squared") -> None:
        if (tau is None) == (penalty is None):
            raise InputError("give exactly one of tau (constrained) and penalty (penalised)")
        self.loss = loss_named(loss, LOSSES)
        self.tau = None if tau is None else _tau(tau, data)
        self.penalty = None if penalty is None else real_number("penalty", penalty)
        self.design: Design = data.design
        targets, self.notes = self.loss.targets(data)
        self.conic_forms = conic_forms(self.loss.name)  # type: ignore[misc] # those of the class are of the squared loss
        self.fit = LinearFit(self.design, frozen(targets), self.loss, np.broadcast_to(1.0, targets.shape))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = np.outer(rng.standard_normal(d), rng.standard_normal(m))
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = X @ W + 0.3 * rng.standard_normal((n, m))
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [Xk @ W[:, k] + 0.3 * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
        labels, signs_of_tasks = np.where(Y > 0.0, 1.0, -1.0), [np.where(yk > 0.0, 1.0, -1.0) for yk in ys]
        yield cls(TaskData.shared(X, Y, name="tiny shared"), tau=2.0)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), penalty=1.0)
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), penalty=2.0)
        yield cls(TaskData.per_task([sp.csr_array(Xk) for Xk in Xs], ys, name="tiny per task CSR"), tau=1.5)
        yield cls(TaskData.shared(X, labels, name="tiny labels"), tau=2.0, loss="logistic")
        yield cls(TaskData.per_task(Xs, signs_of_tasks, name="tiny labels per task"), penalty=0.7, loss="logistic")

    def repair(self, point: Array) -> Array:
        return point if self.tau is None else self._project(point)

    def infeasibility(self, point: Array) -> float:
        return 0.0 if self.tau is None else max(0.0, norm_trace(point) - self.tau) / (self.tau or 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self.fit.norm_bound(self.dual_at(point, dual), spectral_norm_bound, radius=self.tau, penalty=self.penalty)

    def prox(self, point: Array, step_size: float) -> Array:
        """The projection onto the ball, or the singular values less step_size * penalty."""
        if self.tau is not None:
            return self._project(point)
        assert self.penalty is not None
        return _without_empty_rows(partial(prox_trace, weight=step_size * self.penalty), point)

    def prox_value(self, point: Array) -> float:
        return 0.0 if self.penalty is None else self.penalty * norm_trace(point)

    def lmo(self, direction: Array) -> Array:
        """-tau u v^T, (u, v) the leading singular vectors of `direction` (Jaggi, ICML 2013, section 4.1)."""
        if self.tau is None:
            raise NotOfferedError(self, Capability.LMO)
        u, v = leading_pair(direction)
        return np.outer(-self.tau * u, v)

    def make_forms(self) -> tuple[Form, ...]:
        return (self.fit,)

    def to_cvxpy(self, form: str = "sdp") -> ConicModel:
        """The problem with the residuals or margins as variables, so that their constraint's multiplier is a dual point.

        "sdp" writes the trace norm as a lifting, "nuclear_norm" leaves it to CVXPY; see `bench_mtl.model.trace_norm_models`.
        """
        import cvxpy as cp

        W, norm, factor = trace_norm_model(one_of("form", form, tuple(self.conic_forms)), *self.point_shape)
        objective, fit, as_dual = self.fit.model(cp.vec(W, order="F"))
        constraints = [fit]
        if self.tau is not None:
            constraints.append(norm <= factor * self.tau)
        if self.penalty is not None:
            objective = objective + self.penalty / factor * norm

        def recover() -> tuple[Array, Array | None]:
            return np.asarray(W.value), None if fit.dual_value is None else as_dual(np.asarray(fit.dual_value))

        return ConicModel(cp.Problem(cp.Minimize(objective), constraints), recover)

    def _project(self, point: Array) -> Array:
        assert self.tau is not None
        return _without_empty_rows(partial(project_trace_ball, radius=self.tau), point)


def _without_empty_rows(shrink: Callable[[Array], Array], point: Array) -> Array:
    """What shrinks singular values leaves rows of zeros alone: those of features that no example has, most where examples are few."""
    rows = np.flatnonzero(point.any(axis=1))
    if 2 * len(rows) > len(point) or not len(rows):
        return shrink(point)
    shrunk = np.zeros(point.shape)
    shrunk[rows] = shrink(point[rows])
    return shrunk


def _tau(tau: float | str, data: TaskData) -> float:
    if tau == "truth" and "W" not in data.truth and "Q" in data.truth:
        return norm_trace(data.truth["P"] + data.truth["Q"])
    return number_or_truth("tau", tau, data, "W", norm_trace)
