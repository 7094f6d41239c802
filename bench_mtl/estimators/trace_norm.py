"""Linear models of many tasks with coefficients of low rank."""

from __future__ import annotations

from typing import Any

from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, LinearTasks
from bench_mtl.estimators.linear_fits import FittedTasks, Preferred, solved

_PREFERRED: Preferred = (("accelerated_gradient", {"restart": "gradient"}),)


class _TraceNorm(LinearTasks):
    """What regressor and classifier have in common."""

    loss: str = "squared"

    def __init__(
        self,
        tau: float | None = None,
        *,
        penalty: float | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.tau = tau
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        tau = 1.0 if self.tau is None and self.penalty is None else self.tau
        parameters = {"tau": tau, "penalty": self.penalty, "loss": self.loss}
        return solved(self, "trace_norm_glm", data, parameters, _PREFERRED, rotated=self.loss)


class TraceNormRegressor(_TraceNorm, LinearTaskRegressor):
    """Least squares for many tasks under a trace norm (sum of singular values), which gives coefficients of low rank.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i 1/2 (y_ki - x_ki.w_k)^2   subject to  ||W||_* <= tau,   or  + penalty ||W||_*  instead

    The problem is `trace_norm_glm`.

    Parameters
    ----------
    tau : float, optional
        At least 0. Larger: a higher rank. 1 where neither `tau` nor `penalty` is given; both are one too many.
    penalty : float, optional
        At least 0 (the gap needs it above 0). Larger: a lower rank.
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `accelerated_gradient`.

    References
    ----------
    Ji, Ye, "An accelerated gradient method for trace norm minimization", ICML 2009 (penalty); Chen, Liu, Ye, "Learning incoherent sparse
    and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "TraceNorm" (tau).
    """


class TraceNormClassifier(_TraceNorm, LinearTaskClassifier):
    """Classification for many tasks under a trace norm (sum of singular values), which gives coefficients of low rank.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||W||_* <= tau,   or  + penalty ||W||_*  instead

        squared    loss(t, y) = 1/2 (y - t)^2
        logistic   loss(t, y) = log(1 + exp(-y t))

    with labels y -1 and +1. The problem is `trace_norm_glm`.

    Parameters
    ----------
    tau : float, optional
        At least 0. Larger: a higher rank. 1 where neither `tau` nor `penalty` is given; both are one too many.
    penalty : float, optional
        At least 0 (the gap needs it above 0). Larger: a lower rank.
    loss : {"squared", "logistic"}
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `accelerated_gradient`.

    References
    ----------
    Ji, Ye, "An accelerated gradient method for trace norm minimization", ICML 2009 (penalty); Chen, Liu, Ye, "Learning incoherent sparse
    and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "TraceNorm" (tau).
    """

    def __init__(
        self,
        tau: float | None = None,
        *,
        penalty: float | None = None,
        loss: str = "squared",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.tau = tau
        self.penalty = penalty
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
