"""The projections that scale lines down, where every line has its own scale, or its own radius."""

import numpy as np
import pytest
from projection_cases import U, norms

from bench_mtl.core.errors import InputError
from bench_mtl.projections import (
    norm_l1inf,
    norm_l12,
    project_box_simplex,
    project_l1inf_ball,
    project_l2_ball,
    project_l12_ball,
    project_simplex,
    prox_l12,
)
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics

SCALES = (5e-323, 1e-300, 1e-150, 1.0, 1e150, 1e300)


@pytest.mark.parametrize("axis", [0, 1])
def test_balls_of_different_radii_are_projected_onto_one_by_one(axis: int) -> None:
    rng = np.random.default_rng(1)
    for scale in SCALES:
        A = scale * rng.standard_normal((20, 30))
        radii = np.minimum(norms(A, axis).ravel() * rng.choice([0.0, 1e-12, 0.5, 0.99, 2.0], A.shape[1 - axis]), 1e308)
        lines = A if axis == 1 else A.T
        each = np.array([project_l2_ball(line, float(radius)) for line, radius in zip(lines, radii, strict=True)])
        B = project_l2_ball(A, radii, axis=axis)
        assert np.array_equal(B if axis == 1 else B.T, each)
        assert np.array_equal(project_l2_ball(B, radii, axis=axis), B)
        assert axis == 0 or np.array_equal(project_l2_ball(A, radii, axis=-1), B)


@pytest.mark.parametrize(
    ("radius", "axis"), [(np.ones(3), None), (np.ones(4), 0), (np.ones((1, 3)), 0), (-np.ones(3), 0), (np.full(3, np.nan), 0)]
)
def test_radii_that_are_not_one_a_ball_are_refused(radius: np.ndarray, axis: int | None) -> None:
    with pytest.raises(InputError, match="radius"):
        project_l2_ball(np.ones((2, 3)), radius, axis=axis)


@pytest.mark.parametrize("axis", [0, 1])
def test_every_line_has_its_own_scale(axis: int) -> None:
    rng = np.random.default_rng(0)
    assert np.abs(project_l2_ball([[1e200, 0.0], [3.0, 4.0]], 1.0, axis=1) - [[1.0, 0.0], [0.6, 0.8]]).max() <= 2 * U
    scales = np.array([5e-324, 1e-320, 1e-300, 1e-170, 1e-150, 1e-119, 0.0, 1.0, 1e149, 1e155, 1e200, 1e307])
    for length in (1, 3, 700):
        lines = scales[:, None] * rng.uniform(-5, 5, (len(scales), length))
        A = np.array(lines if axis == 1 else lines.T)
        for radius in (5e-324, 1e-310, 1e-171, 1e-121, 1e-60, 1.0, 1e160, 1e307, 1.7e308):
            B = project_l2_ball(A, radius, axis=axis)
            assert np.all(norms(B, axis) <= np.longdouble(radius) * (1 + 8 * U))
            expected = slow.l2_ball(A, radius, axis=axis)
            size = np.minimum(np.abs(expected).max(axis=axis, keepdims=True), radius)
            assert np.all(np.abs(B - expected) <= 1e-15 * size + np.longdouble(1e-323))
            assert np.array_equal(project_l2_ball(B, radius, axis=axis), B)
            C = A.copy()
            assert np.array_equal(project_l2_ball(C, radius, axis=axis, out=C), B)


@pytest.mark.parametrize("largest", [1e-290, 1e-150, 1.0, 1e200, 1.7e308])
def test_every_row_has_its_own_scale(largest: float) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 3, 700):
        for _ in range(5):
            scales = np.exp(rng.uniform(-740, np.log(largest), 9))
            scales[:3] = largest, 0.0, largest / 100
            A = np.array(scales[:, None] * rng.uniform(-1, 1, (9, length)))
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


def test_at_the_ends_of_floating_point() -> None:
    assert norm_l1inf([[1e308], [1e308]]) == np.inf
    inside = np.array([[1e302], [1e-320]])
    assert np.array_equal(project_l12_ball(inside, 1e308), inside)
    radius = 1.75 * 2.0**-50  # which, divided by the size of the matrix, rounds up
    assert project_l1inf_ball(np.array([[2.0**1023]]), radius)[0, 0] <= radius
    with pytest.raises(InputError, match="mass must be at most the largest number of float32"):
        project_simplex(np.ones(1, np.float32), 1e39)
    with pytest.raises(InputError, match="mass must be between"):
        project_box_simplex([0.0, 0.0], 0.0, [1e308] * 2, [1.5e308] * 2)
