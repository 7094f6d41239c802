"""Means and comparisons over groups of like problems, against values worked out by hand."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.report.render import display
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import (
    COMPARISONS,
    FASTEST_GENERIC,
    FASTEST_SPECIALISED,
    MEANS,
    SPEED_UPS,
    comparisons,
    groups,
    means,
    speed_ups,
)  # fmt: skip
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.summary import statuses
from bench_mtl.report.tables.winners import winners

TARGET = (1e-6,)


def run(solver, seed, seconds, *, repetition=0, generic=False, status="verified", limit=60.0, **more):
    """A run that gets there after `seconds`, or, where they are None, fails."""
    asked, family = (1e-7, "conic") if generic else (None, solver)
    gap = 5e-7 if seconds is not None else 5e-1
    samples = [(seconds if seconds is not None else 3.0, 9, 9.0, 1.0, 1 - gap, asked)]
    made = {"solver": solver, "family": family, "seed": seed, "repetition": repetition, "samples": samples, "limit": limit}
    return made | {"status": status if seconds is not None or status != "verified" else "timeout"} | more


def series(solver, times, **more):
    return [run(solver, seed, seconds, **more) for seed, seconds in enumerate(times)]


@pytest.fixture
def tables(make_store, frames):
    number = itertools.count()

    def made(*runs, table=comparisons, **more):
        read, samples = frames(make_store(*runs, folder=f"results-{next(number)}"))
        return table(contests(run_times(read, samples, TARGET), None if table is winners else groups(read)), **more)

    return made


def row_of(table, **values):
    for column, value in values.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_means_in_the_three_ways(tables):
    table = tables(*series("pg", [1.0, 7.0, 3.0]), *series("scs", [2.0, None, 30.0], generic=True), table=means)
    pg, scs = row_of(table, solver="pg"), row_of(table, solver="scs")
    assert set(table["group"]) == {"family on synthetic"}
    assert set(table["shift"]) == {1.0}  # of the fastest times 1, 3, 7
    assert (pg["instances"], pg["run_on"], pg["solved"], pg["solved_by_all"]) == (3, 3, 3, 2)
    assert pg["mean"] == pg["mean_ten_times"] == pytest.approx(3.0)  # (2 * 8 * 4) ** (1/3) - 1
    assert pg["mean_solved_by_all"] == pytest.approx(math.sqrt(2 * 4) - 1)
    assert (scs["solved"], scs["run_on"]) == (2, 3)
    assert scs["mean"] == pytest.approx((3 * 61 * 31) ** (1 / 3) - 1)
    assert scs["mean_ten_times"] == pytest.approx((3 * 601 * 31) ** (1 / 3) - 1)
    assert scs["mean_solved_by_all"] == pytest.approx(math.sqrt(3 * 31) - 1)
    assert 0 == pg["mean_low"] < pg["mean"] < pg["mean_high"]  # three instances say little


def test_a_solver_that_was_not_tried_everywhere_has_no_mean(tables):
    skipped = run("ag", 1, None, status="skipped", samples=[])
    table = tables(*series("pg", [1.0, 2.0]), run("ag", 0, 1.0), skipped, table=means)
    ag = row_of(table, solver="ag")
    assert (ag["instances"], ag["run_on"], ag["solved"]) == (2, 1, 1)
    assert ag[["mean", "mean_ten_times", "mean_solved_by_all", "mean_low"]].isna().all()
    assert row_of(table, solver="pg")["solved_by_all"] == 2  # it does not take part


def test_a_solver_that_solves_nothing_leaves_the_others_what_they_share(tables):
    table = tables(*series("pg", [1.0, 2.0]), *series("sub", [None, None]), table=means)
    sub = row_of(table, solver="sub")
    assert sub["solved_by_all"] == 2
    assert math.isnan(sub["mean_solved_by_all"])
    assert sub["mean"] == pytest.approx(60.0)


def test_a_failure_without_a_limit_and_a_time_leaves_no_mean_and_no_ratio(tables):
    runs = [run("pg", 0, 1.0, limit=None), run("pg", 1, None, limit=None, samples=[])]
    runs += series("scs", [2.0, 4.0], generic=True, limit=None)
    pg = row_of(tables(*runs, table=means), solver="pg")
    assert pg[["mean", "mean_ten_times"]].isna().all()
    assert pg["mean_solved_by_all"] == pytest.approx(1.0)
    row = row_of(tables(*runs), solver="pg")
    assert math.isnan(row["ratio"])
    assert (row["wins"], row["losses"], row["at_most"]) == (1, 1, True)


def test_against_the_fastest_generic_solver_of_each_instance(tables):
    table = tables(
        *series("pg", [1.0, 1.0, 2.0, 3.0]),
        *series("scs", [4.0, 8.0, 4.0, 6.0], generic=True),
        *series("ecos", [9.0, 2.0, 9.0, 48.0], generic=True),
    )
    row = row_of(table, reference=FASTEST_GENERIC)
    assert (row["solver"], row["instances"], row["ratios"], row["wins"], row["losses"], row["ties"]) == ("pg", 4, 4, 4, 0, 0)
    assert row["ratio"] == pytest.approx((4 * 2 * 2 * 2) ** 0.25)
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert table["test"].isna().all()  # of four pairs no test could find anything
    assert table[["p_value", "p_adjusted"]].isna().all(axis=None)
    assert list(zip(table["reference"], table["solver"], strict=True)) == [
        (FASTEST_GENERIC, "pg"), ("scs", FASTEST_SPECIALISED), ("ecos", FASTEST_SPECIALISED)
    ]  # fmt: skip
    assert row_of(table, reference="scs")["ratio"] == pytest.approx((4 * 8 * 2 * 2) ** 0.25)


def test_ratios_with_failures_are_bounds_or_nothing(tables):
    pg, ag, sub = series("pg", [1.0, 1.0]), series("ag", [None, 1.0]), series("sub", [3.0, None])
    scs = series("scs", [6.0, None], generic=True)
    table = tables(*pg, *ag, *sub, *scs)
    found = {name: row_of(table, reference=FASTEST_GENERIC, solver=name) for name in ("pg", "ag", "sub")}
    assert (found["pg"]["ratio"], found["pg"]["at_least"], found["pg"]["at_most"]) == (pytest.approx(math.sqrt(6 * 60)), True, False)
    assert math.isnan(found["pg"]["ratio_low"])
    assert math.isnan(found["ag"]["ratio"])  # each fails where the other does not
    assert (found["ag"]["wins"], found["ag"]["losses"]) == (1, 1)
    assert (found["sub"]["ratio"], found["sub"]["instances"], found["sub"]["ratios"]) == (pytest.approx(2.0), 2, 1)
    assert (found["sub"]["ties"], found["sub"]["at_least"]) == (1, False)
    shown = display(table, COMPARISONS)
    assert shown["Ratio"][0].startswith(">= ")
    assert not {"At least", "At most", "Ratio low"} & set(shown)
    upper = tables(*series("x", [None, 1.0]), *series("scs", [6.0, 6.0], generic=True))
    assert row_of(upper, solver="x")["at_most"]
    assert display(upper, COMPARISONS)["Ratio"][0].startswith("<= ")


def test_against_a_named_solver(tables):
    runs = [*series("pg", [1.0, 2.0]), *series("ag", [2.0, 1.0]), *series("scs", [4.0, 4.0], generic=True)]
    table = tables(*runs, baseline="scs")
    assert list(table["solver"]) == ["pg", "ag", FASTEST_SPECIALISED]
    assert set(table["reference"]) == {"scs"}
    assert row_of(table, solver="pg")["ratio"] == pytest.approx(math.sqrt(8))
    assert row_of(table, solver=FASTEST_SPECIALISED)["ratio"] == pytest.approx(4.0)
    assert list(tables(*runs, baseline="pg")["solver"]) == ["ag", "scs"]
    with pytest.raises(InputError, match="unknown baseline 'sc': did you mean 'scs'"):
        tables(*runs, baseline="sc")


def test_one_instance_is_judged_by_its_repetitions(tables):
    repeated = [run("pg", 0, seconds, repetition=i) for i, seconds in enumerate([1.0, 1.1, 0.9])]
    table = tables(*repeated, *[run("scs", 0, 2.0 * seconds, repetition=i, generic=True) for i, seconds in enumerate([1.0, 1.1, 0.9])])
    row = row_of(table, solver="pg")
    assert row["ratio"] == pytest.approx(2.0)
    assert 1.4 < row["ratio_low"] < 2.0 < row["ratio_high"] < 2.8
    once = row_of(tables(run("pg", 0, 1.0), run("scs", 0, 2.0, generic=True)), solver="pg")
    assert once[["ratio_low", "ratio_high"]].isna().all()


def test_times_of_zero_and_results_that_are_hardly_there(tables):
    zero = tables(*series("pg", [0.0, 0.0]), *series("scs", [0.0, 1.0], generic=True))
    assert row_of(zero, solver="pg")["ratio"] == pytest.approx(1e3)  # the geometric mean of 1 and 1 s over a microsecond
    assert row_of(zero, solver="pg")["ties"] == 1
    assert row_of(tables(*series("pg", [0.0, 0.0]), table=means), solver="pg")["shift"] == 1e-6
    failed = run("pg", 0, None, status="crashed", samples=[])
    assert tables(failed).empty
    assert tables(failed, table=means)["solved"].tolist() == [0]
    skipped = run("pg", 0, None, status="skipped", samples=[])
    assert tables(skipped).empty
    assert tables(skipped, table=means).empty
    assert tables(*series("pg", [1.0, 2.0])).empty  # nobody to compare it with


def test_the_winners_ratio_has_an_interval_over_seeds_and_repetitions(make_store, frames):
    pg = [run("pg", seed, 1.0 + 0.1 * (seed + repetition), repetition=repetition) for seed in range(2) for repetition in range(3)]
    scs = [run("scs", seed, 8.0 + 0.5 * seed, generic=True) for seed in range(2)]
    runs, samples = frames(make_store(*pg, *scs))
    table = winners(contests(run_times(runs, samples, TARGET)))
    row = table.iloc[0]
    # The first repetition has chosen, and the others measure.
    assert row["ratio"] == pytest.approx(math.sqrt(8.0 / 1.15 * 8.5 / 1.25))
    assert row["seconds"] == pytest.approx(math.sqrt(1.15 * 1.25))
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    measured = {"one of each": [0], "three against one": [0, 1, 2]}
    for name, repetitions in measured.items():
        pg = [run("pg", 0, 1.0 + 0.1 * repetition, repetition=repetition) for repetition in repetitions]
        runs, samples = frames(make_store(*pg, run("scs", 0, 8.0, generic=True), folder=name))
        one = winners(contests(run_times(runs, samples, TARGET)))
        assert one[["ratio_low", "ratio_high"]].isna().all(axis=None), "how one solver scatters says nothing of another"


def test_speed_ups_have_an_interval_and_a_test(make_store, frames):
    made = []
    for step, generic in (("a", 4.0), ("b", 8.0), ("c", 16.0)):
        data = {"name": "made_up", "preprocess": step}
        made += [run("pg", 1, 1.0, problem=step, data=data), run("scs", 1, generic, generic=True, problem=step, data=data)]
    runs, samples = frames(make_store(*made))
    row = speed_ups(contests(run_times(runs, samples, TARGET), groups(runs))).iloc[0]
    assert row["ratio"] == pytest.approx(8.0)
    half = 4.302653 * math.log(2) / math.sqrt(3)  # Student's, of logarithms that lie log 2 apart
    assert (row["ratio_low"], row["ratio_high"]) == (
        pytest.approx(8 * math.exp(-half), rel=1e-5),
        pytest.approx(8 * math.exp(half), rel=1e-5),
    )
    assert pd.isna(row["p_value"])  # of three


def test_statuses_are_counted_by_solver(make_store, frames):
    made = [
        *series("pg", [1.0, None]),
        run("ecos", 0, None, status="skipped", samples=[]),
        run("ecos", 1, None, status="crashed", samples=[]),
    ]
    table = statuses(*frames(make_store(*made))).set_index("solver")
    assert table.loc["pg", ["tried", "verified", "timeout", "skipped"]].tolist() == [2, 1, 1, 0]
    assert table.loc["ecos", ["tried", "verified", "crashed", "skipped"]].tolist() == [1, 0, 1, 1]
    assert table.loc["ecos", "kind"] == "unknown"


def test_a_pair_of_enough_instances_is_tested(tables):
    table = tables(*series("pg", [1.0, 2, 3, 4, 5, 6]), *series("scs", [2.0, 5, 7, 9, 12, 15], generic=True))
    row = row_of(table, reference=FASTEST_GENERIC)
    assert (row["test"], row["p_value"], row["p_adjusted"]) == ("Wilcoxon", pytest.approx(2 / 64), pytest.approx(2 / 64))
    failed = tables(*series("pg", [1.0, 2, 3, 4, 5, 6]), *series("scs", [2.0, 5, None, 9, 12, 15], generic=True))
    assert row_of(failed, reference=FASTEST_GENERIC)["test"] == "sign"


def test_a_rival_that_solved_some_runs_leaves_no_bound(tables):
    row = tables(*series("pg", [0.5, 0.5, 0.5]), *series("scs", [1.0, 1.0, None], generic=True), table=winners).iloc[0]
    assert math.isnan(row["ratio"])
    assert not row["at_least"]
    assert row["failed"].startswith("no generic solver reaches it (scs: in 2 of 3 runs, verified 2/3, timeout 1/3")
    spent = tables(*series("pg", [0.5, 0.5]), *series("scs", [None, None], generic=True), table=winners).iloc[0]
    assert (spent["ratio"], spent["at_least"]) == (pytest.approx(120.0), True)
    stopped = tables(*series("pg", [0.5]), run("scs", 0, None, generic=True, status="inaccurate"), table=winners).iloc[0]
    assert not stopped["at_least"]
    assert math.isnan(stopped["ratio"])


def test_a_winner_was_run_on_every_seed(tables):
    row = tables(*series("pg", [0.1, 10.0, 20.0]), run("scs", 0, 1.0, generic=True), table=winners).iloc[0]
    assert row["winner"] == "pg"  # not the one that was run on one seed alone
    assert row["other"] is None
    assert row["failed"] == "no generic solver reaches it (scs: in 1 of 1 runs, run on 1 of 3 seeds, verified)"


def test_the_winners_ratio_is_of_like_with_like(tables):
    row = tables(*series("pg", [0.5, 0.5]), *series("scs", [0.6, 50.0], generic=True), table=winners).iloc[0]
    assert row["ratio"] == pytest.approx(math.sqrt(1.2 * 100)) == pytest.approx(row["other_seconds"] / row["seconds"])


def test_speed_ups_hide_no_failure_of_either_kind(tables):
    stalls = [run("pg", seed, None, status="inaccurate") for seed in (2, 3)]
    runs = [*series("pg", [1.0, 1.0]), *stalls, *series("scs", [10.0] * 4, generic=True)]
    row = tables(*runs, table=speed_ups).iloc[0]
    assert (row["ratio"], row["at_most"], row["losses"]) == (pytest.approx((10 * 10 * (10 / 3) ** 2) ** 0.25), True, 2)
    assert display(tables(*runs, table=speed_ups), SPEED_UPS)["Ratio"][0].startswith("<= ")
    both = tables(*series("pg", [1.0, None]), *series("scs", [None, 1.0], generic=True), table=speed_ups).iloc[0]
    assert math.isnan(both["ratio"])
    assert both["without"] == 2


def test_a_mean_with_failures_is_a_bound_without_an_interval(tables):
    scs, nobody = series("scs", [None, None, 5.0], generic=True), series("x", [None] * 3)
    table = tables(*series("pg", [1.0, 2.0, 3.0]), *scs, *nobody, table=means)
    shown = dict(zip(table["solver"], display(table, MEANS)["Mean (s)"], strict=True))
    assert "(" in shown["pg"]
    assert shown["scs"].startswith(">= ")
    assert "(" not in shown["scs"]
    assert shown["x"] == ">= 60.0"


def test_winners_and_speed_ups_against_a_baseline(tables):
    runs = [*series("pg", [1.0, 1.0]), *series("scs", [4.0, 4.0], generic=True), *series("ecos", [8.0, 8.0], generic=True)]
    row = tables(*runs, table=winners, baseline="ecos").iloc[0]
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", "ecos", pytest.approx(8.0), False)
    assert tables(*runs, table=speed_ups, baseline="ecos")["ratio"][0] == pytest.approx(8.0)
    won = tables(*runs, table=winners, baseline="pg").iloc[0]
    assert (won["winner"], won["other"], won["ratio"], won["reference_wins"]) == ("pg", "scs", pytest.approx(4.0), True)
    assert tables(*runs, table=speed_ups, baseline="pg")["ratio"][0] == pytest.approx(0.25)
