"""The l1,2 ball and its proximal operator against their twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import FLOAT32, U, norms

from bench_mtl.core.errors import InputError
from bench_mtl.projections.l2_ball import project_l2_ball
from bench_mtl.projections.l12_ball import norm_l12, project_l12_ball, prox_l12
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics

matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.one_of(st.floats(-100, 100), st.sampled_from([0.0, 1.0, 1e-160])))
)
SHAPES = [(1, 1), (3, 2), (50, 10), (6, 600), (700, 3)]


@pytest.mark.parametrize("dtype", [np.float64, FLOAT32])
@pytest.mark.parametrize("shape", SHAPES)
def test_agree_with_their_twins(shape: tuple[int, int], dtype: type) -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-150, 1.0, 1e150, 1e300) if dtype == np.float64 else (1e-38, 1.0, 1e36):
        A = (scale * rng.standard_normal(shape)).astype(dtype)
        norm, size = float(norms(A, 1).sum()), float(np.abs(A).max())
        assert norm_l12(A) == pytest.approx(norm, rel=1e-14)
        for ratio in (1e-3, 0.3, 0.99, 1.0, 1.5):
            radius = ratio * norm
            tolerance = 8 * np.finfo(dtype).eps * size + 2 * np.finfo(dtype).smallest_subnormal
            weight = ratio * float(norms(A, 1).max())
            shrunk = slow.prox_l12(A, weight)
            for given_array in (A, np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2]):
                B = project_l12_ball(given_array, radius)
                assert B.dtype == dtype
                assert np.abs(B - slow.l12_ball(A, radius)).max() <= tolerance
                assert norms(B, 1).sum() <= np.longdouble(radius) * (1 + 16 * U)
                assert np.array_equal(project_l12_ball(B, radius), B)
                assert np.abs(prox_l12(given_array, weight) - shrunk).max() <= tolerance


@given(matrices, st.floats(0.0, 300.0))
def test_prox_and_the_dual_ball_make_up_the_whole(A: np.ndarray, weight: float) -> None:
    assert np.abs(prox_l12(A, weight) + project_l2_ball(A, weight, axis=1) - A).max() <= 1e-13


@given(matrices, st.floats(0.0, 300.0))
def test_variational_inequality(A: np.ndarray, radius: float) -> None:
    B = project_l12_ball(A, radius)
    residual = A - B
    # <A - B, Z - B> over the ball is largest at radius ||A - B||_{inf,2}
    assert radius * float(norms(residual, 1).max()) - float((residual * B).sum()) <= 1e-9 or np.array_equal(A, B)


def test_out_in_place_empty_and_zero() -> None:
    A = np.random.default_rng(0).standard_normal((40, 5))
    for function in (project_l12_ball, prox_l12):
        expected = function(A, 1.3)
        out = np.empty_like(A)
        assert function(A, 1.3, out=out) is out
        assert np.array_equal(out, expected)
        B = A.copy()
        assert np.array_equal(function(B, 1.3, out=B), expected)
        assert function(np.zeros((0, 3)), 1.0).shape == (0, 3)
        assert not function(np.zeros((4, 3)), 1.0).any()
    assert not project_l12_ball(A, 0.0).any()
    assert np.array_equal(prox_l12(A, 0.0), A)
    assert norm_l12(np.zeros((0, 3))) == 0.0


@pytest.mark.parametrize("function", [project_l12_ball, prox_l12])
def test_bad_input_is_refused_by_name(function) -> None:  # type: ignore[no-untyped-def]
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"A has (NaN|inf) at index \(1, 0\)"):
            function(np.array([[1.0, 2.0], [bad, 1.0]]), 1.0)
        with pytest.raises(InputError, match="must be finite"):
            function(A, bad)
    with pytest.raises(InputError, match="at least 0"):
        function(A, -1.0)
    with pytest.raises(InputError, match="dimension"):
        function(A[0], 1.0)
    with pytest.raises(InputError, match="A has NaN"):
        norm_l12([[np.nan]])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("largest", [1e-290, 1e-150, 1.0, 1e200, 1.7e308])
def test_every_row_has_its_own_scale(largest: float, order: str) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 3, 700):
        for _ in range(5):
            scales = np.exp(rng.uniform(-740, np.log(largest), 9))
            scales[:3] = largest, 0.0, largest / 100
            A = np.array(scales[:, None] * rng.uniform(-1, 1, (9, length)), order=order)
            sizes = norms(A, 1)
            for radius in (1e-320, 1e-300, 1e-200, 1.0, 1e200, *(float(min(share * sizes.sum(), 1.79e308)) for share in (0.3, 0.999, 1.5))):
                B = project_l12_ball(A, radius)
                assert norms(B, 1).sum() <= np.longdouble(radius) * (1 + 16 * U)
                expected = slow.l12_ball(A, radius)
                assert np.all(np.abs(B - expected) <= 1e-14 * min(radius, largest) + np.longdouble(1e-322))
                assert np.array_equal(project_l12_ball(B, radius), B)
                shrunk = slow.prox_l12(A, radius)
                size = np.abs(A).max(axis=1, keepdims=True)
                assert np.all(np.abs(prox_l12(A, radius) - shrunk) <= 1e-14 * size + np.longdouble(1e-323))
            if sizes.sum() < 1e308:
                assert norm_l12(A) == pytest.approx(float(sizes.sum()), rel=1e-14, abs=1e-323)


def test_rows_beside_a_very_large_one() -> None:
    assert np.array_equal(project_l12_ball([[1e200], [1.0]], 0.5), [[0.5], [0.0]])
    assert np.array_equal(prox_l12([[1e200, 0.0], [3.0, 4.0]], 1.0)[0], [1e200, 0.0])
    assert prox_l12([[1e200, 0.0], [3.0, 4.0]], 1.0)[1] == pytest.approx([2.4, 3.2], rel=1e-15)
    B = project_l12_ball([[1.7e308], [1.7e308], [1.0]], 1e-310)
    assert np.abs(B - np.array([[5e-311], [5e-311], [0.0]])).max() <= 2e-323
    assert B.sum() <= 1e-310
