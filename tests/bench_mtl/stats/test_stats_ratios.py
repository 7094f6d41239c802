"""Ratios and their intervals: against values worked out by hand, as properties, and as often as they should hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.stats import geometric_mean_ratio, joint_confidence

measurements = st.lists(st.tuples(st.floats(1e-4, 1e4), st.floats(1e-4, 1e4)), min_size=2, max_size=12)


def test_the_geometric_mean_of_a_doubling_and_an_octupling_is_four():
    ratio = geometric_mean_ratio([1.0, 3.0], [2.0, 24.0])
    assert (ratio.value, ratio.pairs) == (pytest.approx(4.0), 2)


def test_students_interval_where_the_bootstrap_is_narrower():
    # logarithms 0, 1, 2: mean 1, standard error 1 / sqrt(3), and the table says t(0.975, 2) = 4.302653
    ratio = geometric_mean_ratio([1.0, 1.0, 1.0], np.exp([0.0, 1.0, 2.0]))
    half = 4.302653 / math.sqrt(3)
    assert (math.log(ratio.low), math.log(ratio.high)) == (pytest.approx(1 - half, abs=1e-6), pytest.approx(1 + half, abs=1e-6))


def test_the_bootstrap_follows_skewed_ratios():
    rng = np.random.default_rng(0)
    logs = rng.gamma(0.05, size=60)
    half = 2.0010 * logs.std(ddof=1) / math.sqrt(60)
    ratio = geometric_mean_ratio(np.ones(60), np.exp(logs))
    assert math.log(ratio.low) == pytest.approx(logs.mean() - half, abs=1e-3)  # Student's is the wider one here
    assert math.log(ratio.high) > logs.mean() + 1.05 * half


def test_one_pair_has_no_interval():
    ratio = geometric_mean_ratio([2.0], [3.0])
    assert (ratio.value, ratio.low, ratio.high, ratio.pairs) == (pytest.approx(1.5), None, None, 1)


@pytest.mark.parametrize("pairs", [2, 5, 40])
def test_equal_ratios_have_an_interval_of_no_width(pairs):
    ratio = geometric_mean_ratio([1.0] * pairs, [2.0] * pairs)
    assert ratio.low == ratio.value == ratio.high == pytest.approx(2.0)


def test_two_pairs_far_apart_say_nothing():
    ratio = geometric_mean_ratio([1.0, 1.0], [1e-4, 1e4], confidence=0.999)
    assert (ratio.value, ratio.low, ratio.high) == (pytest.approx(1.0), 0.0, math.inf)


@given(measurements)
def test_swapping_inverts_the_ratio_and_its_interval(pairs):
    old, new = np.transpose(pairs)
    there, back = geometric_mean_ratio(old, new), geometric_mean_ratio(new, old)
    for one, other in ((there.value, back.value), (there.low, back.high), (there.high, back.low)):
        if 0 < one < math.inf:
            assert math.log(one) == pytest.approx(-math.log(other), abs=1e-9)
    assert there.low <= there.value <= there.high


@given(measurements, st.floats(1e-3, 1e3))
def test_the_unit_of_the_measurements_does_not_matter_and_the_same_pairs_give_the_same(pairs, unit):
    old, new = np.transpose(pairs)
    ratio = geometric_mean_ratio(old, new)
    assert geometric_mean_ratio(old, new) == ratio
    scaled = geometric_mean_ratio(unit * old, unit * new)
    assert scaled.value == pytest.approx(ratio.value, rel=1e-9)
    assert math.log(scaled.high) == pytest.approx(math.log(ratio.high), abs=1e-6)


def test_more_confidence_is_a_wider_interval():
    rng = np.random.default_rng(0)
    old, new = np.exp(0.1 * rng.standard_normal((2, 8)))
    ratios = [geometric_mean_ratio(old, new, confidence=confidence) for confidence in (0.5, 0.9, 0.99, 0.9999)]
    assert all(wide.low < narrow.low and narrow.high < wide.high for narrow, wide in itertools.pairwise(ratios))


@pytest.mark.parametrize("pairs", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_intervals_hold_together_as_often_as_they_say(pairs):
    """20 intervals at once, in 30 experiments: at most 5 % of these are to have one that misses, in either direction."""
    rng = np.random.default_rng(pairs)
    confidence = joint_confidence(0.95, 20)
    missed = 0
    for _ in range(30):
        ratios = [geometric_mean_ratio(*np.exp(0.05 * rng.standard_normal((2, pairs))), confidence=confidence) for _ in range(20)]
        missed += any(not ratio.low <= 1.0 <= ratio.high for ratio in ratios)
    assert missed <= 4  # more has a chance of 2 % at a rate of 5 %


def test_joint_confidence_shares_the_error():
    assert joint_confidence(0.95, 10) == pytest.approx(0.995)
    assert joint_confidence(0.95, 1) == joint_confidence(0.95, 0) == 0.95


@pytest.mark.parametrize(
    ("old", "new", "options", "words"),
    [
        ([], [], {}, "at least one, not 0 and 0"),
        ([1.0], [1.0, 2.0], {}, "not 1 and 2"),
        ([1.0, 0.0], [1.0, 2.0], {}, "above zero"),
        ([1.0], [-1.0], {}, "above zero"),
        ([math.nan], [1.0], {}, "old has NaN"),
        ([1.0], [math.inf], {}, "new has inf"),
        ([[1.0]], [[1.0]], {}, "dimension"),
        ([1.0], [1.0], {"confidence": 1.0}, "confidence must be between 0 and 1"),
    ],
)
def test_bad_input_is_refused(old, new, options, words):
    with pytest.raises(InputError, match=words):
        geometric_mean_ratio(old, new, **options)
