"""The projection onto a simplex within a box against its twin."""

from __future__ import annotations

import numpy as np
import pytest
from projection_cases import FLOAT32, U, exact_sum

from bench_mtl.core.errors import InputError
from bench_mtl.projections.box_simplex import project_box_simplex
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics


def check(v: np.ndarray, mass: float, lower: np.ndarray | float, upper: np.ndarray | float) -> np.ndarray:
    w = project_box_simplex(v, mass, lower, upper)
    size = max(float(np.abs(v).max()), abs(mass))
    assert np.abs(w - slow.box_simplex(v, mass, np.asarray(lower), np.asarray(upper))).max() <= 1e-13 * size
    assert np.all(w >= lower)
    assert np.all(w <= upper)
    assert abs(exact_sum(w) - mass) <= 4 * U * (abs(mass) + exact_sum(np.abs(w)))
    return w


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_the_twin(seed: int) -> None:
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
        check(v, low + (high - low) * share, lower, upper)


def test_the_simplex_is_a_special_case() -> None:
    v = np.random.default_rng(0).standard_normal(700)
    assert np.abs(check(v, 2.0, 0.0, np.inf) - slow.simplex(v, 2.0)).max() <= 1e-14
    assert np.abs(project_box_simplex(v, 3.0, -np.inf, np.inf) - (v + (3.0 - v.sum()) / 700)).max() <= 1e-14


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e299])
def test_any_scale(scale: float) -> None:
    v = np.random.default_rng(0).standard_normal(50)
    w = project_box_simplex(v * scale, 2 * scale, -scale, scale)
    assert np.abs(w / scale - slow.box_simplex(v, 2.0, np.asarray(-1.0), np.asarray(1.0))).max() <= 1e-13


def test_far_away_the_mass_is_kept() -> None:
    v = 1e12 + np.random.default_rng(0).standard_normal(1000)
    assert float(exact_sum(project_box_simplex(v, 1.0, 0.0, 0.1))) == pytest.approx(1.0, rel=1e-14)


def test_breakpoints_of_every_scale_are_searched_in_few_steps() -> None:
    """The bracket halves by the order of doubles; phi is neither convex nor concave in between."""
    rng = np.random.default_rng(0)
    v = np.concatenate([10.0 ** rng.uniform(-300, 300, 300), -(10.0 ** rng.uniform(-300, 300, 300))])
    width = 10.0 ** rng.uniform(-300, 2, 600)
    for share in (1e-9, 0.1, 0.5, 0.9):
        w = project_box_simplex(v, share * width.sum(), 0.0, width)
        assert float(exact_sum(w)) == pytest.approx(share * width.sum(), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, FLOAT32])
def test_out_in_place_and_views(dtype: type) -> None:
    x = np.random.default_rng(0).standard_normal(1200).astype(dtype)
    expected = project_box_simplex(x[::2].copy(), 1.0, 0.0, 0.1)
    assert expected.dtype == dtype
    assert np.array_equal(project_box_simplex(x[::2], 1.0, 0.0, 0.1), expected)
    out = np.empty(1200, dtype)[::2]
    assert project_box_simplex(x[::2], 1.0, 0.0, 0.1, out=out) is out
    assert np.array_equal(out, expected)
    y = x[::2].copy()
    assert np.array_equal(project_box_simplex(y, 1.0, 0.0, 0.1, out=y), expected)
    half = x[:600].copy()
    assert np.array_equal(project_box_simplex(x[:600], 1.0, 0.0, 0.1, out=x[1:601]), project_box_simplex(half, 1.0, 0.0, 0.1))
    assert project_box_simplex(np.zeros(0), 0.0, 0.0, 1.0).shape == (0,)


def test_bad_input_is_refused_by_name() -> None:
    v = np.array([1.0, 2.0, 3.0])
    for mass in (-0.1, 3.1):
        with pytest.raises(InputError, match="mass must be between the sums of lower and upper"):
            project_box_simplex(v, mass, 0.0, 1.0)
    assert np.array_equal(project_box_simplex(v, 3.0, 0.0, 1.0), np.ones(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"v has (NaN|inf) at index 1"):
            project_box_simplex(np.array([1.0, bad]), 1.0, 0.0, 1.0)
        with pytest.raises(InputError, match="mass must be a finite number"):
            project_box_simplex(v, bad, 0.0, 1.0)
    with pytest.raises(InputError, match="lower has NaN at index 0"):
        project_box_simplex(v, 1.0, np.nan, 1.0)
    with pytest.raises(InputError, match="lower must not exceed upper"):
        project_box_simplex(v, 1.0, 1.0, 0.0)
    with pytest.raises(InputError, match="upper must be a number or have shape"):
        project_box_simplex(v, 1.0, 0.0, np.ones(2))
    with pytest.raises(InputError, match="lower must be below inf"):
        project_box_simplex(v, 1.0, np.inf, np.inf)
    with pytest.raises(InputError, match="out must be"):
        project_box_simplex(v, 1.0, 0.0, 1.0, out=np.zeros(2))


def test_whole_numbers_beyond_all_doubles_are_refused() -> None:
    for mass in (10**400, -(10**400)):
        with pytest.raises(InputError, match="mass must be a finite number"):
            project_box_simplex(np.ones(3), mass, 0.0, 1.0)
    with pytest.raises(InputError, match="upper must be a number"):
        project_box_simplex(np.ones(3), 1.0, 0.0, 10**400)
