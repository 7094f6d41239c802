"""What defines the projection onto the l1,inf ball and its proximal operator, on whatever Hypothesis comes up with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import feasible, sum_of_maxima

from bench_mtl.projections import l1inf_projection, norm_l1inf, norm_linf1, project_l1_ball, project_l1inf_ball, prox_l1inf

pytestmark = pytest.mark.numerics

METHODS = st.sampled_from(["newton", "merge"])

#: Ordinary numbers, and few enough values that ties are common.
elements = st.one_of(st.floats(-100, 100), st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 2.0**-40, 1e-150]))
shapes = st.tuples(st.integers(1, 9), st.integers(1, 9))
matrices = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=elements))
pairs = shapes.flatmap(lambda shape: st.tuples(*2 * [arrays(np.float64, shape, elements=elements)]))
sizes = st.one_of(st.floats(1e-3, 1e3), st.floats(0.0, 10.0), st.just(1e-300))


def largest(*arrays: np.ndarray) -> float:
    return max(float(np.abs(A).max()) for A in arrays)


@given(matrices, sizes, METHODS)
@example(np.ones((9, 1)), 1.1125369292536007e-308, "newton")
def test_idempotent_feasible_and_of_the_same_signs(A: np.ndarray, radius: float, method: Any) -> None:
    B = project_l1inf_ball(A, radius, method=method)
    assert feasible(B, radius)
    assert np.array_equal(project_l1inf_ball(B, radius, method=method), B)
    assert np.all((B == 0) | (np.sign(B) == np.sign(A)))
    assert np.all(np.abs(B) <= np.abs(A))
    if sum_of_maxima(A) <= radius * (1 - 1e-15):
        assert np.array_equal(B, A)


@given(pairs, sizes, METHODS)
def test_no_two_points_move_apart(pair: tuple[np.ndarray, np.ndarray], radius: float, method: Any) -> None:
    A, Z = pair
    before = np.linalg.norm(A - Z)
    after = np.linalg.norm(project_l1inf_ball(A, radius, method=method) - project_l1inf_ball(Z, radius, method=method))
    assert after <= before * (1 + 1e-14) + 1e-13 * largest(A, Z)


@given(pairs, sizes, METHODS, st.booleans())
def test_variational_inequality(pair: tuple[np.ndarray, np.ndarray], radius: float, method: Any, nonneg: bool) -> None:
    """<A - B, Z - B> <= 0 for every Z of the set, its corners among them."""
    A, Z = pair
    B = project_l1inf_ball(A, radius, method=method, nonneg=nonneg)
    residual = A - B
    Z = np.maximum(Z, 0.0) if nonneg else Z
    norm = sum_of_maxima(Z)
    Z = Z * (radius / norm) if norm > 1e-280 else np.zeros_like(Z)
    tolerance = 1e-13 * A.size * largest(A) * (radius + largest(A))
    assert np.vdot(residual, Z - B) <= tolerance
    support = np.maximum(residual, 0.0).sum(axis=1).max() if nonneg else norm_linf1(residual)  # of the ball of radius 1
    assert radius * support - np.vdot(residual, B) <= tolerance


@given(matrices, sizes)
@example(np.array([[1e-150, -1.0]]), 1.0)  # what is left of it without the negative entry is of another scale
@example(np.array([[2.3e-308, -8.0]]), 1.0)
@example(np.full((1, 4), 2.22507386e-311), 2.225073858507e-311)
def test_prox_is_optimal_and_makes_up_the_whole_with_the_dual_ball(A: np.ndarray, weight: float) -> None:
    """A - B is in weight times the subdifferential of the norm at B: row sums up to `weight`, met where the row is not zero."""
    B = prox_l1inf(A, weight)
    dual = A - B
    lost = 4.0 * A.shape[1] * 5e-324  # what sums and quotients may lose among the subnormal numbers
    tolerance = 1e-14 * A.shape[1] * (largest(A) + weight) + lost
    assert norm_linf1(dual) <= weight + tolerance
    gaps = weight * np.abs(B).max(axis=1) - (dual * B).sum(axis=1)
    assert np.all(np.abs(gaps) <= tolerance * (largest(A) + weight))
    assert np.abs(dual - np.asarray(project_l1_ball(A, weight))).max() <= 1e-14 * largest(A) + lost
    positive = prox_l1inf(A, weight, nonneg=True)
    assert np.abs(positive - prox_l1inf(np.maximum(A, 0.0), weight)).max() <= 1e-15 * largest(A) + lost
    assert positive.min() >= 0.0


@given(matrices, sizes)
def test_projection_and_prox_are_the_same_family(A: np.ndarray, radius: float) -> None:
    result = l1inf_projection(A, radius)
    if result.maxima.any():
        assert np.abs(prox_l1inf(A, result.theta) - result.matrix).max() <= 1e-13 * largest(A)


@given(matrices, sizes, METHODS, st.randoms(use_true_random=False))
def test_rows_and_columns_may_be_permuted(A: np.ndarray, radius: float, method: Any, random: Any) -> None:
    rows, columns = list(range(A.shape[0])), list(range(A.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    B = project_l1inf_ball(A, radius, method=method)
    permuted = project_l1inf_ball(A[np.ix_(rows, columns)], radius, method=method)
    assert np.abs(permuted - B[np.ix_(rows, columns)]).max() <= 1e-14 * largest(A)


@given(matrices, sizes, st.booleans(), st.floats(0.0, 1e4))
def test_all_ways_lead_to_the_same_point(A: np.ndarray, radius: float, nonneg: bool, theta0: float) -> None:
    B = project_l1inf_ball(A, radius, nonneg=nonneg)
    near = 1e-13 * largest(A)
    assert np.abs(project_l1inf_ball(A, radius, nonneg=nonneg, method="merge") - B).max() <= near
    assert np.abs(project_l1inf_ball(A, radius, nonneg=nonneg, theta0=theta0) - B).max() <= near
    assert np.abs(project_l1inf_ball(sp.csr_array(A), radius, nonneg=nonneg).toarray() - B).max() <= near
    assert np.abs(project_l1inf_ball(-A if not nonneg else A, radius, nonneg=nonneg) - (B if nonneg else -B)).max() <= near
    assert np.abs(project_l1inf_ball(np.maximum(A, 0.0), radius) - project_l1inf_ball(A, radius, nonneg=True)).max() <= near


@given(matrices, st.floats(0.001, 1.0), st.integers(-400, 400))
def test_units_do_not_matter(A: np.ndarray, share: float, exponent: int) -> None:
    A[np.abs(A) < 2.0**-40] = 0.0  # so that nothing becomes subnormal
    radius = share * norm_l1inf(A)
    B = project_l1inf_ball(A, radius)
    scaled = project_l1inf_ball(np.ldexp(A, exponent), float(np.ldexp(radius, exponent)))
    assert np.abs(np.ldexp(scaled, -exponent) - B).max() <= 1e-14 * largest(A)
