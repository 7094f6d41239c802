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


@pytest.mark.parametrize(
    ("gaps", "times", "points", "front"),
    [
        (
            (0.1, 0.01),
            {
                "pg": [(1.0, 5.0), (2.0, NEVER), (3.0, NEVER)], "ag": [(4.0, 4.5), (4.0, 6.0), (NEVER, 9.0)],
                "no": [(NEVER, NEVER)] * 3, "one": [(0.1, 0.2), (NEVER, NEVER), (NEVER, NEVER)],
            },
            {("pg", 0.1): 2.0, ("ag", 0.1): 4.0, ("ag", 0.01): 6.0},
            {("pg", 0.1), ("ag", 0.01)},
        ),
        (
            (0.1, 0.01),
            {"pg": [(1.0, 1.0)], "ag": [(1.0, 1.0)], "late": [(0.5, 3.0)]},
            {("pg", 0.01): 1.0, ("ag", 0.01): 1.0, ("late", 0.1): 0.5, ("late", 0.01): 3.0},
            {("pg", 0.01), ("ag", 0.01), ("late", 0.1)},
        ),
        (
            (0.1, 0.01, 0.001),
            {"ladder": [(33.0, 33.0, 37.0)], "chosen": [(1.0, 9.0, 5.0)]},
            {("ladder", 0.01): 33.0, ("ladder", 0.001): 37.0, ("chosen", 0.1): 1.0, ("chosen", 0.001): 5.0},
            {("chosen", 0.1), ("chosen", 0.001)},
        ),
    ],
    ids=["half of the instances", "equal times", "a smaller gap in the same time"],
)  # fmt: skip
def test_fronts_are_those_worked_out_by_hand(gaps, times, points, front):
    table = group_lines.front_points(instances(*gaps, **times))
    shown = table.set_index(["solver", "y"])
    assert shown["x"].to_dict() == points
    assert {point for point, is_on_front in shown["front"].items() if is_on_front} == front
    (axis,) = group_lines.fronts(table, "the group").axes
    for line in axis.lines:
        assert (np.diff(line.get_xdata()) >= 0).all(), "nobody is drawn back in time"


def test_profiles_are_the_shares():
    """Those of all solvers are the statistics' own; beside each stands its ratio to the best, which is won where the best failed."""
    times = {"pg": [1.0, 2.0, 4.0, NEVER], "ag": [2.0, 1.0, 8.0, 3.0], "scs": [10.0, 20.0, 2.0, NEVER]}

    def shares(panel, solver, *places, **times):
        points = group_lines.profile_points(instances(1e-6, **{name: [(time,) for time in of_solver] for name, of_solver in times.items()}))
        points = points[(points["panel"] == panel) & (points["solver"] == solver)]
        return [points["y"][points["x"] <= place].max() for place in places]

    assert shares(group_lines.PERFORMANCE, "pg", 1.0, 2.5, math.inf, **times) == [0.25, 0.75, 0.75]
    assert shares(group_lines.PERFORMANCE, "ag", 1.0, 2.5, math.inf, **times) == [0.5, 0.75, 1.0]
    assert shares(group_lines.PAIRWISE, "pg", 1.0, 1.99, 2.0, **times) == [0.5, 0.5, 0.75], "ag is the best"
    assert shares(group_lines.PAIRWISE, "ag", 0.0, pg=[1.0, 2.0, NEVER], ag=[NEVER, NEVER, 5.0]) == [pytest.approx(1 / 3)]
    skipped = instances(1e-6, pg=[(1.0,), (2.0,)], ag=[(1.0,)], no=[(NEVER,), (NEVER,)])
    skipped["status"] = skipped["status"].mask(skipped["solver"] == "no", "skipped 2/2")
    assert group_lines.run_everywhere(skipped) == ["pg"], "others are none of the group"


def swept(solver, size, seconds):
    """A run that proves everything after so many seconds, or is stopped if that is None."""
    data = {"name": "made_up", "tasks": 2, "examples": size}
    common = {"solver": solver, "problem": f"made up examples={size}", "data": data, "radius": 1.0}
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
