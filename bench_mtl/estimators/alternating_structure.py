"""Alternating structure optimisation (ASO): estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from bench_mtl.data import TaskData
from bench_mtl.estimators.constant_feature import as_intercepts, with_constant_feature
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.estimators.structure_fits import fit_shared_structure

#: The value of the constant feature of an intercept.
_CONSTANT = 1.0


@linear_model
class _ASO(LinearTasks):
    """Models with a structure that tasks share.

    The coefficients are w_k = u_k + Theta^T v_k with a structure Theta (n_components x features) of orthonormal rows that all tasks share.
    A local minimum is found, by alternation, of

        sum_k 1/n_k sum_i loss(x_ki.w_k, y_ki) + penalty sum_k ||u_k||^2

    over u_k, v_k and Theta. This is not convex, so there is no gap. With f = x.w the squared loss is (y - f)^2.

    Parameters
    ----------
    penalty : float
        Above 0. Larger: less outside the subspace.
    n_components : int
        Dimension of the subspace, at least 0. At most tasks - 1 and features are used: as many as tasks would leave nothing penalised.
    fit_intercept, max_iter, max_seconds
        As in every linear model here, and so are the attributes but for the missing `dual_bound_` and `gap_`: see
        `bench_mtl.estimators.linear.LinearTasks`. There is no `solver` to choose.
    tol : float
        The fit ends when an iteration lowers the objective by no more than this share of it.

    Attributes
    ----------
    structure_ : ndarray, n_components_ x features
        Theta.
    n_components_ : int
        The dimension used.
    objectives_ : tuple of float
        After every iteration.

    References
    ----------
    Ando, Zhang, "A framework for learning predictive structures from multiple tasks and unlabeled data", JMLR 6, 2005.
    """

    penalty: float = 0.1
    n_components: int = 5
    _: KW_ONLY
    tol: float = 1e-5
    max_iter: int = 10_000
    max_seconds: float | None = None

    reduction = "mean"

    def _fit_data(self, data: TaskData) -> FittedTasks:
        if not self.fit_intercept or self._is_centred(data):
            return self._fit_coefficients(data)
        return as_intercepts(self._fit_coefficients(with_constant_feature(data, _CONSTANT)), _CONSTANT)

    def _fit_coefficients(self, data: TaskData) -> FittedTasks:
        space = RowSpace.of(data, squares=self.loss == "squared")
        found = fit_shared_structure(
            data if space is None else space.data,
            penalty=self.penalty,
            n_components=self.n_components,
            loss=self.loss,
            tol=self.tol,
            budget=Budget(self.max_iter, self.max_seconds),
        )
        if space is not None:
            own, structure = space.coefficients(found.own), space.coefficients(found.structure.T).T
            found = found._replace(own=own, structure=np.ascontiguousarray(structure))
        attributes: dict[str, Any] = {
            "structure_": found.structure,
            "n_components_": len(found.structure),
            "objective_": found.objectives[-1],
            "objectives_": found.objectives,
        }
        return FittedTasks(found.coefficients, len(found.objectives), found.is_met, found.message, attributes=attributes)


@linear_model
class ASORegressor(_ASO, LinearTaskRegressor):
    """Least squares for many tasks with a learned subspace in which coefficients are free (ASO).

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import ASORegressor
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = ASORegressor(n_components=1).fit(scale(X), scale(Y))
    >>> model.coef_.shape, model.structure_.shape
    ((3, 3), (1, 3))
    """


@linear_model
class ASOClassifier(_ASO, LinearTaskClassifier):
    """Classification for many tasks, of labels -1 and +1, with a learned subspace in which coefficients are free (ASO).

    Parameters
    ----------
    loss : {"squared", "logistic", "modified_huber"}
        With f = x.w the square of y - f; log(1 + exp(-y f)); or the paper's modified Huber loss, max(0, 1 - y f)^2 where y f >= -1, else
        -4 y f. For the last two an iteration is one step of majorisation, and there are many; where labels are separable in the subspace
        the free coefficients grow without end, and the fit ends at `tol`.
    fit_intercept : bool, default True
        Whether scores have intercepts: free ones with the squared loss, else those of a constant feature, 1, after the others, which
        `structure_` has too.
    max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes; there is no `solver`, `dual_bound_` or `gap_`.
    """

    _: KW_ONLY
    loss: str = "squared"
