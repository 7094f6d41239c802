"""Legal problems and starts at the ends of the range: starts that have to fall back to 0, optima of 0, sizes at which memory matters."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.types import Iterate, Status
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.task_relationships import TaskRelationships
from bench_mtl.problems.trace_norm_glm import TraceNormGLM
from bench_mtl.solvers.consensus_admm import ConsensusADMM
from bench_mtl.solvers.dual_newton import DualNewton
from bench_mtl.solvers.frank_wolfe_smooth import FrankWolfeSmooth
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.relationships import AlternatingRelationships
from bench_mtl.solvers.working_set import WorkingSet

ONE = np.ones((4, 1))


@pytest.mark.parametrize(
    ("problem", "start"),
    [
        (L1BallGLM(TaskData.shared(ONE, ONE), penalty=0.1), 1.0),  # which leaves no residual
        (L1BallGLM(TaskData.shared(ONE, ONE), penalty=0.1, nonneg=True), 5.0),
        (L1BallGLM(TaskData.shared(ONE, -ONE), radius=10.0, nonneg=True), 5.0),
    ],
)  # fmt: skip
def test_a_start_where_nothing_rises_is_left(problem: Problem, start: float) -> None:
    record = run(problem, "l1_working_set", start=np.full(problem.point_shape, start), limits=10.0)
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("m", [1, 2])
def test_a_task_of_one_class_with_a_free_intercept_is_verified_at_once(m: int) -> None:
    X = np.random.default_rng(0).standard_normal((10, 3))
    for loss in ("logistic", "hinge"):
        data = TaskData.shared(X, np.ones((10, m)))
        problem: Problem = L1InfHinge(data, penalty=0.1, intercept=True)
        if loss == "logistic":
            problem = L1InfGLM(data, loss=loss, penalty=0.1, intercept=True)
        record = run(problem, "auto", limits=10.0)
        assert record.status is Status.VERIFIED, record.reason
        assert record.best is not None
        assert record.best.primal < 1e-12


def test_near_an_optimum_of_zero_claims_are_beside_the_scale_of_the_problem() -> None:
    rng = np.random.default_rng(0)
    problem = L1InfGLM(TaskData.shared(rng.standard_normal((20, 60)), rng.standard_normal((20, 3))), radius=1e3)
    claims = [iterate.claim for iterate in islice(WorkingSet().steps(problem), 60)]
    assert min(claim for claim in claims if claim is not None) < 1e-6
    assert run(problem, WorkingSet(), limits=10.0).status is Status.VERIFIED


def test_plain_frank_wolfe_steps_keep_no_vertices() -> None:
    rng = np.random.default_rng(0)
    problem = TraceNormGLM(TaskData.shared(rng.standard_normal((30, 12)), rng.standard_normal((30, 5))), radius=3.0)
    stepper = FrankWolfeSmooth(variant="plain").stepper(problem)
    now: Any = stepper.start(Iterate(problem.start_point()))
    for _ in range(150):
        now = stepper.step(now)
    assert now._hull._corners.shape == (1, 60)
    assert problem.infeasibility(now._hull.point) <= 1e-12


def test_memory_is_what_is_taken() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5000))  # one copy of which is made, and a factor for every task
    hinge = L1InfHinge(TaskData.shared(X, np.sign(rng.standard_normal((500, 200)))), radius=1.0)
    assert InteriorPoint(memory_gib=1.0).incompatibility(hinge) is None
    wide = sp.random_array((20_000, 60_000), density=1e-6, format="csr", rng=rng)
    problem = L1InfGLM(TaskData.shared(wide, rng.standard_normal((20_000, 2))), penalty=1.0)
    assert "makes sparse features dense" in str(DualNewton().incompatibility(problem))


def test_blocks_of_the_hinge_may_be_factorised_where_the_whole_may_not() -> None:
    rng = np.random.default_rng(0)
    H = np.sign(rng.standard_normal((9000, 4500)))
    problem = GroupBoosting(TaskData.shared(H, 2.0 * np.eye(3)[rng.integers(3, size=9000)] - 1.0), penalty=0.01, loss="hinge")
    assert "factorises" in str(ConsensusADMM(blocks=1).incompatibility(problem))
    assert ConsensusADMM(blocks=10).incompatibility(problem) is None


def test_relationships_without_coupling_may_lose_rank() -> None:
    rng = np.random.default_rng(0)
    problem = TaskRelationships(TaskData.shared(rng.standard_normal((10, 2)), rng.standard_normal((10, 3))), ridge=0.1, coupling=0.0)
    assert all(np.isfinite(iterate.primal).all() for iterate in islice(AlternatingRelationships().steps(problem), 4))
