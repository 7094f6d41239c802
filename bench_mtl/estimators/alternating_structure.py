"""Alternating structure optimisation (ASO): linear models of many tasks with a learned subspace in which weights are free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import dense, diagonal_of, with_column
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.examples import blocks_of, with_blocks
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.model.losses import hinge, logistic_dual


class _Loss(NamedTuple):
    """A smooth loss of a prediction f and its target y, entry by entry."""

    values: Callable[[Array, Array], Array]
    derivatives: Callable[[Array, Array], Array]
    curvature: float
    """The largest second derivative."""


LOSSES = {
    "squared": _Loss(lambda f, y: (y - f) ** 2, lambda f, y: 2.0 * (f - y), 2.0),
    "logistic": _Loss(lambda f, y: np.logaddexp(0.0, -y * f), lambda f, y: -y * logistic_dual(y * f), 0.25),
    "modified_huber": _Loss(
        lambda f, y: np.where(y * f < -1.0, -4.0 * y * f, hinge(y * f) ** 2), lambda f, y: -2.0 * y * np.minimum(hinge(y * f), 2.0), 2.0
    ),
}


@linear_model
class _ASO(LinearTasks):
    """The coefficients are w_k = u_k + Theta^T v_k with a structure Theta (n_components x features) of orthonormal rows that tasks share.
    A local minimum is found, by alternation, of

        sum_k 1/n_k sum_i loss(x_ki.w_k, y_ki) + penalty sum_k ||u_k||^2

    over u_k, v_k and Theta. This is not convex, so there is no gap. With f = x.w the squared loss is (y - f)^2.

    Parameters
    ----------
    penalty : float
        Above 0. Larger: less outside the subspace.
    n_components : int
        Dimension of the subspace, at least 0. At most tasks - 1 and features are used: as many as tasks would leave nothing penalised.
    max_iter : int
        Iterations, at most.
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
        wider = with_blocks(data, [(with_column(X, 1.0), Y) for X, Y in blocks_of(data)])
        return self._fit_coefficients(wider).with_last_as_intercepts(1.0)

    def _fit_coefficients(self, data: TaskData) -> FittedTasks:
        """Alternate.

        Starting without Theta, an iteration fits all u_k and v_k for the Theta at hand, and takes the leading left singular vectors of the
        weights u_k + Theta^T v_k of all tasks for the next, which is the best Theta for these weights. (With one penalty for all tasks,
        their weights count alike in the decomposition.) For the squared loss the fit is exact, by one Cholesky factor for each design, made
        once. For another loss it is one step of majorisation: the same least squares for targets f - loss'(f) / L, with the largest second
        derivative L of the loss and the penalty 2 penalty / L. So the objective never rises. (Section 3 and figure 3 of the paper.)
        """
        space, budget = RowSpace.of(data, squares=self.loss == "squared"), Budget(self.max_iter, self.max_seconds)
        reduced = data if space is None else space.data
        penalty, tol = real_number("penalty", self.penalty, strict=True), real_number("tol", self.tol)
        h = min(whole_number("n_components", self.n_components), reduced.n_tasks - 1, reduced.n_features)
        loss = LOSSES[one_of("loss", self.loss, tuple(LOSSES))]
        design, targets = reduced.design, reduced.targets
        shares = design.per_example(1.0 / np.asarray(design.sizes))
        fits = [_Ridge(X, 2.0 * penalty / loss.curvature) for X, _ in blocks_of(reduced)]
        structure, predictions, objectives = np.zeros((0, reduced.n_features)), np.zeros(targets.shape), list[float]()
        while True:
            wanted = predictions - loss.derivatives(predictions, targets) / loss.curvature
            if design.is_shared:
                W = fits[0].best(wanted, structure)
            else:
                W = np.hstack([fit.best(design.task_outputs(wanted, k)[:, None], structure) for k, fit in enumerate(fits)])
            predictions = design.forward(W)
            structure = np.linalg.svd(W, full_matrices=False)[0][:, :h].T
            shared = structure @ W
            own = W - structure.T @ shared
            objectives.append(float((shares * loss.values(predictions, targets)).sum()) + penalty * float((own**2).sum()))
            budget.steps += 1
            # Without a subspace the least squares of the first iteration are all there is to do.
            fall = objectives[-2] - objectives[-1] if len(objectives) > 1 else 0.0 if h == 0 and self.loss == "squared" else np.inf
            is_met = fall <= tol * abs(objectives[-1])
            if is_met or budget.spent:
                break
        last = f"the objective fell by {fall:.1e} in the last iteration" if len(objectives) > 1 else "one iteration"
        if space is not None:
            own, structure = space.coefficients(own), np.ascontiguousarray(space.coefficients(structure.T).T)
        attributes: dict[str, Any] = {"structure_": structure, "n_components_": len(structure)}
        attributes |= {"objective_": objectives[-1], "objectives_": tuple(objectives)}
        message = last if is_met else f"{budget.spent}: {last}"
        return FittedTasks(own + structure.T @ shared, len(objectives), is_met, message, attributes=attributes)


@linear_model
class ASORegressor(_ASO, LinearTaskRegressor):
    """Least squares for many tasks with a learned subspace in which coefficients are free (ASO)."""


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
    """

    _: KW_ONLY
    loss: str = "squared"


class _Ridge:
    """Least squares of one design with a penalty on a part of the weights.

    For the targets Y of one task or several it minimises ||Y - X (u + Theta^T v)||^2 / n + penalty ||u||^2. With B = X Theta^T and
    C = (I + X X^T / (n penalty))^-1 the best v is argmin (Y - B v)^T C (Y - B v), and u = (X^T X + n penalty I)^-1 X^T (Y - B v).
    """

    def __init__(self, X: Matrix, penalty: float) -> None:
        self._X: Any = X
        self._ridge = X.shape[0] * penalty
        self._wide = X.shape[0] < X.shape[1]
        products = X @ X.T if self._wide else X.T @ X
        self._squares = diagonal_of(products)
        if self._squares is None:
            gram = dense(products).copy()
            gram[np.diag_indices_from(gram)] += self._ridge
            self._factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)

    def best(self, Y: Array, structure: Array) -> Array:
        """u + Theta^T v."""
        if not len(structure):
            return self._ridge_weights(Y)
        B = np.asarray(self._X @ structure.T)
        CB = self._ridge * self._solved(B) if self._wide else np.asarray(B - self._X @ self._ridge_weights(B))
        v = np.linalg.lstsq(B.T @ CB, CB.T @ Y, rcond=None)[0]
        return np.asarray(self._ridge_weights(Y - B @ v) + structure.T @ v)

    def _ridge_weights(self, R: Array) -> Array:
        """(X^T X + n penalty I)^-1 X^T R."""
        return np.asarray(self._X.T @ self._solved(R)) if self._wide else self._solved(np.asarray(self._X.T @ R))

    def _solved(self, R: Array) -> Array:
        """(X X^T + n penalty I)^-1 R where X is wide, else the same of X^T X."""
        if self._squares is not None:
            return np.asarray(R / (self._squares + self._ridge)[:, None])
        return np.asarray(scipy.linalg.cho_solve(self._factor, R))
