"""Solvers of multi-task relationship learning: the alternation against a Kronecker system, and where it may end."""

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Limits, TaskData, Tolerance, run
from bench_mtl.problems.task_relationships import TaskRelationships
from bench_mtl.solvers.relationships import AlternatingRelationships, SpectralGradient

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 7))
W = RNG.standard_normal((7, 2)) @ RNG.standard_normal((2, 4)) + 0.1 * RNG.standard_normal((7, 4))
Y = X @ W + 0.5 * RNG.standard_normal((20, 4))
SPARSE = X * (RNG.random(X.shape) < 0.4)
DATA = {
    "long": TaskData.shared(X, Y),
    "wide": TaskData.shared(X[:5], Y[:5]),
    "two examples": TaskData.shared(X[:2], Y[:2]),
    "deficient": TaskData.shared(np.hstack([X[:, :3], X[:, :3], 0.0 * X[:, :1]]), Y),
    "CSR": TaskData.shared(sp.csr_array(SPARSE), Y),
    "wide CSR": TaskData.shared(sp.csr_array(SPARSE[:5]), Y[:5]),
    "one task": TaskData.shared(X, Y[:, 0]),
    "one feature": TaskData.shared(X[:, :1], Y),
}


@pytest.mark.parametrize("name", DATA)
def test_a_step_of_the_alternation_solves_the_kronecker_system(name: str) -> None:
    data = DATA[name]
    n, d, m = data.design.sizes[0], data.n_features, data.n_tasks
    problem = TaskRelationships(data, ridge=0.2, coupling=0.3)
    dense = data.design.stacked().toarray()[:n, :d]
    Omega = np.eye(m) / m
    for iterate in islice(AlternatingRelationships().steps(problem), 1, 6):
        H = np.kron(np.eye(m), 2 / n * dense.T @ dense) + np.kron(0.2 * np.eye(m) + 0.3 * np.linalg.inv(Omega), np.eye(d))
        expected = np.linalg.solve(H, (2 / n * dense.T @ data.targets).T.ravel()).reshape(m, d).T
        assert np.allclose(iterate.primal, expected, rtol=1e-6, atol=1e-9)
        _, s, Vt = np.linalg.svd(iterate.primal)
        D = np.zeros(m)
        D[: len(s)] = s
        if D.min() < 1e-6 * D.max():  # the system of the twin is singular from here on
            return
        Omega = Vt.T @ np.diag(D / D.sum()) @ Vt


@pytest.mark.parametrize("name", DATA)
def test_the_alternation_never_rises(name: str) -> None:
    problem = TaskRelationships(DATA[name], ridge=0.01, coupling=1.0)
    objectives = [problem.objective(iterate.primal) for iterate in islice(AlternatingRelationships().steps(problem), 60)]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(objectives))


def test_the_alternation_may_end_elsewhere_and_the_gap_says_so() -> None:
    """An optimum of lower rank: a direction of the tasks is lost on the way, for good, unless Omega is perturbed."""
    problem = next(islice(TaskRelationships.examples(np.random.default_rng(0)), 2, None))
    limits = Limits(iterations=400)
    lost = run(problem, AlternatingRelationships(), tolerance=Tolerance(1e-6), limits=limits).best
    kept = run(problem, AlternatingRelationships(perturbation=1e-3), tolerance=Tolerance(1e-6), limits=Limits(iterations=2000)).best
    best = run(problem, SpectralGradient(), tolerance=Tolerance(1e-9), limits=limits).best
    assert best.relative_gap <= 1e-9
    assert lost.primal > best.primal * (1 + 5e-4)
    assert kept.primal < lost.primal * (1 - 2e-4)
    assert kept.relative_gap < 4e-4
