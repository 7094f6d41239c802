"""The spread of ratios, against pairs worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from bench_mtl.report.figures import drawing, gallery, spread
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.loading import View, read_results

TARGETS = (1e-2, 1e-6)


def run(solver, seconds, *, problem="p", target=1e-6, **more):
    """A run that proves a gap after so many seconds, or nothing if that is None."""
    asked = 1e-6 if solver in ("scs", "ecos") else None
    common = {"solver": solver, "problem": problem, "times": {"build": 0.1 if asked else 0.0, "solve": seconds or 60.0}}
    if seconds is None:
        return {**common, "status": "timeout", "samples": [(1.0, 1, 1.0, 1.0, 0.2, asked)], **more}
    status = "verified" if target <= 1e-6 else "inaccurate"
    return {**common, "status": status, "samples": [(seconds, 9, 9.0, 1.0, 1.0 - target, asked)], **more}


def points_of(folder, baseline=None, targets=(1e-6,)):
    results = read_results(folder, View(baseline=baseline))
    times = run_times(results.runs, results.samples, targets)
    return spread.spread_points(times, winners(contests(times), baseline), groups(results.runs))


def test_repetitions_are_paired_without_the_first_and_a_single_run_goes_with_all(make_store):
    own = [run("pg", seconds, repetition=repetition) for repetition, seconds in enumerate((9.0, 1.0, 2.0))]
    its = [run("scs", seconds, repetition=repetition) for repetition, seconds in enumerate((90.0, 8.0, 20.0))]
    points = points_of(make_store(*own, *its, folder="several"))
    assert points["ratio"].tolist() == pytest.approx([8.0, 10.0])
    assert points[["seconds", "reference_seconds", "pair"]].to_numpy().tolist() == [[1.0, 8.0, 1.0], [2.0, 20.0, 2.0]]
    assert not points["drawn"].any(), "too few"
    points = points_of(make_store(*own, run("scs", 40.0), folder="single"))
    assert points["ratio"].tolist() == pytest.approx([40.0, 20.0])


def test_ratios_are_of_one_direction_whoever_wins_and_bounds_are_not_there(make_store):
    made = [run("pg", 1.0, problem="a"), run("scs", 5.0, problem="a"), run("pg", 8.0, problem="b"), run("scs", 2.0, problem="b")]
    made += [run("pg", 1.0, problem="c"), run("scs", None, problem="c"), run("pg", 1.0, problem="d"), run("scs", 3.0, problem="d")]
    made += [run("pg", 2.0, problem="e"), run("scs", 2.0, problem="e")]
    points = points_of(make_store(*made))
    assert dict(zip(points["problem"], points["ratio"], strict=True)) == pytest.approx({"a": 5.0, "b": 0.25, "d": 3.0, "e": 1.0})
    assert set(points["solver"]) == {"pg"}
    assert set(points["reference"]) == {"scs"}
    assert points["drawn"].all()
    assert set(points["group"]) == {"family on synthetic"}


def test_against_a_baseline_the_others_are_measured(make_store):
    made = [run("pg", 1.0, problem=name) for name in "abcd"] + [run("ag", 4.0, problem=name) for name in "abcd"]
    folder = make_store(*made)
    assert points_of(folder).empty, "nobody of the other kind"
    points = points_of(folder, "ag")
    assert points["ratio"].tolist() == pytest.approx([4.0] * 4)
    assert "of ag and the other solver" in spread.caption(points, "ag")
    assert spread.spread(points, "ag").axes[0].get_xlabel() == "time of ag / the other's"


@pytest.fixture
def many(make_store):
    """Two groups of like problems and two targets; the second group has enough ratios to the loose one alone."""
    made = []
    for group, gap in (("one", 1e-6), ("two", 1e-3)):
        for i in range(4):
            about = {"problem": f"{group} {i}", "data": {"name": group}, "target": gap}
            made += [run("pg", 1.0 + i, **about), run("scs", 10.0 * (1 + i) ** 2 if i else 0.5, **about)]
    return make_store(*made)


def test_the_figure_has_a_row_per_group_and_target_and_a_dot_per_ratio(many):
    points = points_of(many, targets=TARGETS)
    figure = spread.spread(points)
    (axis,) = figure.axes
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert labels == ["1e-2", "1e-6", "1e-2"]
    assert [(text.get_text(), text.get_position()[1]) for text in axis.texts] == [("family on one", 0), ("family on two", 3)]
    dots = [place for collection in axis.collections for place in collection.get_offsets().tolist() if len(place) and place != [0.0, 0.0]]
    assert sorted({x for x, _ in dots}) == pytest.approx([0.5, 20.0, 30.0, 40.0])
    assert len(dots) == 12
    assert sorted({round(y) for _, y in dots}) == [1, 2, 4]
    medians = [line.get_xdata()[0] for line in axis.lines if line.get_color() == "0.15"]
    assert medians == pytest.approx([600.0**0.5] * 3)
    assert axis.get_xscale() == "log"
    low, high = axis.get_xlim()
    assert low < 0.5
    assert high > 40.0
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for artist in (*figure.texts, *axis.texts, *axis.get_yticklabels(), axis.xaxis.label):
        box = artist.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height


def test_the_caption_says_what_is_not_drawn(many, monkeypatch):
    points = points_of(many, targets=TARGETS)
    assert "A row is of a group of like problems and a target, of 4 ratios or more" in spread.caption(points)
    assert "not drawn" not in spread.caption(points)
    monkeypatch.setattr(spread, "MOST_ROWS", 2)
    assert "The first 2 of 3 rows; the data have them all." in spread.caption(points)
    assert len(spread.spread(points).axes[0].get_yticklabels()) == 2
    few = points[points["problem"] != "two 0"].assign(drawn=points["group"] == "family on one")
    assert "Rows of fewer, not drawn: 1; they are in the data." in spread.caption(few)


def test_a_report_has_the_figure_where_there_are_enough_ratios(many, make_store):
    from bench_mtl.report.registry import report_tables

    results = read_results(many)
    drawn, undrawn = gallery.drawings(results, report_tables(results))
    (found,) = [one for one in drawn if one.kind == "spread"]
    assert (found.stem, found.about, len(found.data)) == ("spread", "", 12 + 4)
    assert drawing.files(found) == drawing.files(found)
    assert not [one for one in undrawn if one.kind == "spread"]
    results = read_results(make_store(run("pg", 1.0), run("scs", 2.0), folder="few"))
    (missing,) = [one for one in gallery.drawings(results, report_tables(results))[1] if one.kind == "spread"]
    assert missing.sentence == "No group of like problems has 4 ratios of single runs to one target, so their spread is not drawn."


def test_nothing_to_compare_is_no_row():
    times = pd.DataFrame({"problem": [], "target": []})
    empty = pd.DataFrame(columns=["problem", "target", "winner", "other", "ratio", "at_least", "reference_wins"])
    columns = ["instance", "solver", "seconds", "limit_seconds", "had_seconds", "status", "kind", "repetition"]
    assert spread.spread_points(times.assign(**{name: [] for name in columns}), empty, {}).empty
