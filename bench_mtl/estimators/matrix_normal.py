"""Multi-task learning with a sparse matrix-normal prior, MTL(Omega, Sigma): the inverse covariances are sparse and learned."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.designs import Design, dense
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.estimators.examples import blocks_of
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.estimators.precisions import Precision, precision_objective, sparse_precision

#: Of the weights where tasks have examples of their own: residual over right-hand side, and iterations.
_CG_TOLERANCE, _CG_ITERATIONS = 1e-10, 1000


@linear_model
class _MatrixNormal(LinearTasks):
    """A local minimum is found, by turns, over W (features x tasks) and the positive definite A (features) and B (tasks), of

        sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + penalty (tr(B W^T A W) + unit (tasks P(A) + features P(B)))

        P(K) = covariance_ridge tr K - log det K + alpha sum_{i != j} |K_ij|

    with the `alpha` of features and of tasks. This is not convex, so there is no gap. A turn solves for W exactly, and for A and for B by a
    graphical lasso, whose own gap is proven.

    Parameters
    ----------
    penalty : float
        Above 0. Larger: smaller coefficients.
    alpha_features, alpha_tasks : float
        At least 0. Larger: fewer entries beside the diagonals of A and of B. With fewer tasks than features a small `alpha_features` lets A
        explain all that W has in common, and leaves nothing to B.
    covariance_ridge : float
        Above 0: what is added to the diagonals of the scatter matrices. Without it the objective would have no minimum. As for the alphas,
        its unit is that in which these diagonals have a mean of about 1.
    max_features : int
        More features than this are refused: a graphical lasso of d features takes time that grows like d^3 at least. Reduce them first, for
        instance with TruncatedSVD in a Pipeline.
    max_iter : int
        Turns, at most.
    tol : float
        The fit ends when a turn lowers the objective by no more than this share of the loss of coefficients of 0.

    Attributes
    ----------
    feature_precision_, task_precision_ : ndarrays, features x features and tasks x tasks
        A and B.
    unit_ : float
        The mean square of the coefficients of the ridge fit that the turns start from.
    objectives_ : tuple of float
        After every turn.

    References
    ----------
    Zhang, Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.
    """

    penalty: float = 0.1
    alpha_features: float = 1.0
    alpha_tasks: float = 0.01
    _: KW_ONLY
    covariance_ridge: float = 0.3
    max_features: int = 300
    max_iter: int = 100
    max_seconds: float | None = None

    reduction = "mean"

    def _fit_data(self, data: TaskData) -> FittedTasks:
        """Minimise over W, A and B by turns (flip-flop).

        The objective is minus the logarithm of a posterior: given A and B the coefficients W / unit^(1/2) have a matrix-normal prior with
        the inverse covariances A and B. The unit is the mean square of the coefficients W_0 of the ridge fit (A = B = I), from which the
        turns start: so the units of data and targets do not matter to A and B, and they start out right.

        - W given A and B solves G_k w_k + penalty (A W B)_k = X_k^T y_k / n_k with G_k = X_k^T X_k / n_k: for one design by the generalised
          eigenvalues of (G, A) and those of B, for several by conjugate gradients, preconditioned with the mean G.
        - A given W and B is the graphical lasso of W B W^T / (unit m) + ridge I, and B likewise of W^T A W / (unit d) + ridge I, by
          `sparse_precision`. One that does not lower the objective is not taken; a failure ends the turns, and the message says so.
        """
        penalty, tol = real_number("penalty", self.penalty, strict=True), real_number("tol", self.tol)
        alphas = (real_number("alpha_features", self.alpha_features), real_number("alpha_tasks", self.alpha_tasks))
        ridge = real_number("covariance_ridge", self.covariance_ridge, strict=True)
        d, m = data.n_features, data.n_tasks
        self._require_few(d)
        budget, system = Budget(self.max_iter, self.max_seconds), _Weights(data, penalty)
        A, B = Precision.identity(d), Precision.identity(m)
        W = system.best(A.matrix, B.matrix, np.zeros((d, m)))
        unit = float((W**2).mean()) or 1.0
        objectives, zero, message = list[float](), system.loss(np.zeros((d, m))), ""
        is_met = False
        while not message:
            # Tasks first: there are mostly more features than tasks, so the scatter of the tasks is the better known one.
            B = _lowered(B, W.T @ A.matrix @ W / (unit * d) + ridge * np.eye(m), alphas[1])
            A = _lowered(A, W @ B.matrix @ W.T / (unit * m) + ridge * np.eye(d), alphas[0])
            W = system.best(A.matrix, B.matrix, W)
            prior = float(np.vdot(W @ B.matrix, A.matrix @ W))
            prior += unit * m * precision_objective(A.matrix, ridge * np.eye(d), alphas[0])
            prior += unit * d * precision_objective(B.matrix, ridge * np.eye(m), alphas[1])
            objectives.append(system.loss(W) + penalty * prior)
            budget.steps += 1
            fall = objectives[-2] - objectives[-1] if len(objectives) > 1 else np.inf
            failures = [f"graphical lasso of the {name}: {K.failure}" for name, K in (("features", A), ("tasks", B)) if K.failure]
            message = "; ".join([*failures, *([system.failure] if system.failure else [])])
            is_met = not message and fall <= tol * zero
            if not message and (is_met or budget.spent):
                last = f"the objective fell by {fall:.1e} in the last turn" if len(objectives) > 1 else "one turn"
                message = last if is_met else f"{budget.spent}: {last}"
        attributes: dict[str, Any] = {"feature_precision_": A.matrix, "task_precision_": B.matrix, "unit_": unit}
        attributes |= {"objective_": objectives[-1], "objectives_": tuple(objectives)}
        return FittedTasks(W, len(objectives), is_met, message, attributes=attributes)

    def _require_few(self, d: int) -> None:
        if d > whole_number("max_features", self.max_features, minimum=1):
            raise InputError(
                f"there are {d} features, but max_features = {self.max_features}: a graphical lasso of the features takes time like their "
                "cube. Reduce them first, as with sklearn.decomposition.TruncatedSVD in a Pipeline, or raise max_features"
            )

    def _is_to_centre(self, design: Design) -> bool:
        self._require_few(design.n_features)  # before sparse examples become dense
        return True


@linear_model
class MatrixNormalRegressor(_MatrixNormal, LinearTaskRegressor):
    """Least squares for many tasks with learned sparse inverse covariances of features and of tasks, MTL(Omega, Sigma)."""


@linear_model
class MatrixNormalClassifier(_MatrixNormal, LinearTaskClassifier):
    """`MatrixNormalRegressor` for classes: the same least squares of labels -1 and +1."""


class _Weights:
    """The least squares of all tasks with the penalty tr(B W^T A W)."""

    def __init__(self, data: TaskData, penalty: float) -> None:
        self._design: Design = data.design
        self._targets, self._penalty = data.targets, penalty
        self._shares = data.design.per_example(1.0 / np.asarray(data.design.sizes))
        self._right = data.design.adjoint(self._shares * data.targets)
        grams = [dense(X.T @ X) / X.shape[0] for X, _ in blocks_of(data)]
        self._mean_gram: Array = np.mean(grams, axis=0)
        self.failure = ""

    def loss(self, W: Array) -> float:
        """sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2."""
        return float((self._shares * (self._targets - self._design.forward(W)) ** 2).sum())

    def best(self, A: Array, B: Array, start: Array) -> Array:
        """Return the best W, d x m: G W + penalty A W B = X^T y / n, of the mean G by the eigenvalues of (G, A) and of B."""
        values, P = scipy.linalg.eigh(self._mean_gram, A, check_finite=False)
        task_values, Q = np.linalg.eigh(B)
        scales = np.maximum(values, 0.0)[:, None] + self._penalty * task_values

        def of_mean(R: Array) -> Array:
            return np.asarray(P @ ((P.T @ R @ Q) / scales) @ Q.T)

        if self._design.is_shared:
            return of_mean(self._right)

        def image(w: Array) -> Array:
            W = w.reshape(start.shape)
            data_part = self._design.adjoint(self._shares * self._design.forward(W))
            return np.asarray(data_part + self._penalty * (A @ W @ B)).ravel()

        operator = LinearOperator((start.size, start.size), matvec=image, dtype=np.float64)
        inverse = LinearOperator(operator.shape, matvec=lambda w: of_mean(w.reshape(start.shape)).ravel(), dtype=np.float64)
        found, info = cg(operator, self._right.ravel(), start.ravel(), rtol=_CG_TOLERANCE, maxiter=_CG_ITERATIONS, M=inverse)
        if info:
            self.failure = f"conjugate gradients reached {_CG_ITERATIONS} iterations"
        return np.asarray(found.reshape(start.shape))


def _lowered(before: Precision, S: Array, alpha: float) -> Precision:
    """Return the graphical lasso of S, or the precision before where that has no higher objective."""
    found = sparse_precision(S, alpha, before)
    if precision_objective(found.matrix, S, alpha) <= precision_objective(before.matrix, S, alpha):
        return found
    return before._replace(failure=found.failure)
