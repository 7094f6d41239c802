"""Means over instances: against sums done by hand, the defining formula, and what is known of their limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.stats import shifted_geometric_mean, shifted_mean_interval, suitable_shift

times = st.lists(st.floats(0, 1e4), min_size=1, max_size=10)


@given(times, st.floats(1e-3, 1e3))
def test_it_is_the_formula(seconds, shift):
    slow = math.exp(math.fsum(math.log(t + shift) for t in seconds) / len(seconds)) - shift
    assert shifted_geometric_mean(seconds, shift) == pytest.approx(slow, rel=1e-9, abs=1e-9 * shift)


def test_times_far_below_the_shift_keep_their_digits():
    assert shifted_geometric_mean([1e-9, 3e-9], 10.0) == pytest.approx(2e-9, rel=1e-9)


def test_a_shift_far_below_the_times_is_almost_none():
    for times in ([1.0, 2.0], [1e308, 2.0]):
        assert shifted_geometric_mean(times, 1e-310) == pytest.approx(shifted_geometric_mean(times, 0.0), rel=1e-9)
        interval = shifted_mean_interval([[time, time] for time in times], 1e-310)
        assert interval.value == pytest.approx(shifted_geometric_mean(times, 0.0), rel=1e-9)


@pytest.mark.parametrize(
    ("fastest", "shift"),
    [([0.5], 0.1), ([1e-6], 1e-6), ([1e-4], 1e-4), ([9.9e-3], 1e-3), ([1.0], 1.0), ([20, 300, 4000], 100.0), ([0.02, 0.3], 0.1)],
)  # fmt: skip
def test_the_shift_suits_the_scale(fastest, shift):
    slower = np.array(fastest) * 50
    assert suitable_shift(np.column_stack([slower, fastest])) == shift


def test_instances_that_say_nothing_do_not_decide_the_shift():
    nan = math.nan
    assert suitable_shift([[nan, nan], [0.0, 1.0], [5.0, nan]]) == 1.0
    assert suitable_shift([[nan]]) == suitable_shift([[0.0]]) == 0.0
