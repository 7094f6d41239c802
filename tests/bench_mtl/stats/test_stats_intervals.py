"""Bootstrap intervals of two levels: against slow twins, SciPy's, and as often as they should hold."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench_mtl.stats import geometric_mean_ratio, intervals, joint_confidence, ratio_interval, shifted_geometric_mean, shifted_mean_interval

measurements = st.lists(st.tuples(st.floats(1e-4, 1e4), st.floats(1e-4, 1e4)), min_size=2, max_size=12)
groups = st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), min_size=1, max_size=6)


def slow_bootstrap(old, new, *, draws, seed):
    """Ratios by drawing instances and then repetitions, one at a time, as the method says."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        logs = []
        for i in rng.integers(len(old), size=len(old)):
            before, after = (statistics.median(side[i][rng.integers(len(side[i]), size=len(side[i]))]) for side in (old, new))
            logs.append(math.log(before) - math.log(after))
        found.append(statistics.fmean(logs))
    return np.exp(np.quantile(found, [0.025, 0.975]))


@pytest.mark.parametrize("repetitions", [1, 3, 7])
def test_the_two_levels_are_those_of_the_slow_bootstrap(repetitions, monkeypatch):
    monkeypatch.setattr(intervals, "_student", lambda logs, *_, **__: (float(logs.mean()),) * 2)  # the bootstrap alone
    rng = np.random.default_rng(repetitions)
    old, new = np.exp(0.5 * rng.standard_normal((2, 8, repetitions)))
    found = ratio_interval(list(old), list(new))
    np.testing.assert_allclose([found.low, found.high], slow_bootstrap(old, new, draws=2000, seed=1), rtol=0.04)


def test_what_was_measured_once_has_no_interval():
    for sides in ([[1.0, 1.1, 1.2]], [[5.0]]), ([[5.0]], [[1.0, 1.1, 1.2]]):
        assert (ratio_interval(*sides).low, ratio_interval(*sides).high) == (None, None)
    assert shifted_mean_interval([[7.0]], 1.0).low is None


@pytest.mark.parametrize(("first", "second"), [(3, 3), (2, 4), (4, 2)])
def test_one_instance_is_students_interval_of_two_samples(first, second):
    rng = np.random.default_rng(first)
    logs = 0.1 * rng.standard_normal(first), 0.1 * rng.standard_normal(second)
    student = stats.ttest_ind(*logs).confidence_interval()
    old, new = map(np.exp, logs)
    found = ratio_interval([old], [new])
    assert found.value == pytest.approx(np.median(old) / np.median(new))
    assert math.log(found.low) <= student.low + 1e-12
    assert math.log(found.high) >= student.high - 1e-12
    assert math.log(found.high / found.low) < 1.5 * (student.high - student.low)  # and not much wider


def test_one_instance_repeated_has_an_interval_of_its_mean():
    found = shifted_mean_interval([[3.0, 4.0, 5.0]], 1.0)
    logs = np.log([4.0, 5.0, 6.0])
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(4.0)
    assert found.low == pytest.approx(5 * math.exp(-half) - 1, rel=1e-5)
    assert found.high == pytest.approx(5 * math.exp(half) - 1, rel=1e-5)


@given(groups, st.sampled_from([0.0, 0.1, 10.0]))
def test_intervals_hold_their_value_and_are_the_same_again(times, shift):
    found = shifted_mean_interval(times, shift)
    assert found.value == pytest.approx(shifted_geometric_mean([np.median(values) for values in times], shift))
    assert found == shifted_mean_interval(times, shift)
    if found.low is None:
        assert [len(values) for values in times] == [1]
    else:
        assert found.low <= found.value <= found.high
    ratio = ratio_interval(times, times[::-1])
    assert ratio == ratio_interval(times, times[::-1])
    assert ratio.low is None or ratio.low <= ratio.value <= ratio.high


@given(groups, st.floats(0.01, 100))
def test_the_unit_does_not_matter(times, unit):
    found, scaled = (shifted_mean_interval([np.array(values) * by for values in times], 0.5 * by) for by in (1.0, unit))
    assert scaled.value == pytest.approx(unit * found.value)
    if found.low is not None:
        assert (scaled.low, scaled.high) == (pytest.approx(unit * found.low, rel=1e-6), pytest.approx(unit * found.high, rel=1e-6))


def test_equal_ratios_have_an_interval_of_no_width_and_far_ones_say_nothing():
    same = ratio_interval([[2.0], [4.0]], [[1.0], [2.0]])
    assert (same.low, same.value, same.high) == (pytest.approx(2.0),) * 3
    far = ratio_interval([[1e-150], [1e150]], [[1e150], [1e-150]], confidence=0.999)
    assert (far.low, far.high) == (0.0, math.inf)


@pytest.mark.parametrize(("instances", "repetitions"), [(1, 3), (3, 1), (4, 3), (20, 2)])
def test_intervals_hold_as_often_as_they_say(instances, repetitions):
    """The truth is a ratio of 1; instances scatter by 0.3, repetitions by 0.1. Of one instance the truth is its own ratio."""
    rng = np.random.default_rng(instances)
    held = 0
    for _ in range(200):
        of_instance = 0.3 * rng.standard_normal((instances, 1))
        old = np.exp(of_instance + 0.1 * rng.standard_normal((instances, repetitions)))
        new = np.exp(0.1 * rng.standard_normal((instances, repetitions)))
        found = ratio_interval(list(old), list(new), confidence=0.9)
        held += found.low <= (math.exp(of_instance[0, 0]) if instances == 1 else 1.0) <= found.high
    assert held >= 172  # of 180: three standard deviations below


@given(measurements)
def test_swapping_inverts_the_ratio_and_its_interval(pairs):
    old, new = np.transpose(pairs)
    there, back = geometric_mean_ratio(old, new), geometric_mean_ratio(new, old)
    for one, other in ((there.value, back.value), (there.low, back.high), (there.high, back.low)):
        if 0 < one < math.inf:
            assert math.log(one) == pytest.approx(-math.log(other), abs=1e-9)
    assert there.low <= there.value <= there.high


def test_intervals_that_hold_together_have_a_share_of_what_may_miss():
    assert joint_confidence(0.95, 20) == pytest.approx(0.9975)
    assert joint_confidence(0.95, 0) == 0.95
