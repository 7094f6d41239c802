"""Linear models of many tasks with coefficients of low rank."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.solved import Preferred, SolvedTasks, Specification

_PREFERRED: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}))


@linear_model
class _TraceNorm(SolvedTasks):
    """The parameters and the fit of regressor and classifier."""

    radius: float | None = None
    _: KW_ONLY
    penalty: float | str | None = None

    def _specification(self) -> Specification:
        radius = 1.0 if self.radius is None and self.penalty is None else self.radius
        parameters = {"radius": radius, "penalty": self.penalty, "loss": self.loss}
        return Specification("trace_norm_glm", parameters, _PREFERRED, rotated=self.loss)


@linear_model
class TraceNormRegressor(_TraceNorm, LinearTaskRegressor):
    """Least squares for many tasks under a trace norm (sum of singular values), which gives coefficients of low rank.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i 1/2 (y_ki - x_ki.w_k)^2   subject to  ||W||_* <= radius,   or  + penalty ||W||_*  instead

    The problem is `trace_norm_glm`.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: a higher rank. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float or str, optional
        At least 0 (the gap needs it above 0), or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: a lower
        rank.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    References
    ----------
    Ji, Ye, "An accelerated gradient method for trace norm minimization", ICML 2009 (penalty); Chen, Liu, Ye, "Learning incoherent sparse
    and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "TraceNorm" (radius, their tau).
    """


@linear_model
class TraceNormClassifier(_TraceNorm, LinearTaskClassifier):
    """`TraceNormRegressor` for classes, with a choice of losses of the labels y = -1 and +1.

    The references are those of `TraceNormRegressor`.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: a higher rank. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float or str, optional
        At least 0 (the gap needs it above 0), or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: a lower
        rank.
    loss : {"squared", "logistic"}
        With t = x.w 1/2 (y - t)^2, or log(1 + exp(-y t)).
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.
    """

    _: KW_ONLY
    loss: str = "squared"
