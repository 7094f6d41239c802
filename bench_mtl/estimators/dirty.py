"""Linear models of many tasks that share some of their features and have others to themselves."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.solved import Preferred, SolvedTasks, Specification

_PREFERRED: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}))


@linear_model
class _Dirty(SolvedTasks):
    """The parameters and the fit of regressor and classifier."""

    row_penalty: float | str = "0.1 max"
    entry_penalty: float | str = "0.1 max"
    _: KW_ONLY
    reduction: str = "mean"

    def _specification(self) -> Specification:
        parameters = {"row_penalty": self.row_penalty, "entry_penalty": self.entry_penalty, "loss": self.loss, "reduction": self.reduction}
        return Specification("dirty_model", parameters, _PREFERRED, ("shared_coef_", "own_coef_"))


@linear_model
class DirtyRegressor(_Dirty, LinearTaskRegressor):
    """Least squares for many tasks with coefficients that are a matrix of few rows, which tasks share, plus a sparse one.

    The coefficients B + S (features x tasks) minimise, up to a proven gap,

        sum_k c_k sum_i 1/2 (y_ki - x_ki.(b_k + s_k))^2 + row_penalty sum_j max_k |B_jk| + entry_penalty sum_jk |S_jk|

    The problem is `dirty_model`.

    Parameters
    ----------
    row_penalty : float or str
        Weight of the rows of B, the paper's lambda_b: above 0, or a share of the smallest with which B and S can be 0:
        "0.1 max". Larger: fewer rows.
    entry_penalty : float or str
        Weight of the entries of S, the paper's lambda_s, likewise. S is 0 if row_penalty <= entry_penalty, and B is 0 if row_penalty
        is at least the number of tasks times entry_penalty.
    reduction : {"mean", "sum"}
        Over the examples of a task, c_k = 1/n_k or 1 (with sample weights the share of each in their sum, times its weight).
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    Attributes
    ----------
    shared_coef_, own_coef_ : ndarrays of the shape of `coef_`
        B and S; `coef_` is their sum.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010.
    """


@linear_model
class DirtyClassifier(_Dirty, LinearTaskClassifier):
    """`DirtyRegressor` for classes, with a choice of losses of the labels y = -1 and +1.

    The references are those of `DirtyRegressor`.

    Parameters
    ----------
    row_penalty : float or str
        Weight of the rows of B, the paper's lambda_b: above 0, or a share of the smallest with which B and S can be 0:
        "0.1 max". Larger: fewer rows.
    entry_penalty : float or str
        Weight of the entries of S, the paper's lambda_s, likewise. Larger: fewer entries.
    reduction : {"mean", "sum"}
        Over the examples of a task, c_k = 1/n_k or 1.
    loss : {"squared", "logistic"}
        With t = x.(b + s) 1/2 (y - t)^2, or log(1 + exp(-y t)).
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    Attributes
    ----------
    shared_coef_, own_coef_ : ndarrays of the shape of `coef_`
        B and S; `coef_` is their sum.
    """

    _: KW_ONLY
    loss: str = "squared"
