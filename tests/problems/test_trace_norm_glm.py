"""`TraceNormGLM`: hand-worked values, closed forms, its oracle, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.designs import leading_pair
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf, synthetic_sparse_low_rank
from bench_mtl.engine.driver import run
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.problems.trace_norm_glm import TraceNormGLM
from bench_mtl.projections import project_trace_ball, prox_trace
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.validation.conformance import check_weak_duality

pytestmark = pytest.mark.numerics

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 3.0]])
DATA = TaskData.shared(X, Y)
LABELS = np.where(Y > 0.6, 1.0, -1.0)
SOLVER = AcceleratedGradient(restart="gradient", gram="never")  # which compiles nothing


def test_objective_by_hand() -> None:
    W = np.array([[1.0, 0.0], [0.0, 1.0]])
    # predictions: [[1, 0], [0, 2], [1, 1]]; residuals: [[0, -1], [0.5, -1], [0, 2]]
    assert TraceNormGLM(DATA, radius=2.0).objective(W) == pytest.approx(0.5 * (1 + 0.25 + 1 + 4))
    assert TraceNormGLM(DATA, penalty=3.0).objective(W) == pytest.approx(0.5 * (1 + 0.25 + 1 + 4) + 6.0)
    margins = LABELS * (X @ W)
    assert TraceNormGLM(TaskData.shared(X, LABELS), radius=2.0, loss="logistic").objective(W) == pytest.approx(
        np.log1p(np.exp(-margins)).sum()
    )


def test_dual_bound_by_hand() -> None:
    r = np.zeros((3, 2))
    r[0, 0] = 1.0  # G = [[1, 0], [0, 0]]: D(c) = c (1 - radius) - c^2/2
    zero = np.zeros((2, 2))
    assert TraceNormGLM(DATA, radius=0.5).dual_bound(zero, r) == pytest.approx(0.125)
    assert TraceNormGLM(DATA, radius=2.0).dual_bound(zero, r) == 0.0
    assert TraceNormGLM(DATA, penalty=0.25).dual_bound(zero, 7.0 * r) == pytest.approx(0.25 - 0.03125)
    assert TraceNormGLM(DATA, penalty=4.0).dual_bound(zero, r) == pytest.approx(0.5)


def test_no_room_gives_zero_and_a_closed_gap() -> None:
    for parameters in ({"radius": 0.0}, {"penalty": 100.0}):
        squared = TraceNormGLM(DATA, **parameters).certify(Iterate(np.zeros((2, 2))))  # type: ignore[arg-type]
        assert squared.primal == pytest.approx(0.5 * (Y**2).sum())
        assert squared.gap == pytest.approx(0.0, abs=1e-12)
        logistic = TraceNormGLM(TaskData.shared(X, LABELS), loss="logistic", **parameters)  # type: ignore[arg-type]
        certificate = logistic.certify(Iterate(np.zeros((2, 2))))
        assert certificate.primal == pytest.approx(6.0 * np.log(2.0))
        assert certificate.gap == pytest.approx(0.0, abs=1e-9)


def test_the_penalised_solution_of_an_identity_design_shrinks_singular_values() -> None:
    A = np.random.default_rng(0).standard_normal((4, 3))
    problem = TraceNormGLM(TaskData.shared(np.eye(4), A), penalty=0.8)
    record = run(problem, SOLVER, tolerance=Tolerance(1e-10), limits=Limits(seconds=10.0))
    U, s, V = np.linalg.svd(A, full_matrices=False)
    assert record.solution == pytest.approx(U @ np.diag(np.maximum(s - 0.8, 0.0)) @ V, abs=1e-8)


def test_the_penalty_of_a_constrained_solution_gives_it_back() -> None:
    """At the optimum of the ball the spectral norm of the gradient is the multiplier of its constraint."""
    data = synthetic_sparse_low_rank(tasks=5, features=8, examples=30, rank=2, zero_features=2, zero_tasks=1)
    ball = run(TraceNormGLM(data, radius=5.0), SOLVER, tolerance=Tolerance(1e-12), limits=Limits(seconds=20.0))
    assert ball.solution is not None
    problem = TraceNormGLM(data, radius=5.0)
    multiplier = np.linalg.norm(problem.value_and_gradient(ball.solution)[1], ord=2)
    other = run(TraceNormGLM(data, penalty=float(multiplier)), SOLVER, tolerance=Tolerance(1e-12), limits=Limits(seconds=20.0))
    assert other.solution is not None
    assert np.linalg.norm(other.solution, ord="nuc") == pytest.approx(5.0, rel=1e-4)
    assert np.allclose(other.solution, ball.solution, atol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_optimum_is_that_of_the_sparse_low_rank_problem_without_room_for_the_sparse_part(loss: str) -> None:
    data = TaskData.shared(X, LABELS)
    mine = run(TraceNormGLM(data, radius=0.7, loss=loss), SOLVER, tolerance=Tolerance(1e-9), limits=Limits(seconds=10.0))
    both = run(SparseLowRank(data, penalty=1e3, radius=0.7, loss=loss), SOLVER, tolerance=Tolerance(1e-9), limits=Limits(seconds=10.0))
    assert (mine.status, both.status) == (Status.VERIFIED, Status.VERIFIED)
    assert mine.best is not None
    assert both.best is not None
    assert mine.best.primal == pytest.approx(both.best.primal, rel=1e-8)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.sampled_from([1e-250, 1.0, 1e250]))
def test_leading_pairs_attain_the_spectral_norm(seed: int, d: int, m: int, scale: float) -> None:
    A = np.random.default_rng(seed).standard_normal((d, m))
    u, v = leading_pair(scale * A)
    assert (np.linalg.norm(u), np.linalg.norm(v)) == (pytest.approx(1.0), pytest.approx(1.0))
    assert u @ A @ v == pytest.approx(np.linalg.norm(A, ord=2), rel=1e-12)


def test_the_oracle_of_a_zero_direction_is_on_the_ball() -> None:
    assert np.linalg.norm(TraceNormGLM(DATA, radius=2.0).lmo(np.zeros((2, 2))), ord="nuc") == pytest.approx(2.0)


@pytest.mark.parametrize("parameters", [{"radius": 1.5}, {"penalty": 0.4}])
@pytest.mark.parametrize("kept", [0, 1, 4, 15])
def test_rows_of_zeros_stay_and_change_nothing(parameters: dict[str, float], kept: int) -> None:
    point = np.zeros((20, 3))
    point[2 : 2 + kept] = np.random.default_rng(0).standard_normal((kept, 3))
    problem = TraceNormGLM(TaskData.shared(np.eye(20), np.ones((20, 3))), **parameters)  # type: ignore[arg-type]
    whole = project_trace_ball(point, 1.5) if "radius" in parameters else prox_trace(point, 2.0 * 0.4)
    assert np.allclose(problem.prox(point, 2.0), whole, rtol=1e-12, atol=1e-13)
    assert not problem.prox(point, 2.0)[2 + kept :].any()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1e8, 1e150])
def test_bounds_hold_on_data_of_any_size(loss: str, scale: float) -> None:
    data = TaskData.shared(scale * X, LABELS)
    check_weak_duality(TraceNormGLM(data, radius=1.0 / scale, loss=loss), np.random.default_rng(0))
    check_weak_duality(TraceNormGLM(data, penalty=scale, loss=loss), np.random.default_rng(0))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_data_of_any_size_are_solved(scale: float) -> None:
    record = run(
        TraceNormGLM(TaskData.shared(X, scale * Y), radius=0.5 * scale), SOLVER, tolerance=Tolerance(1e-8), limits=Limits(seconds=10.0)
    )
    assert record.status is Status.VERIFIED, record.reason


def test_designs_and_targets_of_zeros_are_solved() -> None:
    for data in (TaskData.shared(np.zeros((3, 2)), Y), TaskData.shared(X, np.zeros((3, 2))), TaskData.shared(sp.csr_array((3, 2)), Y)):
        assert run(TraceNormGLM(data, radius=1.0), SOLVER, limits=Limits(seconds=5.0)).status is Status.VERIFIED


def test_tau_of_the_truth() -> None:
    data = synthetic_sparse_low_rank(tasks=5, features=8, examples=10, rank=2, zero_features=2, zero_tasks=1)
    assert TraceNormGLM(data, radius="truth").radius == pytest.approx(np.linalg.norm(data.truth["P"] + data.truth["Q"], "nuc"))
    data = synthetic_l1inf(tasks=3, features=8, examples=5)
    assert TraceNormGLM(data, radius="truth", loss="logistic").radius == pytest.approx(np.linalg.norm(data.truth["W"], "nuc"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "exactly one of radius"),
        ({"radius": 1.0, "penalty": 1.0}, "exactly one of radius"),
        ({"radius": -1.0}, "radius must be finite and at least 0"),
        ({"radius": np.nan}, "radius must be finite"),
        ({"radius": "truth"}, "needs data that know their true W"),
        ({"radius": "1"}, "radius must be a number"),
        ({"penalty": -1.0}, "penalty must be finite and at least 0"),
        ({"penalty": "much"}, "penalty must be a number"),
        ({"radius": 1.0, "loss": "hinge"}, "loss must be one of"),
        ({"radius": 1.0, "loss": "logistic"}, "labels must be -1/\\+1"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TraceNormGLM(DATA, **arguments)  # type: ignore[arg-type]


def test_labels_of_the_logistic_loss_are_converted_and_the_reader_told() -> None:
    with pytest.warns(UserWarning, match="converted"):
        problem = TraceNormGLM(TaskData.shared(X, (LABELS + 1.0) / 2.0), radius=1.0, loss="logistic")
    assert np.array_equal(problem.form(LinearFit).targets, LABELS)
    assert any("converted" in note for note in problem.notes)


def test_wrong_points_and_dual_points_are_refused() -> None:
    problem = TraceNormGLM(DATA, radius=1.0)
    with pytest.raises(InputError, match=r"primal point must have shape \(2, 2\)"):
        problem.certify(Iterate(np.zeros((2, 3))))
    with pytest.raises(InputError, match=r"dual point must have shape \(3, 2\)"):
        problem.certify(Iterate(problem.zero(), np.zeros(6)))
