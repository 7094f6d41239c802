"""Linear models of many tasks that a registered solver fits: a loss, and what restricts or penalises the coefficients."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Preferred
from bench_mtl.estimators.linear import (
    FittedTasks,
    HingeClassifier,
    LinearTaskClassifier,
    LinearTaskRegressor,
    LossRegressor,
    SquaresClassifier,
    linear_model,
)
from bench_mtl.estimators.solved import AUTO, SolvedTasks, Specification, smooth_fits

_SMOOTHED: Preferred = (("auto", {}), ("smoothed_gradient", {}))
_BALL_HINGE: Preferred = (("pdhg", {}), ("working_set", {}), ("smoothed_gradient", {}))

#: The losses of problems that take that of quantiles too.
_ROW_LOSSES = ("squared", "logistic", "huber", "quantile")

#: Options of problems with smooth losses that are only given to them where they change something.
_OPTIONS: dict[str, Any] = {"feature_factors": None, "nonnegative": False, "ridge": 0.0}


@linear_model
class Ridged(SolvedTasks):
    """A model with an l2 term beside its norm, and other options that problems of hinges do not have."""

    _: KW_ONLY
    ridge: float = 0.0

    def _specification(self) -> Specification:
        what = super()._specification()
        asked = {name: value for name, value in what.parameters.items() if name in _OPTIONS and not is_default(value, _OPTIONS[name])}
        if asked and what.problem.endswith("_hinge"):
            raise InputError(f"{' and '.join(asked)} must be left out with hinges: they are for the other losses, such as 'logistic'")
        return replace(what, parameters={name: value for name, value in what.parameters.items() if name in asked or name not in _OPTIONS})


def is_default(value: Any, default: Any) -> bool:
    """Whether a parameter, which may be an array, is its default."""
    return value is default or (isinstance(value, (bool, int, float, np.bool_, np.number)) and bool(value == default))


@linear_model
class Factored(Ridged):
    """A model whose norm may weigh features, and whose coefficients may be at least 0."""

    _: KW_ONLY
    feature_factors: Any = None
    nonnegative: bool = False


@linear_model
class Reduced(SolvedTasks):
    """
    Parameters
    ----------
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1: whether tasks of many examples count as those of few. (With sample weights the share
        of each in their sum, times its weight.)
    """

    _: KW_ONLY
    reduction: str = "mean"


@linear_model
class _Normed(Ridged):
    """
    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: more features, or a higher rank. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float or str, optional
        At least 0 (its gap needs it above 0, or a ridge), or a share of the smallest with which all coefficients are 0: "0.1 max".
        Larger: fewer features, or a lower rank.
    """

    radius: float | None = None
    _: KW_ONLY
    penalty: float | str | None = None

    def _specification(self) -> Specification:
        what, is_given = super()._specification(), not (self.radius is None and self.penalty is None)
        return what if is_given else replace(what, parameters={**what.parameters, "radius": 1.0})


@linear_model
class _L1Inf(_Normed, Factored, Reduced):
    """The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j max_k |W_jk| <= radius,   or  + penalty sum_j max_k |W_jk|  instead

    with s_k as the parameter `reduction` says.
    """

    fits = {"hinge": Specification("l1inf_hinge", {}, _SMOOTHED), **smooth_fits("l1inf_glm", _ROW_LOSSES)}


@linear_model
class L1InfClassifier(_L1Inf, HingeClassifier):
    """Classification for many tasks under an l1,inf norm, which makes a feature's coefficients zero in all tasks or in none.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bench_mtl.estimators import L1InfClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = L1InfClassifier(radius=5.0).fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 4), True)
    """


@linear_model
class L1InfRegressor(_L1Inf, LossRegressor):
    """Regression for many tasks under an l1,inf norm, which makes a feature's coefficients zero in all tasks or in none.

    References
    ----------
    Turlach, Venables, Wright, "Simultaneous variable selection", Technometrics 47(3), 2005 (radius); Negahban, Wainwright, "Simultaneous
    support recovery in high dimensions", IEEE Transactions on Information Theory 57(6), 2011 (penalty).
    """


@linear_model
class _L12(_Normed, Factored, Reduced):
    """The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j ||W_j||_2 <= radius,   or  + penalty sum_j ||W_j||_2  instead

    with W_j the coefficients of feature j. Where the l1,inf norm lets all tasks use a feature as much as the one that needs it most, here
    each pays for its own use.

    References
    ----------
    Yuan, Lin, "Model selection and estimation in regression with grouped variables", Journal of the Royal Statistical Society B 68(1),
    2006; Obozinski, Taskar, Jordan, "Joint covariate selection and joint subspace selection", Statistics and Computing 20(2), 2010.
    """

    fits = {"hinge": Specification("l12_hinge", {}, _SMOOTHED), **smooth_fits("l12_glm", _ROW_LOSSES)}


@linear_model
class L12Classifier(_L12, HingeClassifier):
    """Classification for many tasks under an l1,2 norm (the group lasso's), which makes a feature's coefficients 0 in all or no tasks."""


@linear_model
class L12Regressor(_L12, LossRegressor):
    """Regression for many tasks under an l1,2 norm (the group lasso's), which makes a feature's coefficients zero in all or no tasks."""


@linear_model
class _TraceNorm(_Normed):
    """The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||W||_* <= radius,   or  + penalty ||W||_*  instead

    References
    ----------
    Ji, Ye, "An accelerated gradient method for trace norm minimization", ICML 2009 (penalty); Chen, Liu, Ye, "Learning incoherent sparse
    and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "TraceNorm" (radius, their tau).
    """

    fits = smooth_fits("trace_norm_glm", rotates=True)


@linear_model
class TraceNormRegressor(_TraceNorm, LossRegressor):
    """Regression for many tasks under a trace norm (sum of singular values), which gives coefficients of low rank."""


@linear_model
class TraceNormClassifier(_TraceNorm, SquaresClassifier):
    """Classification for many tasks under a trace norm (sum of singular values), which gives coefficients of low rank."""


@linear_model
class _SparseLowRank(SolvedTasks):
    """The coefficients P + Q (features x tasks) minimise, up to a proven gap,

        sum_k sum_i loss(x_ki.(p_k + q_k), y_ki) + penalty sum_jk |P_jk|   subject to  ||Q||_* <= radius

    with the trace norm (sum of singular values).

    Parameters
    ----------
    penalty : float
        Above 0, the paper's gamma. Larger: fewer entries of P.
    radius : float
        At least 0, the paper's tau. Larger: a larger Q of higher rank.

    Attributes
    ----------
    sparse_coef_, low_rank_coef_ : ndarrays of the shape of `coef_`
        P and Q; `coef_` is their sum.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012, equation 45; the experiments
    call it "MixedNorm".
    """

    penalty: float = 1.0
    radius: float = 1.0

    fits = smooth_fits("sparse_low_rank", parts=("sparse_coef_", "low_rank_coef_"))


@linear_model
class SparseLowRankRegressor(_SparseLowRank, LossRegressor):
    """Regression for many tasks with coefficients that are a sparse plus a low-rank matrix."""


@linear_model
class SparseLowRankClassifier(_SparseLowRank, SquaresClassifier):
    """Classification for many tasks with coefficients that are a sparse plus a low-rank matrix."""


@linear_model
class _Dirty(Reduced):
    """The coefficients B + S (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.(b_k + s_k), y_ki) + row_penalty sum_j max_k |B_jk| + entry_penalty sum_jk |S_jk|

    Parameters
    ----------
    row_penalty, entry_penalty : float or str
        Weights of the rows of B and of the entries of S, the paper's lambda_b and lambda_s: at least 0, above it for a proven gap, or a
        share of the smallest with which B and S can be 0: "0.1 max". Larger: fewer of them. S is 0 if row_penalty <= entry_penalty, and B
        is 0 if row_penalty is at least the number of tasks times entry_penalty.

    Attributes
    ----------
    shared_coef_, own_coef_ : ndarrays of the shape of `coef_`
        B and S; `coef_` is their sum.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010.
    """

    row_penalty: float | str = "0.1 max"
    entry_penalty: float | str = "0.1 max"

    fits = smooth_fits("dirty_model", parts=("shared_coef_", "own_coef_"))


@linear_model
class DirtyRegressor(_Dirty, LossRegressor):
    """Regression for many tasks with coefficients that are a matrix of few rows, which tasks share, plus a sparse one."""


@linear_model
class DirtyClassifier(_Dirty, SquaresClassifier):
    """Classification for many tasks with coefficients that are a matrix of few rows, which tasks share, plus a sparse one."""


@linear_model
class _L1Ball(SolvedTasks):
    """The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||w_k||_1 <= radius for every task k

    with s_k = 1 for the squared loss, a sum, and 1/n_k, a mean over the task's examples, for the others.

    Parameters
    ----------
    radius : float or list
        At least 0. Larger: more non-zeros. With the hinge it may be a list with one for each task.

    References
    ----------
    Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical Society B 58(1), 1996; Quattoni,
    Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 5.
    """

    radius: float | list[float] = 1.0

    fits = {"hinge": Specification("ball_hinge", {"norm": "l1"}, _BALL_HINGE), **smooth_fits("l1_ball_glm")}


@linear_model
class L1BallRegressor(_L1Ball, LinearTaskRegressor):
    """Least squares, every task in an l1 ball of its own."""


@linear_model
class L1BallClassifier(_L1Ball, HingeClassifier):
    """Classification, every task in an l1 ball of its own."""


@linear_model
class L2BallClassifier(SolvedTasks, LinearTaskClassifier):
    """Classification by hinges, every task in an l2 ball of its own: a support vector machine a task.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k 1/n_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  ||w_k||_2 <= radius for every task k

    with labels y -1 and +1.

    Parameters
    ----------
    radius : float or list
        At least 0, or a list with one for each task.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 5.
    """

    radius: float | list[float] = 1.0

    loss = "hinge"
    fits = {"hinge": Specification("ball_hinge", {"norm": "l2"}, _BALL_HINGE)}


@linear_model
class _OneNorm(Factored):
    """The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki) + penalty sum_jk |W_jk|

    with s_k = 1 for losses of numbers, and 1/n_k for the logistic one.

    Parameters
    ----------
    penalty : float or str
        At least 0 (the gap needs it above 0), or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: fewer
        non-zeros.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "OneNorm".
    """

    penalty: float | str = 1.0

    fits = smooth_fits("l1_ball_glm")


@linear_model
class OneNormRegressor(_OneNorm, LossRegressor):
    """The lasso of every task."""


@linear_model
class OneNormClassifier(_OneNorm, SquaresClassifier):
    """The lasso of every task on labels -1 and +1, or logistic regression with an l1 penalty."""


@linear_model
class _MTRL(SolvedTasks):
    """The coefficients W (features x tasks) and the covariance Omega of the tasks minimise, up to a proven gap,

        sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 tr(W Omega^-1 W^T)

    over Omega positive semidefinite with tr Omega = 1. Minimised over Omega the last term is coupling/2 ||W||_*^2, so the problem is convex
    in W alone. Tasks with rows of their own have the default solver `accelerated_gradient`; `alternating_relationships` is the paper's
    method.

    Parameters
    ----------
    ridge : float
        lambda_1, at least 0. Larger: smaller coefficients.
    coupling : float
        lambda_2, at least 0. Larger: more closely related tasks. One of the two is above 0.

    Attributes
    ----------
    task_covariance_ : ndarray, tasks x tasks
        Omega.

    References
    ----------
    Zhang, Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010.
    """

    ridge: float = 0.01
    coupling: float = 0.01

    reduction = "mean"
    takes_shards = False
    fits = {"squared": Specification("task_relationships", {}, (("spectral_gradient", {}), AUTO[1]), rotates=True)}

    def _fit_data(self, data: TaskData) -> FittedTasks:
        fitted = super()._fit_data(data)
        return replace(fitted, attributes={"task_covariance_": task_covariance(fitted.coefficients)})


def task_covariance(W: Array) -> Array:
    """argmin tr(W Omega^-1 W^T) over positive semidefinite Omega of trace 1: (W^T W)^(1/2) / ||W||_*; I / m where W is 0."""
    _, values, rows = np.linalg.svd(W, full_matrices=False)
    total = float(values.sum())
    return np.asarray((rows.T * (values / total)) @ rows if total > 0.0 else np.eye(W.shape[1]) / W.shape[1])


@linear_model
class MTRLRegressor(_MTRL, LinearTaskRegressor):
    """Least squares for many tasks whose relationships are learned with them (MTRL).

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import MTRLRegressor
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = MTRLRegressor(coupling=0.1).fit(scale(X), scale(Y))
    >>> model.task_covariance_.shape, bool(model.gap_ <= 1e-3)
    ((3, 3), True)
    """


@linear_model
class MTRLClassifier(_MTRL, LinearTaskClassifier):
    """`MTRLRegressor` for classes: the same least squares of labels -1 and +1, as in the paper."""
