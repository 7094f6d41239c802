"""Multi-task relationship learning: what it minimises over, and its conjugate against a slow twin."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_mtl.data import TaskData
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.problems.task_relationships import TaskRelationships

RNG = np.random.default_rng(0)
X = RNG.standard_normal((15, 4))
Y = X @ np.outer(RNG.standard_normal(4), [1.0, -2.0, 0.5]) + 0.3 * RNG.standard_normal((15, 3))
PROBLEM = TaskRelationships(TaskData.shared(X, Y), ridge=0.2, coupling=0.3)

values = arrays(np.float64, st.integers(1, 5), elements=st.floats(0, 10).map(lambda x: 0.0 if x < 1e-6 else x))


def penalty(W: np.ndarray, Omega: np.ndarray) -> float:
    return 0.1 * float((W**2).sum()) + 0.15 * float(np.trace(W @ np.linalg.solve(Omega, W.T)))


def test_the_objective_is_the_least_over_the_relationships() -> None:
    W = RNG.standard_normal((4, 3))
    loss = float(((Y - X @ W) ** 2).sum()) / 15
    _, s, Vt = np.linalg.svd(W, full_matrices=False)
    best = Vt.T @ np.diag(s / s.sum()) @ Vt
    assert PROBLEM.objective(W) == pytest.approx(loss + penalty(W, best))
    for _ in range(50):
        root = RNG.standard_normal((3, 3))
        other = root @ root.T
        assert PROBLEM.objective(W) <= loss + penalty(W, other / np.trace(other))


def twin(s: np.ndarray, ridge: float, coupling: float) -> float:
    """max over b >= 0 by non-negative least squares: the quadratic form has the square root diag(ridge)^(1/2) over coupling^(1/2) 1^T."""
    H = ridge * np.eye(len(s)) + coupling * np.ones((len(s), len(s)))
    root = np.linalg.cholesky(H).T
    b = scipy.optimize.nnls(root, np.linalg.solve(root.T, s))[0]
    return float(s @ b - 0.5 * b @ H @ b)


@given(values, st.floats(0.05, 5.0), st.floats(0.0, 5.0))
def test_the_conjugate_is_that_of_a_quadratic_program(s: np.ndarray, ridge: float, coupling: float) -> None:
    s = -np.sort(-s)
    assert SquaredNorms(ridge, coupling).conjugate(s) == pytest.approx(twin(s, ridge, coupling), rel=1e-9, abs=1e-12)


def test_the_conjugate_at_its_ends() -> None:
    s = np.array([3.0, 2.0, 1.0])
    assert SquaredNorms(0.0, 2.0).conjugate(s) == pytest.approx(9.0 / 4.0)
    assert SquaredNorms(2.0, 0.0).conjugate(s) == pytest.approx(14.0 / 4.0)
    assert SquaredNorms(1e-30, 2.0).conjugate(s) == pytest.approx(9.0 / 4.0)
