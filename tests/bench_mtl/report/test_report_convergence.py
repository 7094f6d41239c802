"""What a convergence figure draws."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.report.figures import convergence, style

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
        points = convergence.curves(runs, samples)
        figure = convergence.convergence(points, runs, TARGETS, style.styles_in_turn(runs["solver_label"]))
        return figure, points, convergence.caption(points, runs, TARGETS)

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
    solvers_left = [line for line in left.lines if len(line.get_xdata()) > 1 and line.get_marker() in "os"]
    solvers_right = [line for line in right.lines if len(line.get_xdata()) > 1 and line.get_marker() in "os"]
    assert (len(solvers_left), len(solvers_right)) == (2, 1)
    least = convergence.least_gap(TARGETS)
    assert least == 1e-9
    assert list(solvers_right[0].get_ydata()) == [0.5, least]
    assert list(solvers_right[0].get_xdata()) == [10.0, 100.0]
    for told in ("Gaps below 1e-9, zero among them, are drawn there", "Cut off on the left", "A cross at the top edge", "A thin line"):
        assert told in caption
    for untold in ("several", "Times of zero", "before the first pass"):
        assert untold not in caption


def test_a_solver_that_stands_still_from_the_start_is_drawn_from_the_start(drawn):
    figure, _, caption = drawn({**PG, "samples": [(0.0, 0, 0.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 0.5, None)]})
    for axis, first in zip(figure.axes, (convergence.ZERO_SECONDS, convergence.ZERO_PASSES), strict=True):
        (line,) = [line for line in axis.lines if line.get_marker() == "o"]
        assert line.get_xdata()[0] == first
        assert axis.get_xlim()[0] < first
    assert "Times of zero are drawn at 1e-6 s" in caption
    assert "Points before the first pass are drawn at 0.5" in caption
    assert "Cut off" not in caption


def test_a_solver_that_shows_points_early_in_its_first_pass_goes_forward(drawn):
    samples = [(0.1, 0, 0.0, 1.0, 0.2, None), (0.2, 1, 0.01, 1.0, 0.5, None), (0.3, 2, 0.1, 1.0, 0.6, None), (0.4, 9, 1.0, 1.0, 0.9, None)]
    figure, points, _ = drawn({"solver": "online", "samples": samples}, PG)
    (curve, _) = convergence.drawn_curves(points, "passes", TARGETS)
    assert curve.x.tolist() == [0.005, 0.01, 0.1, 1.0]
    for line in figure.axes[1].lines:
        assert (np.diff(np.asarray(line.get_xdata(), float)) >= 0).all()
    _, _, caption = drawn({"solver": "standing", "samples": [samples[0], (0.2, 1, 0.01, 1.0, 0.2, None)]})
    assert "drawn at 0.5, or at half of a run's first count where that is less." in caption


def crosses_of(axis):
    """The crosses of an axis, each solver's in a line."""
    return [line for line in axis.lines if line.get_marker() == "x"]


def is_at_top(axis, line, row=0):
    """Whether crosses are at the top edge, or in this row below it, whatever the scale."""
    height = 1.0 - 0.036 * row
    return line.get_transform() == axis.get_xaxis_transform() and np.allclose(line.get_ydata(), height)


def test_a_timeout_is_a_cross_at_the_top_edge_and_in_the_legend(drawn):
    figure, _, _ = drawn(PG, SCS)
    (cross,) = crosses_of(figure.axes[0])
    assert list(cross.get_xdata()) == [60.0]
    assert is_at_top(figure.axes[0], cross)
    assert not crosses_of(figure.axes[1]), "it counts no passes"
    (tail,) = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [3.0, 60.0]]
    assert list(tail.get_ydata()) == [pytest.approx(0.01)] * 2
    labels = [text.get_text() for text in figure.texts[1:]]
    assert labels == ["pg", "scs (timeout)", "targets", "ended short of its target, at that time"]


def test_who_proved_nothing_has_its_cross_where_its_time_ended_and_those_that_meet_are_below_each_other(drawn):
    late = {"status": "timeout", "limit": 60.0}
    inaccurate = {**PG, "solver": "ag", "status": "inaccurate"}
    figure, _, caption = drawn(PG, {"solver": "ecos", **late}, {"solver": "scs", **late}, inaccurate)
    axis = figure.axes[0]
    assert [list(line.get_xdata()) for line in crosses_of(axis)] == [[60.0], [60.0], [pytest.approx(0.4)]]
    assert [is_at_top(axis, line, row) for line, row in zip(crosses_of(axis), (0, 1, 0), strict=True)] == [True] * 3
    assert axis.get_xlim()[1] > 60.0
    styles = style.styles_in_turn(["pg", "ecos", "scs", "ag"])
    assert [line.get_color() for line in crosses_of(axis)] == [styles[name].colour for name in ("ecos", "scs", "ag")]
    assert [list(line.get_xdata()) for line in crosses_of(figure.axes[1])] == [[100.0]]
    handles = dict(zip([text.get_text() for text in figure.texts[1:]], figure.artists, strict=True))
    assert handles["ecos (timeout): nothing proven"].get_marker() == "x"
    assert handles["ecos (timeout): nothing proven"].get_color() == styles["ecos"].colour
    assert "at the time that it had." in caption
    assert "the right edge" not in caption


def test_a_failure_without_a_time_is_at_the_right_edge(make_store, frames):
    runs, samples = frames(make_store(PG, {"solver": "scs", "status": "memory", "times": {"build": 1.0, "solve": 0.0}}))
    runs["limit_seconds"] = np.nan
    points = convergence.curves(runs, samples)
    (panel, _) = convergence.chart(points, runs, TARGETS).panels
    assert panel.failed == (("scs", panel.x.high),)
    assert "or at the right edge where that is not known" in convergence.caption(points, runs, TARGETS)


def test_one_panel_where_nobody_counts_passes_and_words_for_who_is_not_drawn(drawn):
    crashed, skipped = {"solver": "ecos", "status": "crashed"}, {"solver": "ag", "status": "skipped"}
    figure, _, caption = drawn(SCS, crashed, skipped)
    assert len(figure.axes) == 1
    assert "No solver here counts passes" in caption
    assert "Without a proven point, so without a curve: ecos (crashed), ag (skipped)." in caption
    labels = [text.get_text() for text in figure.texts[1:]]
    assert "ecos (crashed): nothing proven" in labels
    assert not any(label.startswith("ag") for label in labels)


def median_of(axis):
    """The line of the first solver."""
    (line,) = [line for line in axis.lines if line.get_drawstyle() == "steps-post" and line.get_marker() == "o"]
    return line


def test_few_runs_are_a_median_in_a_band_of_them_all(drawn):
    slow = {**PG, "samples": [(10.0 * t, *rest) for t, *rest in PG["samples"]]}
    figure, _, caption = drawn(
        *({**one, "seed": seed} for seed, one in enumerate((PG, slow, slow))), {"solver": "ag", "samples": PG["samples"]}
    )
    axis = figure.axes[0]
    (band,) = axis.patches
    median = median_of(axis)
    x, y = (np.asarray(values) for values in median.get_data())
    assert x[y < 0.1][0] == pytest.approx(4.0, rel=0.05)
    corners = band.get_xy()
    assert corners[corners[:, 1] < 0.1, 0].min() == pytest.approx(0.4, rel=0.05)
    assert corners[:, 1].max() == 0.5
    assert "in a band from the best to the worst of them." in caption
    assert "nine tenths" not in caption


def falling(size, seed=0, last=1e-8):
    """A curve of best gaps so far with long steps, and times for it."""
    generator = np.random.default_rng(seed)
    gaps = np.minimum.accumulate(np.exp(np.linspace(0.0, np.log(last), size) + generator.normal(size=size)))
    return gaps, np.cumsum(generator.exponential(size=size))


def steps(x, y, at):
    """The value at `at` of the line in steps through x, y; infinite before it."""
    place = np.searchsorted(x, at, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.inf)


def test_a_short_curve_is_drawn_whole():
    assert convergence.visible(falling(convergence.LEVELS)[0], TARGETS).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_long_curve_keeps_its_envelope_and_reaches_every_target_when_it_did(seed):
    gaps, seconds = falling(20_000, seed)
    kept = convergence.visible(gaps, TARGETS)
    assert kept.sum() <= convergence.LEVELS + 2 + len(TARGETS)
    assert kept[[0, -1]].all()
    for target in TARGETS:
        assert kept[np.argmax(gaps <= target)]
    drawn = steps(seconds[kept], gaps[kept], seconds)
    assert (drawn >= gaps).all()
    level = np.log(gaps[0] / gaps[-1]) / convergence.LEVELS
    assert (np.log(drawn / gaps) <= level * (1 + 1e-9)).all()


def test_a_long_curve_that_stands_still_is_its_two_ends():
    kept = convergence.visible(np.full(5000, 0.5), (1e-2, 0.7))
    assert np.flatnonzero(kept).tolist() == [0, 4999]


def test_a_long_run_reaches_the_targets_in_its_figure_when_it_did(drawn):
    gaps, seconds = falling(2000)
    run = {
        "solver": "pg",
        "samples": [(t, i, float(i), 1.0, 1.0 - gap, None) for i, (t, gap) in enumerate(zip(seconds, gaps, strict=True))],
    }
    figure, points, _ = drawn(run)
    assert len(points) == 2000  # the data of the figure are all there
    for axis, column in zip(figure.axes, ("seconds", "passes"), strict=True):
        (line,) = [line for line in axis.lines if len(line.get_xdata()) > 2]
        x, y = (np.asarray(values) for values in line.get_data())
        assert len(x) <= convergence.LEVELS + 2 + len(TARGETS)
        for target in TARGETS:
            assert x[y <= target][0] == points.loc[points["relative_gap"] <= target, column].iloc[0]


def curve(x, y):
    x, y = np.array(x, float), np.array(y, float)
    return convergence.Trajectory("pg", False, x, y, np.full(len(x), np.nan), None)


def test_what_shares_of_runs_have_proven_is_never_too_good_and_keeps_failures():
    curves = []
    for seed in range(15):
        gaps, seconds = falling(400, seed)
        curves.append(curve(seconds[: 400 - 10 * seed], gaps[: 400 - 10 * seed]))
    x, (low, middle, high) = convergence.quantiles(curves, 20, (0.1, 0.5, 0.9))  # 5 runs have no point
    each = np.sort([steps(one.x, one.y, x) for one in curves] + [np.full(len(x), np.inf)] * 5, axis=0)
    assert (x[0], x[-1]) == (min(one.x[0] for one in curves), max(one.x[-1] for one in curves))
    assert np.array_equal(low, each[1])
    assert np.array_equal(middle, each[9])
    assert np.isinf(high).all()  # a quarter of the runs never proved a thing


CROWD = [{**PG, "seed": seed, "samples": [(t * (1 + seed), *rest) for t, *rest in PG["samples"]]} for seed in range(11)]


def test_many_runs_are_a_median_in_a_band_of_most(drawn):
    stopped = [{**one, "status": "timeout"} for one in CROWD[:3]]
    few = [{"solver": "ag", "samples": PG["samples"], "seed": seed} for seed in range(convergence.MOST_ENCLOSED)]
    figure, points, caption = drawn(*stopped, *CROWD[3:], {"solver": "pg", "status": "crashed", "seed": 99}, *few)
    assert "in a band from the best to the worst of them, or of more than 10 from a tenth of them to nine tenths." in caption
    assert "the median of such runs" in caption
    for axis in figure.axes:
        median = median_of(axis)
        assert len(axis.patches) == 2
        assert len(crosses_of(axis)) == 1
        x, y = median.get_data()
        assert (np.diff(y) <= 0).all()
    median = median_of(figure.axes[0])
    x, y = (np.asarray(values) for values in median.get_data())
    # Of 12 runs the sixth to prove its last gap did so after 0.4 * 6 s; the line knows within one of its points.
    assert x[y < 0.1][0] == pytest.approx(2.4, rel=0.1)
    assert x[y < 0.1][0] >= 2.4
    assert set(points["solver"]) == {"pg", "ag"}


def test_a_run_without_a_point_opens_the_band_to_the_top(drawn):
    figure, _, _ = drawn({**PG, "seed": 0}, {**PG, "seed": 1}, {"solver": "pg", "status": "crashed", "seed": 2})
    for axis in figure.axes:
        (band,) = axis.patches
        assert band.get_xy()[:, 1].max() == axis.get_ylim()[1]


def test_many_runs_of_a_generic_solver_are_the_medians_of_its_answers(drawn):
    runs = [{**SCS, "seed": seed, "samples": [(t + seed, *rest) for t, *rest in SCS["samples"]]} for seed in range(11)]
    figure, _, caption = drawn(*runs)
    (line,) = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2 and line.get_marker() != "None"]
    assert list(line.get_xdata()) == [7.0, 8.0]
    assert list(line.get_ydata()) == [pytest.approx(0.01), pytest.approx(0.1)]
    (cross,) = crosses_of(figure.axes[0])
    assert list(cross.get_xdata()) == [60.0] * 11
    assert "with bars" in caption


def test_a_gap_without_end_is_drawn_as_the_greatest(drawn):
    figure, _, caption = drawn({"solver": "pg", "samples": [(0.1, 1, 1.0, 1.0, -np.inf, None), (0.2, 2, 2.0, 1.0, 1.0, None)]})
    (line,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert list(line.get_ydata()) == [convergence.GREATEST_GAP, convergence.least_gap(TARGETS)]
    assert "Gaps above 1e6 are drawn there." in caption
    assert np.isfinite(figure.axes[0].get_ylim()).all()


def solving(solver, gap, seconds, kind, **more):
    """A run that proves a gap after so many seconds, and a tenth of it, the last, after twice as many."""
    asked = {"generic": 1e-6, "peer": 1e-6}.get(kind)
    samples = [(seconds, 1, 1.0, 1.0, 1.0 - gap, asked), (2.0 * seconds, 2, 2.0, 1.0, 1.0 - gap / 10.0, asked and 1e-8)]
    return {"solver": solver, "samples": samples, **more}


def chosen(make_store, frames, *made, kinds=None):
    runs, samples = frames(make_store(*made))
    if kinds is not None:
        runs["kind"] = runs["solver_label"].map(kinds)
    return convergence.leading(convergence.curves(runs, samples), runs, (1e-2, 1e-6))


def test_those_that_prove_most_soonest_lead(make_store, frames):
    made = [
        solving("late", 1e-6, 9.0, "specialised"),
        solving("coarse", 1e-2, 0.5, "specialised"),
        solving("none", 0.5, 0.1, "specialised"),
    ]
    made += [solving("soon", 1e-6, 2.0, "specialised"), {"solver": "crashed", "status": "crashed"}]
    assert chosen(make_store, frames, *made) == ["soon", "coarse", "late", "none"], "coarse is the first to the loose target"


def test_the_fastest_of_each_kind_to_each_target_come_first(make_store, frames):
    kinds = {f"own{i}": "specialised" for i in range(10)} | {"slow": "generic", "loose": "generic", "peer": "peer"}
    made = [solving(f"own{i}", 1e-6, 1.0 + i, "specialised") for i in range(10)]
    made += [solving("slow", 1e-6, 50.0, "generic"), solving("loose", 1e-3, 30.0, "generic"), solving("peer", 1e-3, 40.0, "peer")]
    found = chosen(make_store, frames, *made, kinds=kinds)
    assert found == ["own0", "slow", "loose", "peer", "own1", "own2", "own3", "own4"]
    assert len(found) == convergence.MOST_CURVES


def test_a_solver_proves_what_half_of_its_runs_do(make_store, frames):
    lucky = [solving("lucky", 1e-6, 0.1, "specialised", seed=0)] + [solving("lucky", 0.5, 0.1, "specialised", seed=seed) for seed in (1, 2)]
    steady = [solving("steady", 1e-6, 5.0, "specialised", seed=seed) for seed in range(3)]
    assert chosen(make_store, frames, *lucky, *steady) == ["steady", "lucky"]


def test_a_part_of_a_figure_has_the_axes_of_the_whole(make_store, frames):
    runs, samples = frames(make_store(PG, SCS, {**PG, "solver": "ag", "status": "timeout", "limit": 90.0}))
    points = convergence.curves(runs, samples)
    whole = convergence.chart(points, runs, TARGETS)
    part = whole.only(["scs"], "the rest")
    assert (whole.solvers, part.solvers, part.title) == (["pg", "scs", "ag"], ["scs"], "the rest")
    assert (part.y, part.panels[0].x) == (whole.y, whole.panels[0].x)
    assert len(part.panels) == 1, "it counts no passes"
    assert [solver for solver, _ in part.panels[0].failed or ()] == ["scs"]
    figure = convergence.convergence(points, runs, TARGETS, style.styles_in_turn(["pg", "scs", "ag"]), ["pg", "ag"])
    assert [text.get_text() for text in figure.texts[1:3]] == ["pg", "ag (timeout)"]
