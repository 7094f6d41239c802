"""`BlockCoordinate` and `FrankWolfeTrace` on awkward data, their pieces by slow twins, and their options."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from low_rank_cases import AWKWARD

from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.projections import soft_threshold
from bench_mtl.solvers.block_coordinate import BlockCoordinate
from bench_mtl.solvers.frank_wolfe_trace import FrankWolfeTrace

pytestmark = pytest.mark.numerics


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compiling is off every clock."""
    BlockCoordinate().warm_up()


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize(("solver", "target"), [(BlockCoordinate(), 1e-7), (FrankWolfeTrace(), 2e-2)])
def test_reaches_a_gap(name: str, solver: BlockCoordinate | FrankWolfeTrace, target: float) -> None:
    record = run(AWKWARD[name], solver, tolerance=Tolerance(target), limits=Limits(seconds=20.0, iterations=50_000))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("name", ["shared", "per task", "more tasks than features", "radius 0"])
@pytest.mark.parametrize("solver", [BlockCoordinate(), FrankWolfeTrace()])
def test_never_goes_up_much(name: str, solver: BlockCoordinate | FrankWolfeTrace) -> None:
    problem = AWKWARD[name]
    objectives = [problem.objective(problem.repair(iterate.primal)) for iterate in islice(solver.steps(problem), 40)]
    assert all(after <= before * (1 + 1e-9) + 1e-12 for before, after in pairwise(objectives))


@pytest.mark.parametrize("name", ["shared", "per task", "per task, few examples"])
def test_the_first_round_is_that_of_plain_coordinate_descent(name: str) -> None:
    """From zero, with a ball of radius 0 so that Q stays there."""
    given = AWKWARD[name]
    problem = SparseLowRank(TaskData(given.design, given.fit.targets), penalty=given.penalty, radius=0.0)
    _, d, m = problem.point_shape
    P = np.zeros((d, m))
    for _ in range(2):
        for k in range(m):
            X, y = np.asarray(problem.design.block(k)), problem.design.task_outputs(problem.fit.targets, k)
            for j in range(d):
                h = float(X[:, j] @ X[:, j])
                t = P[j, k] + float(X[:, j] @ (y - X @ P[:, k])) / h
                P[j, k] = soft_threshold(np.array([t]), problem.penalty / h)[0]
    for solver in (BlockCoordinate(), FrankWolfeTrace()):
        iterate = list(islice(solver.steps(problem), 2))[1]
        assert np.allclose(iterate.primal, [P, np.zeros_like(P)], atol=1e-10)


def test_says_what_it_cannot_take() -> None:
    squared = AWKWARD["shared"]
    signs = np.where(squared.fit.targets > 0.0, 1.0, -1.0)
    labels = SparseLowRank(TaskData(squared.design, signs), penalty=1.0, radius=1.0, loss="logistic")
    for solver in (BlockCoordinate(), FrankWolfeTrace()):
        assert solver.incompatibility(squared) is None
        assert "logistic loss" in str(solver.incompatibility(labels))
