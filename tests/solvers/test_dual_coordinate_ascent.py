"""Dual coordinate ascent beside a slow twin that leaves no example out, and what it claims of its gap."""

import math
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from solver_data import LAYOUTS, proven

from bench_mtl.core.types import Array, Iterate
from bench_mtl.data import TaskData
from bench_mtl.estimators.ridge_and_svm import _VectorMachines
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent

AIM = 1e-5


def machines(data: TaskData, loss: str, strength: float = 0.1) -> Any:
    return RidgeHinge(data, ridge=strength) if loss == "hinge" else _VectorMachines(data, C=strength, loss=loss)


def many(loss: str) -> Any:
    """Examples of which most are far from the margin, so that they are left out."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 10))
    labels = np.where(X @ rng.standard_normal((10, 2)) + 0.5 * rng.standard_normal((300, 2)) > 0.0, 1.0, -1.0)
    return machines(TaskData.shared(X, labels), loss, 0.01 if loss == "hinge" else 1.0)


def by_full_passes(problem: Any) -> Array:
    """Return the coefficients after passes over all examples in their order, up to rounding."""
    fit, (ridge, _) = problem.fit, problem.regulariser.strengths
    W = np.zeros(problem.point_shape)
    for k in range(problem.design.n_tasks):
        X = problem.design.block(k)
        X = X.toarray() if problem.design.is_sparse else X
        y, s = (problem.design.task_outputs(each, k) for each in (fit.targets, fit.weights))
        softness, uppers = (0.0 * s, s) if fit.loss.name == "hinge" else (0.5 / s, np.full_like(s, np.inf))
        a, w, change = np.zeros(len(y)), W[:, k], math.inf
        while change > 1e-13:
            change = 0.0
            for x, label, i in zip(X, y, range(len(y)), strict=True):
                slope = 1.0 - label * (x @ w) - softness[i] * a[i]
                square = (x @ x) / ridge + softness[i]
                after = uppers[i] if square == 0.0 else np.clip(a[i] + slope / square, 0.0, uppers[i])
                w += (after - a[i]) * label / ridge * x
                change, a[i] = max(change, abs(after - a[i]) * square), after
    return W


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_optimum_is_that_of_passes_over_all_examples(layout: str, loss: str) -> None:
    problem = machines(LAYOUTS[layout], loss)
    record = proven(problem, DualCoordinateAscent(), 1e-9)
    assert record.best.primal == pytest.approx(problem.objective(by_full_passes(problem)), rel=2e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_claim_is_the_gap_over_all_examples_those_left_out_included(loss: str) -> None:
    problem = many(loss)
    stepper: Any = DualCoordinateAscent().aimed_at(AIM).stepper(problem)
    now = stepper.start(Iterate(problem.zero()))
    while stepper.iterate(now).claim > AIM:
        now = stepper.step(now)
    last = stepper.iterate(now)
    assert (now._state.counts < 200).all(), "no example was left out"
    assert last.claim == pytest.approx(problem.certify(last).relative_gap, rel=1e-6, abs=1e-6 * AIM)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_examples_that_were_left_out_wrongly_come_back(loss: str) -> None:
    problem = many(loss)
    stepper: Any = DualCoordinateAscent().aimed_at(AIM).stepper(problem)
    now = stepper.start(Iterate(problem.zero()))
    now = stepper.step(now)
    now._state.counts[:] = 5
    for _ in range(1000):
        now = stepper.step(now)
        last = stepper.iterate(now)
        if last.claim <= AIM:
            break
    assert problem.certify(last).relative_gap <= AIM * (1.0 + 1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_face_is_ascended_to_where_its_slopes_vanish(loss: str) -> None:
    """Variables that meet a bound stay there; the others solve a system of linear equations."""
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((12, 20)), np.where(rng.standard_normal(12) > 0.0, 1.0, -1.0)
    stepper: Any = machines(TaskData.shared(X, y[:, None]), loss, 0.5 if loss == "hinge" else 1.0)
    stepper = DualCoordinateAscent().stepper(stepper)
    stepper.start(Iterate(np.zeros((20, 1))))
    rows, boxes, state, kernels = stepper._rows, stepper._boxes, stepper._state, stepper._kernels
    state.a[:] = 0.5 * np.minimum(boxes.uppers, 0.1)
    kernels.sum_coefficients(rows, boxes, state, 0)
    signed = y[:, None] * X
    Q, heights = boxes.shrink * signed @ signed.T + np.diag(boxes.softness), []
    for _ in range(30):
        heights.append(state.a.sum() - 0.5 * state.a @ Q @ state.a)
        visited, steps = kernels.ascend_face(rows, boxes, state, 0, 15)
        assert 0 <= visited <= 12 * steps <= 12 * 15
    assert all(after >= before - 1e-14 for before, after in pairwise(heights))
    is_free = (state.a > 0.0) & (state.a < boxes.uppers)
    assert 0 < is_free.sum() < (12 if loss == "hinge" else 13)
    at_bounds = np.where(is_free, 0.0, state.a)
    solved = np.linalg.solve(Q[np.ix_(is_free, is_free)], (1.0 - Q @ at_bounds)[is_free])
    np.testing.assert_allclose(state.a[is_free], solved, rtol=1e-9)
    np.testing.assert_allclose(state.V[0], boxes.shrink * state.a @ signed, rtol=1e-10, atol=1e-14)


def test_a_run_goes_on_after_a_claim_and_from_a_dual_point() -> None:
    problem = many("hinge")
    claims = [each.claim for each in islice(DualCoordinateAscent().aimed_at(AIM).steps(problem), 300)]
    promised = [claim for claim in claims if claim is not None and math.isfinite(claim)]
    assert len(promised) > 2
    # The larger gap of both tasks halves; the other one stays where it is below half of that already.
    assert all(later <= 0.7 * claim for claim, later in pairwise(promised[:5]))
    record = proven(problem, DualCoordinateAscent(), AIM)
    first = next(DualCoordinateAscent().aimed_at(AIM).resume(problem, Iterate(record.solution, record.dual)))
    assert first.claim <= AIM * (1.0 + 1e-6)


def test_a_dual_point_alone_states_the_gap_of_the_point_beside_it() -> None:
    draw = np.random.default_rng(0)
    problem = RidgeHinge(TaskData.shared(draw.standard_normal((80, 5)), np.sign(draw.standard_normal((80, 2)))), ridge=0.1)
    good = proven(problem, DualCoordinateAscent(), 1e-6)
    for point in (problem.zero(), good.solution):
        first = next(iter(DualCoordinateAscent().aimed_at(1e-5).resume(problem, Iterate(point, good.dual))))
        assert first.claim == pytest.approx(problem.certify(first).relative_gap, rel=1e-6, abs=1e-9)
