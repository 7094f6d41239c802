"""Profiles against the definition, written as it stands, and against a case worked out by hand."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.stats import Profile, performance_profile

NAN = math.nan

costs = st.one_of(st.just(NAN), st.floats(0.01, 100), st.integers(1, 3).map(float))
matrices = st.integers(1, 3).flatmap(lambda solvers: st.lists(st.lists(costs, min_size=solvers, max_size=solvers), min_size=1, max_size=8))


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


def test_times_that_cannot_be_told_apart_are_one():
    zeros = performance_profile([[0.0, 0.0], [0.0, 2e-6]])
    np.testing.assert_allclose([zeros.at, *zeros.shares], [[1.0, 2.0], [1.0, 1.0], [0.5, 1.0]])


@given(matrices)
def test_performance_profiles_are_their_definition(times):
    profile = performance_profile(times)
    assert (np.diff(profile.at) > 0).all()
    for tau in [*profile.at, *(profile.at * 1.5), *(profile.at[1:] * (1 - 1e-9))]:
        assert shares_at(profile, max(1.0, tau)) == [slow_rho(times, solver, max(1.0, tau)) for solver in range(len(times[0]))]
