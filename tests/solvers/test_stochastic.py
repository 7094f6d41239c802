"""What solvers that draw examples share: orders and seeds."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from bench_mtl.data import TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent
from bench_mtl.solvers.exponentiated_gradient import ExponentiatedGradient
from bench_mtl.solvers.pegasos import Pegasos
from bench_mtl.solvers.sparse_online import SparseOnline
from bench_mtl.solvers.stochastic.examples import Order
from bench_mtl.solvers.stochastic_gradient import StochasticGradient
from bench_mtl.solvers.stochastic_subgradient import StochasticSubgradient

RNG = np.random.default_rng(0)
DATA = TaskData.shared(RNG.standard_normal((12, 6)), np.where(RNG.random((12, 3)) < 0.5, 1.0, -1.0))
LASSO = L1BallGLM(DATA, radius=1.0, loss="logistic")


@pytest.mark.parametrize("order", ["shuffled", "given", "random"])
def test_order_does_not_depend_on_the_portions(order: str) -> None:
    whole = Order(10, order, 4).next(35)
    one = Order(10, order, 4)
    assert np.array_equal(np.concatenate([one.next(k) for k in (1, 0, 9, 10, 15)]), whole)
    if order != "random":
        assert sorted(whole[:10]) == sorted(whole[10:20]) == list(range(10))


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (SparseOnline, LASSO),
        (StochasticGradient, LASSO),
        (ExponentiatedGradient, LASSO),
        (StochasticSubgradient, L1InfHinge(DATA, radius=0.5)),
        (Pegasos, RidgeHinge(DATA, ridge=0.1)),
        (DualCoordinateAscent, RidgeHinge(DATA, ridge=0.1)),
    ],
)
def test_one_seed_one_run(solver: Any, problem: Any) -> None:
    options = {"batch": 2} if solver is ExponentiatedGradient else {}
    first, again, other = (list(islice(solver(seed=seed, **options).steps(problem), 6))[-1].primal for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
