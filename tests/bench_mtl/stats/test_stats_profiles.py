"""Profiles against the definition, written as it stands, and against a case worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.stats import Profile, data_profile, performance_profile

NAN = math.nan

matrices = st.integers(1, 3).flatmap(
    lambda solvers: st.lists(
        st.lists(st.one_of(st.just(NAN), st.floats(0.01, 100), st.integers(1, 3).map(float)), min_size=solvers, max_size=solvers),
        min_size=1,
        max_size=8,
    )
)


def shares_at(profile: Profile, place: float) -> list[float]:
    """Every solver's share at a factor or budget."""
    return list(profile.shares[:, np.searchsorted(profile.at, place, side="right") - 1])


def slow_rho(times, solver, tau):
    """The share of instances with t_ps <= tau min t_p."""
    solved = 0
    for row in times:
        known = [t for t in row if not math.isnan(t)]
        solved += not math.isnan(row[solver]) and row[solver] / min(known) <= tau
    return solved / len(times)


def test_a_performance_profile_by_hand():
    # ratios: (1, 2), (1, 1: a tie), (3, 1), (1, fails), nobody
    profile = performance_profile([[1.0, 2.0], [4.0, 4.0], [6.0, 2.0], [5.0, NAN], [NAN, math.inf]])
    np.testing.assert_array_equal(profile.at, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(profile.shares, [[0.6, 0.6, 0.8], [0.4, 0.6, 0.6]])
    assert profile.instances == 5


@given(matrices)
def test_performance_profiles_are_their_definition(times):
    profile = performance_profile(times)
    for tau in [*profile.at, *(profile.at * 1.5), *(profile.at[1:] * (1 - 1e-9))]:
        assert shares_at(profile, max(1.0, tau)) == [slow_rho(times, solver, max(1.0, tau)) for solver in range(len(times[0]))]


@given(matrices)
def test_profiles_climb_from_the_wins_to_what_is_solved(times):
    profile = performance_profile(times)
    assert (np.diff(profile.at) > 0).all()
    assert (np.diff(profile.shares, axis=1) >= 0).all()
    np.testing.assert_allclose(profile.shares[:, -1], np.mean(~np.isnan(times), axis=0))
    best = np.fmin.reduce(np.array(times), axis=1)[:, None]
    np.testing.assert_allclose(profile.shares[:, 0], np.mean(np.array(times) == best, axis=0))


def test_who_is_second_may_change_without_the_best():
    """As Gould and Scott warn: of all three B is ahead of C at a factor of 2, and of these two alone C is ahead of B everywhere."""
    a, b, c = [1.0, 1.0, 1.0, 9.0, 9.0], [2.0, 2.0, 2.0, 9.0, 9.0], [2.1, 2.1, 2.1, 4.0, 4.0]
    assert shares_at(performance_profile(np.column_stack([a, b, c])), 2.0) == [0.6, 0.6, 0.4]
    assert shares_at(performance_profile(np.column_stack([b, c])), 1.1) == [0.6, 1.0]


def test_zero_times_have_ratios():
    profile = performance_profile([[0.0, 0.0], [0.0, 2e-6]])
    np.testing.assert_allclose(profile.at, [1.0, 2.0])
    np.testing.assert_allclose(profile.shares, [[1.0, 1.0], [0.5, 1.0]])


def test_failures_alone_have_a_flat_profile():
    profile = performance_profile([[NAN, NAN]])
    np.testing.assert_array_equal(profile.at, [1.0])
    np.testing.assert_array_equal(profile.shares, [[0.0], [0.0]])


def test_a_data_profile_by_hand():
    profile = data_profile([[2.0, 4.0], [1.0, 3.0], [NAN, 1.0]])
    np.testing.assert_array_equal(profile.at, [0.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(profile.shares, np.array([[0, 1, 2, 2, 2], [0, 1, 1, 2, 3]]) / 3)
    assert shares_at(data_profile([[0.0]]), 0.0) == [1.0]


@given(matrices, st.floats(0, 120))
def test_data_profiles_are_their_definition_and_do_not_depend_on_the_others(costs, budget):
    shares = shares_at(data_profile(costs), budget)
    for solver in range(len(costs[0])):
        column = [row[solver] for row in costs]
        assert shares[solver] == sum(cost <= budget for cost in column) / len(column)
        assert shares_at(data_profile([[cost] for cost in column]), budget) == [shares[solver]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: performance_profile([1.0]), "dimension"),
        (lambda: performance_profile(np.empty((0, 2))), "at least one entry"),
        (lambda: performance_profile([[-1.0]]), "at least zero"),
        (lambda: performance_profile([[1.0]], resolution=0.0), "resolution must be finite and above 0"),
        (lambda: data_profile([["x"]]), "costs must be an array of real numbers"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
