"""Linear models of many tasks with a sparse and a low-rank part."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.solved import Preferred, SolvedTasks, Specification

_PREFERRED: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}))


@linear_model
class _SparseLowRank(SolvedTasks):
    """The parameters and the fit of regressor and classifier."""

    penalty: float = 1.0
    radius: float = 1.0

    def _specification(self) -> Specification:
        parameters = {"penalty": self.penalty, "radius": self.radius, "loss": self.loss}
        return Specification("sparse_low_rank", parameters, _PREFERRED, ("sparse_coef_", "low_rank_coef_"))


@linear_model
class SparseLowRankRegressor(_SparseLowRank, LinearTaskRegressor):
    """Least squares for many tasks with coefficients that are a sparse plus a low-rank matrix.

    The coefficients P + Q (features x tasks) minimise, up to a proven gap,

        1/2 sum_k sum_i (y_ki - x_ki.(p_k + q_k))^2 + penalty sum_jk |P_jk|   subject to  ||Q||_* <= radius

    with the trace norm (sum of singular values). The problem is `sparse_low_rank`.

    Parameters
    ----------
    penalty : float
        Above 0, the paper's gamma. Larger: fewer entries of P.
    radius : float
        At least 0, the paper's tau. Larger: a larger Q of higher rank.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

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
    >>> model = SparseLowRankRegressor(penalty=2.0).fit(scale(X), scale(Y))
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 3), True)
    """


@linear_model
class SparseLowRankClassifier(_SparseLowRank, LinearTaskClassifier):
    """`SparseLowRankRegressor` for classes, with a choice of losses of the labels y = -1 and +1.

    The references are those of `SparseLowRankRegressor`; the paper's experiments call it "MixedNorm".

    Parameters
    ----------
    penalty : float
        Above 0, the paper's gamma. Larger: fewer entries of P.
    radius : float
        At least 0, the paper's tau. Larger: a larger Q of higher rank.
    loss : {"squared", "logistic"}
        With t = x.(p + q) 1/2 (y - t)^2, or log(1 + exp(-y t)).
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    Attributes
    ----------
    sparse_coef_, low_rank_coef_ : ndarrays of the shape of `coef_`
        P and Q; `coef_` is their sum.
    """

    _: KW_ONLY
    loss: str = "squared"
