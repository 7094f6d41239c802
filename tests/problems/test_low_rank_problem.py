"""`SparseLowRank`: bad input, edge cases and hand-worked values."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_sparse_low_rank
from bench_mtl.engine.driver import run
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient

pytestmark = pytest.mark.numerics

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 3.0]])
DATA = TaskData.shared(X, Y)


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compiling is off every clock."""
    AcceleratedGradient().warm_up()


def test_objective_by_hand() -> None:
    P, Q = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    # predictions: [[1, 0], [0, 2], [1, 1]]; residuals: [[0, -1], [0.5, -1], [0, 2]]
    assert SparseLowRank(DATA, penalty=3.0, radius=1.0).objective(np.stack([P, Q])) == pytest.approx(0.5 * (1 + 0.25 + 1 + 4) + 3.0)


def test_large_gamma_and_no_ball_give_zero_and_a_closed_gap() -> None:
    problem = SparseLowRank(DATA, penalty=100.0, radius=0.0)
    certificate = problem.certify(Iterate(problem.zero()))
    assert certificate.primal == pytest.approx(0.5 * (Y**2).sum())
    assert certificate.gap == pytest.approx(0.0, abs=1e-12)


def test_targets_of_zero_are_solved_at_once() -> None:
    problem = SparseLowRank(TaskData.shared(X, np.zeros((3, 2))), penalty=1.0, radius=1.0)
    record = run(problem, AcceleratedGradient(), limits=Limits(seconds=5.0))
    assert (record.status, record.samples[-1].step) == (Status.VERIFIED, 0)


def test_a_design_of_zero_is_no_division_by_zero() -> None:
    problem = SparseLowRank(TaskData.shared(np.zeros((3, 2)), Y), penalty=1.0, radius=1.0)
    assert run(problem, AcceleratedGradient(), limits=Limits(seconds=5.0)).status is Status.VERIFIED


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_data_of_any_size_are_solved(scale: float) -> None:
    """penalty of the size of X^T y, radius of the size of W: the same problem in other units."""
    problem = SparseLowRank(TaskData.shared(X, scale * Y), penalty=0.5 * scale, radius=0.5 * scale)
    record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(1e-8), limits=Limits(seconds=10.0))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"penalty": 0.0, "radius": 1.0}, "penalty must be finite and above 0"),
        ({"penalty": -1.0, "radius": 1.0}, "penalty must be finite and above 0"),
        ({"penalty": np.nan, "radius": 1.0}, "penalty must be finite"),
        ({"penalty": 1.0, "radius": -1.0}, "radius must be finite and at least 0"),
        ({"penalty": 1.0, "radius": "truth"}, "needs data that know their true Q"),
        ({"penalty": "1", "radius": 1.0}, "penalty must be a number"),
        ({"penalty": 1.0, "radius": 1.0, "loss": "hinge"}, "loss must be one of"),
        ({"penalty": 1.0, "radius": 1.0, "loss": "logistic"}, "labels must be -1/\\+1"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SparseLowRank(DATA, **arguments)  # type: ignore[arg-type]


def test_tau_of_the_truth() -> None:
    data = synthetic_sparse_low_rank(tasks=5, features=8, examples=10, rank=2, zero_features=2, zero_tasks=1)
    assert SparseLowRank(data, penalty=1.0, radius="truth").radius == pytest.approx(np.linalg.norm(data.truth["Q"], "nuc"))


def test_wrong_points_and_dual_points_are_refused() -> None:
    problem = SparseLowRank(DATA, penalty=1.0, radius=1.0)
    with pytest.raises(InputError, match=r"primal point must have shape \(2, 2, 2\)"):
        problem.certify(Iterate(np.zeros((2, 2))))
    with pytest.raises(InputError, match=r"dual point must have shape \(3, 2\)"):
        problem.certify(Iterate(problem.zero(), np.zeros(6)))
    with pytest.raises(InputError, match="dual point has NaN"):
        problem.certify(Iterate(problem.zero(), np.full((3, 2), np.nan)))


LABELS = np.where(Y > 0.6, 1.0, -1.0)


def test_logistic_objective_and_bound_by_hand() -> None:
    """At zero every term is log 2; with no room for P or Q the optimum is there, and the bound says so."""
    problem = SparseLowRank(TaskData.shared(X, LABELS), penalty=100.0, radius=0.0, loss="logistic")
    certificate = problem.certify(Iterate(problem.zero()))
    assert certificate.primal == pytest.approx(6.0 * np.log(2.0))
    assert certificate.gap == pytest.approx(0.0, abs=1e-9)


def test_labels_of_the_logistic_loss_are_converted_and_the_reader_told() -> None:
    with pytest.warns(UserWarning, match="converted"):
        problem = SparseLowRank(TaskData.shared(X, (LABELS + 1.0) / 2.0), penalty=1.0, radius=1.0, loss="logistic")
    assert np.array_equal(problem.fit.targets, LABELS)
    assert any("converted" in note for note in problem.notes)


def test_logistic_bound_is_tight_at_the_optimum() -> None:
    problem = SparseLowRank(TaskData.shared(X, LABELS), penalty=0.2, radius=0.3, loss="logistic")
    record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(1e-9), limits=Limits(seconds=20.0))
    assert record.status is Status.VERIFIED, record.reason
