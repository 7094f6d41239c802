"""What only thresholds meet: entries far beyond the radius, sums that overflow, breakpoints of every scale, few steps, boxes."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from projection_cases import U, exact_sum

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.projections import METHODS, project_box_simplex, project_l1_ball, project_simplex
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics

EXPONENTS = (0, 8, 15, 16, 17, 18, 20, 30, 100, 200, 299)


def entries(rng: np.random.Generator, size: int) -> Array:
    """Numbers of a huge size: unlike, alike, a few units in the last place apart, or beside small ones."""
    huge = 10.0 ** float(rng.choice(EXPONENTS))
    kind = rng.integers(4)
    if kind == 0:
        return np.full(size, huge)
    if kind == 1:
        return huge + np.spacing(huge) * rng.integers(-3, 4, size=size)
    v = huge * rng.standard_normal(size)
    return np.where(rng.random(size) < 0.5, rng.standard_normal(size), v) if kind == 2 else v


@pytest.mark.parametrize("seed", range(4))
def test_no_mass_is_lost_within_boxes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        n = int(rng.integers(1, 6))
        v, lower = entries(rng, n), rng.random(n) * (rng.random() < 0.5)
        upper = np.full(n, np.inf) if rng.random() < 0.2 else lower + rng.random(n) * float(rng.choice([1.0, 10.0]))
        share = rng.random()
        mass = float(lower.sum() + share * (np.where(np.isfinite(upper), upper, 5.0) - lower).sum())
        w = project_box_simplex(v, mass, lower, upper)
        assert np.all(w >= lower)
        assert np.all(w <= upper)
        assert abs(sum(map(Fraction, w.tolist())) - Fraction(mass)) <= 8 * Fraction(mass) / 2**53, (v, mass, lower, upper)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 40, 6000])
def test_a_large_negative_entry_hides_no_positive_one(method: str, n: int) -> None:
    for size in (1e17, 1e200, 1.7e308):
        v = np.full(n, -size)
        v[-1] = 5.0
        for radius in (1.0, 4.0, 7.0):
            expected = np.zeros(n)
            expected[-1] = min(radius, 5.0)
            assert np.array_equal(project_l1_ball(v, radius, method=method, nonneg=True), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [-1, 0])
def test_a_row_whose_sum_overflows_leaves_the_others_alone(method: str, axis: int) -> None:
    A: np.ndarray = np.array([[0.1, 0.2], [1.7e308, 1.7e308], [3.0, 4.0], [1.7e308, -1.7e308], [1e-300, 0.5]])
    for nonneg in (False, True):
        for radius in (1.0, 1e300, 1e308):
            B = project_l1_ball(A if axis else A.T, radius, method=method, nonneg=nonneg, axis=axis)
            B = B if axis else B.T
            for row, result in zip(A, B, strict=True):
                assert np.array_equal(result, project_l1_ball(row, radius, method=method, nonneg=nonneg))
                expected = slow.l1_ball(row, radius, nonneg=nonneg)
                assert np.abs(result - expected).max() <= 1e-15 * max(float(np.abs(expected).max()), radius if radius < 1e308 else 1e308)
            assert np.array_equal(B[[0, 4]], A[[0, 4]])
    spoilt = np.vstack([A, [1.0, np.nan]])
    with pytest.raises(InputError, match=r"v has NaN at index \(5, 1\)"):
        project_l1_ball(spoilt, 1.0, method=method)


def checked_box(v: np.ndarray, mass: float, lower: np.ndarray | float, upper: np.ndarray | float) -> np.ndarray:
    w = project_box_simplex(v, mass, lower, upper)
    size = max(float(np.abs(v).max()), abs(mass))
    assert np.abs(w - slow.box_simplex(v, mass, np.asarray(lower), np.asarray(upper))).max() <= 1e-13 * size
    assert np.all(w >= lower)
    assert np.all(w <= upper)
    assert abs(exact_sum(w) - mass) <= 4 * U * (abs(mass) + exact_sum(np.abs(w)))
    return w


@pytest.mark.parametrize("seed", range(40))
def test_boxes_of_all_kinds_against_the_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 5, 40, 1500]))
    v = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4)
    v = np.round(v) if seed % 3 == 0 else v
    lower, upper = -2 * rng.random(n), 2 * rng.random(n)
    lower[rng.random(n) < 0.3 * (seed % 4 == 0)] = -np.inf
    upper[rng.random(n) < 0.3 * (seed % 5 == 0)] = np.inf
    tight = (rng.random(n) < 0.3 * (seed % 7 == 0)) & np.isfinite(lower)
    upper[tight] = lower[tight]
    low, high = max(lower.sum(), -50.0), min(upper.sum(), 50.0)
    for share in (0.0, 0.01, 0.5, 0.99, 1.0):
        checked_box(v, low + (high - low) * share, lower, upper)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e299])
def test_boxes_of_any_scale(scale: float) -> None:
    v = np.random.default_rng(0).standard_normal(50)
    w = project_box_simplex(v * scale, 2 * scale, -scale, scale)
    assert np.abs(w / scale - slow.box_simplex(v, 2.0, np.asarray(-1.0), np.asarray(1.0))).max() <= 1e-13


@pytest.mark.parametrize("size", [1.0, 1e17, 1e100, -1e100, 1e299])
def test_all_that_matters_may_lie_between_two_doubles_on_either_side(size: float) -> None:
    v, bounds = np.full(4, size), np.array([2.0, 1.5, 0.5, 0.0])
    assert np.allclose(project_box_simplex(v, -3.0, -bounds, 1.0), [-1.25, -1.25, -0.5, 0.0], rtol=0, atol=1e-13)
    assert np.allclose(project_box_simplex(v, 3.0, -1.0, bounds), [1.25, 1.25, 0.5, 0.0], rtol=0, atol=1e-13)


def test_breakpoints_of_every_scale_are_searched_in_few_steps() -> None:
    """The bracket halves by the order of doubles; phi is neither convex nor concave in between."""
    rng = np.random.default_rng(0)
    v = np.concatenate([10.0 ** rng.uniform(-300, 300, 300), -(10.0 ** rng.uniform(-300, 300, 300))])
    width = 10.0 ** rng.uniform(-300, 2, 600)
    for share in (1e-9, 0.1, 0.5, 0.9):
        w = project_box_simplex(v, share * width.sum(), 0.0, width)
        assert float(exact_sum(w)) == pytest.approx(share * width.sum(), rel=1e-12)


def test_a_simplex_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one entry"):
        project_simplex(np.zeros((3, 0)), 1.0)
    assert project_simplex(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_large_entries_leave_a_small_box_its_digits() -> None:
    for high in (1e271, 1e300, 1.7e308):
        assert np.array_equal(project_box_simplex([high, high], 1e-295, 0.0, np.inf), [5e-296, 5e-296])
        assert project_box_simplex([high, -high], 3e-296, 1e-296, 5e-296) == pytest.approx([2e-296, 1e-296], rel=1e-14, abs=0.0)
        assert project_box_simplex([high] * 3, 1e-290, 0.0, np.inf).sum() == pytest.approx(1e-290, rel=1e-15)


def test_boxes_that_cannot_be_are_refused() -> None:
    v, nan, inf = np.array([1.0, 2.0, 3.0]), np.nan, np.inf
    assert np.array_equal(project_box_simplex(v, 3.0, 0.0, 1.0), np.ones(3))
    wrong: list[tuple[tuple[Any, ...], str]] = [
        *(((v, mass, 0.0, 1.0), "mass must be finite, not") for mass in (10**400, -(10**400), nan, inf)),
        *(((v, mass, 0.0, 1.0), "mass must be between the sums of lower and upper") for mass in (-0.1, 3.1)),
        *(((np.array([1.0, bad]), 1.0, 0.0, 1.0), r"v has (NaN|inf) at index 1") for bad in (nan, inf)),
        ((v, 1.0, 0.0, 10**400), "upper must be a number"),
        ((v, 1.0, nan, 1.0), "lower has NaN at index 0"),
        ((v, 1.0, 1.0, 0.0), "lower must not exceed upper"),
        ((v, 1.0, 0.0, np.ones(2)), "upper must be a number or have shape"),
        ((v, 1.0, inf, inf), "lower must be below inf"),
    ]
    for arguments, words in wrong:
        with pytest.raises(InputError, match=words):
            project_box_simplex(*arguments)
