"""Linear models of many tasks that share their features, by the l1,inf norm."""

from __future__ import annotations

from typing import Any

from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import LinearTaskClassifier
from bench_mtl.estimators.linear_fits import FittedTasks, Preferred, solved

_PREFERRED_HINGE: Preferred = (("auto", {}), ("pdhg", {}))


class L1InfClassifier(LinearTaskClassifier):
    """Hinge losses of many tasks under an l1,inf norm, which makes a feature's coefficients zero in all tasks or in none.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  sum_j max_k |W_jk| <= radius,   or  + penalty sum_j max_k |W_jk|

    with labels y -1 and +1 and s_k = 1/n_k (loss "mean") or 1 ("sum"). The problem is `l1inf_hinge`.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: more features. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float, optional
        At least 0. Larger: fewer features.
    loss : {"mean", "sum"}
        Over the examples of a task: whether tasks of many examples count as those of few.
    fit_intercept, intercept_scaling, solver, solver_options, tol, max_iter, max_seconds
        As in every linear model here, and so are the attributes: see `bench_mtl.estimators.linear.LinearTasks`. The solver by default is
        `auto`.

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
        penalty: float | None = None,
        loss: str = "mean",
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def _fitted(self, data: TaskData) -> FittedTasks:
        parameters = {**radius_or_penalty(self.radius, self.penalty), "loss": self.loss}
        return solved(self, "l1inf_hinge", data, parameters, _PREFERRED_HINGE)


def radius_or_penalty(radius: float | None, penalty: float | None) -> dict[str, float | None]:
    """Both as they are, or a radius of 1 where there is neither."""
    return {"radius": 1.0 if radius is None and penalty is None else radius, "penalty": penalty}
