"""`ADMM` for a sparse plus a low-rank matrix: against its textbook form, balanced, and by products alone."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Limits, run
from bench_mtl.data import TaskData, synthetic_sparse_low_rank
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.projections import project_trace_ball, soft_threshold
from bench_mtl.solvers.admm import ADMM
from bench_mtl.validation.conformance import check_run

RNG = np.random.default_rng(7)


def drawn(sizes: tuple[int, ...], d: int, *, sparse: bool = False) -> SparseLowRank:
    """Tasks of these sizes, or four of one design."""
    Xs: list[Any] = [RNG.standard_normal((n, d)) for n in sizes]
    Xs = [sp.csr_array(X * (X > 0.0)) for X in Xs] if sparse else Xs
    if len(Xs) == 1:
        return SparseLowRank(TaskData.shared(Xs[0], RNG.standard_normal((sizes[0], 4))), penalty=0.5, radius=0.4)
    return SparseLowRank(TaskData.per_task(Xs, [RNG.standard_normal(n) for n in sizes]), penalty=0.5, radius=0.4)


PROBLEMS = {
    "shared": drawn((20,), 5),
    "fewer examples than features": drawn((4,), 9),
    "more tasks than features": drawn((20,), 2),
    "per task": drawn((3, 8, 4), 6),
    "per task, few examples": drawn((3, 2, 4), 6),
    "shared CSR": drawn((20,), 5, sparse=True),
    "per task CSR": drawn((3, 8, 4), 6, sparse=True),
}


@pytest.mark.parametrize("name", [name for name in PROBLEMS if "CSR" not in name])
def test_is_the_textbook_method(name: str) -> None:
    """The joint least-squares step is solved for (P', Q') as one dense system a task."""
    problem, penalty, relaxation = PROBLEMS[name], 0.7, 1.5
    _, d, m = problem.point_shape
    rho = np.repeat([penalty, 3.0 * penalty], d)
    Z, U = np.zeros((2 * d, m)), np.zeros((2 * d, m))
    iterates = list(islice(ADMM(relaxation=relaxation, penalty=penalty, balance=False).steps(problem), 5))
    for iterate in iterates[1:]:
        for _ in range(5):
            ahead = np.empty_like(Z)
            for k in range(m):
                X, y = np.asarray(problem.design.block(k)), problem.design.task_outputs(problem.fit.targets, k)
                double = np.hstack([X, X])
                right = double.T @ y + rho * (Z - U)[:, k]
                ahead[:, k] = np.linalg.solve(double.T @ double + np.diag(rho), right)
            relaxed = relaxation * ahead + (1 - relaxation) * Z + U
            Z = np.vstack([soft_threshold(relaxed[:d], problem.penalty / penalty), project_trace_ball(relaxed[d:], problem.radius)])
            U = relaxed - Z
        assert np.allclose(iterate.primal, Z.reshape(2, d, m), atol=1e-10)
        assert np.allclose(iterate.dual, problem.fit.targets - problem.design.forward(ahead[:d] + ahead[d:]), atol=1e-10)


def test_balancing_makes_up_for_a_bad_penalty() -> None:
    data = synthetic_sparse_low_rank(tasks=5, features=10, examples=20, rank=2, zero_features=2, zero_tasks=1)
    problem = SparseLowRank(data, penalty=2.0, radius=3.0)
    steps = {}
    for balance in (True, False):
        record = run(problem, ADMM(penalty=2e3, balance=balance), tolerance=1e-6, limits=Limits(iterations=20_000))
        steps[balance] = record.samples[-1].step
    assert steps[True] < 0.3 * steps[False]


@pytest.mark.parametrize("name", PROBLEMS)
def test_designs_too_large_to_factorise_take_products_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.admm.split.factorisable", lambda design: False)
    check_run(PROBLEMS[name], ADMM(), target=1e-7)
