"""Power laws through points worked out by hand, and intervals that hold as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.stats import power_law


def test_points_on_a_power_law_give_it_back():
    law = power_law([1.0, 10.0, 100.0, 1000.0], [3.0, 30.0, 300.0, 3000.0])
    assert (law.coefficient, law.exponent, law.points) == (pytest.approx(3.0), pytest.approx(1.0), 4)
    assert (law.low, law.high) == (pytest.approx(1.0, abs=1e-6), pytest.approx(1.0, abs=1e-6))


def test_students_interval_by_hand():
    # logarithms x = -1, 0, 1 and y = 0, 1, 0: slope 0, residuals -1/3, 2/3, -1/3, so s^2 = 2/3 and the standard error sqrt(1/3);
    # t(0.975, 1) = 12.7062
    law = power_law(np.exp([-1.0, 0.0, 1.0]), np.exp([0.0, 1.0, 0.0]))
    assert law.exponent == pytest.approx(0.0, abs=1e-12)
    assert (law.low, law.high) == (pytest.approx(-12.7062 / math.sqrt(3), rel=1e-5), pytest.approx(12.7062 / math.sqrt(3), rel=1e-5))


def test_two_points_have_no_interval():
    law = power_law([1.0, 4.0], [1.0, 2.0])
    assert (law.exponent, law.low, law.high) == (pytest.approx(0.5), None, None)


def test_the_interval_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    sizes = np.array([100.0, 200.0, 400.0, 800.0, 1600.0])
    laws = [power_law(sizes, sizes**1.5 * np.exp(0.2 * rng.standard_normal(5)), confidence=0.9) for _ in range(300)]
    assert 0.85 <= np.mean([law.low <= 1.5 <= law.high for law in laws]) <= 0.95


@pytest.mark.parametrize(
    ("sizes", "seconds", "options", "words"),
    [
        ([1.0, 2.0], [1.0], {}, "not 2 and 1"),
        ([], [], {}, "two different values, not 0"),
        ([2.0, 2.0], [1.0, 3.0], {}, "two different values, not 1"),
        ([0.0, 2.0], [1.0, 3.0], {}, "above zero"),
        ([1.0, 2.0], [0.0, 3.0], {}, "above zero"),
        ([1.0, math.nan], [1.0, 3.0], {}, "sizes has NaN"),
        ([1.0, 2.0], [1.0, 3.0], {"confidence": 0.0}, "confidence"),
    ],
)
def test_bad_input_is_refused(sizes, seconds, options, words):
    with pytest.raises(InputError, match=words):
        power_law(sizes, seconds, **options)
