"""The projections onto Euclidean balls against their twin."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from projection_cases import FLOAT32, U, norms

from bench_mtl.core.errors import InputError
from bench_mtl.projections.l2_ball import project_l2_ball
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics

SCALES = {np.float64: (5e-323, 1e-300, 1e-150, 1.0, 1e150, 1e300), np.float32: (1e-44, 1e-38, 1.0, 1e37)}
SHAPES = [(1, 1), (3, 2), (50, 10), (10, 600), (700, 3)]


@pytest.mark.parametrize("dtype", [np.float64, FLOAT32])
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_the_twin(shape: tuple[int, int], dtype: type) -> None:
    rng = np.random.default_rng(0)
    for scale in SCALES[dtype]:
        A = (scale * rng.standard_normal(shape)).astype(dtype)
        A[0] = 0.0 if shape[0] > 3 else A[0]
        size = np.abs(A).max()
        for axis in (None, 0, 1):
            for ratio in (1e-300, 1e-12, 0.3, 0.99, 1.5):
                radius = min(float(ratio * norms(A, axis).max()), 1e308)
                expected = slow.l2_ball(A, radius, axis=axis)
                for given in (A, np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2]):
                    B = project_l2_ball(given, radius, axis=axis)
                    assert B.dtype == dtype
                    assert np.abs(B - expected).max() <= 4 * np.finfo(dtype).eps * size + 2 * np.finfo(dtype).smallest_subnormal
                    assert np.all(norms(B, axis) <= np.longdouble(radius) * (1 + 8 * U))
                    assert np.array_equal(project_l2_ball(B, radius, axis=axis), B)


@pytest.mark.parametrize("dtype", [np.float64, FLOAT32])
@pytest.mark.parametrize("axis", [0, 1])
def test_balls_of_different_radii_are_projected_onto_one_by_one(axis: int, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for scale in SCALES[dtype]:
        A = (scale * rng.standard_normal((20, 30))).astype(dtype)
        radii = np.minimum(norms(A, axis).ravel().astype(np.float64) * rng.choice([0.0, 1e-12, 0.5, 0.99, 2.0], A.shape[1 - axis]), 1e308)
        lines = A if axis == 1 else A.T
        each = np.array([project_l2_ball(line, float(radius)) for line, radius in zip(lines, radii, strict=True)])
        for given in (A, np.asfortranarray(A)):
            B = project_l2_ball(given, radii, axis=axis)
            assert np.array_equal(B if axis == 1 else B.T, each)
            assert np.array_equal(project_l2_ball(B, radii, axis=axis), B)


@pytest.mark.parametrize(
    ("radius", "axis"), [(np.ones(3), None), (np.ones(4), 0), (np.ones((1, 3)), 0), (-np.ones(3), 0), (np.full(3, np.nan), 0)]
)
def test_radii_that_are_not_one_a_ball_are_refused(radius: np.ndarray, axis: int | None) -> None:
    with pytest.raises(InputError, match="radius"):
        project_l2_ball(np.ones((2, 3)), radius, axis=axis)


def test_inside_nothing_changes_and_far_away_the_radius_is_met() -> None:
    A = np.random.default_rng(0).standard_normal((30, 40))
    norm = float(norms(A, None)[0, 0])
    assert project_l2_ball(A, norm).tobytes() == A.tobytes()
    assert not np.array_equal(project_l2_ball(A, norm * (1 - 20 * U)), A)
    assert float(norms(project_l2_ball(1e300 * A, 1e-300), None)[0, 0]) == pytest.approx(1e-300, rel=1e-14)
    assert not project_l2_ball(A, 0.0).any()
    assert project_l2_ball(np.zeros((0, 3)), 1.0, axis=0).shape == (0, 3)
    assert project_l2_ball(np.array([3.0, 4.0]), 1.0) == pytest.approx([0.6, 0.8])


def test_out_in_place_and_overlap() -> None:
    A = np.random.default_rng(0).standard_normal((40, 50))
    for axis in (None, 0, 1):
        expected = project_l2_ball(A, 2.0, axis=axis)
        for out in (np.empty_like(A), np.empty_like(A.T).T, np.empty((40, 100))[:, ::2]):
            assert project_l2_ball(A, 2.0, axis=axis, out=out) is out
            assert np.array_equal(out, expected)
        for given in (A.copy(), np.asfortranarray(A)):
            assert np.array_equal(project_l2_ball(given, 2.0, axis=axis, out=given), expected)
    x = A.ravel().copy()
    assert np.array_equal(project_l2_ball(x[:-1], 2.0, out=x[1:]), project_l2_ball(A.ravel()[:-1], 2.0))


def test_nothing_that_grows_is_allocated_where_out_is_given() -> None:
    A = np.random.default_rng(0).standard_normal((400, 500))
    out = np.empty_like(A)
    project_l2_ball(A, 1.0, out=out)
    tracemalloc.start()
    for axis in (None, 0, 1):
        project_l2_ball(A, 1.0, axis=axis, out=out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000  # a few vectors of norms


def test_bad_input_is_refused_by_name() -> None:
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = np.array([[1.0, 2.0], [bad, 1.0]])
        for axis in (None, 0, 1):
            with pytest.raises(InputError, match=r"A has (NaN|inf) at index \(1, 0\)"):
                project_l2_ball(spoilt, 1.0, axis=axis, out=spoilt)
        with pytest.raises(InputError, match="radius must be finite"):
            project_l2_ball(A, bad)
    with pytest.raises(InputError, match="axis must be None, 0"):
        project_l2_ball(A, 1.0, axis=2)
    with pytest.raises(InputError, match="axis must be None, 0"):
        project_l2_ball(A[0], 1.0, axis=1)
    with pytest.raises(InputError, match="dimension"):
        project_l2_ball(np.zeros((2, 2, 2)), 1.0)
    with pytest.raises(InputError, match="out must be"):
        project_l2_ball(A, 1.0, out=np.zeros(4))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 1])
def test_every_line_has_its_own_scale(axis: int, order: str) -> None:
    rng = np.random.default_rng(0)
    assert np.abs(project_l2_ball([[1e200, 0.0], [3.0, 4.0]], 1.0, axis=1) - [[1.0, 0.0], [0.6, 0.8]]).max() <= 2 * U
    scales = np.array([5e-324, 1e-320, 1e-300, 1e-170, 1e-150, 1e-119, 0.0, 1.0, 1e149, 1e155, 1e200, 1e307])
    for length in (1, 3, 700):
        lines = scales[:, None] * rng.uniform(-5, 5, (len(scales), length))
        A = np.array(lines if axis == 1 else lines.T, order=order)
        for radius in (5e-324, 1e-310, 1e-171, 1e-121, 1e-60, 1.0, 1e160, 1e307, 1.7e308):
            B = project_l2_ball(A, radius, axis=axis)
            assert np.all(norms(B, axis) <= np.longdouble(radius) * (1 + 8 * U))
            expected = slow.l2_ball(A, radius, axis=axis)
            size = np.minimum(np.abs(expected).max(axis=axis, keepdims=True), radius)
            assert np.all(np.abs(B - expected) <= 1e-15 * size + np.longdouble(1e-323))
            assert np.array_equal(project_l2_ball(B, radius, axis=axis), B)
            assert np.array_equal(project_l2_ball(A.copy(order="K"), radius, axis=axis), B)
            C = A.copy(order="K")
            assert np.array_equal(project_l2_ball(C, radius, axis=axis, out=C), B)


def test_far_away_the_radius_is_met_however_small() -> None:
    for size in (1.0, 1e150, 1e308):
        B = project_l2_ball(np.array([size, -size]), 1e-300)
        assert np.abs(B) == pytest.approx(np.full(2, 1e-300 / np.sqrt(2.0)), rel=1e-15, abs=0.0)
    A = np.full((2, 2), 1.79e308)
    assert np.array_equal(project_l2_ball(A, 1.79e308), np.full((2, 2), 0.5 * 1.79e308))


def test_an_axis_that_is_an_array_is_refused() -> None:
    with pytest.raises(InputError, match="axis must be None, 0"):
        project_l2_ball(np.ones((2, 2)), 1.0, axis=np.array([0, 1]))  # type: ignore[arg-type]
