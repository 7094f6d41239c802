"""Alternating structure optimisation (ASO): linear models of many tasks with a learned subspace in which weights are free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import Design, dense, diagonal_of
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget
from bench_mtl.model.losses import hinge, logistic_dual


class _Loss(NamedTuple):
    """A smooth loss of a prediction f and its target y, entry by entry."""

    values: Callable[[Array, Array], Array]
    derivatives: Callable[[Array, Array], Array]
    curvature: float
    """The largest second derivative."""


def _modified_huber(f: Array, y: Array) -> Array:
    return np.where(y * f < -1.0, -4.0 * y * f, hinge(y * f) ** 2)


_LOSSES = {
    "squared": _Loss(lambda f, y: (y - f) ** 2, lambda f, y: 2.0 * (f - y), 2.0),
    "logistic": _Loss(lambda f, y: np.logaddexp(0.0, -y * f), lambda f, y: -y * logistic_dual(y * f), 0.25),
    "modified_huber": _Loss(_modified_huber, lambda f, y: -2.0 * y * np.minimum(hinge(y * f), 2.0), 2.0),
}

LOSSES = tuple(_LOSSES)


class SharedStructure(NamedTuple):
    """What alternating structure optimisation found."""

    own: Array
    """The penalised parts u_k, d x m."""
    structure: Array
    """Theta, h x d, of orthonormal rows."""
    shared: Array
    """The free parts v_k, h x m."""
    objectives: tuple[float, ...]
    """After every iteration; never rising, up to rounding."""
    is_met: bool
    message: str

    @property
    def coefficients(self) -> Array:
        """u_k + Theta^T v_k, d x m."""
        return self.own + self.structure.T @ self.shared


def fit_shared_structure(data: TaskData, *, penalty: float, n_components: int, loss: str, tol: float, budget: Budget) -> SharedStructure:
    """Return a local minimum, by alternation, of ::

        sum_k 1/n_k sum_i loss(x_ki.(u_k + Theta^T v_k), y_ki) + penalty sum_k ||u_k||^2     over u_k, v_k and Theta, Theta Theta^T = I

        squared:         loss(f, y) = (y - f)^2
        logistic:        loss(f, y) = log(1 + exp(-y f))
        modified_huber:  loss(f, y) = max(0, 1 - y f)^2 where y f >= -1, else -4 y f

    Starting without Theta, an iteration fits all u_k and v_k for the Theta at hand, and takes the leading left singular vectors of the
    weights u_k + Theta^T v_k of all tasks for the next, which is the best Theta for these weights. (With one penalty for all tasks, their
    weights count alike in the decomposition.) For the squared loss the fit is exact, by one Cholesky factor for each design, made once.
    For another loss it is one step of majorisation: the same least squares for targets f - loss'(f) / L, with the largest second
    derivative L of the loss and the penalty 2 penalty / L. So the objective never rises.

    Parameters
    ----------
    data : real targets for "squared", else labels -1 and +1
    penalty : above 0
    n_components : h, at least 0; never more than m - 1 are used, since m would leave nothing penalised, nor more than d
    tol : the alternation has ended when an iteration lowers the objective by no more than this share of it
    budget : iterations and seconds

    Raises
    ------
    InputError : a parameter that is not allowed.

    References
    ----------
    Ando, Zhang, "A framework for learning predictive structures from multiple tasks and unlabeled data", JMLR 6, 2005,
    section 3 and figure 3.
    """
    penalty, tol = real_number("penalty", penalty, strict=True), real_number("tol", tol)
    h = min(whole_number("n_components", n_components), data.n_tasks - 1, data.n_features)
    chosen = _LOSSES[one_of("loss", loss, LOSSES)]
    design, targets = data.design, data.targets
    shares = design.per_example(1.0 / np.asarray(design.sizes))
    fits = [_Ridge(X, 2.0 * penalty / chosen.curvature) for X in _blocks(design)]
    structure, predictions, objectives = np.zeros((0, data.n_features)), np.zeros(targets.shape), list[float]()
    while True:
        W = _fitted(fits, design, predictions - chosen.derivatives(predictions, targets) / chosen.curvature, structure)
        predictions = design.forward(W)
        structure = np.linalg.svd(W, full_matrices=False)[0][:, :h].T
        shared = structure @ W
        own = W - structure.T @ shared
        objectives.append(float((shares * chosen.values(predictions, targets)).sum()) + penalty * float((own**2).sum()))
        budget.steps += 1
        # Without a subspace the least squares of the first iteration are all there is to do.
        fall = objectives[-2] - objectives[-1] if len(objectives) > 1 else 0.0 if h == 0 and loss == "squared" else np.inf
        is_met = fall <= tol * abs(objectives[-1])
        if is_met or budget.spent:
            last = f"the objective fell by {fall:.1e} in the last iteration" if len(objectives) > 1 else "one iteration"
            message = last if is_met else f"{budget.spent}: {last}"
            return SharedStructure(own, structure, shared, tuple(objectives), is_met, message)


def _blocks(design: Design) -> list[Matrix]:
    return [design.block(0)] if design.is_shared else [design.block(k) for k in range(design.n_tasks)]


def _fitted(fits: list[_Ridge], design: Design, targets: Array, structure: Array) -> Array:
    """Return the weights u_k + Theta^T v_k of all tasks that fit these targets best, d x m."""
    if design.is_shared:
        return fits[0].best(targets, structure)
    columns = [fit.best(design.task_outputs(targets, k)[:, None], structure) for k, fit in enumerate(fits)]
    return np.hstack(columns)


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
        CB = self._damped(B)
        v = np.linalg.lstsq(B.T @ CB, CB.T @ Y, rcond=None)[0]
        return np.asarray(self._ridge_weights(Y - B @ v) + structure.T @ v)

    def _damped(self, R: Array) -> Array:
        """C R."""
        if self._wide:
            return self._ridge * self._solved(R)
        return np.asarray(R - self._X @ self._ridge_weights(R))

    def _ridge_weights(self, R: Array) -> Array:
        """(X^T X + n penalty I)^-1 X^T R."""
        if self._wide:
            return np.asarray(self._X.T @ self._solved(R))
        return self._solved(np.asarray(self._X.T @ R))

    def _solved(self, R: Array) -> Array:
        """(X X^T + n penalty I)^-1 R where X is wide, else the same of X^T X."""
        if self._squares is not None:
            return np.asarray(R / (self._squares + self._ridge)[:, None])
        return np.asarray(scipy.linalg.cho_solve(self._factor, R))
