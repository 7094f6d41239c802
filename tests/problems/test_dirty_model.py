"""The dirty model: values by hand, the dual constraints, which part vanishes when, edge cases, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Record, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.dirty_model import DirtyModel
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.validation.conformance import check_weak_duality

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 3.0]])
LABELS = np.where(Y > 0.6, 1.0, -1.0)
SHARED, LABELLED = TaskData.shared(X, Y), TaskData.shared(X, LABELS)

RNG = np.random.default_rng(0)
XS = [RNG.standard_normal((size, 8)) for size in (25, 40, 15)]
TRUE = np.where(np.arange(8)[:, None] < 2, 1.0, 0.0) * RNG.standard_normal((8, 3))
TRUE[5, 1] = 2.0
SCORES = [Xk @ w + 0.3 * RNG.standard_normal(len(Xk)) for Xk, w in zip(XS, TRUE.T, strict=True)]
TASKS = {
    "squared": TaskData.per_task(XS, SCORES),
    "logistic": TaskData.per_task(XS, [np.where(scores > 0.0, 1.0, -1.0) for scores in SCORES]),
}


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compiling is off every clock."""
    DirtyModel(SHARED, row_penalty=1.0, entry_penalty=1.0).warm_up()


def solved(problem: Any, gap: float = 1e-8) -> Record:
    record = run(problem, AcceleratedGradient(restart="gradient"), tolerance=Tolerance(gap), limits=Limits(seconds=20.0))
    assert record.status is Status.VERIFIED, record.reason
    return record


def test_objective_by_hand() -> None:
    B, S = np.array([[1.0, -0.5], [0.0, 0.0]]), np.array([[0.0, 0.5], [0.0, 1.0]])
    # B + S = I: residuals [[0, -1], [0.5, -1], [0, 2]]
    problem = DirtyModel(SHARED, row_penalty=3.0, entry_penalty=2.0, reduction="sum")
    assert problem.objective(np.stack([B, S])) == pytest.approx(0.5 * 6.25 + 3.0 * 1.0 + 2.0 * 1.5)
    problem = DirtyModel(LABELLED, row_penalty=3.0, entry_penalty=2.0, loss="logistic")
    assert problem.objective(np.stack([B, S])) == pytest.approx(np.log1p(np.exp(-LABELS * (X @ (B + S)))).sum() / 3.0 + 3.0 + 3.0)


def test_dual_bound_by_hand() -> None:
    r = np.zeros((3, 2))
    r[0] = 1.0, -1.0  # G = [[1, -1], [0, 0]]: row sum 2, largest entry 1; <r, y> = 2, ||r||^2 = 2, so D(c) = 2 c - c^2 and c = 1 is best
    zero = np.zeros((2, 2, 2))
    for row_penalty, entry_penalty, c in (
        (2.0, 1.0, 1.0),
        (9.0, 9.0, 1.0),
        (1.0, 9.0, 0.5),
        (9.0, 0.25, 0.25),
        (1.0, 0.25, 0.25),
        (0.0, 1.0, 0.0),
    ):
        problem = DirtyModel(SHARED, row_penalty=row_penalty, entry_penalty=entry_penalty, reduction="sum")
        assert problem.dual_bound(zero, 7.0 * r) == pytest.approx(2.0 * c - c * c), (row_penalty, entry_penalty)


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_bound_is_tight_at_the_optimum(loss: str, reduction: str) -> None:
    problem = DirtyModel(TASKS[loss], row_penalty="0.1 max", entry_penalty="0.1 max", loss=loss, reduction=reduction)
    solution = solved(problem).solution
    assert solution is not None
    assert solution[0].any()
    assert solution[1].any()


@pytest.mark.parametrize("loss", TASKS)
def test_one_part_alone_is_a_model_of_its_own(loss: str) -> None:
    """Cheap rows leave no S, cheap entries no B: then the optima are those of the l1,inf and the l1 penalty alone."""
    data = TASKS[loss]
    rows = DirtyModel(data, row_penalty=0.1, entry_penalty=0.1, loss=loss)
    reference = solved(L1InfGLM(data, penalty=0.1, loss=loss)).best
    found = solved(rows).best
    assert found is not None
    assert reference is not None
    assert found.primal == pytest.approx(reference.primal, rel=1e-7)
    reduction = "sum" if loss == "squared" else "mean"  # as L1BallGLM has it
    entries = DirtyModel(data, row_penalty=0.3, entry_penalty=0.1, loss=loss, reduction=reduction)
    reference, found = solved(L1BallGLM(data, penalty=0.1, loss=loss)).best, solved(entries).best
    assert found is not None
    assert reference is not None
    assert found.primal == pytest.approx(reference.primal, rel=1e-7)


@pytest.mark.parametrize("loss", TASKS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_shares_of_the_weights_that_give_zero(loss: str, reduction: str) -> None:
    for b, s, is_zero in ((1.0, 1.0, True), (0.98, 5.0, False), (5.0, 0.98, False)):
        problem = DirtyModel(TASKS[loss], row_penalty=f"{b + 1e-9} max", entry_penalty=f"{s + 1e-9} max", loss=loss, reduction=reduction)
        certificate = problem.certify(Iterate(problem.zero()))
        assert (certificate.relative_gap <= 1e-9) == is_zero


def test_measures_by_part() -> None:
    held = TaskData.shared(np.eye(2), np.array([[1.0, 1.0], [-1.0, 1.0]]))
    problem = DirtyModel(LABELLED.with_held_out(held), row_penalty=1.0, entry_penalty=1.0, loss="logistic")
    B, S = np.array([[2.0, 1e-9], [0.0, 0.0]]), np.array([[1e-9, 0.0], [1e-3, -1e-3]])
    assert problem.measures(np.stack([B, S])) == {"rows of B": 1.0, "non-zeros of S": 2.0, "features used": 2.0, "held-out error": 0.5}
    assert set(problem.measures(problem.zero()).values()) == {0.0, 1.0}
    assert problem.parts == ("B", "S")


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.1, 0.0), (0.1, 0.2), ("0.5 max", "0.5 max")])
@pytest.mark.parametrize(("loss", "targets"), [("squared", np.zeros((3, 2))), ("logistic", np.ones((3, 2)))])
def test_degenerate_targets_have_honest_bounds(loss: str, targets: np.ndarray, weights: tuple[Any, Any]) -> None:
    for scale in (1e-8, 0.0, 1e8):
        problem = DirtyModel(TaskData.shared(scale * X, targets), row_penalty=weights[0], entry_penalty=weights[1], loss=loss)
        check_weak_duality(problem, np.random.default_rng(0))
        if loss == "squared" or scale == 0.0:
            assert problem.certify(Iterate(problem.zero())).gap == pytest.approx(0.0, abs=1e-12)


def test_csr_designs_give_the_same_numbers() -> None:
    a, b = (DirtyModel(data, row_penalty=0.3, entry_penalty=0.2) for data in (SHARED, TaskData.shared(sp.csr_array(X), Y)))
    point = RNG.standard_normal((2, 2, 2))
    assert a.certify(Iterate(point)) == pytest.approx(b.certify(Iterate(point)))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"row_penalty": -1.0}, "row_penalty must be finite and at least 0"),
        ({"entry_penalty": np.inf}, "entry_penalty must be finite"),
        ({"row_penalty": "0.1"}, "row_penalty must be a number of at least 0, or a share such as '0.1 max', not '0.1'"),
        ({"entry_penalty": "max"}, "entry_penalty must be a number of at least 0, or a share"),
        ({"entry_penalty": None}, "entry_penalty must be a number"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": "logistic"}, "labels must be"),
        ({"reduction": 1}, "reduction must be one of mean, sum"),
    ],
)
def test_bad_input_is_named(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        DirtyModel(SHARED, **{"row_penalty": 1.0, "entry_penalty": 1.0, **parameters})
    assert "\n" not in str(raised.value)
