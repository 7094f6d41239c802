"""The sparse matrix-normal prior: weights against a Kronecker system, precisions against CVXPY, falling objectives, what fails and how."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.data import TaskData
from bench_mtl.estimators import MatrixNormalRegressor
from bench_mtl.estimators import matrix_normal as fits
from bench_mtl.estimators.precisions import Precision

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 6))
Y = X @ RNG.standard_normal((6, 2)) @ RNG.standard_normal((2, 4)) + RNG.standard_normal((30, 4))
Xs = [RNG.standard_normal((size, 6)) for size in (3, 20, 9, 6)]
ys = [A @ RNG.standard_normal(6) + 0.3 * RNG.standard_normal(len(A)) for A in Xs]
DATA = {
    "shared": TaskData.shared(X, Y),
    "wide": TaskData.shared(X[:4], Y[:4]),
    "CSR": TaskData.shared(sp.csr_array(X * (RNG.random(X.shape) < 0.4)), Y),
    "one task": TaskData.shared(X, Y[:, 0]),
    "one feature": TaskData.shared(X[:, :1], Y),
    "per task": TaskData.per_task(Xs, ys),
    "per task CSR": TaskData.per_task([sp.csr_array(A) for A in Xs], ys),
}
PARAMETERS: dict[str, object] = {"alpha_features": 0.1, "alpha_tasks": 0.1, "covariance_ridge": 0.1, "max_features": 20, "tol": 1e-6}


def fitted(data: TaskData, **changes: object) -> SimpleNamespace:
    found = MatrixNormalRegressor(**{**PARAMETERS, **changes})._fit_data(data)  # type: ignore[arg-type]
    return SimpleNamespace(**vars(found), **found.attributes)


def positive(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.standard_normal((n, n))
    return root @ root.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("name", DATA)
def test_weights_solve_the_kronecker_system(name: str) -> None:
    data = DATA[name]
    d, m = data.n_features, data.n_tasks
    rng = np.random.default_rng(1)
    A, B = positive(rng, d), positive(rng, m)
    H, right = 0.3 * np.kron(B, A), np.zeros(d * m)
    for k in range(m):
        block, y = data.task(k)
        block = block.toarray() if sp.issparse(block) else block
        H[k * d : (k + 1) * d, k * d : (k + 1) * d] += block.T @ block / len(y)
        right[k * d : (k + 1) * d] = block.T @ y / len(y)
    found = fits._Weights(data, 0.3).best(A, B, np.zeros((d, m)))
    assert np.allclose(found, np.linalg.solve(H, right).reshape(m, d).T, atol=1e-8)


@pytest.mark.parametrize("name", DATA)
def test_the_objective_is_what_it_says_and_never_rises(name: str) -> None:
    data = DATA[name]
    found = fitted(data)
    d, m = data.n_features, data.n_tasks
    assert found.is_met, found.message
    value = sum(float(np.mean((y - A @ found.coefficients[:, k]) ** 2)) for k, (A, y) in enumerate(data.task(k) for k in range(m)))
    A, B, W = found.feature_precision_, found.task_precision_, found.coefficients
    off = [np.abs(K - np.diag(np.diag(K))).sum() for K in (A, B)]
    value += 0.1 * float(np.trace(B @ W.T @ A @ W))
    value += 0.1 * found.unit_ * m * float(0.1 * np.trace(A) - np.log(np.linalg.det(A)) + 0.1 * off[0])
    value += 0.1 * found.unit_ * d * float(0.1 * np.trace(B) - np.log(np.linalg.det(B)) + 0.1 * off[1])
    assert found.objectives_[-1] == pytest.approx(value, rel=1e-9)
    room = 1e-9 * abs(found.objectives_[0])
    assert all(later <= earlier + room for earlier, later in pairwise(found.objectives_))


def test_large_alphas_leave_diagonals_and_no_alphas_none() -> None:
    for alpha in (100.0, 0.0):
        found = fitted(DATA["shared"], alpha_features=alpha, alpha_tasks=alpha)
        for K in (found.feature_precision_, found.task_precision_):
            assert np.array_equal(K, np.diag(np.diag(K))) if alpha else K.all()


@pytest.mark.parametrize("worse", [1.0, 1e6])
def test_a_graphical_lasso_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, worse: float) -> None:
    """And its answer is not taken where it is worse."""

    def failing(S: np.ndarray, alpha: float, start: Precision) -> Precision:
        return start._replace(matrix=worse * start.matrix, failure="no luck")

    monkeypatch.setattr(fits, "sparse_precision", failing)
    found = fitted(DATA["shared"])
    assert not found.is_met
    assert found.message == "graphical lasso of the features: no luck; graphical lasso of the tasks: no luck"
    assert np.array_equal(found.feature_precision_, np.eye(6))
