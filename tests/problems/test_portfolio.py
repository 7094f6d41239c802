"""The portfolio problem: corners against linear programmes, one objective on and off its set, markets of any size, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from bench_mtl import InputError, TaskData
from bench_mtl.core.types import Array
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.protocols import NotOfferedError
from bench_mtl.problems.portfolio import Portfolio

RNG = np.random.default_rng(0)


def market(T: int, d: int, spread: float = 0.1, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.exp(0.3 * spread * rng.standard_normal(d) + spread * rng.standard_normal((T, d)))


def portfolio(X: Array, **parameters: object) -> Portfolio:
    return Portfolio(TaskData.shared(X, np.ones(len(X))), **parameters)


@pytest.mark.parametrize("seed", range(5))
def test_corners_are_those_of_a_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 7
    lower = rng.random(d) * 0.1
    upper = lower + rng.random(d) * 0.4
    upper[0] += max(0.0, 1.0 - upper.sum())
    problem = portfolio(market(3, d), lower=lower, upper=upper)
    direction = rng.standard_normal(d)
    direction[2] = direction[4]  # a tie
    corner = problem.lmo(direction[:, None])[:, 0]
    best = linprog(direction, A_eq=np.ones((1, d)), b_eq=[1.0], bounds=list(zip(lower, np.minimum(upper, 1.0), strict=True))).fun
    assert np.isclose(direction @ corner, best, rtol=1e-12)
    assert problem.infeasibility(corner[:, None]) == 0.0


def test_nothing_changes_on_the_feasible_set() -> None:
    for parameters in ({}, {"upper": 0.3}, {"lower": 0.02, "upper": 0.5}):
        problem = portfolio(market(20, 8, 0.5), **parameters)
        for _ in range(20):
            w = problem.repair(RNG.standard_normal((8, 1)))
            value, gradient = problem.value_and_gradient(w)
            assert np.isclose(value, problem.objective(w), rtol=1e-12)
            plain = -problem.design.adjoint(1.0 / problem.design.forward(w))
            assert np.allclose(gradient - gradient.mean(), plain - plain.mean(), rtol=1e-9, atol=1e-9)  # on the plane sum w = 1
        corner = problem.lmo(RNG.standard_normal((8, 1)))
        assert np.isclose(problem.smooth_value(corner), problem.objective(corner), rtol=1e-12)


def test_the_bound_is_no_worse_than_that_of_the_notes() -> None:
    X = market(12, 6, 0.4)
    problem = portfolio(X)
    for _ in range(10):
        w = problem.repair(RNG.standard_normal((6, 1)))
        gains = (X / (X @ w)).sum(axis=0)
        assert problem.dual_bound(w, None) >= problem.objective(w) - (gains.max() - 12) - 1e-12


def test_relatives_of_all_sizes() -> None:
    X = 10.0 ** RNG.uniform(-8, 8, (6, 4))
    problem = portfolio(X)
    for w in (np.eye(4)[:, :1], np.full((4, 1), 0.25), problem.lmo(X[:1].T)):
        value, gradient = problem.value_and_gradient(w)
        assert np.isclose(value, problem.objective(w), rtol=1e-12)
        assert np.isfinite(gradient).all()
        assert problem.dual_bound(w, None) <= value + 1e-9
    scaled = portfolio(X * 10.0 ** RNG.uniform(-8, 8, (6, 1)))  # which changes the objective by a constant
    assert np.isclose(scaled.lipschitz(), problem.lipschitz(), rtol=1e-6)


def test_start_and_scale() -> None:
    problem = portfolio(np.ones((5, 4)))
    assert np.allclose(problem.start_point(), 0.25)
    assert problem.objective(problem.start_point()) == 0.0
    assert problem.scale() == 5.0
    boxed = portfolio(np.ones((5, 4)), lower=[0.4, 0.0, 0.0, 0.0], upper=[0.5, 0.1, 1.0, 1.0])
    assert np.allclose(boxed.start_point()[:, 0], [0.4, 0.1, 0.25, 0.25])


def test_measures() -> None:
    X, later = market(10, 3), market(4, 3, seed=9)
    data = TaskData.shared(X, np.ones(10))
    w = np.array([[0.5], [1e-12], [0.5 - 1e-12]])
    assert Portfolio(data).measures(w) == {"non-zeros": 2.0}
    found = Portfolio(replace(data, held_out=TaskData.shared(later, np.zeros(4)))).measures(w)
    assert np.isclose(found["held-out log-wealth"], np.log(later @ w).sum())


def test_bounds_that_do_not_bind_leave_the_simplex() -> None:
    assert portfolio(market(4, 3), lower=0.0, upper=2.0).form(SimplexForm).mass == 1.0
    with pytest.raises(NotOfferedError, match="portfolio' has no SimplexForm: it has CurvedForm"):
        portfolio(market(4, 3), upper=0.5).form(SimplexForm)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"upper": 0.2}, "upper add up to 0.6"),
        ({"lower": 0.4}, "lower add up to 1.2"),
        ({"lower": 1.5}, "lower"),
        ({"lower": 0.3, "upper": [0.2, 1.0, 1.0]}, "exceed upper, but does for asset 0"),
        ({"lower": -0.1}, "lower must be finite and at least 0"),
        ({"lower": [0.0, -0.1, 0.0]}, "asset 1"),
        ({"upper": [1.0, 1.0]}, "one for each of 3 assets"),
        ({"upper": [1.0, np.nan, 1.0]}, "NaN"),
        ({"upper": "many"}, "upper"),
    ],
)
def test_bounds_are_refused(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        portfolio(market(5, 3), **parameters)


def test_data_are_refused() -> None:
    X, ones = market(5, 3), np.ones(5)
    bad = X.copy()
    bad[3, 1] = 0.0
    whole = TaskData.shared(X, ones)
    for data, words in (
        (TaskData.shared(bad, ones), "asset 1 in period 3"),
        (replace(whole, held_out=TaskData.shared(bad, ones)), "held-out"),
        (TaskData.shared(sp.csr_array(X), ones), "dense"),
        (TaskData.shared(X, np.ones((5, 2))), "one task"),
        (TaskData.per_task([X], [ones]), "shared"),
        (replace(whole, held_out=TaskData.shared(X[:, :2], ones)), "must have 3 assets, but has 2"),
    ):
        with pytest.raises(InputError, match=words):
            Portfolio(data)
