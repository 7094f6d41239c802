"""Group-sparse boosting: what is proven where W = 0 is the solution, without a penalty, and of learners outside; bad input."""

from typing import Any

import numpy as np
import pytest

from bench_mtl import InputError, Iterate, TaskData
from bench_mtl.model.forms import ROW_NORMS, GroupForm
from bench_mtl.model.losses import Logistic
from bench_mtl.model.margins import MULTICLASS_LOSSES
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.validation.conformance import check_weak_duality

RNG = np.random.default_rng(0)
N, J, K = 20, 6, 3
H = np.where(RNG.random((N, J)) < 0.5, 1.0, -1.0)
CLASSES = (H @ RNG.exponential(size=(J, K)) + RNG.standard_normal((N, K))).argmax(axis=1)


def labels(classes: np.ndarray, K: int = K) -> np.ndarray:
    return np.where(np.arange(K) == np.asarray(classes)[:, None], 1.0, -1.0)


def data(H: Any = H, classes: np.ndarray = CLASSES, K: int = K) -> TaskData:
    return TaskData.shared(H, labels(classes, K), name="tiny")


@pytest.mark.parametrize("loss", MULTICLASS_LOSSES)
@pytest.mark.parametrize("norm", ROW_NORMS)
def test_a_large_nu_has_the_solution_zero_and_it_is_proven(loss: str, norm: str) -> None:
    problem = GroupBoosting(data(), penalty="1.0000001 max", norm=norm, loss=loss)
    found = problem.certify(Iterate(np.zeros((J, K))))
    assert found.gap == pytest.approx(0.0, abs=1e-13)  # what bounds allow for rounding in sums of so few terms
    assert problem.certify(Iterate(np.full((J, K), 0.01))).primal > found.primal
    below = GroupBoosting(data(), penalty="0.9 max", norm=norm, loss=loss)
    assert below.certify(Iterate(np.zeros((J, K)))).gap > 1e-4


def test_without_a_penalty_a_separable_problem_is_proven_as_far_as_it_can_be() -> None:
    """The infimum of the losses is not attained; what is left of the objective is the labels' own constant."""
    problem = GroupBoosting(data(np.eye(K)[CLASSES], CLASSES), penalty=0.0)
    certificate = problem.certify(Iterate(50.0 * np.eye(K)))
    assert certificate.dual == pytest.approx(np.log(2.0) / K)
    assert certificate.gap < 1e-12


@pytest.mark.parametrize("loss", MULTICLASS_LOSSES)
def test_without_a_penalty_the_bound_is_the_infimum_of_the_loss_unless_no_learner_helps(loss: str) -> None:
    rng, zero = np.random.default_rng(0), np.zeros((J, K))
    mixed = GroupBoosting(data(H, rng.permutation(CLASSES)), penalty=0.0, loss=loss)
    for U in (None, rng.random((N, K))):
        assert mixed.certify(Iterate(zero, U)).dual == pytest.approx(0.0 if loss == "hinge" else mixed.objective(zero) / K)
    useless = GroupBoosting(data(np.zeros((N, J))), penalty=0.0, loss=loss)
    assert useless.certify(Iterate(zero)).gap == pytest.approx(0.0, abs=1e-12)


def test_a_point_where_the_loss_overflows_is_certified() -> None:
    """Its duals are infinite there; the bound is that of the examples whose loss is."""
    W = 1e3 * np.eye(K)
    problem = GroupBoosting(data(-np.eye(K)[CLASSES], CLASSES), penalty=0.05, loss="exponential")
    certificate = problem.certify(Iterate(W))
    assert certificate.primal == np.inf
    assert 1.0 / K <= certificate.dual <= problem.objective(0.0 * W)


def test_others_widen_the_bound_to_weak_learners_outside() -> None:
    """With a dictionary of half of the columns and the others asked for, a bound is that of the whole dictionary."""
    whole = GroupBoosting(data(), penalty=0.05)
    half = GroupBoosting(data(H[:, :3]), penalty=0.05, others=lambda R: float(whole.form(GroupForm).dual_norms(H[:, 3:].T @ R).max()))
    dual = np.abs(RNG.standard_normal((N, K))) / (N * K)
    assert half.dual_bound(np.zeros((3, K)), dual) == pytest.approx(whole.dual_bound(np.zeros((J, K)), dual))
    assert GroupBoosting(data(H[:, :3]), penalty=0.05).dual_bound(np.zeros((3, K)), dual) > half.dual_bound(np.zeros((3, K)), dual)


@pytest.mark.parametrize(("classes", "K", "words"), [(CLASSES, K, None), (np.minimum(CLASSES, 1), K, "1 of 3 classes has no example"),
                                                     (CLASSES, 5, "2 of 5 classes have no example")])  # fmt: skip
@pytest.mark.parametrize("loss", MULTICLASS_LOSSES)
def test_classes_without_examples_are_noted_and_bounds_hold(loss: str, classes: np.ndarray, K: int, words: str | None) -> None:
    for norm in ROW_NORMS:
        problem = GroupBoosting(data(H, classes, K), penalty=0.05, norm=norm, loss=loss)
        check_weak_duality(problem, np.random.default_rng(0))
        assert words in problem.notes[-1] if words else not problem.notes


def test_measures_count_learners_and_their_classes() -> None:
    held = data(H[:5], CLASSES[:5])
    problem = GroupBoosting(data().with_held_out(held), penalty=0.1)
    W = np.zeros((J, K))
    W[0, :2], W[2, 1], W[3, 0] = 1.0, 0.5, 1e-9
    found = problem.measures(W)
    error = float(np.mean((H[:5] @ W).argmax(axis=1) != CLASSES[:5]))
    assert found == {"non-zeros": 3.0, "features used": 2.0, "classes a feature": 1.5, "held-out error": error}
    assert problem.measures(np.zeros((J, K)))["features used"] == 0.0


@pytest.mark.parametrize(
    ("tasks", "parameters", "message"),
    [
        (TaskData.shared(H, np.ones((N, 1))), {"penalty": 0.1}, "at least 2 classes, but the data have 1"),
        (TaskData.shared(H, np.ones((N, 2))), {"penalty": 0.1}, "exactly one class a row, but row 0 has 2"),
        (TaskData.per_task([H, H], [np.ones(N), -np.ones(N)]), {"penalty": 0.1}, "one design for all"),
        (data(), {"penalty": -1.0}, "penalty"),
        (data(), {"penalty": float("nan")}, "penalty"),
        (data(), {"penalty": "0.1"}, "a share such as '0.1 max', not '0.1'"),
        (data(), {"penalty": "much max"}, "a share such as"),
        (data(), {"penalty": "-1 max"}, "a share such as"),
        (data(), {"penalty": 0.1, "norm": "l2"}, "norm"),
        (data(), {"penalty": 0.1, "loss": "huber"}, "unknown loss 'huber'"),
        (data(), {"penalty": 0.1, "others": "all"}, "others must be a function"),
    ],
)
def test_bad_input_has_a_name(tasks: TaskData, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GroupBoosting(tasks, **parameters)


def test_a_loss_of_ones_own_without_a_model_offers_no_conic_form() -> None:
    class Own(Logistic):  # type: ignore[misc]
        name = "own"
        cones = frozenset()

    problem = GroupBoosting(data(), penalty=0.1, loss=Own())
    assert not problem.conic_forms
    assert problem.certify(Iterate(np.zeros((J, K)))) == GroupBoosting(data(), penalty=0.1).certify(Iterate(np.zeros((J, K))))
