"""Legal problems and starts at the ends of the range: starts that have to fall back to 0, optima of 0, sizes at which memory matters."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Iterate, IterativeSolver, Problem, Status, load_registry, run
from bench_mtl.data import TaskData, read_shards, write_shards
from bench_mtl.problems import (
    L12GLM,
    GroupBoosting,
    L1BallGLM,
    L1InfGLM,
    L1InfHinge,
    Portfolio,
    RidgeHinge,
    SparseLowRank,
    TaskRelationships,
    TraceNormGLM,
)  # fmt: skip
from bench_mtl.solvers import (
    AlternatingRelationships,
    ConsensusADMM,
    DualNewton,
    ExponentiatedGradient,
    FrankWolfeSmooth,
    InteriorPoint,
    WorkingSet,
)

ONE, RNG = np.ones((4, 1)), np.random.default_rng(0)
WITH_ZEROS = TaskData.shared(RNG.standard_normal((20, 4)) * [1.0, 0.0, 1.0, 1.0], RNG.standard_normal((20, 1)))


@pytest.mark.parametrize(
    ("problem", "start"),
    [
        (L1BallGLM(TaskData.shared(ONE, ONE), penalty=0.1), 1.0),  # which leaves no residual
        (L1BallGLM(TaskData.shared(ONE, ONE), penalty=0.1, nonneg=True), 5.0),
        (L1BallGLM(TaskData.shared(ONE, -ONE), radius=10.0, nonneg=True), 5.0),
        (L1BallGLM(WITH_ZEROS, penalty=0.1), 0.3),  # of a column of zeros
        (L1BallGLM(WITH_ZEROS, radius=1.5), 0.3),
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


#: Where W = 0 is optimal with the best intercept, and residuals prove less than the dual point at zero does.
FLAT = TaskData.shared(np.array([[-1.0], [0.0], [1.0], [0.0]]), np.array([[1.0], [1.0], [1.0], [-1.0]]))


@pytest.mark.parametrize("solver", [WorkingSet(), InteriorPoint()])
@pytest.mark.parametrize("start", [None, 0.5])
def test_where_zero_is_optimal_it_is_proven_from_any_start(solver: Any, start: float | None) -> None:
    problem = L1InfHinge(FLAT, penalty=0.05, intercept=True)
    record = run(problem, solver, start=None if start is None else np.full(problem.point_shape, start), tolerance=1e-6, limits=10.0)
    assert record.status is Status.VERIFIED, record.reason


def test_a_dense_start_takes_no_more_memory_than_there_is() -> None:
    rng = np.random.default_rng(0)
    problem = L1InfGLM(TaskData.shared(rng.standard_normal((30, 400)), rng.standard_normal((30, 2))), penalty="0.2 max")
    for solver in (WorkingSet(), WorkingSet(memory_gib=2e-3)):  # of all rows, and of few
        record = run(problem, solver, start=np.full(problem.point_shape, 0.01), limits=10.0)
        assert record.status is Status.VERIFIED, record.reason


def test_examples_without_entries_are_learned_from() -> None:
    problem = GroupBoosting(TaskData.shared(sp.csr_array((4, 3)), 2.0 * np.eye(2)[[0, 1, 0, 1]] - 1.0), penalty=0.1, norm="l1")
    assert run(problem, "multiboost_l1", limits=10.0).status is Status.VERIFIED


def test_one_feature_of_one_task_may_have_to_be_negative() -> None:
    """An orientation of one entry is one."""
    data = replace(TaskData.shared(np.array([[1.0], [2.0]]), np.array([[-1.0], [-2.0]])), orientation=np.array([[-1.0]]))
    problem = L1BallGLM(data, radius=5.0, nonneg=True)
    record = run(problem, "sparse_online", tolerance=1e-2, limits=5.0)
    assert record.solution[0, 0] == pytest.approx(-1.0, abs=0.1)


def test_numbers_that_overflow_end_a_run() -> None:
    """And are no loop for ever."""
    portfolio = Portfolio(TaskData.shared(np.array([[1e-160, 1.0], [1.0, 1e-160]]), np.zeros((2, 1))))
    assert not run(portfolio, "simplex_newton", limits=3.0).status.is_failure
    ball = L1BallGLM(TaskData.shared(np.full((3, 2), 1e166), np.ones((3, 1))), radius=1.0)
    with np.errstate(all="ignore"):
        for solver in (ExponentiatedGradient(), ExponentiatedGradient(batch=1)):
            assert not run(ball, solver, limits=3.0).status.is_failure
        tiny = L1BallGLM(TaskData.shared(np.full((3, 2), 1e-160), np.full((3, 1), 1e-150)), radius=1.0)
        assert not run(tiny, "exponentiated_gradient", limits=3.0).status.is_failure
        X, Y = 1e-156 * RNG.standard_normal((10, 3)), RNG.standard_normal((10, 2))
        assert not run(TaskRelationships(TaskData.shared(X, Y), ridge=0.1, coupling=0.1), "spectral_gradient", limits=3.0).status.is_failure


def test_a_line_may_end_where_the_slope_is_infinite() -> None:
    X = np.array([[1.0, 1e-20], [1.0, 1000.0], [1.0, 1000.0], [1.0, 1000.0]])
    iterates = list(islice(FrankWolfeSmooth().steps(Portfolio(TaskData.shared(X, np.zeros((4, 1))))), 30))
    assert iterates[-1].primal.ravel() == pytest.approx([0.25, 0.75], abs=0.01)


def test_targets_of_any_size_are_fitted_by_second_order_steps() -> None:
    X, Y = RNG.standard_normal((60, 7)), RNG.standard_normal((60, 3))
    for size in (1e-15, 1.0, 1e15):
        record = run(L12GLM(TaskData.shared(X, size * Y), penalty="0.1 max"), DualNewton(), tolerance=1e-9, limits=10.0)
        assert record.status is Status.VERIFIED, record.reason


ONE_TASK = TaskData.shared(RNG.standard_normal((20, 5)), np.sign(RNG.standard_normal((20, 1))))


@pytest.mark.parametrize(
    "problem",
    [
        SparseLowRank(ONE_TASK, penalty=0.5, radius=0.4),
        *(L1InfHinge(ONE_TASK, **bound) for bound in ({"radius": 1.0}, {"penalty": "0.2 max"})),
        *(L1BallGLM(ONE_TASK, loss=loss, radius=1.0) for loss in ("squared", "logistic")),
        *(L12GLM(ONE_TASK, loss=loss, penalty="0.2 max") for loss in ("squared", "logistic")),
        TraceNormGLM(ONE_TASK, radius=1.0),
        RidgeHinge(ONE_TASK, ridge=0.1),
    ],
    ids=repr,
)
def test_what_is_handed_out_of_a_single_task_is_not_changed_afterwards(problem: Problem) -> None:
    """A transposed or stacked view of one column is no copy."""
    for name, kind in load_registry().solvers.items():
        solver = kind()
        if not isinstance(solver, IterativeSolver) or solver.incompatibility(problem) is not None:
            continue
        iterates, copies = [], []
        for iterate in islice(solver.steps(problem), 6):
            iterates.append(iterate)
            copies.append([None if part is None else part.copy() for part in iterate[:2]])
        for iterate, copy in zip(iterates, copies, strict=True):
            for part, before in zip(iterate[:2], copy, strict=True):
                assert part is before is None or np.array_equal(part, before), f"{name} changes an iterate of {problem!r}"


def test_few_examples_in_shards_are_taken(tmp_path: Path) -> None:
    """Fewer than features: of these there is no matrix in memory."""
    rng = np.random.default_rng(0)
    write_shards(tmp_path / "shards", [(rng.standard_normal((20, 60)), rng.standard_normal((20, 2))) for _ in range(2)])
    problem = SparseLowRank(read_shards(tmp_path / "shards"), gamma=0.1, tau=5.0)
    for solver in ("admm", "accelerated_gradient", "projected_gradient"):
        record = run(problem, solver, tolerance=1e-3, limits=10.0)
        assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("targets", [[1e16, 1e16 + 2.0, 1e16 + 4.0], [1.7e18, 1.7e18 + 1024.0, 1.7e18 + 2048.0]])
def test_targets_far_from_zero_are_not_taken_for_constant(targets: list[float]) -> None:
    y = np.array(targets)[:, None]
    problem = L1InfGLM(TaskData.shared(np.array([[1.0], [2.0], [3.0]]), y), radius=1.0, reduction="sum", intercept=True)
    residuals = y - y[1] - np.array([[-1.0], [0.0], [1.0]])  # at W = 1, the best one, and the best intercept
    record = run(problem, "auto", tolerance=1e-9, limits=10.0)
    assert record.best.dual <= 0.5 * float((residuals**2).sum()) * (1.0 + 1e-12)
    assert record.best.primal >= 0.5 * float((residuals**2).sum()) * (1.0 - 1e-12)


def test_bounds_at_the_ends_of_the_range_are_no_less_than_they_can_be() -> None:
    heavy = L1InfGLM(TaskData.shared(np.ones((1, 1)), np.ones((1, 1))).with_task_weights([1e160]), radius=0.0, reduction="sum")
    assert heavy.certify(Iterate(heavy.zero())).relative_gap < 1e-6
    small = L1InfGLM(TaskData.shared(np.full((1, 1), 1e-200), np.ones((1, 1))), penalty=1e200, reduction="sum")
    assert small.certify(Iterate(small.zero())).relative_gap < 1e-6
    large = L1InfGLM(TaskData.shared(np.full((2, 1), 1e308), np.ones((2, 1))), radius=0.0, reduction="sum")
    assert large.certify(Iterate(large.zero())).relative_gap < 1e-6
    with pytest.raises(InputError, match="task_weights times the weights"):
        L1InfGLM(TaskData.shared(np.ones((3, 1)), np.ones((3, 1))).with_task_weights([5e-324]), radius=1.0)


def test_a_loss_whose_parts_vanish_is_above_zero() -> None:
    data = TaskData.shared(np.full((1, 1), 0.6), np.ones((1, 1)), weights=np.full((1, 1), 5e-324))
    assert L1InfHinge(data, radius=1.0, reduction="sum").certify(Iterate(np.ones((1, 1)))).primal > 0.0
