"""Projections against slow independent twins, and their defining properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_mtl.errors import InputError
from bench_mtl.projections import (
    norm_l1inf,
    norm_linf1,
    project_l1_ball,
    project_l1inf_ball,
    project_simplex,
    prox_l1inf,
    soft_threshold,
)

matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-100, 100, allow_subnormal=False))
)
vectors = st.integers(1, 20).flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-100, 100, allow_subnormal=False)))
sizes = st.floats(1e-3, 1e3)


def bisect(function, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    """The root of a decreasing function, in long double."""
    low, high = np.longdouble(low), np.longdouble(high)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def twin_simplex(v: np.ndarray, mass: float) -> np.ndarray:
    v = v.astype(np.longdouble)
    theta = bisect(lambda t: np.maximum(v - t, 0).sum() - mass, float(v.min()) - mass - 1, float(v.max()))
    return np.maximum(v - theta, 0).astype(float)


def twin_l1inf(A: np.ndarray, radius: float) -> np.ndarray:
    """By bisection on theta outside and on every mu_j inside: sum_k max(0, |A_jk| - mu_j) = theta."""
    B = np.abs(A).astype(np.longdouble)
    if B.max(axis=1).sum() <= radius:
        return A

    def maxima(theta: float) -> np.ndarray:
        return np.array(
            [
                0.0 if row.sum() <= theta else bisect(lambda mu, row=row: np.maximum(row - mu, 0).sum() - theta, 0.0, float(row.max()))
                for row in B
            ]
        )

    theta = bisect(lambda t: maxima(t).sum() - radius, 0.0, float(B.sum(axis=1).max()))
    return np.sign(A) * np.minimum(np.abs(A), maxima(theta)[:, None].astype(float))


@given(vectors, sizes)
def test_simplex_agrees_with_its_twin(v: np.ndarray, mass: float) -> None:
    w = project_simplex(v, mass)
    assert w == pytest.approx(twin_simplex(v, mass), abs=1e-11 * (1 + np.abs(v).max() + mass))
    assert w.min() >= 0.0
    assert w.sum() == pytest.approx(mass)


def test_simplex_with_a_large_offset_keeps_its_mass() -> None:
    assert project_simplex(np.array([1e12, 1e12 + 1.0, 1e12 - 1.0]), 0.5).sum() == pytest.approx(0.5)


@given(vectors, sizes)
def test_l1_ball_agrees_with_its_twin(v: np.ndarray, radius: float) -> None:
    expected = v if np.abs(v).sum() <= radius else np.sign(v) * twin_simplex(np.abs(v), radius)
    assert project_l1_ball(v, radius) == pytest.approx(expected, abs=1e-11 * (1 + np.abs(v).max()))


@given(matrices, sizes)
def test_rows_are_projected_one_by_one(A: np.ndarray, radius: float) -> None:
    assert np.array_equal(project_l1_ball(A, radius), np.stack([project_l1_ball(row, radius) for row in A]))
    assert np.array_equal(project_simplex(A, radius), np.stack([project_simplex(row, radius) for row in A]))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_l1inf_ball_agrees_with_its_twin(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    A = scale * rng.standard_normal(tuple(rng.integers(1, 6, size=2)))
    A = np.round(A / scale) * scale if seed % 3 == 0 else A
    radius = max(norm_l1inf(A), scale) * rng.choice([0.001, 0.1, 0.5, 0.9, 1.0, 1.5])
    assert np.abs(project_l1inf_ball(A, radius) - twin_l1inf(A, radius)).max() <= 1e-12 * max(np.abs(A).max(), scale)


@given(matrices, sizes)
def test_l1inf_ball_is_a_projection(A: np.ndarray, radius: float) -> None:
    B = project_l1inf_ball(A, radius)
    assert norm_l1inf(B) <= radius * (1 + 1e-14)
    assert np.all(B * A >= 0)
    assert np.all(np.abs(B) <= np.abs(A))
    assert np.allclose(project_l1inf_ball(B, radius), B, rtol=0, atol=1e-13 * (1 + np.abs(A).max()))
    if norm_l1inf(A) <= radius:
        assert np.array_equal(B, A)
    # The variational inequality <A - B, Z - B> <= 0 at the ball's extreme points is <A - B, B> >= radius ||A - B||_{inf,1}.
    residual = A - B
    assert (
        float((residual * B).sum()) >= radius * norm_linf1(residual) - 1e-9 * (1 + np.abs(A).max() ** 2 * A.size) or norm_l1inf(A) <= radius
    )


@given(matrices, sizes)
def test_prox_l1inf_and_the_dual_ball_make_up_the_whole(A: np.ndarray, weight: float) -> None:
    dual = A - prox_l1inf(A, weight)
    assert norm_linf1(dual) <= weight + 1e-13 * (weight + norm_linf1(A))
    assert np.allclose(dual, project_l1_ball(A, weight))


@given(matrices, sizes)
def test_soft_threshold_is_entrywise(A: np.ndarray, threshold: float) -> None:
    expected = [[np.sign(a) * max(abs(a) - threshold, 0.0) for a in row] for row in A]
    assert soft_threshold(A, threshold) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("function", [project_simplex, project_l1_ball, soft_threshold, project_l1inf_ball, prox_l1inf])
def test_bad_input_is_refused_and_good_input_left_alone(function) -> None:  # type: ignore[no-untyped-def]
    A = np.array([[1.0, -2.0], [3.0, 4.0]])
    before = A.copy()
    result = function(A, 1.0)
    assert np.array_equal(A, before)
    result[...] = 9.0
    assert np.array_equal(A, before), "the result shares memory with the input"
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(InputError, match=r"(NaN|inf) at index \(1, 0\)"):
            function(np.array([[1.0, 2.0], [bad, 1.0]]), 1.0)
        with pytest.raises(InputError, match="must be finite"):
            function(A, bad)
    with pytest.raises(InputError, match="at least 0"):
        function(A, -1.0)
    with pytest.raises(InputError, match="must be a number"):
        function(A, "one")
    with pytest.raises(InputError, match=r"dimension|at least one column|vector or a matrix|real numbers"):
        function(np.array([["a"]]), 1.0)


def test_radius_zero_and_empty_matrices() -> None:
    A = np.array([[1.0, -2.0], [3.0, 4.0]])
    assert not project_l1inf_ball(A, 0.0).any()
    assert not project_l1_ball(A, 0.0).any()
    assert not project_simplex(A, 0.0).any()
    assert np.array_equal(prox_l1inf(A, 0.0), A)
    assert project_l1inf_ball(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert project_l1inf_ball(np.zeros((3, 0)), 1.0).shape == (3, 0)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 2.0])
def test_results_are_feasible_however_far_away_the_input_is(radius: float) -> None:
    A = 1e12 * np.random.default_rng(0).standard_normal((20, 5))
    assert norm_l1inf(project_l1inf_ball(A, radius)) <= radius * (1 + 1e-14)
    assert np.abs(project_l1_ball(A, radius)).sum(axis=1) == pytest.approx(np.full(20, radius), rel=1e-14)


@pytest.mark.parametrize("ratio", [1e-300, 1e-150, 1e-20, 1e-16, 1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_radius_of_any_size_is_met(ratio: float, scale: float) -> None:
    A = scale * np.random.default_rng(0).standard_normal((7, 4))
    radius = ratio * norm_l1inf(A)
    B = project_l1inf_ball(A, radius)
    assert norm_l1inf(B) == pytest.approx(radius, rel=1e-12, abs=1e-305)
    assert np.abs(project_l1_ball(A.ravel(), radius)).sum() == pytest.approx(radius, rel=1e-12, abs=1e-305)
