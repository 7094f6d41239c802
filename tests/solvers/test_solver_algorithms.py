"""Solvers against the papers' formulas, step by step, and their options."""

from itertools import islice, pairwise

import numpy as np
import pytest

from bench_mtl.data import synthetic_l1inf, synthetic_sparse_low_rank
from bench_mtl.problems import L1InfHinge, SparseLowRank
from bench_mtl.projections import project_l1inf_ball, project_trace_ball, soft_threshold
from bench_mtl.solvers import AcceleratedGradient, ProjectedGradient, ProjectedSubgradient


@pytest.fixture(scope="module")
def hinge() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)


@pytest.fixture(scope="module")
def low_rank() -> SparseLowRank:
    data = synthetic_sparse_low_rank(tasks=5, features=8, examples=10, rank=2, zero_features=2, zero_tasks=1, shared=True)
    return SparseLowRank(data, penalty=2.0, radius=3.0)


def test_projected_subgradient_is_the_papers_method(hinge: L1InfHinge) -> None:
    """The same points as a loop over tasks that is written from the paper."""
    eta0, W, objectives, points = 1.0, np.zeros((8, 3)), [], []
    for t in range(1, 31):
        G, loss = np.zeros_like(W), 0.0
        for k in range(3):
            X, y = hinge.design.block(k), hinge.design.task_outputs(hinge.fit.targets, k)
            slack = 1.0 - y * (X @ W[:, k])
            loss += slack[slack > 0.0].sum() / len(y)
            G[:, k] = -X.T @ (y * (slack > 0.0)) / len(y)
        objectives.append(loss)
        points.append(W)
        W = project_l1inf_ball(W - eta0 / np.sqrt(t) * G, 2.0)
    iterates = list(ProjectedSubgradient(step_sizes=(eta0,), iterations=30).steps(hinge))
    assert len(iterates) == 30
    for t, iterate in enumerate(iterates):
        assert np.allclose(iterate.primal, points[int(np.argmin(objectives[: t + 1]))])


def test_the_step_size_search_counts_and_the_best_goes_on(hinge: L1InfHinge) -> None:
    solver = ProjectedSubgradient(step_sizes=(0.1, 1.0, 10.0), search_iterations=20, iterations=50)
    iterates = list(solver.steps(hinge))
    assert len(iterates) == 3 * 20 + 30
    assert [iterate.step for iterate in iterates] == list(range(1, 91))
    assert iterates[-1].work == 90.0
    alone = [list(ProjectedSubgradient(step_sizes=(eta,), search_iterations=20, iterations=20).steps(hinge)) for eta in solver.step_sizes]
    lowest = min(hinge.objective(run[-1].primal) for run in alone)
    assert hinge.objective(iterates[59].primal) == pytest.approx(lowest)
    assert list(ProjectedSubgradient(iterations=5).steps(hinge))[-1].step == 4 * 5


def paper_step(problem: SparseLowRank, P: np.ndarray, Q: np.ndarray, L: float) -> tuple[np.ndarray, np.ndarray]:
    X, Y = problem.design.block(0), problem.fit.targets
    gradient = X.T @ (X @ (P + Q) - Y)
    return soft_threshold(P - gradient / L, problem.penalty / L), project_trace_ball(Q - gradient / L, problem.radius)


#: By the data, and by a compiled loop on X^T X.
by_both_ways = pytest.mark.parametrize("gram", ["never", "always"])


@by_both_ways
def test_projected_gradient_is_algorithm_3(low_rank: SparseLowRank, gram: str) -> None:
    P = Q = np.zeros((8, 5))
    L = 2 * np.linalg.norm(low_rank.design.block(0), 2) ** 2
    for iterate in islice(ProjectedGradient(gram=gram).steps(low_rank), 30):
        assert np.allclose(iterate.primal, [P, Q])
        P, Q = paper_step(low_rank, P, Q, L)


@by_both_ways
def test_accelerated_gradient_is_algorithm_4(low_rank: SparseLowRank, gram: str) -> None:
    L = 2 * np.linalg.norm(low_rank.design.block(0), 2) ** 2
    iterates = AcceleratedGradient(gram=gram).steps(low_rank)
    next(iterates)
    old = new = np.zeros((2, 8, 5))
    t_before, t = 0.0, 1.0
    for iterate in islice(iterates, 30):
        alpha = (t_before - 1) / t
        S = (1 + alpha) * new - alpha * old
        old, new = new, np.stack(paper_step(low_rank, S[0], S[1], L))
        t_before, t = t, (1 + np.sqrt(1 + 4 * t * t)) / 2
        assert np.allclose(iterate.primal, new)


def test_projected_gradient_never_goes_up(low_rank: SparseLowRank) -> None:
    for solver in (ProjectedGradient(), ProjectedGradient(step_rule="line_search", initial_lipschitz=1e-3)):
        objectives = [low_rank.objective(iterate.primal) for iterate in islice(solver.steps(low_rank), 200)]
        assert all(b <= a * (1 + 1e-12) for a, b in pairwise(objectives))


def test_the_line_search_stays_below_twice_the_lipschitz_constant(low_rank: SparseLowRank) -> None:
    from bench_mtl.solvers.projected_gradient import prox_step

    value, gradient = low_rank.value_and_gradient(low_rank.zero())
    _, L, trials = prox_step(low_rank, low_rank.prox, low_rank.zero(), value, gradient, 1e-3, search=True)
    assert 1e-3 < L <= 2 * low_rank.lipschitz()
    assert trials == round(np.log2(L / 1e-3)) + 1


@pytest.mark.parametrize("change", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("kind", [ProjectedGradient, AcceleratedGradient])
def test_the_papers_stopping_rule(low_rank: SparseLowRank, kind: type[ProjectedGradient], change: float) -> None:
    by_data, by_gram = (list(islice(kind(objective_change=change, gram=gram).steps(low_rank), 50_000)) for gram in ("never", "always"))
    objectives = [low_rank.objective(iterate.primal) for iterate in by_data]
    changes = np.abs(np.diff(objectives))
    assert changes[-1] < change
    assert all(changes[:-1] >= 0.9 * change)
    assert abs(by_gram[-1].step - by_data[-1].step) <= 1
    assert np.allclose(by_gram[-1].primal, by_data[-1].primal, atol=1e-8)
