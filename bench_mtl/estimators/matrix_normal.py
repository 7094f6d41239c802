"""Multi-task learning with a sparse matrix-normal prior, MTL(Omega, Sigma): estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import FittedTasks, LinearTaskClassifier, LinearTaskRegressor, LinearTasks, linear_model
from bench_mtl.estimators.matrix_normal_fits import fit_matrix_normal


@linear_model
class _MatrixNormal(LinearTasks):
    """Models with learned covariances.

    A local minimum is found, by turns, over W (features x tasks) and the positive definite A (features) and B (tasks), of

        sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + penalty (tr(B W^T A W) + unit (tasks P(A) + features P(B)))

        P(K) = covariance_ridge tr K - log det K + alpha sum_{i != j} |K_ij|

    with the `alpha` of features and of tasks. This is not convex, so there is no gap. A turn solves for W exactly, and for A and for B by a
    graphical lasso.

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
    graphical_lasso : {"admm", "scikit-learn"}
        ADMM with a proven gap; or `sklearn.covariance.graphical_lasso`, which fails on many of these scatter matrices, and then so does the
        fit (`converged_`, a ConvergenceWarning and the coefficients so far).
    fit_intercept, max_iter, max_seconds
        As in every linear model here, and so are the attributes but for the missing `dual_bound_` and `gap_`: see
        `bench_mtl.estimators.linear.LinearTasks`. There is no `solver` to choose; iterations are turns.
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
    graphical_lasso: str = "admm"
    max_iter: int = 100
    max_seconds: float | None = None

    reduction = "mean"

    def _fit_data(self, data: TaskData) -> FittedTasks:
        found = fit_matrix_normal(
            data,
            penalty=self.penalty,
            alpha_features=self.alpha_features,
            alpha_tasks=self.alpha_tasks,
            covariance_ridge=self.covariance_ridge,
            max_features=self.max_features,
            graphical_lasso=self.graphical_lasso,
            tol=self.tol,
            budget=Budget(self.max_iter, self.max_seconds),
        )
        attributes: dict[str, Any] = {
            "feature_precision_": found.feature_precision,
            "task_precision_": found.task_precision,
            "unit_": found.unit,
            "objective_": found.objectives[-1],
            "objectives_": found.objectives,
        }
        return FittedTasks(found.coefficients, len(found.objectives), found.is_met, found.message, attributes=attributes)


@linear_model
class MatrixNormalRegressor(_MatrixNormal, LinearTaskRegressor):
    """Least squares for many tasks with learned sparse inverse covariances of features and of tasks, MTL(Omega, Sigma).

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import MatrixNormalRegressor
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = MatrixNormalRegressor().fit(scale(X), scale(Y))
    >>> model.coef_.shape, model.task_precision_.shape
    ((3, 3), (3, 3))
    """


@linear_model
class MatrixNormalClassifier(_MatrixNormal, LinearTaskClassifier):
    """`MatrixNormalRegressor` for classes: the same least squares of labels -1 and +1."""
