"""Multi-task relationship learning: linear least squares with a learned covariance of the tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, linear_model
from bench_mtl.estimators.solved import Preferred, SolvedTasks, Specification

_PREFERRED: Preferred = (("spectral_gradient", {}), ("accelerated_gradient", {"restart": "gradient"}))


@linear_model
class _MTRL(SolvedTasks):
    """The parameters and the fit of regressor and classifier."""

    ridge: float = 0.01
    coupling: float = 0.01

    reduction = "mean"
    takes_shards = False

    def _specification(self) -> Specification:
        return Specification("task_relationships", {"ridge": self.ridge, "coupling": self.coupling}, _PREFERRED, rotated="squared")

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

    The coefficients W (features x tasks) and the covariance Omega of the tasks minimise, up to a proven gap,

        sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 tr(W Omega^-1 W^T)

    over Omega positive semidefinite with tr Omega = 1. Minimised over Omega the last term is coupling/2 ||W||_*^2, so the problem is convex
    in W alone; it is `task_relationships`.

    Parameters
    ----------
    ridge : float
        lambda_1, at least 0. Larger: smaller coefficients.
    coupling : float
        lambda_2, at least 0. Larger: more closely related tasks. One of the two is above 0.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is `spectral_gradient`, for tasks with rows of their own `accelerated_gradient`.
        `alternating_relationships` is the paper's method.

    Attributes
    ----------
    task_covariance_ : ndarray, tasks x tasks
        Omega.

    References
    ----------
    Zhang, Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010.

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
    """`MTRLRegressor` for classes: the same least squares of labels -1 and +1, as in the paper.

    The references are those of `MTRLRegressor`.

    Parameters
    ----------
    ridge : float
        lambda_1, at least 0. Larger: smaller coefficients.
    coupling : float
        lambda_2, at least 0. Larger: more closely related tasks. One of the two is above 0.
    fit_intercept, solver, solver_options, tol, max_iter, max_seconds
        See `bench_mtl.estimators.linear.LinearTasks`, also for the attributes.
        The default solver is that of `MTRLRegressor`.

    Attributes
    ----------
    task_covariance_ : ndarray, tasks x tasks

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bench_mtl.estimators import MTRLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MTRLClassifier().fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ <= 1e-3)
    ((3, 4), True)
    """
