"""The fit of one task for one penalty: scikit-learn's of the squared loss, and our own of the logistic loss."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array
from bench_mtl.model.forms import L1Form
from bench_mtl.model.losses import Logistic

#: A fit has ended when it moves by less than this, relative to its largest entry.
_ROUNDING = 1e-15

#: Sweeps over the coordinates in one step at most; a fit that needs more goes on in the next step.
SWEEPS = 100

#: Features up to which "auto" computes X^T X, where there are more examples than features.
_MOST_GRAM_FEATURES = 4000


class TaskFit(ABC):
    """min_w f(X w) + lambda ||w||_1 for one task, with w >= 0 where its form says so."""

    correlation: Array
    """Minus the gradient at 0."""
    length: float
    """What tolerances are relative to."""

    def __init__(self, X: Any, y: Array, positive: bool) -> None:
        self._X, self.y, self._positive = X, y, positive

    def predict(self, w: Array) -> Array:
        return np.asarray(self._X @ w)

    def gradient(self, r: Array) -> Array:
        """Return minus the gradient of the loss where r is minus its derivative in the predictions."""
        return np.asarray(self._X.T @ r)

    def column_square(self, j: int) -> float:
        """Return the largest curvature of the loss along coordinate j."""
        x = self._X[:, [j]]
        return self._curvature(np.asarray((x.multiply(x) if is_sparse(x) else x * x).sum(axis=1)).ravel())

    @abstractmethod
    def value(self, t: Array) -> float:
        """Return the loss of predictions."""

    @abstractmethod
    def residual(self, t: Array) -> Array:
        """Return minus the derivative of the loss in the predictions."""

    @abstractmethod
    def dual(self, r: Array) -> Array:
        """Return the part of a dual point of the problem that a residual is."""

    @abstractmethod
    def fit(self, w: Array, penalty: float, tolerance: float) -> tuple[Array, bool, float]:
        """Return the last w, whether its gap is within the tolerance times `length`, and the passes over an example that it took."""

    @abstractmethod
    def _curvature(self, squares: Array) -> float:
        """Return the largest curvature of the loss along a column of which these are the squares."""


class Matrix:
    """A design as scikit-learn wants it: by columns, dense (with its Gram matrix, if that is to be used) or sparse."""

    def __init__(self, X: Any, gram: bool) -> None:
        self.X = X
        self.gram = np.ascontiguousarray(X.T @ X) if gram else None
        n, d = X.shape
        self.sweep_share = d / (2.0 * n) if gram else 1.0


class Lasso(TaskFit):
    """min_w 1/2 ||y - X w||^2 + lambda ||w||_1, of rows and targets that hold the roots of the weights.

    Parameters
    ----------
    roots : of the weights of the examples, None where all are 1
    """

    def __init__(self, matrix: Matrix, y: Array, positive: bool, roots: Array | None = None) -> None:
        super().__init__(matrix.X, np.array(y), positive)
        self._matrix, self._roots = matrix, roots
        self.correlation = self.gradient(self.y)
        self.length = float(y @ y)

    def value(self, t: Array) -> float:
        return 0.5 * float(((self.y - t) ** 2).sum())

    def residual(self, t: Array) -> Array:
        return self.y - t

    def dual(self, r: Array) -> Array:
        return r if self._roots is None else r * self._roots

    def _curvature(self, squares: Array) -> float:
        return float(squares.sum())

    def fit(self, w: Array, penalty: float, tolerance: float) -> tuple[Array, bool, float]:
        from sklearn.linear_model import enet_path

        if self.length == 0.0:
            return np.zeros_like(w), True, 0.0
        n = len(self.y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a fit has not ended within its sweeps is known from the gap
            _, coefficients, gaps, counts = enet_path(
                self._matrix.X,
                self.y,
                l1_ratio=1.0,
                alphas=np.array([penalty / n]),  # scikit-learn's objective is this one over n
                precompute=False if self._matrix.gram is None else self._matrix.gram,
                Xy=None if self._matrix.gram is None else self.correlation,
                coef_init=w.copy(),
                copy_X=False,
                check_input=False,
                return_n_iter=True,
                positive=self._positive,
                tol=tolerance,
                max_iter=SWEEPS,
            )
        new = np.ascontiguousarray(coefficients[:, 0])
        still = float(np.abs(new - w).max()) <= _ROUNDING * float(np.abs(w).max())
        ended = float(gaps[0]) * n <= tolerance * self.length or int(counts[0]) < SWEEPS or still
        return new, bool(ended), n * (int(counts[0]) * self._matrix.sweep_share + 1.5)


class LogisticFit(TaskFit):
    """min_w sum_i s_i log(1 + exp(-y_i x_i.w)) + lambda ||w||_1, by Newton steps: sweeps over a quadratic model, and a line search.

    Parameters
    ----------
    X : by columns, a Fortran array or CSC
    y, s : labels -1 and +1, and weights
    """

    def __init__(self, X: Any, y: Array, s: Array, positive: bool) -> None:
        super().__init__(X, np.array(y), positive)
        self._s, self._loss = np.array(s), Logistic()
        squares = X.multiply(X) if is_sparse(X) else X * X
        self._squares = np.asarray(squares.T @ self._s)
        self._columns = _columns(X)
        zero = np.zeros(len(self.y))
        self.correlation = self.gradient(self.residual(zero))
        self.length = self.value(zero)

    def value(self, t: Array) -> float:
        return self._loss.total(t, self.y, self._s)

    def residual(self, t: Array) -> Array:
        return np.asarray(-self._s * self._loss.derivatives(t, self.y))

    def dual(self, r: Array) -> Array:
        return r

    def _curvature(self, squares: Array) -> float:
        return 0.25 * float(self._s @ squares)

    def fit(self, w: Array, penalty: float, tolerance: float) -> tuple[Array, bool, float]:
        from bench_mtl.solvers.coordinate_descent.kernels import NOT_YET, newton_steps

        new, t = np.array(w), self.predict(w)
        ended, passes = newton_steps(
            *self._columns, self.y, self._s, self._squares, penalty, self._positive, tolerance * self.length, float(SWEEPS), new, t
        )
        return new, ended != NOT_YET, len(self.y) * (passes + 2.0)


def _columns(X: Any) -> tuple[Any, Any, Any]:
    """Return the columns as the compiled steps take them."""
    if is_sparse(X):
        return X.data, X.indices.astype(np.uint32), X.indptr.astype(np.int64)
    return np.ascontiguousarray(X.T).reshape(-1), None, None


def task_fits(form: L1Form, gram: str) -> tuple[list[TaskFit], float]:
    """Return a fit for every task, in coordinates that are to be non-negative, and the passes that Gram matrices cost."""
    fit = form.fit
    design, m = fit.design, fit.design.n_tasks
    is_logistic = isinstance(fit.loss, Logistic)
    unweighted = is_logistic or bool(np.all(fit.weights == 1.0))
    matrices: dict[tuple[int, bytes, bytes], Matrix] = {}
    fits: list[TaskFit] = []
    work = 0.0
    for k in range(m):
        roots = None if unweighted else np.sqrt(design.task_outputs(fit.weights, k))
        flips = None if form.orientation is None else form.orientation[:, k]
        key = (0 if design.is_shared else k, b"" if roots is None else roots.tobytes(), b"" if flips is None else flips.tobytes())
        if key not in matrices:
            X = _by_columns(design.block(k), roots, flips)
            n, d = X.shape
            used = not is_logistic and (gram == "always" or (gram == "auto" and not design.is_sparse and d <= min(n, _MOST_GRAM_FEATURES)))
            matrices[key] = Matrix(X, used)
            work += 0.5 * d * n / design.n_examples if used else 0.0
        y = design.task_outputs(fit.targets, k)
        if is_logistic:
            fits.append(LogisticFit(matrices[key].X, y, design.task_outputs(fit.weights, k), form.nonneg))
        else:
            fits.append(Lasso(matrices[key], y if roots is None else roots * y, form.nonneg, roots))
    return fits, work


def _by_columns(X: Any, roots: Array | None, flips: Array | None) -> Any:
    """X with rows scaled and columns flipped, as a Fortran array, or CSC with 32-bit indices."""
    if is_sparse(X):
        X = sp.csc_array(X if roots is None else sp.diags_array(roots) @ X)
        X = X if flips is None else sp.csc_array(X @ sp.diags_array(flips))
        X.sort_indices()
        return sp.csc_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    X = X if roots is None else X * roots[:, None]
    return np.asfortranarray(X if flips is None else X * flips)
