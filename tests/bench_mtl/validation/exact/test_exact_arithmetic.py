"""Enclosures of the exact suite hold what they say, and are narrow."""

import math
from fractions import Fraction

import numpy as np
import pytest

from bench_mtl.validation.exact.arithmetic import (
    Enclosure,
    TooLargeError,
    exact,
    exponential,
    log1p,
    log_sum_exp,
    logarithm,
    square_root,
    trace_norm,
)
from bench_mtl.validation.exact.references import from_columns, interpolated, least_squares

NARROW = Fraction(1, 10**28)


def holds(found: Enclosure, about: float) -> bool:
    """Whether an enclosure is narrow, and where the float says."""
    assert found.low <= found.high
    assert found.high - found.low <= NARROW * abs(found.high)
    return math.isclose(float(found.low), about, rel_tol=1e-15)


@pytest.mark.parametrize("x", [5e-324, 1e-150, 0.3, 1.0, 1.0 + 2.0**-52, 7.0, 1e300])
def test_functions_are_enclosed_at_every_scale(x: float) -> None:
    assert holds(logarithm(Fraction(x)), math.log(x))
    assert holds(log1p(Enclosure.of(Fraction(x))), math.log1p(x))
    root = square_root(Fraction(x))
    assert root.low**2 <= Fraction(x) <= root.high**2
    assert holds(root, math.sqrt(x))


@pytest.mark.parametrize("x", [-700.0, -1.0, -1e-20, 0.0, 1e-9, 3.0, 700.0])
def test_exponentials_are_enclosed(x: float) -> None:
    assert holds(exponential(Fraction(x)), math.exp(x))


def test_exponentials_beyond_floats() -> None:
    assert exponential(Fraction(-(10**6))).low == 0
    with pytest.raises(TooLargeError):
        exponential(Fraction(10**6))


def test_log_sum_exp_keeps_the_digits_of_small_ones() -> None:
    assert holds(log_sum_exp([Fraction(0), Fraction(-100)]), math.log1p(math.exp(-100.0)))
    assert holds(log_sum_exp([Fraction(10**8), Fraction(10**8)]), 1e8 + math.log(2.0))


@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (3, 4), (5, 1), (6, 4)])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_trace_norms_are_enclosed(shape: tuple[int, int], scale: float) -> None:
    W = np.random.default_rng(0).standard_normal(shape)
    assert holds(trace_norm(exact(scale * W)), scale * float(np.linalg.svd(W, compute_uv=False).sum()))


def test_trace_norms_of_matrices_of_low_rank() -> None:
    W = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    assert holds(trace_norm(exact(W)), 15.0)
    assert trace_norm(exact(np.diag([1.0, 0.0, 2.0]))) == Enclosure.of(3)
    assert trace_norm(exact(np.zeros((2, 3)))) == Enclosure.of(0)


def test_equations_are_solved_exactly() -> None:
    e = 2.0**-52
    X, y = exact([[1.0, 1.0], [1.0, 1.0 + e], [-1.0, -1.0]]), exact([4.0, 1.0, 5.0])
    w = interpolated(X[:2], y[:2])
    assert w[0] + w[1] == 4
    assert w[0] + Fraction(1.0 + e) * w[1] == 1
    residuals = y - X @ np.array(least_squares(X, y), dtype=object)
    assert residuals @ residuals / 2 == Fraction(81, 4)
    assert interpolated(exact([[1.0], [1.0]]), y[:2]) is None
    assert 0 < Fraction(1, 3) - from_columns([[Fraction(1, 3)]])[0, 0] < Fraction(1, 2**190)
