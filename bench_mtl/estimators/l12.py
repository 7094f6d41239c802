"""Linear models of many tasks that select their features together, by the l1,2 norm."""

from __future__ import annotations

from dataclasses import KW_ONLY

from bench_mtl.core.checks import one_of
from bench_mtl.estimators.linear import LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.row_norms import RowNormTasks
from bench_mtl.estimators.solved import Preferred, Specification

_PREFERRED: Preferred = (("auto", {}), ("accelerated_gradient", {"restart": "gradient"}), ("smoothed_gradient", {}))


@linear_model
class L12Classifier(RowNormTasks, LinearTaskClassifier):
    """Classification for many tasks under an l1,2 norm (the group lasso's), which makes a feature's coefficients zero in all or no tasks.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j ||W_j||_2 <= radius,   or  + penalty sum_j ||W_j||_2  instead

        hinge      loss(t, y) = max(0, 1 - y t)
        logistic   loss(t, y) = log(1 + exp(-y t))
        squared    loss(t, y) = 1/2 (y - t)^2

    with labels y -1 and +1 and W_j the coefficients of feature j. The problem is `l12_hinge`, with a smooth loss `l12_glm`. Where
    `L1InfClassifier` lets all tasks use a feature as much as the one that needs it most, here each pays for its own use.

    Parameters
    ----------
    radius : float, optional
        At least 0. Larger: more features. 1 where neither `radius` nor `penalty` is given; both are one too many.
    penalty : float or str, optional
        At least 0, or as "0.1 max" a share of one with which all coefficients are 0 (with a smooth loss of the smallest such).
        Larger: fewer features.
    loss : {"hinge", "logistic", "squared"}
    reduction : {"mean", "sum"}
        Over the examples of a task, s_k = 1/n_k or 1: whether tasks of many examples count as those of few.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `auto`.

    References
    ----------
    Yuan, Lin, "Model selection and estimation in regression with grouped variables", Journal of the Royal Statistical Society B 68(1),
    2006; Obozinski, Taskar, Jordan, "Joint covariate selection and joint subspace selection", Statistics and Computing 20(2), 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bench_mtl.estimators import L12Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = L12Classifier(radius=5.0).fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 4), True)
    """

    _: KW_ONLY
    loss: str = "hinge"

    def _specification(self) -> Specification:
        loss = one_of("loss", self.loss, ("hinge", "logistic", "squared"))
        parameters = self._checked_parameters()
        if loss == "hinge":
            return Specification("l12_hinge", parameters, _PREFERRED)
        return Specification("l12_glm", {**parameters, "loss": loss}, _PREFERRED)


@linear_model
class L12Regressor(RowNormTasks, LinearTaskRegressor):
    """Least squares for many tasks under an l1,2 norm (the group lasso's), which makes a feature's coefficients zero in all or no tasks.

    The coefficients W (features x tasks) minimise, up to a proven gap,

        sum_k s_k sum_i 1/2 (y_ki - x_ki.w_k)^2   subject to  sum_j ||W_j||_2 <= radius,   or  + penalty sum_j ||W_j||_2  instead

    with W_j the coefficients of feature j. The problem is `l12_glm`.

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
    Those of `L12Classifier`.
    """

    def _specification(self) -> Specification:
        return Specification("l12_glm", {**self._checked_parameters(), "loss": "squared"}, _PREFERRED)
