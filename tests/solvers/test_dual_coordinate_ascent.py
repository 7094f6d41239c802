"""Dual coordinate ascent against coordinate steps in plain NumPy; all layouts, its dual point, resuming, its end, its options."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from solver_data import LAYOUTS

from bench_mtl.core.types import Iterate, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent


def by_hand(X: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """The optimum by cyclic coordinate steps, without shrinking."""
    a, w = np.zeros(len(y)), np.zeros(X.shape[1])
    for _ in range(1_000):
        before = a.copy()
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            a[i] = np.clip(a[i] + (1.0 - label * x @ w) * 2.0 * ridge / (x @ x), 0.0, 1.0 / len(y))
            w = X.T @ (a * y) / (2.0 * ridge)
        if np.array_equal(a, before):
            break
    return w


@pytest.mark.parametrize("ridge", [0.1, 0.5])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_optimum(layout, shrinking, ridge):
    data = LAYOUTS[layout]
    record = run(RidgeHinge(data, ridge=ridge), DualCoordinateAscent(shrinking=shrinking), tolerance=Tolerance(1e-10))
    assert record.status is Status.VERIFIED, record.reason
    for k in range(3):
        Xk, yk = data.task(k)
        right = by_hand(Xk.toarray() if sp.issparse(Xk) else Xk, yk, ridge)
        assert_allclose(record.solution[:, k], right, atol=1e-4 * np.abs(right).max())


def test_the_point_belongs_to_the_dual_point():
    problem = RidgeHinge(LAYOUTS["per task"], ridge=0.1)
    for iterate in islice(DualCoordinateAscent().steps(problem), 1, 30):
        a = iterate.dual * problem.make_forms()[0].fit.targets
        assert np.all(a >= 0.0)
        assert np.all(a <= problem.make_forms()[0].fit.weights)
        assert_allclose(iterate.primal, problem.design.adjoint(iterate.dual) / 0.2, atol=1e-12)


def test_it_goes_on_from_a_dual_point_and_leaves_examples_out():
    problem = RidgeHinge(LAYOUTS["shared"], ridge=0.01)
    *_, last = islice(DualCoordinateAscent().steps(problem), 60)
    assert last.work < last.step  # shrinking
    _, fresh = islice(DualCoordinateAscent().steps(problem), 2)
    _, resumed = islice(DualCoordinateAscent().resume(problem, Iterate(last.primal, last.dual)), 2)
    gaps = [problem.objective(one.primal) - problem.dual_bound(one.primal, one.dual) for one in (resumed, fresh)]
    assert gaps[0] < 0.1 * gaps[1]


def test_it_ends_where_slopes_are_rounding():
    problem = RidgeHinge(LAYOUTS["shared"], ridge=1.0)
    *_, last = islice(DualCoordinateAscent().steps(problem), 400)
    assert last.note.startswith("stalled: ")
    assert problem.objective(last.primal) - problem.dual_bound(last.primal, last.dual) < 1e-12
