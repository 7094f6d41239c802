"""Linear models of many tasks that select their features together, by the l1,inf norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_mtl.core.checks import one_of
from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor
from bench_mtl.estimators.linear_fits import FittedTasks, Preferred, solved

_PREFERRED_HINGE: Preferred = (("auto", {}), ("pdhg", {}))
_PREFERRED_SMOOTH: Preferred = (("accelerated_gradient", {"restart": "gradient"}),)


class L1InfClassifier(LinearTaskClassifier):
    """Classification for many tasks under an l1,inf norm, which makes a feature's coefficients zero in all tasks or in none.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j max_k |W_jk| <= radius,   or  + penalty sum_j max_k |W_jk|  instead

        hinge      loss(t, y) = max(0, 1 - y t)
        logistic   loss(t, y) = log(1 + exp(-y t))
        squared    loss(t, y) = 1/2 (y - t)^2

    with labels y -1 and +1. The problem is `l1inf_hinge`, with a smooth loss `l1inf_glm`.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: more features. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float, optional
        At least 0. Larger: fewer features. With a smooth loss also a share of the smallest with which all coefficients are 0: "0.1 max".
    loss : {"hinge", "logistic", "squared"}
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1: whether tasks of many examples count as those of few.
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `auto` for the hinge, else `accelerated_gradient`.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, "An efficient projection for l1,infinity regularization", ICML 2009, section 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bench_mtl.estimators import L1InfClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = L1InfClassifier(radius=5.0, fit_intercept=True).fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 4), True)
    """

    def __init__(
        self,
        radius: float | None = None,
        *,
        penalty: float | str | None = None,
        loss: str = "hinge",
        reduction: str = "mean",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.radius = radius
        self.penalty = penalty
        self.loss = loss
        self.reduction = reduction
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        one_of("loss", self.loss, ("hinge", "logistic", "squared"))
        one_of("reduction", self.reduction, ("mean", "sum"))
        size = radius_or_penalty(self.radius, self.penalty)
        if self.loss == "hinge":
            return solved(self, "l1inf_hinge", data, {**size, "loss": self.reduction}, _PREFERRED_HINGE)
        return solved(self, "l1inf_glm", data, {**size, "loss": self.loss, "reduction": self.reduction}, _PREFERRED_SMOOTH)


class L1InfRegressor(LinearTaskRegressor):
    """Least squares for many tasks under an l1,inf norm, which makes a feature's coefficients zero in all tasks or in none.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i 1/2 (y_ki - x_ki.w_k)^2   subject to  sum_j max_k |W_jk| <= radius,   or  + penalty sum_j max_k |W_jk|  instead

    The problem is `l1inf_glm`.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: more features. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float or str, optional
        At least 0, or a share of the smallest with which all coefficients are 0: "0.1 max". Larger: fewer features.
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1 (with sample weights the share of each in their sum, times its weight).
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by
        default is `accelerated_gradient`.

    References
    ----------
    Turlach, Venables, Wright, "Simultaneous variable selection", Technometrics 47(3), 2005 (radius); Negahban, Wainwright, "Simultaneous
    support recovery in high dimensions", IEEE Transactions on Information Theory 57(6), 2011 (penalty).
    """

    def __init__(
        self,
        radius: float | None = None,
        *,
        penalty: float | str | None = None,
        reduction: str = "mean",
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000,
        max_seconds: float | None = None,
    ) -> None:
        self.radius = radius
        self.penalty = penalty
        self.reduction = reduction
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        one_of("reduction", self.reduction, ("mean", "sum"))
        parameters = {**radius_or_penalty(self.radius, self.penalty), "loss": "squared", "reduction": self.reduction}
        return solved(self, "l1inf_glm", data, parameters, _PREFERRED_SMOOTH)


def radius_or_penalty(radius: float | None, penalty: float | str | None) -> Mapping[str, Any]:
    """Both as they are, or a radius of 1 where there is neither."""
    return {"radius": 1.0 if radius is None and penalty is None else radius, "penalty": penalty}
