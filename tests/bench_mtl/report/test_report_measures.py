"""What problems measure: the table, the courses of runs, sparsity against accuracy, and what a report says of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.report import write_report
from bench_mtl.report.columns import format_measure
from bench_mtl.report.document import report_files
from bench_mtl.report.figures import style, trade_offs, trajectories
from bench_mtl.report.figures.draw import draw
from bench_mtl.report.figures.gallery import drawings
from bench_mtl.report.registry import report_tables
from bench_mtl.report.tables.measures import NONZEROS, OBJECTIVE, quantities, quantity_of
from bench_mtl.report.tables.measures import trajectories as points_of
from bench_mtl.results.loading import read_results

ERROR = "held-out error"


def sample(seconds: float, passes: float, primal: float, nonzeros: float, error: float, asked: float | None = None, dual: float = 0.5):
    return (seconds, round(100 * passes), passes, primal, dual, asked, {NONZEROS: nonzeros, ERROR: error})


#: Its third point is worse than its second, which is the run's solution.
PG = {
    "solver": "pg",
    "samples": [sample(0.0, 1, 8.0, 0, 0.5), sample(0.2, 2, 1.0, 40, 0.2), sample(0.4, 3, 1.0, 90, 0.3, dual=1.0)],
}
ONLINE = {
    "solver": "online",
    "samples": [sample(0.001, 0.01, 4.0, 3, 0.4), sample(0.01, 0.1, 2.0, 30, 0.3), sample(0.1, 1.0, 1.5, 20, 0.25)],
}
SCS = {
    "solver": "scs", "family": "conic", "times": {"build": 0.5, "solve": 3.0}, "status": "timeout",
    "samples": [sample(1.0, 0, 1.2, 100, 0.21, 1e-2), sample(3.0, 0, 1.0, 100, 0.2, 1e-4)],
}  # fmt: skip
CRASHED = {"solver": "ecos", "status": "crashed", "reason": "signal 11"}


def slower(run: dict[str, Any], factor: float, seed: int, **more: Any) -> dict[str, Any]:
    return {**run, "seed": seed, "samples": [(factor * s, *rest) for s, *rest in run["samples"]], **more}


@pytest.fixture
def course_points(make_store):
    def made(*runs):
        results = read_results(make_store(*runs))
        return results, points_of(results.runs, results.samples, results.measures)

    return made


def table_of(folder: Path) -> pd.DataFrame:
    return report_tables(read_results(folder))["measures"].set_index(["solver", "measure"])


def test_the_table_has_the_solution_and_the_last_point(make_store):
    table = table_of(make_store(PG, SCS, CRASHED))
    assert list(table.index) == [("pg", ERROR), ("pg", NONZEROS), ("scs", ERROR), ("scs", NONZEROS)]
    pg, scs = table.loc[("pg", NONZEROS)], table.loc[("scs", ERROR)]
    assert (pg["runs"], pg["value"], pg["last"], pg["seconds"], pg["passes"]) == (1, 40, 90, 0.2, 2)
    assert (scs["value"], scs["last"], scs["seconds"], scs["kind"]) == (0.2, 0.2, 3.0, "generic")
    assert table[["value_low", "value_high", "last_low", "last_high"]].isna().all(axis=None), "one run has no spread"
    assert np.isnan(scs["passes"]), "a generic solver does not say"


def test_the_table_spreads_over_seeds_and_repetitions(make_store):
    fewer = {**PG, "seed": 2, "samples": [(*values, {NONZEROS: of[NONZEROS] / 2}) for *values, of in PG["samples"]]}
    table = table_of(make_store({**PG, "seed": 0}, slower(PG, 10.0, 1), fewer, {**CRASHED, "solver": "pg", "seed": 3}))
    nonzeros, error = table.loc[("pg", NONZEROS)], table.loc[("pg", ERROR)]
    assert (nonzeros["runs"], nonzeros["value"], nonzeros["value_low"], nonzeros["value_high"]) == (3, 40, 20, 40)
    assert (nonzeros["last_low"], nonzeros["last"], nonzeros["seconds"]) == (45, 90, 0.2)
    assert (error["runs"], error["value"], error["value_low"]) == (2, 0.2, 0.2)


def test_what_has_a_name_that_is_taken_is_told_apart(course_points):
    run = {"solver": "pg", "samples": [(0.1, 1, 1.0, 1.0, 0.5, None, {"seconds": 3.0, "objective": 7.0, "a, b": 1.0})]}
    results, points = course_points(run)
    assert quantities(points, results.measures) == [OBJECTIVE, "a, b", "objective (measured)", "seconds (measured)"]
    assert (points["seconds"].item(), points[quantity_of("seconds")].item(), points["objective"].item()) == (0.1, 3.0, 1.0)


def test_examples_are_passes_times_the_examples_of_the_problem(course_points):
    _, points = course_points(PG, ONLINE, SCS)
    assert points["examples"].tolist() == [7 * passes for passes in (1, 2, 3, 0.01, 0.1, 1.0, 0, 0)]
    assert list(trajectories.axes_of(points)) == ["seconds", "examples"], "of an online solver they say more than passes"
    assert trajectories.axes_of(points)["examples"] == "examples seen (7 are a pass)"
    assert list(trajectories.axes_of(points[points["solver"] != "online"])) == ["seconds", "passes"]
    assert list(trajectories.axes_of(points[points["solver"] == "scs"])) == ["seconds"]


@pytest.mark.parametrize(
    ("passes", "takes"), [((1, 1.01, 3), True), ((0, 0.5, 1.0), False), ((1, 1.5, 1.5), False), ((0.2, 0.7, 2.0), True)]
)
def test_a_solver_takes_examples_if_its_points_are_less_than_half_a_pass_apart(course_points, passes, takes):
    _, points = course_points({"solver": "a", "samples": [sample(i, p, 1.0, 1, 0.1) for i, p in enumerate(passes)]}, PG, SCS)
    assert trajectories.takes_examples(points) is takes


def lines_of(axis: Any, marker: str) -> list[Any]:
    return [line for line in axis.lines if line.get_marker() == marker]


def test_a_trajectory_shows_every_point_and_not_the_best_so_far(course_points):
    _, points = course_points(PG, SCS, CRASHED)
    figure = trajectories.trajectory(points, NONZEROS, style.styles_in_turn(["pg", "scs", "ecos"]))
    seconds, passes = figure.axes
    (line,) = lines_of(seconds, "o")
    assert list(line.get_xdata()) == [0.2, 0.2, 0.4], "what is at zero is drawn at the first place that is not"
    assert list(line.get_ydata()) == [0, 40, 90]
    (answers,) = lines_of(seconds, "s")
    assert (list(answers.get_xdata()), list(answers.get_ydata())) == ([1.0, 3.0], [100, 100])
    (cross,) = lines_of(seconds, "x")
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([60.0], [100])
    assert [line.get_xdata()[-1] for line in passes.lines] == [3.0], "a generic solver counts no passes"
    runs = points.drop_duplicates("run_id").rename(columns={"run_id": "id", "solver": "solver_label"})
    told = trajectories.caption(
        points, pd.concat([runs, pd.DataFrame([{"id": 99, "solver_label": "ecos", "status": "crashed"}])]), NONZEROS
    )
    for words in ("Non-zeros against solve time and passes", "may not be its best", "A cross", "ecos (crashed)", "in place of zeros"):
        assert words in told
    assert "of the best point so far" in trajectories.caption(points, runs, OBJECTIVE)
    assert "several" not in told


def test_several_runs_are_a_median_in_a_band_from_where_all_have_a_point(course_points):
    _, points = course_points(*(slower(PG, factor, seed) for seed, factor in enumerate((1.0, 2.0, 10.0))))
    curves = trajectories.drawn_trajectories(points, NONZEROS, "seconds")
    x, (low, middle, high) = trajectories.spread(curves)
    assert (x[0], x[-1]) == (0.2, 4.0)
    assert (low[-1], middle[-1], high[-1]) == (90, 90, 90)
    at = np.searchsorted(x, 0.79)
    assert (low[at], middle[at], high[at]) == (0, 40, 90), "the third run has not moved yet"
    assert (low <= middle).all()
    assert (middle <= high).all()
    figure = trajectories.trajectory(points, NONZEROS, style.styles_in_turn(["pg"]))
    assert len(figure.axes[0].patches) == 1
    assert np.isfinite(figure.axes[0].patches[0].get_xy()).all()


def test_answers_are_to_tolerances_that_all_runs_answered_and_the_last(course_points):
    short = {**SCS, "seed": 1, "samples": [sample(2.0, 0, 1.4, 50, 0.3, 1e-2)]}
    _, points = course_points({**SCS, "seed": 0}, short)
    x, y = trajectories.answers_of(trajectories.drawn_trajectories(points, NONZEROS, "seconds"))
    assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [1.0, 2.0], [2.0, 3.0]], [[50, 50], [50, 50], [100, 100]])


def test_a_long_run_is_thinned_to_its_levels(course_points):
    long = {"solver": "pg", "samples": [sample(0.1 * i, i, 1.0, i, 0.5) for i in range(1, 2001)]}
    _, points = course_points(long)
    (curve,) = trajectories.drawn_trajectories(points, NONZEROS, "passes")
    assert len(curve.x) == trajectories.LEVELS
    assert (curve.x[0], curve.x[-1], curve.y[-1]) == (1.0, 2000.0, 2000.0)


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([1.0, 9.0], False), ([1.0, 11.0], True), ([0.0, 1.0, 11.0], True), ([-1.0, 100.0], False), ([0.0, 0.0], False), ([5.0], False)],
)
def test_an_axis_is_logarithmic_where_values_are_far_apart(values, logarithmic):
    low, high, found = trajectories.value_limits(np.array(values))
    assert found is logarithmic
    assert low < high
    assert low > 0 or not logarithmic
    assert high >= max(values)
    assert low <= min(values) or min(values) == 0


def test_sparsity_against_accuracy_follows_each_solver_to_its_end(course_points):
    results, points = course_points(PG, ONLINE, SCS)
    assert trade_offs.axes_of(quantities(points, results.measures)) == (NONZEROS, ERROR)
    pg, online, scs = trade_offs.tracks(points, trade_offs.Axes(NONZEROS, ERROR))
    assert (pg.x.tolist(), pg.y.tolist()) == ([40, 90], [0.2, 0.3]), "the start at zero is left out"
    assert (online.x.tolist(), online.y.tolist()) == ([3, 30, 20], [0.4, 0.3, 0.25])
    assert (scs.x.tolist(), scs.y.tolist()) == ([100, 100], [0.21, 0.2])
    figure = draw(trade_offs.chart(points, trade_offs.Axes(NONZEROS, ERROR)), style.styles_in_turn(["pg", "online", "scs"]))
    (axis,) = figure.axes
    ends = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axis.lines if line.get_linestyle() == "None"]
    assert ends == [(90, 0.3), (20, 0.25), (100, 0.2)]
    assert axis.get_xscale() == "log"
    told = trade_offs.caption(points, trade_offs.Axes(NONZEROS, ERROR))
    assert "Points of zeros alone, such as a start at zero, are left out." in told
    assert "Of several" not in told


def test_sparsity_goes_with_the_objective_where_no_error_is_measured(course_points):
    assert trade_offs.axes_of([OBJECTIVE, "training error", ERROR, NONZEROS]) == (NONZEROS, ERROR)
    assert trade_offs.axes_of([OBJECTIVE, "training error", NONZEROS]) == (NONZEROS, "training error")
    assert trade_offs.axes_of([OBJECTIVE, NONZEROS]) == (NONZEROS, OBJECTIVE)
    assert trade_offs.axes_of([OBJECTIVE, "held-out log-wealth", "training error", NONZEROS]) == (NONZEROS, "held-out log-wealth")
    assert trade_offs.axes_of([OBJECTIVE, ERROR]) is None
    assert trade_offs.axes_of([OBJECTIVE, ERROR, NONZEROS, "features used"]) == ("features used", ERROR)
    zeros = {"solver": "pg", "samples": [(0.1 * i, i, 1.0, 1.0, 0.5, None, {NONZEROS: 0.0}) for i in range(3)]}
    _, points = course_points(zeros, slower(zeros, 2.0, 1))
    (track,) = trade_offs.tracks(points, trade_offs.Axes(NONZEROS, OBJECTIVE))
    assert (track.x.tolist(), track.y.tolist(), track.runs) == ([0.5], [1.0], 2)
    assert draw(trade_offs.chart(points, trade_offs.Axes(NONZEROS, OBJECTIVE)), style.styles_in_turn(["pg"])).axes
    told = trade_offs.caption(points, trade_offs.Axes(NONZEROS, OBJECTIVE))
    assert "No error is measured here" in told
    assert "drawn at 0.5" in told


def test_a_report_shows_measures_and_one_without_says_nothing_of_them(make_store):
    folder = make_store(PG, ONLINE, SCS, CRASHED, {**PG, "problem": "ridge", "samples": [sample[:6] for sample in PG["samples"]]})
    write_report(folder, formats=["md", "html", "csv", "tex", "parquet", "svg"])
    report = (folder / "report.md").read_text()
    assert "## Measures" in report
    lasso, ridge = (report.split(f"\n## {name}\n")[1].split("\n## ")[0] for name in ("lasso", "ridge"))
    for name in ("Objective", "Non-zeros", "Held-out error", "Sparsity against accuracy"):
        assert f"![{name} on lasso]" in lasso
    assert re.findall(r"!\[(.*?) on ridge\]", ridge) == ["Convergence", "Objective"]
    links = re.findall(r"\]\((figures/[^)]*)\)", report)
    assert all((folder / link).stat().st_size for link in links)
    assert (folder / "tables" / "measures.tex").stat().st_size
    text = "\n".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".md", ".csv", ".tex", ".html"))
    assert not re.search(r"(?<![\w-])(nan|[+-]?inf|<na>|nat)\b", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), re.IGNORECASE)
    plain = make_store({**PG, "samples": [sample[:6] for sample in PG["samples"]]}, folder="plain")
    assert "measures" not in report_tables(read_results(plain))
    assert not any(
        one.kind in ("trajectories", "trade_offs")
        for made in drawings(read_results(plain), report_tables(read_results(plain)))
        for one in made
    )


@pytest.mark.slow  # as it is without measures, in test_report_write
def test_the_same_results_give_the_same_bytes(make_store):
    folder = make_store(PG, ONLINE, slower(SCS, 2.0, 1))
    results = [read_results(folder) for _ in range(2)]
    first, second = (report_files(one, report_tables(one)) for one in results)
    assert first == second
    assert {"tables/measures.csv", "figures/non-zeros-lasso.pdf", "figures/sparsity-against-accuracy-lasso.png"} <= set(first)


def test_of_many_problems_the_first_are_on_paper(make_store, monkeypatch):
    monkeypatch.setattr("bench_mtl.report.figures.gallery.MOST_PROBLEMS", 1)
    folder = make_store(PG, {**PG, "problem": "ridge"})
    report = write_report(folder, formats=["md"]).read_text()
    assert "Objectives and measures are on paper of the first 1 problems alone" in report
    assert "Objective on ridge" not in report


def test_whole_numbers_are_printed_whole():
    assert [format_measure(value) for value in (0.0, 123456.0, 0.07, 1 / 3, -2.0, 1e300)] == [
        "0",
        "123456",
        "0.07",
        "0.3333",
        "-2",
        "1e+300",
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [{"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 0.5, None, {NONZEROS: 0.0})]}],
        [{"solver": "scs", "family": "conic", "samples": [(0.0, 0, 0.0, 0.0, 0.0, 1e-3, {"a": -1.0})]}],
        [{"solver": "pg", "samples": [(0.1, 1, 1.0, 1e300, -1e300, None, {NONZEROS: 1e300, ERROR: 1e-300})]}, CRASHED],
        [{"solver": "pg", "samples": [(0.1, 1, 1.0, 2.0, 1.0, None), (0.2, 2, 2.0, 1.5, 1.0, None, {NONZEROS: 1.0})]}],
        [{"solver": "pg", "limit": None, "status": "timeout", "samples": [(0.0, 1, 0.001, -2.0, -3.0, None, {"a": 0.0})]}],
    ],
    ids=["at once", "generic", "huge", "half measured", "no limit"],
)
def test_odd_measures_have_a_report(make_store, runs):
    folder = make_store(*runs, *({**run, "seed": 1} for run in runs))
    write_report(folder, formats=["md", "html", "csv", "tex", "parquet", "svg"])
    report = (folder / "report.md").read_text()
    assert "![Objective on lasso]" in report
    assert not re.search(r"(?<![\w-])(nan|none|[+-]?inf|<na>|nat)\b", report, flags=re.IGNORECASE)
