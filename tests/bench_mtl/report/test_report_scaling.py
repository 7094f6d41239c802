"""Scaling in the size of the data, and ratios of like problems, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from bench_mtl.report import write_report
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import groups, speed_ups
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.scaling import scaling_fits, scaling_points
from bench_mtl.results.frames import with_ranges

TARGETS = (1e-2, 1e-6)


def run(solver, size, seconds, *, key="examples", **more):
    """A run that proves everything after so many seconds, or is stopped if that is None."""
    data = {"name": "made_up", "tasks": 2, key: size}
    common = {"solver": solver, "problem": f"made up {key}={size}", "data": data, "limit": 60.0, **more}
    if seconds is None:
        return {**common, "status": "timeout", "samples": [(60.0, 9, 9.0, 1.0, 0.5, more.get("asked"))]}
    return {**common, "samples": [(seconds, 9, 9.0, 1.0, 1.0, more.get("asked"))]}


def sweep(make_store):
    quick = [run("pg", n, 0.001 * n**1.5) for n in (10, 100, 1000)]
    slow = [run("scs", n, t, asked=1e-3, times={"build": 0.1, "solve": 1.0}) for n, t in ((10, 1.0), (100, 40.0), (1000, None))]
    return make_store(*quick, *slow)


def test_exponents_are_fitted_where_enough_sizes_were_reached(make_store, frames):
    points = scaling_points(*frames(sweep(make_store)), 1e-6)
    assert set(points["key"]) == {"examples"}
    fits = scaling_fits(points).set_index("solver")
    assert fits.loc["pg", "exponent"] == pytest.approx(1.5)
    assert (fits.loc["scs", "points"], fits.loc["scs", "size"]) == (2, 100)
    assert math.isnan(fits.loc["scs", "exponent"])


def test_two_sizes_are_no_sweep_and_neither_are_two_options_at_once(make_store, frames):
    assert scaling_points(*frames(make_store(run("pg", 10, 1.0), run("pg", 20, 2.0))), 1e-6).empty
    mixed = [run("pg", 10, 1.0), run("pg", 20, 2.0), run("pg", 30, 2.0, key="features")]
    assert scaling_points(*frames(make_store(*mixed, folder="mixed")), 1e-6).empty


def test_a_size_counts_only_where_all_runs_reached_it(make_store, frames):
    runs = [run("pg", n, 1.0, seed=0) for n in (10, 20, 40)] + [run("pg", n, None if n == 40 else 3.0, seed=1) for n in (10, 20, 40)]
    points = scaling_points(*frames(make_store(*runs)), 1e-6).set_index("size")
    assert list(points["reached"]) == [2, 2, 1]
    assert points.loc[10, "seconds"] == 2.0
    assert math.isnan(points.loc[40, "seconds"])


def test_runs_for_a_looser_target_say_nothing_of_the_last(make_store, frames):
    made = [run("auto", n, seconds, seed=0, repetition=0) for seconds in (1.0, None) for n in (10, 20, 40)]
    runs, samples = frames(make_store(*made))
    points = scaling_points(with_ranges(runs.assign(target=[1e-6] * 3 + [1e-2] * 3)), samples, 1e-6)
    assert list(points["runs"]) == [1, 1, 1]
    assert list(points["seconds"]) == [1.0, 1.0, 1.0]


def test_the_report_shows_the_sweep(make_store):
    folder = sweep(make_store)
    report = write_report(folder, formats=["md", "svg", "csv"]).read_text()
    assert "## Scaling" in report
    (link,) = [line for line in report.splitlines() if line.startswith("![Scaling of family on made")]
    path = link.split("](")[1].removesuffix(")")
    assert (folder / path).is_file()
    assert (folder / path).with_suffix(".csv").read_text().startswith("sweep,key,solver,kind,x,y,failed,target")


def test_like_problems_have_a_geometric_mean_which_says_when_it_is_a_bound(make_store, frames):
    made = []
    for step, generic in (("a", 4.0), ("b", 9.0), ("c", None), ("d", 0.5)):
        data = {"name": "made_up", "preprocess": step}
        made += [
            run("pg", 1, 1.0) | {"problem": step, "data": data},
            run("scs", 1, generic, asked=1e-3, times={"build": 0.1, "solve": 1.0}) | {"problem": step, "data": data},
        ]
    runs, samples = frames(make_store(*made, run("pg", 7, 1.0)))
    table = speed_ups(contests(run_times(runs, samples, TARGETS), groups(runs)))
    assert set(table["group"]) == {"family on made_up", "all of family"}  # a problem alone is no group
    row = table[table["group"] == "family on made_up"].set_index("target").loc[1e-6]
    assert row["ratio"] == pytest.approx((4.0 * 9.0 * 60.0 * 0.5) ** 0.25)
    assert row["at_least"]
    assert row["lowest_ratio"] == pytest.approx(0.5)
    assert (row["instances"], row["losses"]) == (4, 1)
