"""The primal-dual hybrid gradient method: its formulas, precisions, norms and threads, and what once kept it from its target."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import proven

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.model.forms import Hinges
from bench_mtl.problems import BallHinge, L1InfHinge
from bench_mtl.projections import norm_l1inf, project_l1inf_ball, prox_l1inf
from bench_mtl.solvers.kernels import weighted_norms
from bench_mtl.solvers.pdhg import PDHG, kernels
from bench_mtl.solvers.pdhg.run import Run


@pytest.fixture(scope="module")
def hinge() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=4, features=8, examples=12), radius=2.0)


def started(problem: L1InfHinge, *, per_task: bool = True, weight: float | None = None) -> Run:
    run = Run(problem.form(Hinges))
    run.start(problem.zero(), None, per_task=per_task, primal_weight=weight)
    return run


def blocks_of(data: TaskData) -> tuple[list[Any], list[Array]]:
    return [data.design.block(k) for k in range(data.n_tasks)], [data.task(k)[1] for k in range(data.n_tasks)]


@pytest.mark.parametrize("step_rule", ["preconditioned", "norm"])
def test_steps_between_restarts_are_their_formula(hinge: L1InfHinge, step_rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.pdhg.run.should_restart", lambda *numbers: False)
    run = started(hinge, per_task=step_rule == "preconditioned", weight=1.5)
    sigma = hinge.design.per_example(run.step_sizes)
    W, a = hinge.zero(), hinge.fit.weights  # all margins are 0, so all examples pull
    W0, a0 = W, a
    for k in range(10):
        stepped = project_l1inf_ball(W + run.tau * hinge.hinges.adjoint(a), hinge.radius)
        dual = np.clip(a + sigma * (1.0 - hinge.hinges.margins(2 * stepped - W)), 0.0, hinge.fit.weights)
        W, a = ((k + 1) * (2 * new - old) / (k + 2) + first / (k + 2) for new, old, first in ((stepped, W, W0), (dual, a, a0)))
    run.halpern()
    for mine, right in zip(run.answer(), (stepped, dual), strict=True):
        assert np.allclose(mine, right)


@pytest.mark.parametrize("m", [1, 5, 33])
@pytest.mark.parametrize("theta", [0.0, 0.5, 100.0])
def test_a_primal_step_projects_from_any_theta(m: int, theta: float) -> None:
    d, rng, step = 11, np.random.default_rng(m), kernels.Step(0.3, np.ones(m), 1.2, -0.6, 0.4)
    before, close = kernels.Primal(*rng.standard_normal((5, d, m))), {"rtol": 1e-12, "atol": 1e-13}
    V = before.point + 0.3 * before.gradient
    for radius, penalised in ((0.0, False), (1e-9, False), (2.0, False), (1e3, False), (0.0, True)):
        planes = np.stack(before)
        primal = kernels.Primal(*planes)
        after, moved = kernels.norm_step(planes, step, kernels.norm_of(None, (d, m), radius, penalised), theta)
        W = prox_l1inf(V, theta) if penalised else project_l1inf_ball(V, radius)
        assert after >= 0.0
        assert penalised or np.abs(primal.stepped).max(axis=1).sum() <= radius * (1 + 1e-14)
        assert np.allclose(primal.stepped, W, **close)
        assert np.allclose(primal.extrapolated, 2 * W - before.point, **close)
        assert np.allclose(primal.point, step.p * W + step.q * before.point + step.r * before.anchor, **close)
        assert moved == pytest.approx(((W - before.point) ** 2).sum())


def test_what_is_outside_an_l1_ball_by_rounding_alone_is_no_fault() -> None:
    """The sum of sizes is taken in two orders, so that the excess may come out below 0."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        v = rng.standard_normal(rng.integers(1, 200))
        radius = float(np.abs(v).sum()) * (1.0 - rng.integers(0, 6) * 1.1e-16)
        w = v.copy()
        assert weighted_norms.project_weighted_l1(w, radius, np.ones(len(v)), 0.0) >= 0.0
        np.testing.assert_allclose(w, v, atol=1e-13)


def test_step_sizes_are_within_the_norm_of_the_coupling(hinge: L1InfHinge) -> None:
    for per_task in (True, False):
        run = started(hinge, per_task=per_task)
        products = run.tau * run.step_sizes * hinge.design.norms() ** 2
        assert products.max() <= 1.0 + 1e-12
        assert per_task or len(set(run.step_sizes)) == 1
    assert products.max() > 0.5


def test_a_far_primal_weight_is_adapted(hinge: L1InfHinge) -> None:
    for weight in (1e-5, 1e5):
        proven(hinge, PDHG(primal_weight=weight), 1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_threads_change_no_bit(is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.core.threads.available_processors", lambda: 3)
    blocks, labels = blocks_of(synthetic_l1inf(tasks=7, features=120, examples=400))
    problem = L1InfHinge(TaskData.per_task([sp.csr_array(X) for X in blocks] if is_sparse else blocks, labels), radius=5.0)
    alone, shared = (list(islice(PDHG(threads=threads).steps(problem), 12)) for threads in (1, 3))
    assert Run(problem.form(Hinges), 3).threads == 2  # what so many entries are worth
    for one, other in zip(alone, shared, strict=True):
        assert np.array_equal(one.primal, other.primal)
        assert np.array_equal(one.dual, other.dual)


def test_single_precision_gives_way_before_it_shows() -> None:
    problem = L1InfHinge(synthetic_l1inf(tasks=8, features=100, examples=150), radius="truth")
    proven(problem, PDHG(), 1e-9)
    run = started(problem)
    assert run.data.values.dtype == np.float32
    while run.state.is_single:
        assert run.state.steps < 5000
        before = problem.certify(Iterate(*run.answer()))
        run.halpern()
    assert before.gap < 1e-3 * before.primal
    assert run.data.values.dtype == np.float64
    assert np.allclose(run.dual.predicted, problem.design.forward(run.primal.point), rtol=1e-12, atol=1e-13)
    assert np.allclose(run.primal.gradient, problem.design.adjoint(run.dual.point), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_data_out_of_single_precision_stay_in_double(scale: float) -> None:
    blocks, labels = blocks_of(synthetic_l1inf(tasks=8, features=100, examples=150))
    problem = L1InfHinge(TaskData.per_task([scale * X for X in blocks], labels), radius=5.0 / scale)
    assert not started(problem).state.is_single
    proven(problem, PDHG(), 1e-6)


def test_a_primal_point_at_its_vertex_does_not_keep_the_dual_from_its_way() -> None:
    X = np.random.default_rng(1).standard_normal((200, 12))
    signs = np.where(X[:, :3] + 0.3 * np.random.default_rng(2).standard_normal((200, 3)) > 0.0, 1.0, -1.0)
    proven(L1InfHinge(TaskData.shared(X, signs), radius=0.2), PDHG(), 1e-8, iterations=50_000)


def test_a_ball_that_binds_at_first_and_then_no_more() -> None:
    rng = np.random.default_rng(0)
    Xs = [0.2 * rng.standard_normal((120, 40)) for _ in range(3)]
    data = TaskData.per_task(Xs, [np.where(X[:, 0] + 0.2 * rng.standard_normal(120) > 0, 1.0, -1.0) for X in Xs])
    free = proven(L1InfHinge(data, radius=1e4), PDHG(), 1e-9, iterations=50_000)
    proven(L1InfHinge(data, radius=1.5 * norm_l1inf(free.solution)), PDHG(), 1e-7, iterations=50_000)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["per task", "per task CSR", "shared", "shared CSR", "single"])
def test_estimated_norms_are_near_and_within_the_margin(kind: str) -> None:
    data = synthetic_l1inf(tasks=4, features=60, examples=120 if kind != "single" else 600)
    blocks, labels = blocks_of(data)
    if kind.startswith("shared"):
        data = TaskData.shared(sp.csr_array(blocks[0]) if "CSR" in kind else blocks[0], np.stack(labels, axis=1))
    elif "CSR" in kind:
        data = TaskData.per_task([sp.csr_array(X) for X in blocks], labels)
    problem = L1InfHinge(data, radius=1.0)
    run = started(problem)
    assert run.state.is_single == (kind == "single")
    exact, estimated = problem.design.norms(), run.estimated_norms()
    assert np.all(estimated <= exact * (1.0 + 1e-6))
    assert np.all(estimated >= 0.9 * exact)


def test_points_that_cannot_be_projected_are_refused() -> None:
    huge = BallHinge(TaskData.shared(np.eye(2), np.ones((2, 2))), radius=1.0, norm="l2")
    with pytest.raises(InputError, match="pdhg cannot project points of this size"):
        next(islice(PDHG(primal_weight=1e-300).steps(huge), 1, None))


@pytest.mark.parametrize("size", [1e-120, 1e-90, 1e80, 1e140])
@pytest.mark.parametrize("is_shared", [True, False])
def test_norms_are_estimated_of_features_of_any_size(size: float, is_shared: bool) -> None:
    draw = np.random.default_rng(0)
    X, labels = draw.standard_normal((60, 8)), np.sign(draw.standard_normal((60, 2)))

    def estimated(size: float) -> Array:
        data = TaskData.shared(size * X, labels) if is_shared else TaskData.per_task([size * X] * 2, list(labels.T))
        problem = L1InfHinge(data, radius=1.0 / size)
        run = Run(problem.form(Hinges))
        run.start(problem.zero(), None, per_task=True, primal_weight=None)
        return run.estimated_norms()

    np.testing.assert_allclose(estimated(size) / size, estimated(1.0), rtol=1e-6)
