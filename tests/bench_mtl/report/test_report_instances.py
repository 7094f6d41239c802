"""Times by instance, and groups of like problems, against values worked out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import instance_times, run_times, time_to_gap
from bench_mtl.results.frames import times_to_gap

TARGETS = (1e-2, 1e-6)


def pg(seconds, *, passes=100.0, seed=0, repetition=0, **more):
    samples = [(0.5 * seconds, 9, passes / 2, 1.0, 1 - 5e-3, None), (seconds, 99, passes, 1.0, 1 - 5e-7, None)]
    return {"solver": "pg", "seed": seed, "repetition": repetition, "samples": samples, **more}


def scs(*seconds, seed=0, repetition=0):
    """Asked for 1e-3 and 1e-7."""
    asked = zip(seconds, (5e-3, 5e-7), (1e-3, 1e-7), strict=False)
    samples = [(time, 0, 0.0, 1.0, 1 - gap, tolerance) for time, gap, tolerance in asked]
    return {"solver": "scs", "family": "conic", "seed": seed, "repetition": repetition, "samples": samples}


def test_a_row_for_every_instance_with_the_median_of_its_repetitions(make_store, frames):
    runs = [pg(time, passes=passes, seed=3, repetition=i) for i, (time, passes) in enumerate([(0.2, 10.0), (0.8, 30.0), (0.4, 20.0)])]
    table = instance_times(*frames(make_store(*runs, pg(6.0, seed=4))), TARGETS)
    assert list(table["seed"]) == [3, 4, 3, 4]
    assert table["instance"].nunique() == 2
    loose, tight = table[table["target"] == 1e-2], table[table["target"] == 1e-6]
    assert list(tight["seconds"]) == [0.4, 6.0]
    assert list(loose["seconds"]) == [0.2, 3.0]
    assert list(loose["passes"]) == [10.0, 50.0]
    assert list(tight["passes"]) == [20.0, 100.0]
    assert list(tight["iterations"]) == [99, 99]
    assert list(loose["iterations"]) == [9, 9]
    assert list(tight["runs"]) == list(tight["reached"]) == [3, 1]
    assert list(tight["status"]) == ["verified 3/3", "verified"]
    assert set(tight["limit_seconds"]) == {60.0}


def test_one_repetition_that_fails_leaves_no_time(make_store, frames):
    late = pg(1.0, repetition=1) | {"samples": [(60.0, 9, 9.0, 1.0, 0.995, None)], "status": "timeout"}
    table = instance_times(*frames(make_store(pg(1.0), late)), TARGETS).set_index("target")
    assert (table.loc[1e-6, "runs"], table.loc[1e-6, "reached"], table.loc[1e-6, "status"]) == (2, 1, "verified 1/2, timeout 1/2")
    assert table.loc[1e-6, ["seconds", "passes", "iterations"]].isna().all()
    assert table.loc[1e-2, "seconds"] == pytest.approx(30.25)  # both got that far


def test_a_generic_solver_counts_no_passes_and_its_cheapest_tolerance(make_store, frames):
    table = instance_times(*frames(make_store(pg(1.0), scs(5.0, 2.0))), TARGETS)
    row = table[(table["solver"] == "scs") & (table["target"] == 1e-2)].iloc[0]
    assert row["seconds"] == 2.0
    assert row[["passes", "iterations"]].isna().all()
    assert row["kind"] == "generic"


def test_seconds_are_those_of_times_to_gap(make_store, frames):
    almost_zero = {"solver": "ag", "samples": [(0.1, 0, 1.0, 60.0, 0.0, None), (0.7, 9, 9.0, 1e-13, 0.0, None)]}
    skipped = {"solver": "admm", "status": "skipped"}
    runs, samples = frames(make_store(pg(1.0), scs(5.0, 2.0), almost_zero, skipped, {"solver": "sub", "status": "crashed"}))
    table, known = run_times(runs, samples, TARGETS), times_to_gap(runs, samples, TARGETS)
    pd.testing.assert_frame_equal(table[["run_id", "target", "seconds"]], known[["run_id", "target", "seconds"]])
    assert table.loc[(table["solver"] == "ag"), "passes"].tolist() == [9.0, 9.0]


def test_failures_alone_have_rows_without_numbers(make_store, frames):
    table = instance_times(*frames(make_store({"solver": "pg", "status": "crashed"})), TARGETS)
    assert len(table) == 2
    assert table["seconds"].isna().all()
    assert (table["reached"] == 0).all()


def test_time_to_gap_says_how_many_got_there_and_their_range(make_store, frames):
    slow = scs(5.0, seed=1) | {"status": "inaccurate"}  # never to 1e-6
    runs = [pg(1.0), pg(4.0, seed=1, passes=200.0), pg(2.0, seed=1, repetition=1, passes=300.0), scs(3.0, 9.0), slow]
    table = time_to_gap(run_times(*frames(make_store(*runs)), TARGETS))
    assert list(zip(table["solver"], table["target"], strict=True)) == [("pg", 1e-2), ("pg", 1e-6), ("scs", 1e-2), ("scs", 1e-6)]
    fast = table.iloc[1]
    assert (fast["runs"], fast["reached"], fast["seconds"], fast["seconds_low"], fast["seconds_high"]) == (3, 3, 2.0, 1.0, 4.0)
    assert fast["passes"] == 200.0
    assert table.iloc[2][["seconds", "seconds_low", "seconds_high"]].tolist() == [4.0, 3.0, 5.0]
    assert (table.iloc[3]["reached"], table.iloc[3]["runs"]) == (1, 2)
    assert all(math.isnan(table.iloc[3][name]) for name in ("seconds", "seconds_low", "seconds_high", "passes"))


def problems(**data):
    """Runs of a family on data sets, by label."""
    return pd.DataFrame([{"problem_label": label, "problem": family, "data": text} for label, (family, text) in data.items()])


def test_groups_are_a_family_on_one_data_set_and_the_family_as_a_whole():
    runs = problems(
        a=("hinge", '{"name": "synthetic", "n": 3}'),
        b=("low_rank", '{"name": "scene"}'),
        c=("hinge", '{"file": "x.npz"}'),
        d=("hinge", '{"name": "synthetic", "n": 3, "preprocess": "scaled"}'),
    )
    assert groups(pd.concat([runs, runs])) == {
        "hinge on synthetic (n = 3)": ("a", "d"),
        "hinge on x.npz": ("c",),
        "all of hinge": ("a", "d", "c"),
        "low_rank on scene": ("b",),
    }


def test_machines_are_never_in_one_group():
    data = '{"name": "scene"}'
    runs = problems(a=("hinge", data), b=("hinge", data)).assign(machine=["machine 1", "machine 2"])
    assert groups(runs) == {"hinge on scene, machine 1": ("a",), "hinge on scene, machine 2": ("b",)}
    assert groups(runs.assign(machine="")) == {"hinge on scene": ("a", "b")}
