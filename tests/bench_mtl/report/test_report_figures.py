"""What a convergence figure draws."""

from __future__ import annotations

import pytest

from bench_mtl.report import figures

TARGETS = (1e-2, 1e-6)

PG = {"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 0.4, None), (0.4, 99, 100.0, 1.0, 1.0, None)]}
SCS = {
    "solver": "scs",
    "status": "timeout",
    "times": {"build": 1.0, "solve": 60.0},
    "samples": [(3.0, 40, 0.0, 1.0, 0.9, 1e-3), (2.0, 50, 0.0, 1.0, 0.99, 1e-5)],
}


@pytest.fixture
def drawn(make_store, frames):
    def draw(*made):
        runs, samples = frames(make_store(*made))
        points = figures.curves(runs, samples)
        figure = figures.convergence(points, runs, TARGETS, figures.line_styles(runs["solver_label"]))
        return figure, points, figures.caption(points, runs)

    return draw


def test_curves_are_best_so_far_and_in_order_of_time(drawn):
    _, points, _ = drawn(PG, SCS)
    pg, scs = (points[points["solver"] == name] for name in ("pg", "scs"))
    assert list(pg["relative_gap"]) == [0.5, 0.5, 0.0]
    assert list(scs["seconds"]) == [2.0, 3.0]


def test_two_panels_share_the_gap_and_only_passes_that_are_counted_are_drawn(drawn):
    figure, _, caption = drawn(PG, SCS)
    left, right = figure.axes
    assert (left.get_xscale(), left.get_yscale(), right.get_xscale()) == ("log", "log", "log")
    assert left.get_ylim() == right.get_ylim()
    solvers_left = [line for line in left.lines if len(line.get_xdata()) > 1 and line.get_linestyle() == "-"]
    solvers_right = [line for line in right.lines if len(line.get_xdata()) > 1 and line.get_linestyle() == "-"]
    assert (len(solvers_left), len(solvers_right)) == (2, 1)
    assert list(solvers_right[0].get_ydata()) == [0.5, 0.5, figures.ZERO_GAP]
    assert list(solvers_right[0].get_xdata()) == [figures.ZERO_PASSES, 10.0, 100.0]
    assert solvers_left[0].get_xdata()[0] == figures.ZERO_SECONDS
    for told in (
        "Gaps of exactly zero are drawn at 1e-16",
        "Times of zero are drawn at 1e-06 s",
        "Points before the first pass",
        "A cross",
    ):
        assert told in caption


def test_a_timeout_is_marked_at_its_limit_and_in_the_legend(drawn):
    figure, _, _ = drawn(PG, SCS)
    (cross,) = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([60.0], [pytest.approx(0.01)])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["pg", "scs (timeout)", "targets", "stopped by a limit"]


def test_one_panel_where_nobody_counts_passes_and_words_for_who_is_not_drawn(drawn):
    crashed, skipped = {"solver": "ecos", "status": "crashed"}, {"solver": "ag", "status": "skipped"}
    figure, _, caption = drawn(SCS, crashed, skipped)
    assert len(figure.axes) == 1
    assert "No solver here counts passes" in caption
    assert "Without a proven point, so not drawn: ecos (crashed), ag (skipped)." in caption
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "ecos (crashed): nothing proven" in labels
    assert not any(label.startswith("ag") for label in labels)


def test_seeds_are_thin_lines_of_one_colour(drawn):
    figure, _, caption = drawn({**PG, "seed": 0}, {**PG, "seed": 1}, {"solver": "ag", "samples": PG["samples"], "seed": 0})
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    first, second, other = lines
    assert first.get_color() == second.get_color() != other.get_color()
    assert first.get_linewidth() < other.get_linewidth()
    assert "One thin line for each seed and repetition" in caption


def test_ninety_solvers_look_different():
    styles = figures.line_styles(f"solver {i}" for i in range(90))
    assert len(set(styles.values())) == 90
