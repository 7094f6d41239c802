"""Linear models under an l1 norm: the objective by hand, tight and honest bounds, held-out errors, bad input."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.validation.conformance import check_weak_duality

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 5))
SCORES = X @ RNG.standard_normal((5, 3)) + 0.5 * RNG.standard_normal((20, 3))
TARGETS = {
    "squared": SCORES,
    "logistic": np.where(SCORES > 0.0, 1.0, -1.0),
    "multiclass": np.where(np.arange(3) == SCORES.argmax(axis=1)[:, None], 1.0, -1.0),
}
DEGENERATE = {
    "targets of 0": ("squared", np.zeros((20, 3))),
    "one label": ("logistic", np.ones((20, 3))),
    "one class": ("multiclass", np.where(np.arange(3) == 1, np.ones((20, 3)), -1.0)),
    "a single class": ("multiclass", np.ones((20, 1))),
}


def loss_by_hand(loss: str, W: np.ndarray) -> float:
    total = 0.0
    for x, y in zip(X, TARGETS[loss], strict=True):
        t = x @ W
        if loss == "squared":
            total += 0.5 * float(((y - t) ** 2).sum())
        elif loss == "logistic":
            total += float(np.log1p(np.exp(-y * t)).sum()) / 20
        else:
            total += float(np.log(np.exp(t - t[y.argmax()]).sum())) / 20
    return total


@pytest.mark.parametrize("loss", TARGETS)
def test_the_objective_is_the_sum_over_examples(loss: str) -> None:
    W = RNG.standard_normal((5, 3))
    data = TaskData.shared(X, TARGETS[loss])
    assert L1BallGLM(data, loss=loss, radius=10.0).objective(W) == pytest.approx(loss_by_hand(loss, W))
    assert L1BallGLM(data, loss=loss, penalty=0.3).objective(W) == pytest.approx(loss_by_hand(loss, W) + 0.3 * np.abs(W).sum())


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("balls", ["task", "all"])
@pytest.mark.parametrize("nonneg", [False, True])
def test_the_bound_is_tight_at_the_optimum(loss: str, balls: str, nonneg: bool) -> None:
    orientation = np.where(RNG.random((5, 3)) < 0.5, 1.0, -1.0) if nonneg else None
    data = dataclasses.replace(TaskData.shared(X, TARGETS[loss]), orientation=orientation)
    problems = [L1BallGLM(data, loss=loss, balls=balls, nonneg=nonneg, **r) for r in ({"radius": 0.8}, {"penalty": 0.05})]
    for problem in problems:
        record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(1e-8), limits=Limits(seconds=20.0))
        assert record.status is Status.VERIFIED, record.reason
        assert record.solution is not None
        assert not nonneg or np.all(record.solution * orientation >= 0.0)


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("restriction", [{"radius": 0.0}, {"radius": 1.0}, {"penalty": 0.0}, {"penalty": 0.1}])
def test_degenerate_targets_have_honest_bounds(case: str, restriction: dict[str, float]) -> None:
    loss, Y = DEGENERATE[case]
    for scale in (1e-8, 1.0, 1e8):
        problem = L1BallGLM(TaskData.shared(scale * X, Y), loss=loss, **restriction)
        check_weak_duality(problem, np.random.default_rng(0))
        if case in ("targets of 0", "a single class"):
            assert problem.certify(Iterate(problem.zero())).gap == pytest.approx(0.0, abs=1e-12)


def test_held_out_errors() -> None:
    W = np.zeros((5, 3))
    W[0] = 1.0, -1.0, 0.0
    held_out = TaskData.shared(np.diag([1.0, -1.0, 1.0, -1.0, 1.0]), np.where(np.arange(3) == [[0], [1], [2], [1], [1]], 1.0, -1.0))
    expected = {"squared": 13.0 / 15.0, "logistic": 13.0 / 15.0, "multiclass": 4.0 / 5.0}  # all but the first row are predicted as 0
    for loss, Y in TARGETS.items():
        measures = L1BallGLM(TaskData.shared(X, Y).with_held_out(held_out), loss=loss, radius=5.0).measures(W)
        assert measures == {"non-zeros": 2.0, "held-out error": pytest.approx(expected[loss])}


SHARED, LABELS = TaskData.shared(X, SCORES), TaskData.shared(X, TARGETS["logistic"])
PER_TASK = TaskData.per_task([X, X], [TARGETS["multiclass"][:, 0], TARGETS["multiclass"][:, 1]])


@pytest.mark.parametrize(
    ("data", "parameters", "message"),
    [
        (SHARED, {}, "exactly one of radius"),
        (SHARED, {"radius": 1.0, "penalty": 1.0}, "exactly one of radius"),
        (SHARED, {"radius": -1.0}, "radius"),
        (SHARED, {"radius": np.nan}, "radius"),
        (SHARED, {"radius": "large"}, "radius"),
        (SHARED, {"radius": "truth"}, "true W"),
        (SHARED, {"penalty": -1.0}, "penalty"),
        (SHARED, {"radius": 1.0, "loss": "hinge"}, "loss"),
        (SHARED, {"radius": 1.0, "balls": "none"}, "balls"),
        (SHARED, {"radius": 1.0, "nonneg": 1}, "nonneg"),
        (SHARED, {"radius": 1.0, "loss": "logistic"}, "labels"),
        (LABELS, {"radius": 1.0, "loss": "multiclass"}, "exactly one class a row"),
        (PER_TASK, {"radius": 1.0, "loss": "multiclass"}, "one design"),
    ],
)
def test_bad_input_is_named(data: TaskData, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        L1BallGLM(data, **parameters)
    assert "\n" not in str(raised.value)
