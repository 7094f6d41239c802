"""Linear models of many tasks with a sparse and a low-rank part."""

from __future__ import annotations

from typing import Any

from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, LinearTasks
from bench_mtl.estimators.linear_fits import FittedTasks, Preferred, solved

_PREFERRED: Preferred = (("block_coordinate", {}), ("partial_minimisation", {}), ("accelerated_gradient", {"restart": "gradient"}))
#: For squares of one design: never far behind another, and far ahead where the data determine little.
_SQUARES: Preferred = (("admm", {}), *_PREFERRED)
#: Where that has many more features than examples: ten times faster, since it works in the space of the rows.
_WIDE: Preferred = (("partial_minimisation", {}), *_SQUARES)

#: Features an example from which a design counts as wide.
_WIDTH = 8


class _SparseLowRank(LinearTasks):
    """What regressor and classifier have in common."""

    loss: str = "squared"

    def __init__(
        self,
        gamma: float = 1.0,
        tau: float = 1.0,
        *,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.gamma = gamma
        self.tau = tau
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        parameters = {"gamma": self.gamma, "tau": self.tau, "loss": self.loss}
        preferred = _PREFERRED
        if data.design.is_shared and self.loss == "squared":
            preferred = _WIDE if data.n_features > _WIDTH * data.design.sizes[0] else _SQUARES
        return solved(self, "sparse_low_rank", data, parameters, preferred, ("sparse_coef_", "low_rank_coef_"))


class SparseLowRankRegressor(_SparseLowRank, LinearTaskRegressor):
    """Least squares for many tasks with coefficients that are a sparse plus a low-rank matrix.

    The coefficients P + Q (features x tasks) minimise, up to a proven gap,

        1/2 sum_k sum_i (y_ki - x_ki.(p_k + q_k))^2 + gamma sum_jk |P_jk|   subject to  ||Q||_* <= tau

    with the trace norm (sum of singular values). The problem is `sparse_low_rank`.

    Parameters
    ----------
    gamma : float
        Above 0. Larger: fewer entries of P.
    tau : float
        At least 0. Larger: a larger Q of higher rank.
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `admm`, for many more features than examples `partial_minimisation`.

    Attributes
    ----------
    sparse_coef_, low_rank_coef_ : ndarrays of the shape of `coef_`
        P and Q; `coef_` is their sum.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012, equation 45.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import SparseLowRankRegressor
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = SparseLowRankRegressor(gamma=2.0).fit(scale(X), scale(Y))
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 3), True)
    """


class SparseLowRankClassifier(_SparseLowRank, LinearTaskClassifier):
    """Classification for many tasks with coefficients that are a sparse plus a low-rank matrix.

    The coefficients P + Q (features x tasks) minimise, up to a proven gap,

        sum_k sum_i loss(x_ki.(p_k + q_k), y_ki) + gamma sum_jk |P_jk|   subject to  ||Q||_* <= tau

        squared    loss(t, y) = 1/2 (y - t)^2
        logistic   loss(t, y) = log(1 + exp(-y t))

    with labels y -1 and +1. The problem is `sparse_low_rank`.

    Parameters
    ----------
    gamma : float
        Above 0. Larger: fewer entries of P.
    tau : float
        At least 0. Larger: a larger Q of higher rank.
    loss : {"squared", "logistic"}
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `admm`, for many more features than examples `partial_minimisation`.

    Attributes
    ----------
    sparse_coef_, low_rank_coef_ : ndarrays of the shape of `coef_`
        P and Q; `coef_` is their sum.

    References
    ----------
    Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012: "MixedNorm".
    """

    def __init__(
        self,
        gamma: float = 1.0,
        tau: float = 1.0,
        *,
        loss: str = "squared",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.gamma = gamma
        self.tau = tau
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
