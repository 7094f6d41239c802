"""Profiles, fronts and scaling, against shares and fronts worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bench_mtl.report.figures import group_lines
from bench_mtl.results.loading import read_results

NEVER = float("nan")


def instances(*gaps, **times):
    """Rows of `instance_times` from the seconds of every solver to each gap, instance by instance."""
    rows = [
        ("p", f"i{number}", solver, "specialised", gap, seconds, "verified")
        for solver, tuples in times.items()
        for number, of_gaps in enumerate(tuples)
        for gap, seconds in zip(gaps, of_gaps, strict=True)
    ]
    return pd.DataFrame(rows, columns=["problem", "instance", "solver", "kind", "target", "seconds", "status"])


def points_of(*gaps, **times):
    return group_lines.front_points(instances(*gaps, **times)).set_index(["solver", "y"])


def test_a_point_is_what_half_of_the_instances_took_and_failures_are_never():
    made = {"pg": [(1.0, 5.0), (2.0, NEVER), (3.0, NEVER)], "ag": [(4.0, 4.5), (4.0, 6.0), (NEVER, 9.0)]}
    points = points_of(0.1, 0.01, **made, no=[(NEVER, NEVER)] * 3, one=[(0.1, 0.2), (NEVER, NEVER), (NEVER, NEVER)])
    assert points["x"].to_dict() == {("pg", 0.1): 2.0, ("ag", 0.1): 4.0, ("ag", 0.01): 6.0}
    assert {point for point, front in points["front"].items() if front} == {("pg", 0.1), ("ag", 0.01)}


def test_of_equal_times_the_smaller_gap_is_ahead_and_equals_are_both():
    points = points_of(0.1, 0.01, pg=[(1.0, 1.0)], ag=[(1.0, 1.0)], late=[(0.5, 3.0)])
    assert {point for point, front in points["front"].items() if front} == {("pg", 0.01), ("ag", 0.01), ("late", 0.1)}


def test_a_gap_that_is_proven_in_the_time_of_a_smaller_one_has_no_point():
    """A ladder of tolerances that begins at 1e-2 says nothing of 1e-1, and who proves less later is not drawn back in time."""
    points = points_of(0.1, 0.01, 0.001, ladder=[(33.0, 33.0, 37.0)], chosen=[(1.0, 9.0, 5.0)])
    assert points["x"].to_dict() == {("ladder", 0.01): 33.0, ("ladder", 0.001): 37.0, ("chosen", 0.1): 1.0, ("chosen", 0.001): 5.0}
    (axis,) = group_lines.fronts(points.reset_index(), "the group").axes
    for line in axis.lines:
        assert (np.diff(line.get_xdata()) >= 0).all()


#: Seconds on four instances.
TIMES = {"pg": [1.0, 2.0, 4.0, NEVER], "ag": [2.0, 1.0, 8.0, 3.0], "scs": [10.0, 20.0, 2.0, NEVER]}


@pytest.fixture
def profiled():
    return group_lines.profile_points(instances(1e-6, **{name: [(time,) for time in times] for name, times in TIMES.items()}))


def share(points, panel, solver, at):
    """What the profile of a solver is at `at`."""
    own = points[(points["panel"] == panel) & (points["solver"] == solver) & (points["x"] <= at)]
    return own["y"].iloc[-1] if len(own) else 0.0


def test_profiles_are_the_shares(profiled):
    assert [share(profiled, group_lines.PERFORMANCE, solver, 1.0) for solver in TIMES] == [0.25, 0.5, 0.25]
    assert [share(profiled, group_lines.PERFORMANCE, solver, 2.5) for solver in TIMES] == [0.75, 0.75, 0.25]
    assert [share(profiled, group_lines.PERFORMANCE, solver, math.inf) for solver in TIMES] == [0.75, 1.0, 0.75]
    assert profiled["best"].unique() == ["ag"]
    assert [share(profiled, group_lines.PAIRWISE, "pg", at) for at in (1.0, 1.99, 2.0)] == [0.5, 0.5, 0.75]
    assert share(profiled, group_lines.PAIRWISE, "scs", 1.0) == 0.25


def test_instances_that_the_best_failed_on_are_won_from_the_start():
    points = group_lines.profile_points(instances(1e-6, pg=[(1.0,), (2.0,), (NEVER,)], ag=[(NEVER,), (NEVER,), (5.0,)]))
    assert share(points, group_lines.PAIRWISE, "ag", 0.0) == pytest.approx(1 / 3)


def test_solvers_that_were_not_run_everywhere_are_none_of_the_group():
    made = instances(1e-6, pg=[(1.0,), (2.0,)], ag=[(1.0,)], no=[(NEVER,), (NEVER,)])
    assert group_lines.run_everywhere(made.assign(status=made["status"].mask(made["solver"] == "no", "skipped 2/2"))) == ["pg"]


def swept(solver, size, seconds, **more):
    """A run that proves everything after so many seconds, or is stopped if that is None."""
    data = {"name": "made_up", "tasks": 2, "examples": size}
    common = {"solver": solver, "problem": f"made up examples={size}", "data": data, "limit": 60.0, **more}
    if seconds is None:
        return {**common, "status": "timeout", "samples": [(11.0, 9, 9.0, 1.0, 0.5, None)], "times": {"setup": 0.2, "solve": 11.0}}
    return {**common, "samples": [(seconds, 9, 9.0, 1.0, 1.0, None)]}


def test_a_size_that_was_not_reached_is_a_cross_at_the_time_it_had(make_store):
    sizes = (10, 20, 40)
    made = [swept("pg", size, 0.001 * size**1.5) for size in sizes]
    made += [swept("scs", size, 1.0 if size < sizes[-1] else None) for size in sizes] + [swept("ag", size, None) for size in sizes]
    results = read_results(make_store(*made))
    points = group_lines.sweep_points(results.runs, results.samples, 1e-6)
    figure = group_lines.scaling(points)
    (axis,) = figure.axes
    crosses = {line.get_gid(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines if line.get_marker() == "x"}
    assert crosses["solver-scs"] == ([sizes[-1]], [11.2]), "not at its limit of 60 s"
    assert crosses["solver-ag"][0] == list(sizes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pg", "scs", "ag: not reached"]
