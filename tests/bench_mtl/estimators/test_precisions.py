"""The graphical lasso against CVXPY, its gap, and warm starts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.estimators import precisions
from bench_mtl.estimators.precisions import Precision, precision_objective, sparse_precision


def low_rank(n: int, rank: int, ridge: float) -> np.ndarray:
    """The scatter of n features over few tasks."""
    W = np.random.default_rng(n).standard_normal((n, rank))
    return W @ W.T / rank + ridge * np.eye(n)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_precisions_are_those_of_cvxpy(n: int, alpha: float) -> None:
    import cvxpy as cp

    S = low_rank(n, n, 0.3)
    K = cp.Variable((n, n), symmetric=True)
    off = cp.sum(cp.abs(K)) - cp.trace(K)  # the diagonal is positive
    problem = cp.Problem(cp.Minimize(cp.trace(S @ K) - cp.log_det(K) + alpha * off))
    best = problem.solve(solver=cp.CLARABEL)
    found = sparse_precision(S, alpha, Precision.identity(n))
    assert found.failure == ""
    assert precision_objective(found.matrix, S, alpha) == pytest.approx(best, abs=2e-3 * n)
    assert precision_objective(found.matrix, S, alpha) >= best - 1e-6 * n


@given(st.integers(2, 12), st.integers(1, 3), st.floats(0.01, 2.0), st.floats(0.01, 1.0))
def test_it_is_optimal_on_scatters_of_low_rank(n: int, rank: int, alpha: float, ridge: float) -> None:
    """K is positive definite, and Y, within its bounds, proves it."""
    S = low_rank(n, rank, ridge)
    found = sparse_precision(S, alpha, Precision.identity(n))
    assert found.failure == ""
    assert np.array_equal(found.matrix, found.matrix.T)
    assert np.linalg.eigvalsh(found.matrix).min() > 0.0
    assert not np.diagonal(found.dual).any()
    assert np.abs(found.dual).max() <= alpha
    bound = np.linalg.slogdet(S + found.dual)[1] + n
    assert bound - 1e-9 <= precision_objective(found.matrix, S, alpha) <= bound + 1.01e-4 * n


def test_a_start_at_the_answer_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    S = low_rank(15, 3, 0.1)
    found = sparse_precision(S, 0.1, Precision.identity(15))
    monkeypatch.setattr(precisions, "_MOST_STEPS", 10)
    assert sparse_precision(S, 0.1, Precision.identity(15)).failure.endswith("after 10 steps")
    assert sparse_precision(S, 0.1, found).failure == ""
