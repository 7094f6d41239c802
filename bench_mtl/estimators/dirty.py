"""Linear models of many tasks that share some of their features and have others to themselves."""

from __future__ import annotations

from typing import Any

from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, LinearTasks
from bench_mtl.estimators.linear_fits import FittedTasks, Preferred, solved

_PREFERRED: Preferred = (("accelerated_gradient", {"restart": "gradient"}),)


class _Dirty(LinearTasks):
    """What regressor and classifier have in common."""

    loss: str = "squared"

    def __init__(
        self,
        lambda_b: float | str = "0.1 max",
        lambda_s: float | str = "0.1 max",
        *,
        reduction: str = "mean",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.lambda_b = lambda_b
        self.lambda_s = lambda_s
        self.reduction = reduction
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        parameters = {"lambda_b": self.lambda_b, "lambda_s": self.lambda_s, "loss": self.loss, "reduction": self.reduction}
        return solved(self, "dirty_model", data, parameters, _PREFERRED, ("shared_coef_", "own_coef_"))


class DirtyRegressor(_Dirty, LinearTaskRegressor):
    """Least squares for many tasks with coefficients that are a matrix of few rows, which tasks share, plus a sparse one.

    The coefficients B + S (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.(b_k + s_k), y_ki) + lambda_b sum_j max_k |B_jk| + lambda_s sum_jk |S_jk|

        loss(t, y) = 1/2 (y - t)^2

    The problem is `dirty_model`.

    Parameters
    ----------
    lambda_b : float or str
        Weight of the rows of B; above 0, or a share of the smallest with which B and S can be 0: "0.1 max". Larger: fewer rows.
    lambda_s : float or str
        Weight of the entries of S, likewise. S is 0 if lambda_b <= lambda_s, and B if lambda_b >= m lambda_s for m tasks.
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1 (with sample weights the share of each in their sum, times its
        weight).
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `accelerated_gradient`.

    Attributes
    ----------
    shared_coef_, own_coef_ : ndarrays of the shape of `coef_`
        B and S; `coef_` is their sum.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010.
    """


class DirtyClassifier(_Dirty, LinearTaskClassifier):
    """Classification for many tasks with coefficients that are a matrix of few rows, which tasks share, plus a sparse one.

    The coefficients B + S (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.(b_k + s_k), y_ki) + lambda_b sum_j max_k |B_jk| + lambda_s sum_jk |S_jk|

        squared    loss(t, y) = 1/2 (y - t)^2
        logistic   loss(t, y) = log(1 + exp(-y t))

    with labels y -1 and +1.
    The problem is `dirty_model`.

    Parameters
    ----------
    lambda_b : float or str
        Weight of the rows of B; above 0, or a share of the smallest with which B and S can be 0: "0.1 max". Larger: fewer rows.
    lambda_s : float or str
        Weight of the entries of S, likewise. S is 0 if lambda_b <= lambda_s, and B if lambda_b >= m lambda_s for m tasks.
    loss : {"squared", "logistic"}
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1.
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `accelerated_gradient`.

    Attributes
    ----------
    shared_coef_, own_coef_ : ndarrays of the shape of `coef_`
        B and S; `coef_` is their sum.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010.
    """

    def __init__(
        self,
        lambda_b: float | str = "0.1 max",
        lambda_s: float | str = "0.1 max",
        *,
        loss: str = "squared",
        reduction: str = "mean",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.lambda_b = lambda_b
        self.lambda_s = lambda_s
        self.loss = loss
        self.reduction = reduction
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
