"""`ADMM` on losses of scores of classes: its steps against slow twins, awkward data, its options."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Record, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.admm.blocks import HingeBlock, Setting, block_of
from bench_mtl.solvers.admm.group import Rule, group_steps
from bench_mtl.validation.conformance import check_iterates, check_resumes


def boosting(n: int = 30, J: int = 8, K: int = 3, *, seed: int = 0, scale: float = 1.0, **parameters: Any) -> GroupBoosting:
    """Random signs, with a learner twice and one that is constant."""
    rng = np.random.default_rng(seed)
    H = np.where(rng.random((n, J)) < 0.5, 1.0, -1.0)
    y = (H @ rng.exponential(size=(J, K)) + rng.standard_normal((n, K))).argmax(axis=1)
    H[:, -1], H[:, -2] = 1.0, H[:, 0]
    return GroupBoosting(_data(scale * H, y, K), **{"penalty": "0.1 max", **parameters})


def _data(H: Any, classes: Any, K: int) -> TaskData:
    return TaskData.shared(H, np.where(np.arange(K) == np.asarray(classes)[:, None], 1.0, -1.0), name="test")


def solved(problem: GroupBoosting, solver: ADMM, target: float = 1e-5) -> Record:
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=20.0, iterations=20_000))
    assert record.status is Status.VERIFIED, record.reason
    return record


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])
def test_smooth_step_against_a_slow_twin(loss: str) -> None:
    problem = boosting(loss=loss)
    fit, rng = problem.form(GroupForm).fit, np.random.default_rng(1)
    target, shape = 0.3 * rng.standard_normal(problem.point_shape), problem.point_shape
    setting = Setting(0.2, 0.0, 1.0, 1e-9)
    block = block_of(fit, 0.7)
    state = block.start(problem.zero(), setting)
    for _ in range(10):
        state = block.step(state, target, setting)

    def value(w: Any) -> float:
        W = w.reshape(shape)
        return 0.7 * fit.value(problem.design.forward(W)) + 0.1 * float(((W - target) ** 2).sum())

    twin = minimize(
        value, np.zeros(target.size), bounds=[(0.0, None)] * target.size, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500}
    )
    assert value(state.weights.ravel()) <= twin.fun + 1e-9
    assert np.allclose(state.weights.ravel(), twin.x, atol=2e-4)
    assert np.allclose(state.dual, 0.7 * fit.duals(problem.design.forward(state.weights)), atol=1e-12)


@pytest.mark.parametrize("J", [8, 50])
def test_hinge_is_the_textbook_method(J: int) -> None:
    problem, lam, beta, share = boosting(20, J, loss="hinge"), 0.3, 0.05, 1.5
    form = problem.form(GroupForm)
    H, fit = np.asarray(form.fit.design.block(0)), form.fit
    block = block_of(fit, 1.0)
    assert isinstance(block, HingeBlock)
    setting = Setting(lam, beta, share, 0.0)
    state, target = block.start(problem.zero(), setting), np.random.default_rng(1).standard_normal(problem.point_shape)
    for _ in range(4):
        S, Y = state.scores, state.multipliers
        assert S is not None
        assert Y is not None
        W = np.linalg.solve(beta * H.T @ H + lam * np.eye(J), beta * H.T @ (S - Y) + lam * target)
        ahead = share * H @ W + (1.0 - share) * S + Y
        new, dual = fit.prox(ahead, 1.0 / beta)  # type: ignore[attr-defined]
        state = block.step(state, target, setting)
        assert np.allclose(state.weights, W, atol=1e-10)
        assert np.allclose(state.scores, new, atol=1e-10)
        assert np.allclose(state.multipliers, ahead - new, atol=1e-10)
        assert np.allclose(state.dual, dual, atol=1e-10)


CASES: dict[str, Any] = {
    "fewer examples than classes": lambda loss, norm: boosting(4, 6, 6, loss=loss, norm=norm),
    "more learners than examples": lambda loss, norm: boosting(12, 40, loss=loss, norm=norm),
    "two classes": lambda loss, norm: boosting(20, 6, 2, loss=loss, norm=norm),
    "one learner": lambda loss, norm: GroupBoosting(_data([[1.0], [-1.0], [1.0]], [0, 1, 1], 2), penalty=0.01, loss=loss, norm=norm),
    "all learners zero": lambda loss, norm: GroupBoosting(_data(np.zeros((4, 2)), [0, 1, 2, 0], 3), penalty=0.01, loss=loss, norm=norm),
    "a class without examples": lambda loss, norm: GroupBoosting(
        _data(np.eye(4)[:, :3], [0, 1, 1, 0], 4), penalty=0.01, loss=loss, norm=norm
    ),
    "sparse": lambda loss, norm: GroupBoosting(
        _data(sp.random_array((25, 10), density=0.3, rng=np.random.default_rng(0), format="csr"), np.arange(25) % 3, 3),
        penalty="0.2 max", loss=loss, norm=norm,
    ),
    "tiny data": lambda loss, norm: boosting(scale=1e-8, loss=loss, norm=norm),
    "huge data": lambda loss, norm: boosting(scale=1e8, loss=loss, norm=norm),
}  # fmt: skip


#: Every case with the hinge, whose steps are others, and with one of the smooth losses, in turn; the rest is slow.
SMOOTH = ("logistic", "squared_hinge", "exponential")
PAIRS = [
    pytest.param(name, loss, marks=[] if loss in ("hinge", SMOOTH[i % 3]) else pytest.mark.slow)
    for i, name in enumerate(CASES)
    for loss in (*SMOOTH, "hinge")
]


@pytest.mark.parametrize(("name", "loss"), PAIRS)
def test_awkward_data(name: str, loss: str) -> None:
    norm = {"logistic": "l12", "squared_hinge": "l1inf", "exponential": "l1", "hinge": "l12"}[loss]
    solved(CASES[name](loss, norm), ADMM())


@pytest.mark.parametrize("loss", [*(pytest.param(loss, marks=pytest.mark.slow) for loss in SMOOTH[:2]), "exponential", "hinge"])
def test_no_penalty(loss: str) -> None:
    """Nothing can be proven then, for a dual point must be feasible to the last bit: CVXPY says what the optimum is."""
    problem = boosting(60, 3, 4, loss=loss, penalty=0.0)
    optimum = float(problem.to_cvxpy().problem.solve(solver="CLARABEL"))
    record = run(problem, ADMM(), tolerance=Tolerance(1e-9), limits=Limits(iterations=400))
    assert record.best is not None
    assert optimum - 1e-7 <= record.best.primal <= optimum + 1e-6


@pytest.mark.parametrize("norm", ["l12", "l1inf", "l1"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential", "hinge"])
def test_a_penalty_that_leaves_nothing_is_proven_at_the_start(loss: str, norm: str) -> None:
    problem = boosting(loss=loss, norm=norm, penalty="1.0 max")
    record = solved(problem, ADMM(), 1e-12)
    assert record.samples[-1].step == 0
    for iterate in islice(ADMM().steps(problem), 4):
        assert problem.certify(iterate).relative_gap <= (1e-12 if loss != "hinge" else 1.0)


def test_ends_by_itself_at_small_residuals() -> None:
    for loss in ("logistic", "hinge"):
        problem = boosting(loss=loss)
        gaps = []
        for tolerance in (1e-2, 1e-5):
            *_, last = islice(ADMM(residual_tolerance=tolerance).steps(problem), 5000)
            assert 1 < last.step < 4000
            gaps.append(problem.certify(last).relative_gap)
        assert gaps[1] < 1e-3 < gaps[0] + 1e-3


def test_goes_on_from_a_dual_point() -> None:
    problem = boosting(loss="hinge")
    record = solved(problem, ADMM(), 1e-6)
    assert record.solution is not None
    first = next(ADMM().resume(problem, Iterate(record.solution, record.dual)))
    assert problem.certify(first).relative_gap <= 1.1e-6


def test_restricted_forms_take_the_same_steps() -> None:
    problem = boosting()
    rows = np.array([1, 3, 4])
    data = _data(np.asarray(problem.design.block(0))[:, rows], problem.form(GroupForm).fit.classes, 3)
    other = GroupBoosting(data, penalty=problem.penalty)
    rule = Rule(1.5, None, True, None)
    restricted = group_steps(problem.form(GroupForm).restricted(rows), np.zeros((3, 3)), rule)
    steps = zip(restricted, ADMM(relaxation=1.5).steps(other), strict=False)
    for a, b in islice(steps, 5):
        assert np.array_equal(a.primal, b.primal)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_conformance_with_other_options(loss: str) -> None:
    solver = ADMM(relaxation=1.0, penalty=0.3, balance=False)
    problem = boosting(loss=loss)
    check_iterates(problem, solver)
    check_resumes(problem, solver)


def test_options_are_refused_by_name() -> None:
    for options in ({"residual_tolerance": 0.0}, {"residual_tolerance": -1.0}, {"relaxation": 2.0}, {"penalty": 0.0}, {"balance": 1}):
        with pytest.raises(InputError, match=next(iter(options))):
            ADMM(**options)  # type: ignore[arg-type]


def test_says_what_it_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.admm.group.factorisable", lambda design: False)
    assert "admm factorises" in str(ADMM().incompatibility(boosting(loss="hinge")))
    assert ADMM().incompatibility(boosting()) is None
