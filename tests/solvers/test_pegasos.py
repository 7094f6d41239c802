"""Pegasos against a loop over examples; its averages, its dual point, its cost, its edges, its options."""

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import LAYOUTS, pairwise_cases

from bench_mtl.data import TaskData
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.pegasos import Pegasos


def by_hand(data: TaskData, ridge: float, solver: Pegasos, counts: list[int]) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """w_1, w_2, ... of all tasks, and what was drawn and hit, with the draws made in portions of these sizes."""
    lam, sizes = 2.0 * ridge, np.array(data.design.sizes)
    rng, W = np.random.default_rng(solver.seed), np.zeros((6, len(sizes)))
    points, visits, t = [W], [[np.zeros((2, n)) for n in sizes]], 0
    for count in counts:
        for draw in rng.integers(sizes[None, :, None], size=(count, len(sizes), solver.batch)):
            t += 1
            new = (1.0 - 1.0 / t) * W
            seen = [np.zeros((2, n)) for n in sizes]
            for k, chosen in enumerate(draw):
                Xk, yk = data.task(k)
                Xk = Xk.toarray() if sp.issparse(Xk) else Xk
                for i in chosen:
                    seen[k][0, i] += 1.0
                    if yk[i] * (Xk[i] @ W[:, k]) < 1.0:
                        seen[k][1, i] += 1.0
                        new[:, k] += yk[i] * Xk[i] / (lam * t * solver.batch)
                if solver.projection:
                    new[:, k] *= min(1.0, 1.0 / (lam**0.5 * max(1e-300, float(np.linalg.norm(new[:, k])))))
            W = new
            points.append(W)
            visits.append(seen)
    return points, visits


@pytest.mark.parametrize(
    ("name", "batch", "projection", "averaging"), pairwise_cases(list(LAYOUTS), [1, 4], [True, False], ["all", "suffix", "last"])
)
def test_steps_are_those_of_a_loop_over_examples(name: str, batch: int, projection: bool, averaging: str) -> None:
    problem = RidgeHinge(LAYOUTS[name], ridge=0.03)
    solver = Pegasos(batch=batch, projection=projection, averaging=averaging)
    iterates = list(islice(solver.steps(problem), 46))
    steps = [it.step for it in iterates]
    assert steps[:33] == list(range(33))
    points, visits = by_hand(LAYOUTS[name], 0.03, solver, [after - before for before, after in pairwise(steps)])
    for iterate in iterates[1:]:
        T = iterate.step
        first = 1 if averaging == "all" else max(1, 2 ** (T.bit_length() - 2))
        expected = points[T] if averaging == "last" else np.mean(points[first - 1 : T], axis=0)
        assert np.allclose(iterate.primal, expected, rtol=1e-9, atol=1e-12)
        for k in range(3):
            seen, hit = sum(visits[t][k] for t in range(first, T + 1))
            share = np.where(seen > 0, hit / np.maximum(seen, 1.0), hit.sum() / seen.sum())
            labels = LAYOUTS[name].task(k)[1]
            assert np.allclose(problem.design.task_outputs(iterate.dual, k), labels * share / len(labels))
        assert iterate.work == pytest.approx(T * 3 * batch / problem.design.n_examples)


def test_the_sum_stays_right_over_many_steps() -> None:
    """The average is never formed: it is followed by what is added late. A small lambda keeps the projection busy."""
    problem = RidgeHinge(LAYOUTS["per task CSR"], ridge=1e-6)
    solver = Pegasos(averaging="all")
    iterates = list(islice(solver.steps(problem), 160))
    steps = [it.step for it in iterates]
    points, _ = by_hand(LAYOUTS["per task CSR"], 1e-6, solver, [after - before for before, after in pairwise(steps)])
    assert steps[-1] > 1000
    assert np.allclose(iterates[-1].primal, np.mean(points[: steps[-1]], axis=0), rtol=0.0, atol=1e-9 * np.abs(points).max())


def test_the_first_step_forgets_the_start() -> None:
    problem = RidgeHinge(LAYOUTS["shared"], ridge=0.1)
    far = np.full((6, 3), 1e6)
    first, second = islice(Pegasos(averaging="last").steps(problem, far), 2)
    assert np.array_equal(first.primal, far)
    assert np.abs(second.primal).max() < 100.0
