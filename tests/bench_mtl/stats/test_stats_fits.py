"""Power laws through points worked out by hand, and intervals that hold as often as they say."""

import math

import numpy as np
import pytest

from bench_mtl.stats import power_law


def test_students_interval_by_hand():
    law = power_law([1.0, 4.0], [3.0, 6.0])
    assert (law.coefficient, law.exponent, law.low, law.high) == (pytest.approx(3.0), pytest.approx(0.5), None, None), "two points"
    # logarithms x = -1, 0, 1 and y = 0, 1, 0: slope 0, residuals -1/3, 2/3, -1/3, so s^2 = 2/3 and the standard error sqrt(1/3);
    # t(0.975, 1) = 12.7062
    law = power_law(np.exp([-1.0, 0.0, 1.0]), np.exp([0.0, 1.0, 0.0]))
    half = pytest.approx(12.7062 / math.sqrt(3), rel=1e-5)
    assert (law.exponent, -law.low, law.high) == (pytest.approx(0.0, abs=1e-12), half, half)


def test_the_interval_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    sizes = np.array([100.0, 200.0, 400.0, 800.0, 1600.0])
    laws = [power_law(sizes, sizes**1.5 * np.exp(0.2 * rng.standard_normal(5)), confidence=0.9) for _ in range(300)]
    assert 0.85 <= np.mean([law.low <= 1.5 <= law.high for law in laws]) <= 0.95
