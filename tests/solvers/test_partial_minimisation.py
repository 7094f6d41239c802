"""`PartialMinimisation`: its steps by a slow twin, and where one step is enough."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import proven

from bench_mtl.data import TaskData
from bench_mtl.estimators import SparseLowRankRegressor
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.projections import project_trace_ball, soft_threshold
from bench_mtl.solvers.partial_minimisation import PartialMinimisation

pytestmark = pytest.mark.numerics


def wide(seed: int, *, sparse: bool = True, radius: float = 1.0) -> SparseLowRank:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 80)) * (rng.random((15, 80)) < 0.3)
    Y = rng.standard_normal((15, 4))
    return SparseLowRank(TaskData.shared(sp.csr_array(X) if sparse else X, Y), penalty=0.2, radius=radius)


def twin(problem: SparseLowRank, rounds: int, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """The steps as the docstring has them, with Q itself and dense data."""
    X, Y = np.asarray(sp.csr_array(problem.design.block(0)).toarray()), problem.fit.targets
    _, d, m = problem.point_shape
    P, Q, before, t = np.zeros((d, m)), np.zeros((d, m)), np.zeros((d, m)), 1.0
    L, h = np.linalg.norm(X, 2) ** 2, (X**2).sum(axis=0)

    def update(j: int, k: int, S: np.ndarray) -> None:
        if h[j] > 0.0:
            r = Y[:, k] - X @ (P[:, k] + S[:, k])
            P[j, k] = soft_threshold(np.array([P[j, k] + X[:, j] @ r / h[j]]), problem.penalty / h[j])[0]

    def sweep(S: np.ndarray, entries: np.ndarray) -> None:
        for k in range(m):
            for j in range(d):
                if entries[j, k]:
                    update(j, k, S)

    for step in range(rounds):
        ahead = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        S = Q + (t - 1.0) / ahead * (Q - before)
        if step < 2 or step % 5 == 0:
            sweep(S, np.ones((d, m), dtype=bool))
        active = P != 0.0
        for _ in range(sweeps):
            sweep(S, active)
        new = np.asarray(project_trace_ball(S + X.T @ (Y - X @ (P + S)) / L, problem.radius))
        uphill = float(((S - new) * (new - Q)).sum()) > 0.0
        before, Q, t = (new, new, 1.0) if uphill else (Q, new, ahead)
    sweep(Q, np.ones((d, m), dtype=bool))
    return P, Q


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
def test_the_steps_are_those_of_a_slow_twin(sparse: bool) -> None:
    problem = wide(5, sparse=sparse)
    iterates = list(islice(PartialMinimisation(sweeps=2).steps(problem), 4))
    assert [iterate.step for iterate in iterates] == [0, 4, 8, 13]
    P, Q = twin(problem, 4, 2)
    assert np.allclose(iterates[1].primal, [P, Q], atol=1e-9)


def test_what_it_cannot_take() -> None:
    tall = SparseLowRank(TaskData.shared(np.ones((4001, 1)), np.ones(4001)), penalty=1.0, radius=1.0)
    assert "4000 rows" in str(PartialMinimisation().incompatibility(tall))


def test_the_estimator_takes_it_where_features_are_very_many() -> None:
    """As many as have no dense X^T X: the number of steps is that of this solver, not that of a gradient method."""
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 6000), density=0.02, format="csr", rng=0)
    Y = rng.standard_normal((40, 3))
    by_default, named = SparseLowRankRegressor(0.3, 0.2), SparseLowRankRegressor(0.3, 0.2, solver="partial_minimisation")
    assert by_default.fit(X, Y).gap_ <= 1e-3
    assert np.array_equal(by_default.coef_, named.fit(X, Y).coef_)


def test_a_ball_with_room_for_an_interpolation_needs_one_step() -> None:
    problem = wide(4)
    X, Y = problem.design.block(0), problem.fit.targets
    least = np.linalg.pinv(X.toarray()) @ Y
    norm = float(np.linalg.svd(least, compute_uv=False).sum())
    *_, last = PartialMinimisation().steps(wide(4, radius=norm * (1.0 + 1e-12)))
    assert last.step == 1
    np.testing.assert_allclose(last.primal, [np.zeros_like(least), least], atol=1e-12)
    dense = SparseLowRank(TaskData.shared(X.toarray(), Y), penalty=0.2, radius=norm * (1.0 + 1e-12))
    *_, also = PartialMinimisation().steps(dense)
    np.testing.assert_allclose(also.primal, last.primal, atol=1e-12)
    proven(wide(4, radius=0.99 * norm), PartialMinimisation(), 1e-6)
