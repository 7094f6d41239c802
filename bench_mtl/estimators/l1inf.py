"""Linear models of many tasks that select their features together, by the l1,inf norm."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.core.checks import one_of
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.row_norms import RowNormTasks
from bench_mtl.estimators.solved import Preferred, Specification

_PREFERRED_HINGE: Preferred = (("auto", {}), ("smoothed_gradient", {}))
_PREFERRED_SMOOTH: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}))


@linear_model
class L1InfClassifier(RowNormTasks, LinearTaskClassifier):
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
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

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

    _: KW_ONLY
    loss: str = "hinge"

    def _specification(self) -> Specification:
        loss, parameters = one_of("loss", self.loss, ("hinge", "logistic", "squared")), self._checked_parameters()
        if loss == "hinge":
            return Specification("l1inf_hinge", parameters, _PREFERRED_HINGE)
        return Specification("l1inf_glm", {**parameters, "loss": loss}, _PREFERRED_SMOOTH)


@linear_model
class L1InfRegressor(RowNormTasks, LinearTaskRegressor):
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
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    References
    ----------
    Turlach, Venables, Wright, "Simultaneous variable selection", Technometrics 47(3), 2005 (radius); Negahban, Wainwright, "Simultaneous
    support recovery in high dimensions", IEEE Transactions on Information Theory 57(6), 2011 (penalty).
    """

    def _specification(self) -> Specification:
        return Specification("l1inf_glm", {**self._checked_parameters(), "loss": "squared"}, _PREFERRED_SMOOTH)
