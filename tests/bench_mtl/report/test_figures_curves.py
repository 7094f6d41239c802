"""Courses of runs: what is drawn of which rows."""

import numpy as np
import pytest

from bench_mtl.report.figures import curves, group_lines
from bench_mtl.report.tables.measures import NONZEROS, OBJECTIVE
from bench_mtl.results.loading import read_results

TARGETS = (1e-2, 1e-6)

PG = {"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 0.4, None), (0.4, 99, 100.0, 1.0, 1.0, None)]}
SCS = {
    "solver": "scs",
    "status": "timeout",
    "times": {"build": 1.0, "solve": 60.0},
    "samples": [(3.0, 40, 0.0, 1.0, 0.9, 1e-3), (2.0, 50, 0.0, 1.0, 0.99, 1e-5)],
}
SKIPPED, CRASHED = {"solver": "ag", "status": "skipped"}, {"solver": "ecos", "status": "timeout", "limit": 60.0}


@pytest.fixture
def points(make_store):
    def made(*runs):
        results = read_results(make_store(*runs))
        return curves.course_points(results.runs, results.samples, results.measures)

    return made


def lines_of(axis, gid, marker=None):
    """The lines of a solver, or those with a marker."""
    return [line for line in axis.lines if line.get_gid() == f"solver-{gid}" and (marker is None or line.get_marker() == marker)]


def labels_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_attempts_of_a_one_shot_solver_are_markers_and_its_line_never_runs_back(points):
    """Its loosest answer was the latest: no line joins them. Gaps are the best so far."""
    courses = points(PG, SCS, SKIPPED)
    assert courses.groupby("solver")[curves.GAP].agg(list)["pg"] == [0.5, 0.5, 0.0]
    figure = curves.courses(courses, targets=TARGETS)
    markers, steps = lines_of(figure.axes[0], "scs")[:2]
    assert markers.get_linestyle() == "None"
    assert list(markers.get_xdata()) == [2.0, 3.0]
    assert list(markers.get_ydata()) == pytest.approx([0.01, 0.1])
    assert list(steps.get_xdata()) == [2.0, 3.0, 60.0], "it was at work until its limit"
    assert list(steps.get_ydata()) == pytest.approx([0.01, 0.01, 0.01])
    (cross,) = lines_of(figure.axes[0], "scs", "x")
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (60.0, pytest.approx(0.01))
    assert labels_of(figure) == ["pg", "scs (timeout)"]


def test_who_proved_nothing_is_a_cross_at_the_top_at_the_time_that_it_had(points):
    figure = curves.courses(points(PG, CRASHED, {**CRASHED, "solver": "qp"}), targets=TARGETS)
    axis = figure.axes[0]
    crosses = [*lines_of(axis, "ecos"), *lines_of(axis, "qp")]
    assert [list(cross.get_xdata()) for cross in crosses] == [[60.0], [60.0]]
    assert axis.get_xlim()[1] >= 60.0
    assert crosses[0].get_transform() == axis.get_xaxis_transform()
    assert len({cross.get_ydata()[0] for cross in crosses}) == 2, "below each other"
    assert labels_of(figure) == ["pg", "ecos (timeout): no point", "qp (timeout): no point"]


@pytest.mark.parametrize("seed", range(3))
def test_a_long_curve_keeps_its_envelope_and_reaches_every_target_when_it_did(seed):
    rng = np.random.default_rng(seed)
    gaps = np.minimum.accumulate(np.exp(np.linspace(0.0, np.log(1e-8), 20_000) + rng.normal(size=20_000)))
    places = curves.thinned(gaps, TARGETS)
    assert len(places) <= curves.LEVELS + 2 + len(TARGETS)
    assert {0, len(gaps) - 1, *(np.argmax(gaps <= target) for target in TARGETS)} <= set(places)
    drawn = gaps[places][np.searchsorted(places, np.arange(len(gaps)), side="right") - 1]
    assert (drawn >= gaps).all()
    assert (np.log(drawn / gaps) <= np.log(gaps[0] / gaps[-1]) / curves.LEVELS * (1 + 1e-9)).all()
    assert len(curves.thinned(gaps, None)) == len(curves.thinned(gaps[: curves.LEVELS], TARGETS)) == curves.LEVELS
    assert list(curves.thinned(np.full(5000, 0.5), TARGETS)) == [0, 4999]


def measured(seconds, passes, primal, nonzeros, asked=None):
    return (seconds, round(9 * passes), passes, primal, 0.5, asked, {NONZEROS: nonzeros, "held-out error": 0.1 * primal})


TRACK = {"solver": "pg", "samples": [measured(0.0, 1, 8.0, 0), measured(0.2, 2, 1.0, 40), measured(0.4, 3, 1.0, 90)]}


def test_a_measure_is_of_every_point_and_not_the_best_so_far(points):
    answered = {"solver": "scs", "family": "conic", "times": {"build": 0.5, "solve": 3.0}, "samples": [measured(1.0, 0, 1.2, 100, 1e-2)]}
    found = points(TRACK, answered)
    figure = curves.courses(found, NONZEROS)
    seconds, passes = figure.axes
    (line,) = lines_of(seconds, "pg")
    assert list(line.get_xdata()) == [0.2, 0.2, 0.4], "what is at zero stands at the first place that is not"
    assert list(line.get_ydata())[1:] == [40, 90]
    assert len(lines_of(seconds, "scs")) == 1, "markers alone"
    assert passes.get_xlabel() == "passes over the data"
    axes = group_lines.trade_off_of([OBJECTIVE, "held-out error", NONZEROS])
    track = group_lines.trade_off_points(found, axes)
    assert track[["solver", "x", "y"]].to_numpy().tolist() == [["pg", 40, 0.1], ["pg", 90, 0.1], ["scs", 100, pytest.approx(0.12)]]
    (axis,) = group_lines.trade_off(track, axes).axes
    assert [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == "None"] == [90, 100], "markers are where runs end"


@pytest.mark.parametrize(
    ("passes", "label"), [((1, 1.01, 3), "examples seen"), ((0, 0.5, 1.0), "passes over the data"), ((0.2, 0.7, 2.0), "examples seen")]
)
def test_a_solver_takes_examples_if_its_points_are_less_than_half_a_pass_apart(points, passes, label):
    found = points({"solver": "a", "samples": [measured(1.0 + i, p, 1.0 / (i + 1), 1) for i, p in enumerate(passes)]})
    assert curves.courses(found, OBJECTIVE).axes[1].get_xlabel() == label
