"""What the profiles of a group draw, against shares counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.report.figures import profiles, style
from bench_mtl.report.figures.draw import draw
from bench_mtl.report.tables.instances import instance_times

TARGET = 1e-6


def run(solver, seed, seconds, passes=0.0, **more):
    """A run that proves the target after so many seconds, or is stopped if that is None."""
    asked = 1e-6 if solver == "scs" else None
    if seconds is None:
        return {"solver": solver, "seed": seed, "status": "timeout", "samples": [(60.0, 9, passes, 1.0, 0.5, asked)], **more}
    return {"solver": solver, "seed": seed, "samples": [(seconds, 9, passes, 1.0, 1.0, asked)], **more}


#: Seconds on four instances, and passes.
TIMES = {"pg": [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0), (None, 90.0)], "ag": [(2.0, 30.0), (1.0, 10.0), (8.0, 80.0), (3.0, 30.0)]}
SCS = [(10.0, 0.0), (20.0, 0.0), (2.0, 0.0), (None, 0.0)]


def of(make_store, frames, made):
    instances = instance_times(*frames(make_store(*made)), [TARGET])
    points = profiles.profile_points(instances, TARGET)
    return points, draw(profiles.chart(points, "the group"), style.styles_in_turn(instances["solver"]))


@pytest.fixture
def drawn(make_store, frames):
    made = [run(solver, seed, *one) for solver, ones in {**TIMES, "scs": SCS}.items() for seed, one in enumerate(ones)]
    return of(make_store, frames, [*made, {"solver": "ecos", "seed": 0, "status": "skipped"}])


def share(axis, look, at):
    """What the curve of a solver is at `at`."""
    (line,) = [line for line in axis.lines if line.get_marker() == look.marker]
    assert line.get_drawstyle() == "steps-post"
    x, y = (np.asarray(values) for values in line.get_data())
    return y[np.searchsorted(x, at, side="right") - 1]


def test_the_curves_are_the_shares(drawn):
    points, figure = drawn
    left, middle, right = figure.axes
    pg, ag, scs = style.styles_in_turn(["pg", "ag", "scs"]).values()
    assert all(axis.get_xscale() == "log" for axis in figure.axes)
    assert [share(left, look, 1.0) for look in (pg, ag, scs)] == [0.25, 0.5, 0.25]
    assert [share(left, look, 2.5) for look in (pg, ag, scs)] == [0.75, 0.75, 0.25]
    assert [share(left, look, left.get_xlim()[1]) for look in (pg, ag, scs)] == [0.75, 1.0, 0.75]
    assert points["leader"].unique() == ["ag"]
    assert [share(middle, look, 1.0) for look in (pg, scs)] == [0.5, 0.25]
    assert share(middle, pg, 1.99) == 0.5
    assert share(middle, pg, 2.0) == 0.75
    assert not [line for line in middle.lines if line.get_marker() == ag.marker]
    assert middle.get_xlabel() == "time over that of ag"
    assert share(right, pg, 20.0) == 0.5
    assert share(right, ag, 30.0) == 0.75
    assert not [line for line in right.lines if line.get_marker() == scs.marker]
    assert [text.get_text() for text in figure.texts[1:]] == ["pg", "ag", "scs"]


def test_the_caption_says_what_is_what(drawn):
    told = profiles.caption(drawn[0])
    assert told.startswith("Share of the 4 instances solved to a proven relative gap of 1e-6")
    assert "of ag alone" in told
    assert "not solved:" not in told
    assert "left edge" not in told


def test_a_solver_that_was_run_on_fewer_instances_is_told_and_the_leader_s_failures_are_seen(make_store, frames):
    made = [run("pg", seed, 1.0) for seed in range(3)] + [run("pg", 3, None), run("ag", 3, 5.0)]
    made += [run("ag", seed, None) for seed in range(3)] + [run("cd", 0, 0.1)]
    points, figure = of(make_store, frames, made)
    told = profiles.caption(points)
    assert "Not run on every instance, and left out: cd." in told
    assert set(points["solver"]) == {"pg", "ag"}
    assert "instances that pg has not solved" in told
    look = style.styles_in_turn(["pg", "ag"])["ag"]
    assert share(figure.axes[1], look, figure.axes[1].get_xlim()[0]) == 0.25
    assert len(figure.axes) == 2  # nobody counts passes


def test_one_solver_has_no_pairs_and_times_of_zero_are_no_division(make_store, frames):
    points, figure = of(make_store, frames, [run("pg", seed, 0.0, 1.0) for seed in range(3)])
    assert set(points["panel"]) == {"performance", "budget"}
    assert len(figure.axes) == 2
    assert np.isfinite([limit for axis in figure.axes for limit in (*axis.get_xlim(), *axis.get_ylim())]).all()
    assert np.isfinite(points[["at", "share"]]).all(axis=None)
