"""Newton's method on a simplex: its model step against a generic optimiser, its speed, its starts and edges."""

import numpy as np
import pytest
from scipy.optimize import minimize
from solver_data import proven

from bench_mtl.core.types import Array
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.solvers.simplex_newton import SimplexNewton, model_step
from tests.problems.test_portfolio import market, portfolio


def steps_to(problem: Portfolio, target: float) -> int:
    return proven(problem, SimplexNewton(), target, iterations=1000).samples[-1].step


@pytest.mark.parametrize("seed", range(5))
def test_the_model_step_is_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, curvatures, g = rng.standard_normal((12, 7)), rng.random(12) + 0.1, 3.0 * rng.standard_normal(7)
    w = rng.dirichlet(np.ones(7))
    lower, upper = 0.5 * w * (rng.random(7) < 0.5), w + 0.3 * rng.random(7)
    p = model_step(g, X, curvatures, w, lower, upper)

    def model(q: Array) -> float:
        return float(g @ q + 0.5 * (curvatures * (X @ q) ** 2).sum())

    best = minimize(
        model,
        np.zeros(7),
        jac=lambda q: g + X.T @ (curvatures * (X @ q)),
        bounds=list(zip(lower - w, upper - w, strict=True)),
        constraints={"type": "eq", "fun": lambda q: q.sum(), "jac": lambda q: np.ones(7)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert model(p) <= best.fun + 1e-7
    assert abs(p.sum()) < 1e-14
    assert np.all(w + p >= lower - 1e-15)
    assert np.all(w + p <= upper + 1e-15)


@pytest.mark.parametrize("parameters", [{}, {"upper": 0.1}, {"lower": 0.005, "upper": 0.2}])
@pytest.mark.parametrize(("T", "d"), [(200, 40), (20, 60)])
def test_few_steps_prove_much(parameters: dict[str, float], T: int, d: int) -> None:
    assert steps_to(portfolio(market(T, d, 0.3), **parameters), 1e-10) <= 15


def test_degenerate_markets() -> None:
    steps_to(portfolio(np.ones((5, 4))), 1e-9)
    dominated = market(30, 5)
    dominated[:, 3] = 1.01 * dominated.max(axis=1)
    steps_to(portfolio(dominated), 1e-9)
    steps_to(portfolio(market(6, 3), lower=[0.2, 0.3, 0.5]), 1e-9)  # one feasible point
    steps_to(portfolio(10.0 ** np.random.default_rng(0).uniform(-8, 8, (10, 4))), 1e-7)
