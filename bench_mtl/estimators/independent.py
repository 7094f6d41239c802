"""Linear models that learn every task by itself: a norm ball or an l1 penalty a task, the rivals of learning tasks together."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.core.checks import one_of
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.solved import Preferred, SolvedTasks, Specification

_PREFERRED_SMOOTH: Preferred = (("auto", {}), ("face_newton", {}), ("accelerated_gradient", {"restart": "gradient"}))
#: Of the lasso: two to eight times the speed of the others to a gap of 1e-3, most where the penalty is small.
_PREFERRED_LASSO: Preferred = (("coordinate_descent", {}), *_PREFERRED_SMOOTH)
_PREFERRED_HINGE: Preferred = (("pdhg", {}), ("working_set", {}), ("smoothed_gradient", {}))


@linear_model
class L1BallRegressor(SolvedTasks, LinearTaskRegressor):
    """Least squares, every task in an l1 ball of its own.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i 1/2 (y_ki - x_ki.w_k)^2   subject to  ||w_k||_1 <= radius for every task k

    The problem is `l1_ball_glm`.

    Parameters
    ----------
    radius : float
        At least 0. Larger: more non-zeros.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    References
    ----------
    Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical Society B 58(1), 1996.
    """

    radius: float = 1.0

    def _specification(self) -> Specification:
        return Specification("l1_ball_glm", {"loss": "squared", "radius": self.radius}, _PREFERRED_SMOOTH)


@linear_model
class L1BallClassifier(SolvedTasks, LinearTaskClassifier):
    """Classification, every task in an l1 ball of its own.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||w_k||_1 <= radius for every task k

        hinge      loss(t, y) = max(0, 1 - y t)             s_k = 1/n_k: a mean over the task's examples
        logistic   loss(t, y) = log(1 + exp(-y t))          s_k = 1/n_k: a mean
        squared    loss(t, y) = 1/2 (y - t)^2               s_k = 1: a sum

    with labels y -1 and +1. The problem is `ball_hinge`, with a smooth loss `l1_ball_glm`.

    Parameters
    ----------
    radius : float or list
        At least 0. Larger: more non-zeros. With the hinge it may be a list with one for each task.
    loss : {"hinge", "logistic", "squared"}
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `pdhg` for the hinge, else `auto`.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 5.
    """

    radius: float | list[float] = 1.0
    _: KW_ONLY
    loss: str = "hinge"

    def _specification(self) -> Specification:
        if one_of("loss", self.loss, ("hinge", "logistic", "squared")) == "hinge":
            return Specification("ball_hinge", {"radius": self.radius, "norm": "l1"}, _PREFERRED_HINGE)
        return Specification("l1_ball_glm", {"radius": self.radius, "loss": self.loss}, _PREFERRED_SMOOTH)


@linear_model
class L2BallClassifier(SolvedTasks, LinearTaskClassifier):
    """Classification by hinges, every task in an l2 ball of its own: a support vector machine a task.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k 1/n_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  ||w_k||_2 <= radius for every task k

    with labels y -1 and +1. The problem is `ball_hinge`.

    Parameters
    ----------
    radius : float or list
        At least 0, or a list with one for each task.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `pdhg`.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 5.
    """

    radius: float | list[float] = 1.0

    loss = "hinge"

    def _specification(self) -> Specification:
        return Specification("ball_hinge", {"radius": self.radius, "norm": "l2"}, _PREFERRED_HINGE)


@linear_model
class _OneNorm(SolvedTasks):
    """The parameters and the fit of regressor and classifier."""

    penalty: float | str = 1.0

    def _specification(self) -> Specification:
        one_of("loss", self.loss, ("squared", "logistic"))
        preferred = _PREFERRED_LASSO if self.loss == "squared" else _PREFERRED_SMOOTH
        return Specification("l1_ball_glm", {"penalty": self.penalty, "loss": self.loss}, preferred)


@linear_model
class OneNormRegressor(_OneNorm, LinearTaskRegressor):
    """The lasso of every task.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i 1/2 (y_ki - x_ki.w_k)^2 + penalty sum_jk |W_jk|

    The problem is `l1_ball_glm`.

    Parameters
    ----------
    penalty : float or str
        At least 0 (the gap needs it above 0), or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: fewer
        non-zeros.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `coordinate_descent`.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "OneNorm".
    """


@linear_model
class OneNormClassifier(_OneNorm, LinearTaskClassifier):
    """The lasso of every task on labels -1 and +1, or logistic regression with an l1 penalty.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i 1/2 (y_ki - x_ki.w_k)^2 + penalty sum_jk |W_jk|                        (squared)
        sum_k 1/n_k sum_i log(1 + exp(-y_ki x_ki.w_k)) + penalty sum_jk |W_jk|             (logistic)

    with labels y -1 and +1. The problem is `l1_ball_glm`.

    Parameters
    ----------
    penalty : float or str
        At least 0 (the gap needs it above 0), or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: fewer
        non-zeros. Mind the 1/n_k of the logistic loss.
    loss : {"squared", "logistic"}
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `coordinate_descent`, of the logistic loss `auto`.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "OneNorm".
    """

    _: KW_ONLY
    loss: str = "squared"
