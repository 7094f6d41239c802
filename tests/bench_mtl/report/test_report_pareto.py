"""What a front of time and precision draws, against fronts worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench_mtl.report.figures import pareto, style
from bench_mtl.report.figures.draw import draw

COLUMNS = ["problem", "instance", "solver", "target", "seconds"]


def instances(**times):
    """Rows of `instance_times` from the seconds of every solver to the gaps 0.1 and 0.01, instance by instance."""
    rows = [
        ("p", f"i{number}", solver, gap, seconds)
        for solver, pairs in times.items()
        for number, pair in enumerate(pairs)
        for gap, seconds in zip((0.1, 0.01), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


NEVER = float("nan")


def test_levels_are_the_powers_of_ten_down_to_the_tightest_target():
    assert pareto.levels((1e-2, 1e-4)) == pytest.approx((1e-1, 1e-2, 1e-3, 1e-4))
    assert pareto.levels((2.5e-3,)) == pytest.approx((1e-1, 1e-2, 2.5e-3))
    assert pareto.levels((0.5,)) == (0.5,)
    assert len(pareto.levels(tuple(10.0**-power for power in range(1, 13)))) == 12


def test_a_point_is_what_half_of_the_instances_took_and_failures_are_never():
    made = instances(
        pg=[(1.0, 5.0), (2.0, NEVER), (3.0, NEVER)], ag=[(4.0, 4.0), (4.0, 6.0), (NEVER, 9.0)], no=[(NEVER, NEVER)] * 3, one=[(0.1, 0.2)]
    )
    points = pareto.pareto_points(made).set_index(["solver", "gap"])
    assert list(points["instances"].unique()) == [3]
    assert points.loc[("pg", 0.1), "seconds"] == 2.0
    assert np.isnan(points.loc[("pg", 0.01), "seconds"])
    assert points.loc[("pg", 0.01), "reached"] == 1
    assert points.loc[("ag", 0.1), "seconds"] == 4.0
    assert points.loc[("ag", 0.01), "seconds"] == 6.0
    assert np.isnan(points.loc[("one", 0.1), "seconds"])
    assert {point for point, front in points["front"].items() if front} == {("pg", 0.1), ("ag", 0.01)}


def test_of_equal_times_the_smaller_gap_is_ahead_and_equals_are_both():
    points = pareto.pareto_points(instances(pg=[(1.0, 1.0)], ag=[(1.0, 1.0)], late=[(0.5, 3.0)])).set_index(["solver", "gap"])
    assert {point for point, front in points["front"].items() if front} == {("pg", 0.01), ("ag", 0.01), ("late", 0.1)}


def test_the_figure_shows_the_front_under_the_solvers():
    points = pareto.pareto_points(instances(pg=[(1.0, 9.0)], ag=[(2.0, 3.0)], zero=[(0.0, NEVER)], no=[(NEVER, NEVER)]))
    figure = draw(pareto.chart(points, "the group"), style.styles_in_turn(["pg", "ag", "zero", "no"]))
    (axis,) = figure.axes
    (front,) = [line for line in axis.lines if line.get_drawstyle() == "steps-post"]
    assert list(front.get_xdata()) == [pareto.LEAST_SECONDS, 3.0]
    assert list(front.get_ydata()) == [0.1, 0.01]
    assert len(axis.lines) == 4
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in figure.texts[1:]]
    assert labels == ["pg", "ag", "zero", "front: no solver is ahead"]
    told = pareto.caption(points)
    assert "from 1e-1 to 1e-2 on half of the 1 instances" in told
    assert "Half of the instances never brought there: no." in told
    assert "Times below 1e-06 s are drawn there." in told
