"""Smooth losses under an l1,inf norm: values by hand, bounds against their definition, tight at optima, edge cases, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import Capability, NotOfferedError
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.projections import norm_l1inf
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.validation.conformance import check_weak_duality

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 3.0]])
LABELS = np.where(Y > 0.6, 1.0, -1.0)
SHARED, LABELLED = TaskData.shared(X, Y), TaskData.shared(X, LABELS)
W = np.array([[1.0, 0.0], [0.0, 1.0]])  # predictions [[1, 0], [0, 2], [1, 1]], norm 2

RNG = np.random.default_rng(0)
SIZES = (25, 40, 15)
XS = [RNG.standard_normal((size, 5)) for size in SIZES]
SCORES = [Xk @ w + 0.5 * RNG.standard_normal(len(Xk)) for Xk, w in zip(XS, RNG.standard_normal((3, 5)), strict=True)]
TASKS = {
    "squared": TaskData.per_task(XS, SCORES),
    "logistic": TaskData.per_task(XS, [np.where(scores > 0.0, 1.0, -1.0) for scores in SCORES]),
}


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compiling is off every clock."""
    L1InfGLM(SHARED, radius=1.0).warm_up()
    L1InfGLM(SHARED, penalty=1.0).warm_up()


def test_objective_by_hand() -> None:
    # residuals [[0, -1], [0.5, -1], [0, 2]]
    assert L1InfGLM(SHARED, radius=2.0, reduction="sum").objective(W) == pytest.approx(0.5 * (0.25 + 6.0))
    assert L1InfGLM(SHARED, penalty=3.0).objective(W) == pytest.approx(0.5 * (0.25 + 6.0) / 3.0 + 3.0 * 2.0)
    margins = LABELS * (X @ W)
    assert L1InfGLM(LABELLED, loss="logistic", radius=2.0).objective(W) == pytest.approx(np.log1p(np.exp(-margins)).sum() / 3.0)


@pytest.mark.parametrize("loss", TASKS)
def test_tasks_of_different_sizes_are_weighed_by_their_means(loss: str) -> None:
    data, coefficients = TASKS[loss], RNG.standard_normal((5, 3))
    expected = 0.0
    for k in range(3):
        Xk, y = data.task(k)
        t = Xk @ coefficients[:, k]
        expected += float(np.mean(0.5 * (y - t) ** 2 if loss == "squared" else np.log1p(np.exp(-y * t))))
    assert L1InfGLM(data, loss=loss, radius=100.0).objective(coefficients) == pytest.approx(expected)


def bound_by_search(problem: L1InfGLM, r: np.ndarray, ends: float) -> float:
    """max_c D(c) over a grid, from the formula of the docstring, with weights and norms spelt out."""
    data, total = TASKS[problem.loss.name], -np.inf
    s = np.concatenate([np.full(size, 1.0 / size if problem.reduction == "mean" else 1.0) for size in SIZES])
    y = data.targets
    a = r if problem.loss.name == "squared" else y * np.clip(r * y, 0.0, s)
    G = np.stack([Xk.T @ part for Xk, part in zip(XS, np.split(a, np.cumsum(SIZES)[:-1]), strict=True)], axis=1)
    norm = np.abs(G).sum(axis=1).max()
    for c in np.linspace(0.0, ends, 4001):
        if problem.penalty is not None and c * norm > problem.penalty:
            break
        if problem.loss.name == "squared":
            value = c * a @ y - 0.5 * c * c * (a * a / s).sum()
        else:
            p = np.clip(c * a * y / s, 1e-300, 1.0)
            if p.max() >= 1.0 and c > 1.0:
                break
            q = np.clip(1.0 - p, 1e-300, 1.0)
            value = -(s * (p * np.log(p) + q * np.log(q))).sum()
        total = max(total, value - (0.0 if problem.radius is None else c * problem.radius * norm))
    return float(total)


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("restriction", [{"radius": 0.4}, {"penalty": "0.3 max"}])
def test_the_bound_is_that_of_the_best_scale(loss: str, reduction: str, restriction: dict[str, Any]) -> None:
    problem = L1InfGLM(TASKS[loss], loss=loss, reduction=reduction, **restriction)
    sizes = np.concatenate([np.full(size, 1.0 / size if reduction == "mean" else 1.0) for size in SIZES])
    r = 0.5 * sizes * TASKS[loss].targets
    bound, searched = problem.dual_bound(problem.zero(), r), bound_by_search(problem, r, 4.0 if loss == "squared" else 2.0)
    assert searched * (1.0 - 1e-12) <= bound <= searched + 1e-3 * abs(searched)
    assert bound > 0.0


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("restriction", [{"radius": 0.8}, {"penalty": 0.05}, {"penalty": "0.2 max"}])
def test_the_bound_is_tight_at_the_optimum(loss: str, restriction: dict[str, Any]) -> None:
    for data in (TASKS[loss], SHARED if loss == "squared" else LABELLED):
        problem = L1InfGLM(data, loss=loss, **restriction)
        record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(1e-8), limits=Limits(seconds=20.0))
        assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_largest_penalty_is_the_smallest_that_gives_zero(loss: str, reduction: str) -> None:
    for share, is_zero in ((1.0 + 1e-9, True), (0.98, False)):
        problem = L1InfGLM(TASKS[loss], loss=loss, penalty=f"{share} max", reduction=reduction)
        certificate = problem.certify(Iterate(problem.zero()))
        assert (certificate.relative_gap <= 1e-9) == is_zero
        step = problem.prox(-problem.value_and_gradient(problem.zero())[1] / problem.lipschitz(), 1.0 / problem.lipschitz())
        assert bool(np.all(step == 0.0)) == is_zero


def test_the_radius_of_the_truth() -> None:
    data = synthetic_l1inf(tasks=4, features=10, examples=12)
    assert L1InfGLM(data, loss="logistic", radius="truth").radius == pytest.approx(norm_l1inf(data.truth["W"]))


def test_measures_count_features_and_held_out_errors() -> None:
    held = TaskData.shared(np.eye(2), np.array([[1.0, 1.0], [-1.0, 1.0]]))
    point = np.array([[2.0, 1e-9], [1.0, -1.0]])
    assert L1InfGLM(LABELLED.with_held_out(held), loss="logistic", radius=9.0).measures(point) == {
        "non-zeros": 3.0, "features used": 2.0, "held-out error": 0.5,
    }  # fmt: skip
    assert L1InfGLM(LABELLED, loss="logistic", radius=9.0).measures(np.zeros((2, 2))) == {"non-zeros": 0.0, "features used": 0.0}
    squared = L1InfGLM(SHARED.with_held_out(held), radius=9.0).measures(point)
    assert squared["held-out error"] == pytest.approx((1.0 + 1.0 + 4.0 + 4.0) / 4.0)


@pytest.mark.parametrize("restriction", [{"radius": 0.0}, {"radius": 1.0}, {"penalty": 0.0}, {"penalty": 0.1}, {"penalty": "0.5 max"}])
@pytest.mark.parametrize(("loss", "targets"), [("squared", np.zeros((3, 2))), ("logistic", np.ones((3, 2)))])
def test_degenerate_targets_have_honest_bounds(loss: str, targets: np.ndarray, restriction: dict[str, Any]) -> None:
    for scale in (1e-8, 0.0, 1e8):
        problem = L1InfGLM(TaskData.shared(scale * X, targets), loss=loss, **restriction)
        check_weak_duality(problem, np.random.default_rng(0))
        if loss == "squared" or (scale == 0.0 and "penalty" not in restriction):
            assert problem.certify(Iterate(problem.zero())).gap == pytest.approx(0.0, abs=1e-12)


def test_csr_designs_give_the_same_numbers() -> None:
    sparse = TaskData.shared(sp.csr_array(X), Y)
    for restriction in ({"radius": 1.0}, {"penalty": 0.2}):
        a, b = L1InfGLM(SHARED, **restriction), L1InfGLM(sparse, **restriction)
        assert a.certify(Iterate(W)) == pytest.approx(b.certify(Iterate(W)))
        assert a.lipschitz() == pytest.approx(b.lipschitz())


def test_a_penalty_bounds_no_set() -> None:
    problem = L1InfGLM(SHARED, penalty=1.0)
    with pytest.raises(NotOfferedError):
        problem.lmo(W)
    assert Capability.LMO in problem.offers


def test_labels_are_converted_and_the_reader_told() -> None:
    with pytest.warns(UserWarning, match="converted"):
        problem = L1InfGLM(TaskData.shared(X, (LABELS + 1.0) / 2.0), loss="logistic", radius=1.0)
    assert problem.objective(W) == L1InfGLM(LABELLED, loss="logistic", radius=1.0).objective(W)
    assert any("converted" in note for note in problem.notes)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "exactly one of radius"),
        ({"radius": 1.0, "penalty": 1.0}, "exactly one of radius"),
        ({"radius": -1.0}, "radius must be finite and at least 0"),
        ({"radius": np.nan}, "radius must be finite"),
        ({"radius": "0.1 max"}, "radius must be a number"),
        ({"radius": "truth"}, "true W"),
        ({"penalty": -1.0}, "penalty must be finite and at least 0"),
        ({"penalty": "0.1"}, "penalty must be a number of at least 0, or a share such as '0.1 max', not '0.1'"),
        ({"penalty": "inf max"}, "a share such as"),
        ({"penalty": "-0.1 max"}, "a share such as"),
        ({"penalty": "truth"}, "a share such as"),
        ({"radius": 1.0, "loss": "hinge"}, "loss must be one of"),
        ({"radius": 1.0, "loss": "logistic"}, "labels must be"),
        ({"radius": 1.0, "reduction": "max"}, "reduction must be one of mean, sum"),
    ],
)
def test_bad_input_is_named(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        L1InfGLM(SHARED, **parameters)
    assert "\n" not in str(raised.value)
