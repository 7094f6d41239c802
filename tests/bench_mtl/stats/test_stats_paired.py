"""Paired tests against published examples, exact counts, and slow twins."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from bench_mtl.stats import SIGN, WILCOXON, holm, paired_test, sign_test

NAN = math.nan


SIZES = st.floats(0.01, 100)

#: With ties among at most 13 SciPy goes through all signs, which takes a second for 12, so there are none from 8 on.
DIFFERENCES = st.one_of(
    st.lists(SIZES, min_size=1, max_size=7),
    st.lists(SIZES, min_size=8, max_size=13, unique_by=lambda size: round(size, 6)),
    st.lists(SIZES, min_size=14, max_size=60),
)


@given(DIFFERENCES, st.randoms(use_true_random=False))
@example([0.5, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0], Random(1))
def test_wilcoxon_is_scipys(differences, random):
    signed = [difference * random.choice((-1, 1)) for difference in differences]
    logs = np.log(np.exp(signed))  # as the test sees them
    assert paired_test(np.exp(signed), np.ones(len(signed))).p_value == pytest.approx(float(stats.wilcoxon(logs).pvalue))


def test_a_failure_is_slower_than_every_success_and_two_are_a_tie():
    found = paired_test([1.0, 1.0, 1.0, 2.0, NAN, NAN], [2.0, NAN, math.inf, 3.0, 1.0, NAN])
    assert (found.test, found.wins, found.losses, found.ties) == (SIGN, 4, 1, 1)
    assert found.p_value == pytest.approx(2 * (1 + 5) / 32)  # at most one of five, either way


def test_equal_times_are_left_out_of_both_tests():
    found = paired_test([1.0, 1.0, 5.0], [2.0, 3.0, 5.0])
    assert (found.test, found.wins, found.losses, found.ties, found.p_value) == (WILCOXON, 2, 0, 1, pytest.approx(0.5))
    assert paired_test([1.0, NAN], [1.0, NAN]).p_value is None
    assert paired_test([1.0, NAN], [1.0, NAN]).test is None


def test_a_time_of_zero_has_a_sign_alone():
    found = paired_test([0.0, 1.0], [1.0, 2.0])
    assert (found.test, found.wins) == (SIGN, 2)
    assert paired_test([0.0, 1.0], [0.0, 2.0]).test == WILCOXON


@given(st.lists(st.tuples(*[st.one_of(st.just(NAN), st.integers(1, 4).map(float))] * 2), min_size=1, max_size=10))
def test_swapping_swaps_wins_and_losses_and_nothing_else(pairs):
    first, second = zip(*pairs, strict=True)
    there, back = paired_test(first, second), paired_test(second, first)
    assert (there.wins, there.losses, there.ties, there.test) == (back.losses, back.wins, back.ties, back.test)
    assert there.p_value == (None if back.p_value is None else pytest.approx(back.p_value))
    assert there.wins + there.losses + there.ties == len(pairs)


def test_the_sign_test_by_hand():
    assert sign_test(5, 0) == pytest.approx(2 / 32)
    assert sign_test(2, 1) == sign_test(0, 1) == 1.0
    assert sign_test(0, 0) is None
    assert sign_test(4, 1, alternative="greater") == sign_test(1, 4, alternative="less") == pytest.approx(6 / 32)


def test_what_was_not_tested_is_not_counted():
    np.testing.assert_array_equal(holm([NAN, 0.03, NAN]), [NAN, 0.03, NAN])
    assert holm([]).shape == (0,)


def rejected(p_values, alpha):
    """Holm's procedure as published: compare the smallest with alpha / m, the next with alpha / (m - 1), ..., until one is larger."""
    out = set()
    for step, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[place] > alpha / (len(p_values) - step):
            break
        out.add(place)
    return out


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.floats(0.001, 0.999))
def test_holms_adjustment_rejects_what_his_procedure_does(p_values, alpha):
    adjusted = holm(p_values)
    if min(abs(adjusted - alpha)) > 1e-9:  # not on the edge
        assert {i for i, p in enumerate(adjusted) if p <= alpha} == rejected(p_values, alpha)
