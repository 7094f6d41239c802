"""Dual coordinate ascent: its dual point, what it goes on from, its end."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.testing import assert_allclose
from solver_data import LAYOUTS

from bench_mtl.core.types import Iterate
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent


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
