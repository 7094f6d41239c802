"""The problems of Ridge and LinearSVC of scikit-learn for many tasks, also with rows of their own, and their gaps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.utils import check_random_state

from bench_mtl.core.checks import is_sparse, one_of, real_number, whole_number
from bench_mtl.core.designs import Design, frozen, with_column
from bench_mtl.core.types import Array, Iterate, Matrix
from bench_mtl.data import TaskData
from bench_mtl.engine.proofs import format_gap
from bench_mtl.estimators.examples import blocks_of, with_blocks
from bench_mtl.estimators.fitting import Budget, solve, solver_for, tolerance_of, warm_up
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.intercepts import can_centre
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import LOSSES
from bench_mtl.model.protocols import Capability
from bench_mtl.model.squared_norms import SquaredNorms

#: scikit-learn's own tolerance is this share of the gap to prove.
_TIGHTER = 1e-2


@linear_model
class _Ridge(LinearTasks):
    """The coefficients W (features x tasks) minimise

        sum_k sum_i (y_ki - x_ki.w_k)^2 + alpha ||W||_F^2

    Parameters
    ----------
    alpha : float
        Above 0. Larger: smaller coefficients.
    max_iter : int
        Iterations for sparse examples, at most; those of dense ones have a closed form.
    """

    alpha: float = 1.0

    counts_weights = True

    def _fit_data(self, data: TaskData) -> FittedTasks:
        alpha, tol = real_number("alpha", self.alpha, strict=True), real_number("tol", self.tol, strict=True)
        most, has_own = whole_number("max_iter", self.max_iter, minimum=1), self.fit_intercept and not self._is_centred(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap says so
            model = Ridge(alpha, fit_intercept=has_own, tol=_TIGHTER * tol, max_iter=most)
            fits = [clone(model).fit(X, y, sample_weight=weights) for X, y, weights in _weighted_blocks(data)]
        steps = max([1, *(int(np.max(fit.n_iter_)) for fit in fits if fit.n_iter_ is not None)])  # a closed form is one
        W = np.concatenate([np.atleast_2d(fit.coef_) for fit in fits]).T
        problem = _RidgeRegression(data, alpha=alpha, intercept=has_own)
        certificate = problem.certify(Iterate(W))
        gap, is_met = certificate.relative_gap, tolerance_of(problem, tol).met_by(certificate, problem.scale())
        return FittedTasks(W, steps, is_met, f"relative gap {format_gap(gap)} proven (target {tol:g})", certificate, problem.intercepts(W))

    def _is_to_centre(self, design: Design) -> bool:
        return can_centre(design)


@linear_model
class RidgeMultiTaskRegressor(_Ridge, LinearTaskRegressor):
    """scikit-learn's `Ridge` of every task, with the companion for tasks that have rows of their own, and with its gap."""


@linear_model
class RidgeMultiTaskClassifier(_Ridge, LinearTaskClassifier):
    """scikit-learn's `Ridge` of every task on labels -1 and +1, also with rows of their own, and with its gap."""


def _weighted_blocks(data: TaskData) -> list[tuple[Matrix, Array, Array | None]]:
    """Return examples, targets and weights: of all tasks together where they share them all, else of every task."""
    if data.weights is None:
        return [(X, y, None) for X, y in blocks_of(data)]
    if data.design.is_shared and not np.any(data.weights != data.weights[:, :1]):
        return [(data.design.block(0), data.targets, data.weights[:, 0])]
    return [(*data.task(k), data.design.task_outputs(data.weights, k)) for k in range(data.n_tasks)]


class _RidgeRegression(FitProblem):
    """min_W sum_k sum_i (y_ki - x_ki.w_k - b_k)^2 + alpha ||W||_F^2, b_k free or 0."""

    name = "ridge_regression"
    takes_weights = True
    offers: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self, data: TaskData, *, alpha: float, intercept: bool) -> None:
        super().__init__(data, LOSSES["squared"], frozen(2.0 * example_weights(data.design, "sum", data.weights)), intercept=intercept)
        self.regularise(SquaredNorms(alpha, half=1.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        yield from ()  # it is not registered


@linear_model
class LinearSVMMultiTaskClassifier(LinearTaskClassifier):
    """The problem of scikit-learn's `LinearSVC` for every task, by dual coordinate ascent to a proven gap.

    The coefficients W (features x tasks) minimise, up to that gap, with labels y -1 and +1,

        1/2 ||W||_F^2 + C sum_k sum_i max(0, 1 - y_ki x_ki.w_k)^2        (squared_hinge)
        1/2 ||W||_F^2 + C sum_k sum_i max(0, 1 - y_ki x_ki.w_k)          (hinge)

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
        Seed of the order of visits; None is a fixed one. The order of the examples in X does not matter.
    """

    C: float = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    intercept_scaling: float = 1.0
    max_iter: int = 10_000
    max_seconds: float | None = None
    random_state: int | np.random.RandomState | None = None
    task_weights: Any = None

    counts_weights = True

    def _fit_data(self, data: TaskData) -> FittedTasks:
        if not self.fit_intercept:
            return self._fit_coefficients(data)
        value = real_number("intercept_scaling", self.intercept_scaling, strict=True)
        return self._fit_coefficients(data, value).with_last_as_intercepts(value)

    def _fit_coefficients(self, data: TaskData, value: float | None = None) -> FittedTasks:
        C, tol = real_number("C", self.C, strict=True), real_number("tol", self.tol, strict=True)
        loss = one_of("loss", self.loss, ("squared_hinge", "hinge"))
        Budget(self.max_iter, self.max_seconds)
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        problem = _VectorMachines(_sorted(data, value), C=C, loss=loss)
        solver = solver_for(problem, "dual_coordinate_ascent", {"seed": seed}, ())
        if self.max_seconds is not None:
            warm_up(solver, problem)
        found = solve(problem, solver, tol, Budget(self.max_iter, self.max_seconds))
        return FittedTasks(found.point, max(1, found.steps), found.is_met, found.message, found.certificate)


class _VectorMachines(FitProblem):
    """min_W 1/2 ||W||_F^2 + f(W), f = C sum_k sum_i loss(y_ki x_ki.w_k). A dual point r proves -f*(-r) - 1/2 ||(X_k^T r_k)_k||_F^2."""

    name = "vector_machines"
    takes_weights = True
    enough: ClassVar[float] = 0.5
    offers: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self, data: TaskData, *, C: float, loss: str) -> None:
        super().__init__(data, LOSSES[loss], frozen(C * example_weights(data.design, "sum", data.weights)))
        self.regularise(SquaredNorms(1.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        yield from ()  # it is not registered


def _sorted(data: TaskData, value: float | None) -> TaskData:
    """Return the data with the examples of every task in an order that is theirs, equal ones side by side, wherever they were; perhaps with
    a last feature of this value."""
    orders = [_order(X, Y) for X, Y in blocks_of(data)]
    blocks = [(X[rows], Y[rows]) for (X, Y), rows in zip(blocks_of(data), orders, strict=True)]
    ordered = with_blocks(data, blocks if value is None else [(with_column(X, value), Y) for X, Y in blocks])
    if data.weights is None:
        return ordered
    starts = np.cumsum([0, *map(len, orders)])[:-1]
    return replace(
        ordered, weights=frozen(data.weights[np.concatenate([first + rows for first, rows in zip(starts, orders, strict=True)])])
    )


def _order(X: Matrix, Y: Array) -> NDArray[np.intp]:
    """Return the order of rows by random sums of their entries, which are the same in all bits for equal ones, and by their targets."""
    weights = np.random.default_rng(0).standard_normal(X.shape[1])
    sums = X @ weights if is_sparse(X) else np.einsum("ij,j->i", X, weights)
    return np.lexsort([*np.atleast_2d(Y.T), sums])
