"""`BallHinge`: hand-worked values, its balls, its optimum task by task against other formulations, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.task_balls import TASK_BALLS
from bench_mtl.problems.ball_hinge import BallHinge
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.projections import project_l1_ball, project_l2_ball
from bench_mtl.solvers.conic import Conic
from bench_mtl.validation.conformance import check_weak_duality

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
DATA = TaskData.shared(X, Y)


def test_objective_by_hand() -> None:
    W = np.array([[0.5, 0.0], [0.0, 0.25]])
    # margins: task 0: 0.5, 0, 0.5; task 1: 0, 0.5, 0.25
    assert BallHinge(DATA, radius=1.0).objective(W) == pytest.approx((0.5 + 1 + 0.5) / 3 + (1 + 0.5 + 0.75) / 3)
    assert BallHinge(DATA, radius=1.0, reduction="sum").objective(W) == pytest.approx(2.0 + 2.25)


def test_dual_bound_by_hand() -> None:
    a = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])  # g_0 = (1, 0), g_1 = (0.5, 1.5)
    zero = np.zeros((2, 2))
    assert BallHinge(DATA, radius=0.25, reduction="sum").dual_bound(zero, a) == pytest.approx(0.75 + 1.0 - 0.25 * 1.5)
    assert BallHinge(DATA, radius=0.25, norm="l2", reduction="sum").dual_bound(zero, a) == pytest.approx(0.75 + 1.0 - 0.25 * 2.5**0.5)
    assert BallHinge(DATA, radius=[2.0, 0.25], reduction="sum").dual_bound(zero, a) == pytest.approx(1.0 - 0.25 * 1.5), "one task proves 0"
    assert BallHinge(DATA, radius=0.0, reduction="sum").dual_bound(zero, 100 * a) == pytest.approx(1.0 + 2.0), "a is clipped"
    assert BallHinge(DATA, radius=0.0).dual_bound(zero, 100 * a) == pytest.approx(1.0)


def test_infeasibility_is_relative_to_the_radius_of_the_task() -> None:
    W = np.array([[3.0, 0.0], [4.0, 1.0]])
    assert BallHinge(DATA, radius=[5.0, 1.0], norm="l2").infeasibility(W) == 0.0
    assert BallHinge(DATA, radius=[5.0, 1.0]).infeasibility(W) == pytest.approx(0.4)
    assert BallHinge(DATA, radius=[10.0, 0.0]).infeasibility(W) == pytest.approx(1.0)


@pytest.mark.parametrize(("norm", "project"), [("l1", project_l1_ball), ("l2", project_l2_ball)])
@pytest.mark.parametrize("radii", [[1.0, 1.0, 1.0], [0.5, 0.0, 0.5], [2.0, 1e-300, 1e300]])
def test_balls_project_column_by_column(norm: str, project: object, radii: list[float]) -> None:
    W = np.random.default_rng(0).standard_normal((7, 3))
    before = W.copy()
    V = TASK_BALLS[norm](np.array(radii)).project(W)
    assert np.array_equal(W, before)
    for k, radius in enumerate(radii):
        assert np.array_equal(V[:, k], project(W[:, k], radius))  # type: ignore[operator]


@given(st.integers(0, 10_000), st.sampled_from(tuple(TASK_BALLS)), st.sampled_from([1e-200, 1e-3, 1.0, 1e200]))
def test_vertices_attain_the_dual_norm_and_no_feasible_point_exceeds_it(seed: int, norm: str, scale: float) -> None:
    rng = np.random.default_rng(seed)
    balls = TASK_BALLS[norm](rng.exponential(size=3) * (rng.random(3) < 0.8))
    G = scale * rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.7)
    heights, vertex = balls.radii * balls.dual_norms(G), balls.vertex(G)
    assert np.all(balls.norms(vertex) <= balls.radii * (1 + 1e-14))
    assert np.allclose((G * vertex).sum(axis=0), -heights, rtol=1e-12, atol=0.0)
    point = balls.project(3.0 * rng.standard_normal((5, 3)))
    assert np.all((G * point).sum(axis=0) <= heights * (1 + 1e-12))


def test_the_optimum_of_one_task_in_an_l1_ball_is_that_of_the_l1inf_problem() -> None:
    """With one task sum_j max_k |W_jk| is the l1 norm; and tasks do not know of each other."""
    data = synthetic_l1inf(tasks=3, features=6, examples=15)
    radii = [1.0, 2.5, 0.3]
    record = run(BallHinge(data, radius=radii), Conic(), tolerance=Tolerance(1e-8))
    assert record.status is Status.VERIFIED, record.reason
    assert record.best is not None
    alone = 0.0
    for k, radius in enumerate(radii):
        A, y = data.task(k)
        single = run(L1InfHinge(TaskData.per_task([A], [y]), radius=radius), Conic(), tolerance=Tolerance(1e-8))
        assert single.best is not None
        alone += single.best.primal
    assert record.best.primal == pytest.approx(alone, rel=1e-6)


def test_the_optimum_in_an_l2_ball_is_a_support_vector_machine() -> None:
    """The ridge problem's solution solves the constrained one with its own length as radius."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4))
    y = np.where(A @ rng.standard_normal(4) + rng.standard_normal(30) > 0.0, 1.0, -1.0)
    w = LinearSVC(loss="hinge", C=0.3, fit_intercept=False, tol=1e-8, max_iter=1_000_000).fit(A, y).coef_[0]
    problem = BallHinge(TaskData.shared(A, y), radius=float(np.linalg.norm(w)), norm="l2")
    record = run(problem, Conic(), tolerance=Tolerance(1e-8))
    assert record.best is not None
    assert record.best.primal == pytest.approx(problem.objective(w[:, None]), rel=1e-4)


def test_radii_of_the_truth_are_the_norms_of_its_columns() -> None:
    data = synthetic_l1inf(tasks=4, features=8, examples=5)
    for norm, order in (("l1", 1), ("l2", 2)):
        problem = BallHinge(data, radius="truth", norm=norm)
        assert problem.balls.radii == pytest.approx(np.linalg.norm(data.truth["W"], ord=order, axis=0))
        assert problem.infeasibility(data.truth["W"]) <= 1e-15


@pytest.mark.parametrize("norm", TASK_BALLS)
@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1e8, 1e160])
def test_bounds_hold_on_data_of_any_size(norm: str, scale: float) -> None:
    check_weak_duality(BallHinge(TaskData.shared(scale * X, Y), radius=1.0 / scale, norm=norm), np.random.default_rng(0))


def test_a_design_of_zeros_is_solved_at_once() -> None:
    for norm in TASK_BALLS:
        certificate = BallHinge(TaskData.shared(np.zeros((3, 2)), Y), radius=1.0, norm=norm).certify(Iterate(np.zeros((2, 2))))
        assert (certificate.primal, certificate.dual) == (pytest.approx(2.0), pytest.approx(2.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"radius": -1.0}, "radius must be finite and at least 0"),
        ({"radius": np.inf}, "radius must be finite"),
        ({"radius": None}, "radius must be a number"),
        ({"radius": "true"}, "radius must be a number, a list with one a task, or 'truth', not 'true'"),
        ({"radius": "truth"}, "needs data that know their true W"),
        ({"radius": [1.0]}, "radius must have one number a task, 2, but has 1"),
        ({"radius": [1.0, -2.0]}, "radius of task 1 must be finite and at least 0"),
        ({"radius": [1.0, "2"]}, "radius of task 1 must be a number"),
        ({"radius": np.ones((2, 2))}, "radius of task 0 must be a number"),
        ({"radius": 1.0, "norm": "linf"}, "norm must be one of l1, l2"),
        ({"radius": 1.0, "reduction": "squared"}, "reduction must be one of mean, sum"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        BallHinge(DATA, **arguments)  # type: ignore[arg-type]


def test_labels_are_checked_and_converted() -> None:
    with pytest.raises(InputError, match="labels must be"):
        BallHinge(TaskData.shared(X, X), radius=1.0)
    with pytest.warns(UserWarning, match="converted"):
        problem = BallHinge(TaskData.shared(sp.csr_array(X), (Y + 1) / 2), radius=1.0)
    assert np.array_equal(problem.hinges.labels, Y)
    assert any("converted" in note for note in problem.notes)


def test_wrong_points_are_refused_and_limits_kept() -> None:
    problem = BallHinge(DATA, radius=1.0)
    with pytest.raises(InputError, match=r"primal point must have shape \(2, 2\)"):
        problem.certify(Iterate(np.zeros((2, 3))))
    with pytest.raises(InputError, match="dual point has NaN"):
        problem.certify(Iterate(problem.zero(), np.full((3, 2), np.nan)))
    assert run(problem, Conic(), limits=Limits(seconds=5.0), tolerance=Tolerance(1e-6)).status is Status.VERIFIED
