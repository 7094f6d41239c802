"""Dual variables of a support vector machine from its coefficients, for libraries that keep theirs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from bench_mtl import TaskData
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.peers import Sklearn
from bench_mtl.solvers.peers.hinge_duals import box_minimum


@pytest.mark.parametrize("k", [1, 2, 7, 40])
@pytest.mark.parametrize("rank", ["full", "deficient"])
def test_the_minimum_in_a_box_is_that_of_a_slow_solver(k: int, rank: str) -> None:
    rng = np.random.default_rng(k)
    A = rng.standard_normal((3 * k if rank == "full" else max(1, k // 2), k))
    b = A @ rng.uniform(-0.5, 1.5, k) + 0.3 * rng.standard_normal(A.shape[0])
    found = box_minimum(A.T @ A, A.T @ b, 0.8, np.full(k, 0.4))
    slow = lsq_linear(A, b, (0.0, 0.8), method="bvls", tol=1e-15).x
    assert found.min() >= 0.0
    assert found.max() <= 0.8
    best = 0.5 * float(np.sum((A @ slow - b) ** 2))
    # Normal equations square the condition; the objective is flat there.
    assert 0.5 * float(np.sum((A @ found - b) ** 2)) <= best + 1e-10 * (1.0 + float(b @ b))


def test_examples_that_are_there_twice_are_no_obstacle() -> None:
    gram = np.ones((4, 4))
    found = box_minimum(gram, np.full(4, 2.0), 1.0, np.zeros(4))
    assert found.sum() == pytest.approx(2.0, abs=1e-9)


def test_documents_that_are_all_on_the_margin_have_their_dual_variables() -> None:
    """There are more words than documents. Bounded least squares took minutes there, and the runner took the library for a cheat."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random_array((1500, 20_000), density=0.004, format="csr", rng=rng)
    problem = RidgeHinge(TaskData.shared(X, np.sign(X @ rng.standard_normal((20_000, 1)))), ridge=1e-3)
    solver = Sklearn()
    answer = solver.solve(solver.compile(solver.build(problem)), 1e-8, None)
    assert answer.iterate is not None
    assert problem.certify(answer.iterate).relative_gap < 1e-6
