"""Least squares of many tasks under a matrix-normal prior whose two inverse covariances are sparse and learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.precisions import METHODS, Precision, precision_objective, sparse_precision

#: Of the weights where tasks have examples of their own: residual over right-hand side, and iterations.
_CG_TOLERANCE, _CG_ITERATIONS = 1e-10, 1000


class MatrixNormalFit(NamedTuple):
    """What the flip-flop found."""

    coefficients: Array
    """W, d x m."""
    feature_precision: Array
    """A, d x d."""
    task_precision: Array
    """B, m x m."""
    unit: float
    """v, the mean square of the coefficients of the ridge fit that it starts from."""
    objectives: tuple[float, ...]
    """After every iteration; never rising, up to rounding."""
    is_met: bool
    message: str


def fit_matrix_normal(
    data: TaskData,
    *,
    penalty: float,
    alpha_features: float,
    alpha_tasks: float,
    covariance_ridge: float,
    max_features: int,
    graphical_lasso: str,
    tol: float,
    budget: Budget,
) -> MatrixNormalFit:
    """Return a local minimum over W, A and B (positive definite), by turns (flip-flop), of ::

        sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + penalty (tr(B W^T A W) + v m P_features(A) + v d P_tasks(B))

        P(K) = ridge tr K - log det K + alpha sum_{i != j} |K_ij|

    which is minus the logarithm of a posterior: given A and B the coefficients W / v^(1/2) have a matrix-normal prior with the inverse
    covariances A of features and B of tasks. The unit v is the mean square of the coefficients W_0 of the ridge fit (A = B = I), from which
    the turns start: so the units of data and targets do not matter to A and B, and they start out right. Without the ridge on the
    diagonals of the scatter matrices the objective would have no minimum: it falls without end as W goes to 0 and A and B grow.

    - W given A and B solves G_k w_k + penalty (A W B)_k = X_k^T y_k / n_k with G_k = X_k^T X_k / n_k: for one design by the generalised
      eigenvalues of (G, A) and those of B, for several by conjugate gradients, preconditioned with the mean G.
    - A given W and B is the graphical lasso of W B W^T / (v m) + ridge I, and B likewise of W^T A W / (v d) + ridge I, by
      `sparse_precision`. One that does not lower the objective is not taken; a failure ends the turns, and the message says so.

    Parameters
    ----------
    data : real targets
    penalty : above 0
    alpha_features, alpha_tasks : at least 0, in units of a covariance whose mean on the diagonal is about 1
    covariance_ridge : above 0, in the same unit
    max_features : d may not be larger
    graphical_lasso : a method of `sparse_precision`
    tol : the turns have ended when one lowers the objective by no more than this share of the loss at W = 0
    budget : turns and seconds

    Raises
    ------
    InputError : a parameter that is not allowed, more features than `max_features`.

    References
    ----------
    Zhang, Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.
    """
    penalty, tol = real_number("penalty", penalty, strict=True), real_number("tol", tol)
    alphas = (real_number("alpha_features", alpha_features), real_number("alpha_tasks", alpha_tasks))
    ridge = real_number("covariance_ridge", covariance_ridge, strict=True)
    d, m = data.n_features, data.n_tasks
    if d > whole_number("max_features", max_features, minimum=1):
        raise InputError(
            f"there are {d} features, but max_features = {max_features}: a graphical lasso of the features takes time like their cube. "
            "Reduce them first, as with sklearn.decomposition.TruncatedSVD in a Pipeline, or raise max_features"
        )
    method = one_of("graphical_lasso", graphical_lasso, METHODS)
    system = _Weights(data, penalty)
    A, B = Precision.identity(d), Precision.identity(m)
    W = system.best(A.matrix, B.matrix, np.zeros((d, m)))
    unit = float((W**2).mean()) or 1.0
    objectives, zero = list[float](), system.loss(np.zeros((d, m)))
    while True:
        # Tasks first: there are mostly more features than tasks, so the scatter of the tasks is the better known one.
        B = _lowered(B, W.T @ A.matrix @ W / (unit * d) + ridge * np.eye(m), alphas[1], method)
        A = _lowered(A, W @ B.matrix @ W.T / (unit * m) + ridge * np.eye(d), alphas[0], method)
        W = system.best(A.matrix, B.matrix, W)
        prior = float(np.vdot(W @ B.matrix, A.matrix @ W))
        prior += unit * m * precision_objective(A.matrix, ridge * np.eye(d), alphas[0])
        prior += unit * d * precision_objective(B.matrix, ridge * np.eye(m), alphas[1])
        objectives.append(system.loss(W) + penalty * prior)
        budget.steps += 1
        fall = objectives[-2] - objectives[-1] if len(objectives) > 1 else np.inf
        failures = [f"graphical lasso of the {name}: {K.failure}" for name, K in (("features", A), ("tasks", B)) if K.failure]
        message = "; ".join(failures + ([system.failure] if system.failure else []))
        is_met = not message and fall <= tol * zero
        if is_met or message or budget.spent:
            last = f"the objective fell by {fall:.1e} in the last turn" if len(objectives) > 1 else "one turn"
            message = message or (last if is_met else f"{budget.spent}: {last}")
            return MatrixNormalFit(W, A.matrix, B.matrix, unit, tuple(objectives), is_met, message)


class _Weights:
    """The least squares of all tasks with the penalty tr(B W^T A W)."""

    def __init__(self, data: TaskData, penalty: float) -> None:
        self._design: Design = data.design
        self._targets, self._penalty = data.targets, penalty
        self._shares = data.design.per_example(1.0 / np.asarray(data.design.sizes))
        self._right = data.design.adjoint(self._shares * data.targets)
        blocks = [data.design.block(k) for k in range(1 if data.design.is_shared else data.n_tasks)]
        grams = (np.asarray((X.T @ X) if isinstance(X, np.ndarray) else (X.T @ X).toarray()) / X.shape[0] for X in blocks)
        self._mean_gram: Array = sum(grams, np.zeros((data.n_features, data.n_features))) / len(blocks)
        self.failure = ""

    def loss(self, W: Array) -> float:
        """sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2."""
        return float((self._shares * (self._targets - self._design.forward(W)) ** 2).sum())

    def best(self, A: Array, B: Array, start: Array) -> Array:
        """Return the best W, d x m."""
        mean = MatrixNormalSystem(self._mean_gram, A, B, self._penalty)
        if self._design.is_shared:
            return mean.solve(self._right)
        shape = start.shape

        def image(w: Array) -> Array:
            W = w.reshape(shape)
            data_part = self._design.adjoint(self._shares * self._design.forward(W))
            return np.asarray(data_part + self._penalty * (A @ W @ B)).ravel()

        size = start.size
        operator = LinearOperator((size, size), matvec=image, dtype=np.float64)
        inverse = LinearOperator((size, size), matvec=lambda w: mean.solve(w.reshape(shape)).ravel(), dtype=np.float64)
        found, info = cg(operator, self._right.ravel(), start.ravel(), rtol=_CG_TOLERANCE, maxiter=_CG_ITERATIONS, M=inverse)
        if info:
            self.failure = f"conjugate gradients reached {_CG_ITERATIONS} iterations"
        return np.asarray(found.reshape(shape))


class MatrixNormalSystem:
    """G W + penalty A W B = R for symmetric G, positive definite A and B, by the eigenvalues of (G, A) and of B."""

    def __init__(self, G: Array, A: Array, B: Array, penalty: float) -> None:
        values, self._P = scipy.linalg.eigh(G, A, check_finite=False)
        task_values, self._Q = np.linalg.eigh(B)
        self._scales = np.maximum(values, 0.0)[:, None] + penalty * task_values

    def solve(self, R: Array) -> Array:
        """W."""
        return np.asarray(self._P @ ((self._P.T @ R @ self._Q) / self._scales) @ self._Q.T)


def _lowered(before: Precision, S: Array, alpha: float, method: str) -> Precision:
    """Return the graphical lasso of S, or the precision before where that has no higher objective."""
    found = sparse_precision(S, alpha, before, method)
    if precision_objective(found.matrix, S, alpha) <= precision_objective(before.matrix, S, alpha):
        return found
    return before._replace(failure=found.failure)
