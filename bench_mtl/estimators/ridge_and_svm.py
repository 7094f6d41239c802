"""Ridge regression and linear support vector machines of scikit-learn for many tasks, also with rows of their own, and their gaps."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, replace

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.types import Array, Certificate, Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.constant_feature import as_intercepts, with_constant_feature
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.model.intercepts import can_centre

#: scikit-learn's own tolerance is this share of the gap to prove.
_TIGHTER = 1e-2


@linear_model
class _Ridge(LinearTasks):
    """Models with a ridge.

    The coefficients W (features x tasks) minimise

        sum_k sum_i (y_ki - x_ki.w_k)^2 + alpha ||W||_F^2

    Parameters
    ----------
    alpha : float
        Above 0. Larger: smaller coefficients.
    max_iter : int
        Iterations for sparse examples, at most; those of dense ones have a closed form.
    """

    alpha: float = 1.0

    def _fit_data(self, data: TaskData) -> FittedTasks:
        alpha, tol = real_number("alpha", self.alpha, strict=True), real_number("tol", self.tol, strict=True)
        most = whole_number("max_iter", self.max_iter, minimum=1)
        has_own = self.fit_intercept and not self._is_centred(data)
        model = Ridge(alpha, fit_intercept=has_own, tol=_TIGHTER * tol, max_iter=most)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap says so
            blocks = [(data.design.block(0), data.targets)] if data.design.is_shared else [data.task(k) for k in range(data.n_tasks)]
            fits = [clone(model).fit(X, y) for X, y in blocks]
        W = np.concatenate([np.atleast_2d(fit.coef_) for fit in fits]).T
        tasks = [data.task(k) for k in range(data.n_tasks)]
        b = np.array([float(np.mean(y - X @ w)) if has_own else 0.0 for (X, y), w in zip(tasks, W.T, strict=True)])
        found = [ridge_enclosure(*tasks[k], W[:, k], alpha, b[k]) for k in range(data.n_tasks)]
        return replace(_certified(W, found, _most_steps(fits), tol), intercepts=b)

    def _is_centred(self, data: TaskData) -> bool:
        return super()._is_centred(data) and can_centre(data.design)


@linear_model
class RidgeMultiTaskRegressor(_Ridge, LinearTaskRegressor):
    """scikit-learn's `Ridge` of every task, with the companion for tasks that have rows of their own, and with its gap."""


@linear_model
class RidgeMultiTaskClassifier(_Ridge, LinearTaskClassifier):
    """scikit-learn's `Ridge` of every task on labels -1 and +1, also with rows of their own, and with its gap."""


@linear_model
class LinearSVMMultiTaskClassifier(LinearTaskClassifier):
    """scikit-learn's `LinearSVC` of every task, with the companion for tasks that have rows of their own, and where it can be with its gap.

    The coefficients W (features x tasks) minimise, with labels y -1 and +1,

        1/2 ||W||_F^2 + C sum_k sum_i max(0, 1 - y_ki x_ki.w_k)^2        (squared_hinge)
        1/2 ||W||_F^2 + C sum_k sum_i max(0, 1 - y_ki x_ki.w_k)          (hinge; no gap: scikit-learn keeps its dual variables to itself)

    `L2BallClassifier` fits hinges to a proven gap.

    Parameters
    ----------
    C : float
        Above 0. Larger: larger coefficients.
    loss : {"squared_hinge", "hinge"}
    fit_intercept : bool, default True
        Whether scores are x.w_k + b_k. As in scikit-learn b_k is the coefficient of a constant feature, penalised as the others.
    intercept_scaling : float
        The value of the constant feature, above 0. The larger, the less an intercept is held back.
    max_iter : int
        Passes over the examples of a task, at most.
    random_state : int, RandomState or None
        Seed of the order of the examples.
    """

    C: float = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    intercept_scaling: float = 1.0
    max_iter: int = 10_000
    random_state: int | np.random.RandomState | None = None

    def _fit_data(self, data: TaskData) -> FittedTasks:
        if not self.fit_intercept:
            return self._fit_coefficients(data)
        value = real_number("intercept_scaling", self.intercept_scaling, strict=True)
        return as_intercepts(self._fit_coefficients(with_constant_feature(data, value)), value)

    def _fit_coefficients(self, data: TaskData) -> FittedTasks:
        C, tol = real_number("C", self.C, strict=True), real_number("tol", self.tol, strict=True)
        loss, most = one_of("loss", self.loss, ("squared_hinge", "hinge")), whole_number("max_iter", self.max_iter, minimum=1)
        columns, steps = [], 0
        for k in range(data.n_tasks):
            model = LinearSVC(
                C=C, loss=loss, fit_intercept=False, tol=_TIGHTER * tol, max_iter=most, dual="auto", random_state=self.random_state
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # said once, for all tasks
                columns.append(model.fit(*data.task(k)).coef_[0])
            steps = max(steps, int(model.n_iter_))
        W = np.stack(columns, axis=1)
        if loss == "hinge":
            ended = steps < most
            return FittedTasks(W, steps, ended, "scikit-learn's tolerance" if ended else f"max_iter = {most} passes over the examples")
        return _certified(W, [squared_hinge_enclosure(*data.task(k), W[:, k], C) for k in range(data.n_tasks)], steps, tol)


def ridge_enclosure(X: Matrix, y: Array, w: Array, alpha: float, b: float = 0.0) -> tuple[float, float]:
    """||y - X w - b||^2 + alpha ||w||^2 and a lower bound on its minimum over w (and b, if it is the best one): with r = y - X w - b

    max_c  2 c <r, y> - c^2 (||r||^2 + ||X^T r||^2 / alpha).
    """
    r = y - X @ w - b
    g = X.T @ r
    return float(r @ r + alpha * (w @ w)), _parabola(float(2.0 * (r @ y)), float(r @ r + (g @ g) / alpha))


def squared_hinge_enclosure(X: Matrix, y: Array, w: Array, C: float) -> tuple[float, float]:
    """1/2 ||w||^2 + C sum_i h_i^2, h_i = max(0, 1 - y_i x_i.w), and a lower bound on its minimum over w: with a = 2 C h and g = X^T (a y)

    max_c  c sum a - c^2 (||a||^2 / (4 C) + ||g||^2 / 2).
    """
    h = np.maximum(0.0, 1.0 - y * (X @ w))
    a = 2.0 * C * h
    g = X.T @ (a * y)
    return float(0.5 * (w @ w) + C * (h @ h)), _parabola(float(a.sum()), float((a @ a) / (4.0 * C) + 0.5 * (g @ g)))


def _parabola(slope: float, curvature: float) -> float:
    """max over c >= 0 of slope c - curvature c^2."""
    return slope**2 / (4.0 * curvature) if slope > 0.0 else 0.0


def _most_steps(models: list[Ridge]) -> int:
    """Iterations of the target that took most; a closed form is one."""
    return max([1, *(int(np.max(model.n_iter_)) for model in models if model.n_iter_ is not None)])


def _certified(W: Array, enclosures: list[tuple[float, float]], steps: int, tol: float) -> FittedTasks:
    certificate = Certificate(sum(upper for upper, _ in enclosures), sum(lower for _, lower in enclosures), 0.0)
    gap = certificate.relative_gap
    return FittedTasks(W, steps, gap <= tol, f"relative gap {gap:.1e} proven (target {tol:g})", certificate)
