"""The tables of a report against values worked out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.summary import not_verified, summary, times, tolerances
from bench_mtl.report.tables.winners import winners
from bench_mtl.report.text import certainty, contradictions, failures, headlines
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.frames import GENERIC, SPECIALISED, UNKNOWN, kinds, status_counts, times_to_gap

TARGETS = (1e-2, 1e-4, 1e-6)

# relative gaps 0.5, 5e-3, 5e-5, 5e-7 of the primal 1
PG = {
    "solver": "pg",
    "samples": [(0.1, 0, 1.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 1 - 5e-3, None), (0.4, 99, 100.0, 1.0, 1 - 5e-7, None)],
}
SCS = {
    "solver": "scs",
    "family": "conic",
    "times": {"build": 0.5, "compile": 0.25, "setup": 0.125, "solve": 6.0, "certify": 0.0625},
    # the second tolerance is cheaper than the first, as happens
    "samples": [(3.0, 40, 0.0, 1.0, 1 - 5e-3, 1e-3), (2.0, 50, 0.0, 1.0, 1 - 5e-5, 1e-5), (6.0, 90, 0.0, 1.0, 1 - 5e-7, 1e-7)],
    "infeasibility": 3e-4,
    "memory": 300.0,
}


def row_of(table, **values):
    chosen = table
    for column, value in values.items():
        chosen = chosen[chosen[column] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_summary_of_one_run_each(make_store, frames):
    table = summary(*frames(make_store(PG, SCS)), TARGETS)
    pg, scs = row_of(table, solver="pg"), row_of(table, solver="scs")
    assert (pg["kind"], pg["status"], pg["runs"], pg["proven"]) == (SPECIALISED, "verified", 1, 1)
    assert pg["relative_gap"] == pytest.approx(5e-7)
    assert (pg["iterations"], pg["passes"]) == (99, 100)
    assert (pg["seconds_to_1e-2"], pg["seconds_to_1e-4"], pg["seconds_to_1e-6"]) == (0.2, 0.4, 0.4)
    assert scs["kind"] == GENERIC
    assert math.isnan(scs["passes"])  # a generic solver does not say
    assert scs["infeasibility"] == 3e-4


def test_time_of_a_generic_solver_is_that_of_its_cheapest_tolerance(make_store, frames):
    scs = row_of(summary(*frames(make_store(SCS)), TARGETS), solver="scs")
    assert (scs["seconds_to_1e-2"], scs["seconds_to_1e-4"], scs["seconds_to_1e-6"]) == (2.0, 2.0, 6.0)


def test_a_failure_in_a_group_is_never_averaged_away(make_store, frames):
    late = {**PG, "seed": 2, "samples": [(0.3, 0, 1.0, 1.0, 1 - 2e-3, None)], "status": "timeout"}
    dead = {"solver": "pg", "seed": 3, "status": "crashed"}
    pg = row_of(summary(*frames(make_store({**PG, "seed": 1}, late, dead)), TARGETS), solver="pg")
    assert pg["status"] == "verified 1/3, timeout 1/3, crashed 1/3"
    assert (pg["runs"], pg["proven"]) == (3, 2)
    assert pg["relative_gap"] == pytest.approx(2e-3)  # the worst
    assert (pg["reached_1e-2"], pg["reached_1e-4"]) == (2, 1)
    assert math.isnan(pg["seconds_to_1e-2"])


def test_times_to_a_gap_of_a_group_are_medians(make_store, frames):
    runs = [{**PG, "seed": seed, "samples": [(seconds, 5, 5.0, 1.0, 1.0, None)]} for seed, seconds in enumerate((0.1, 0.5, 9.0))]
    pg = row_of(summary(*frames(make_store(*runs)), TARGETS), solver="pg")
    assert pg["seconds_to_1e-6"] == 0.5
    assert pg["relative_gap"] == 0


def test_a_run_verified_where_the_optimum_is_almost_zero_has_reached_its_target(make_store, frames):
    run = {"solver": "pg", "samples": [(0.1, 0, 1.0, 60.0, 0.0, None), (0.7, 9, 9.0, 1e-13, 0.0, None)]}
    seconds = times_to_gap(*frames(make_store(run)), TARGETS)["seconds"]
    assert list(seconds) == [0.7] * 3


def test_times_leave_out_what_a_killed_run_has_lost(make_store, frames):
    killed = {**SCS, "seed": 1, "status": "timeout", "times": {"solve": 60.0}, "memory": 900.0}
    skipped = {"solver": "ecos", "status": "skipped", "seed": 0, "memory": 50.0}
    crashed = {"solver": "highs", "status": "crashed", "seed": 0, "times": {}}
    table = times(frames(make_store({**SCS, "seed": 0}, killed, skipped, crashed))[0])
    scs, ecos, highs = (row_of(table, solver=name) for name in ("scs", "ecos", "highs"))
    assert (scs["build_seconds"], scs["compile_seconds"], scs["setup_seconds"], scs["certify_seconds"]) == (0.5, 0.25, 0.125, 0.0625)
    assert scs["solve_seconds"] == 33.0
    assert scs["peak_memory_mib"] == 900.0
    assert ecos["runs"] == 0
    assert ecos[["solve_seconds", "peak_memory_mib"]].isna().all()
    assert math.isnan(highs["solve_seconds"])


def test_tolerances_keep_what_each_of_them_gave(make_store, frames):
    table = tolerances(*frames(make_store(PG, SCS)))
    assert list(table["asked"]) == [1e-3, 1e-5, 1e-7]
    assert list(table["seconds"]) == [3.0, 2.0, 6.0]
    assert list(table["infeasibility"]) == [3e-4] * 3
    assert tolerances(*frames(make_store(PG, folder="other"))).empty


def test_not_verified_holds_every_such_run_with_its_whole_reason(make_store, frames):
    reason = "needs a smooth problem " * 20
    runs, _ = frames(make_store(PG, {"solver": "ag", "status": "skipped", "reason": reason}, {**SCS, "status": "wrong", "reason": "lies"}))
    table = not_verified(runs)
    assert list(table["solver"]) == ["ag", "scs"]
    assert list(table["reason"]) == [reason, "lies"]


def test_kinds_do_not_need_a_point(make_store, frames):
    slow = {"solver": "ecos", "family": "conic_b", "status": "timeout", "times": {"build": 0.1, "solve": 60.0}}
    lost = {"solver": "mystery", "status": "crashed"}
    assert kinds(*frames(make_store(PG, slow, lost))) == {"pg": SPECIALISED, "conic_b": GENERIC, "mystery": UNKNOWN}


def test_status_counts_follow_the_order_of_statuses():
    assert status_counts(["timeout", "verified", "timeout"]) == "verified 1/3, timeout 2/3"
    assert status_counts(["skipped"]) == "skipped"


def test_objectives_and_the_best_enclosure(make_store, frames):
    close = {"solver": "ag", "samples": [(0.1, 1, 1.0, 1.5, 0.9999, None)]}
    table = objectives(*frames(make_store(PG, close)))
    assert (set(table["best_primal"]), set(table["best_dual"])) == ({1.0}, {1 - 5e-7})
    assert table["agrees"].all()
    best = enclosures(table).iloc[0]
    assert (best["dual_solver"], best["primal_solver"], best["agrees"]) == ("pg", "pg", True)
    assert best["relative_gap"] == pytest.approx(5e-7)
    assert contradictions(enclosures(table)) == []


def test_a_lower_bound_above_another_objective_is_a_contradiction(make_store, frames):
    liar = {"solver": "liar", "seed": 4, "samples": [(0.1, 1, 1.0, 1.2, 1.1, None)]}
    bounds = enclosures(objectives(*frames(make_store({**PG, "seed": 4}, liar, {**PG, "seed": 5}))))
    assert list(bounds["agrees"]) == [False, True]
    (sentence,) = contradictions(bounds)
    assert sentence.startswith(
        "CONTRADICTION on lasso (seed 4): the lower bound 1.100000000 of liar exceeds the objective 1.000000000 of pg."
    )
    assert "pg, liar" in sentence


@pytest.mark.parametrize(("start", "primal", "dual"), [(1.0, 1.0, 1.0 + 1e-10), (60.0, 1e-14, 2e-14)])
def test_rounding_is_no_contradiction(make_store, frames, start, primal, dual):
    first = {"solver": "a", "samples": [(0.1, 0, 1.0, start, 0.0, None), (0.2, 1, 2.0, primal, 0.0, None)]}
    second = {"solver": "b", "samples": [(0.1, 0, 1.0, start, 0.0, None), (0.2, 1, 2.0, start, dual, None)]}
    assert objectives(*frames(make_store(first, second)))["agrees"].all()


def test_tables_without_any_point(make_store, frames):
    runs, samples = frames(make_store({"solver": "pg", "status": "crashed"}, {"solver": "scs", "status": "skipped"}))
    assert objectives(runs, samples).empty
    assert enclosures(objectives(runs, samples)).empty
    assert summary(runs, samples, TARGETS)["relative_gap"].isna().all()
    assert winners(contests(run_times(runs, samples, TARGETS)))["winner"].isna().all()
    assert contradictions(enclosures(objectives(runs, samples))) == []


def won(frames, folder, **more):
    return winners(contests(run_times(*frames(folder), TARGETS)), **more)


def test_winners_say_by_how_much(make_store, frames):
    table = won(frames, make_store(PG, SCS))
    row = row_of(table, target=1e-6)
    assert (row["winner"], row["kind"], row["other"], row["ratio"]) == ("pg", SPECIALISED, "scs", pytest.approx(15.0))
    assert headlines(table)[0] == "To a proven relative gap of 1e-2, 1e-4 and 1e-6, a specialised solver is fastest on 1 of 1 problem."
    assert failures(table) == [], "what the table says is not said again"


def test_a_generic_solver_may_win(make_store, frames):
    fast = {**SCS, "samples": [(0.05, 9, 0.0, 1.0, 1 - 5e-7, 1e-3)]}
    row = row_of(won(frames, make_store(PG, fast)), target=1e-6)
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("scs", "pg", pytest.approx(8.0), True)


def test_failures_say_why_the_other_kind_is_not_there(make_store, frames):
    slow = {**SCS, "status": "timeout", "samples": SCS["samples"][:1], "times": {"solve": 60.0}}
    table = won(frames, make_store(PG, slow, {"solver": "ecos", "family": "conic", "status": "skipped"}))
    assert (row_of(table, target=1e-6)["ratio"], row_of(table, target=1e-6)["at_least"]) == (pytest.approx(150.0), True)
    assert not row_of(table, target=1e-2)["at_least"]
    assert row_of(table, target=1e-2)["other"] == "scs"
    assert failures(table) == [("lasso", "To 1e-4 and 1e-6, no generic solver reaches it (scs: timeout after 60.0 s).")]


def test_winners_of_one_solver_and_of_none(make_store, frames):
    alone = won(frames, make_store(PG))
    assert (alone["walkover"].all(), failures(alone)) == (True, [])
    said = "To a proven relative gap of 1e-2, 1e-4 and 1e-6, only solvers of one kind were run on 1 of 1 problem."
    assert headlines(alone) == [said]
    nobody = won(frames, make_store({"solver": "scs", "status": "crashed", "limit": None}, folder="nobody"))
    assert failures(nobody) == [("lasso", "To 1e-2, 1e-4 and 1e-6, no solver reaches it (scs: crashed).")]
    assert headlines(nobody)[0] == "To a proven relative gap of 1e-2, 1e-4 and 1e-6, no solver reaches it on 1 of 1 problem."


def test_a_solver_that_reached_the_target_in_some_runs_only_does_not_win(make_store, frames):
    stuck = {**PG, "seed": 1, "status": "timeout", "samples": PG["samples"][:1]}
    table = won(frames, make_store({**PG, "seed": 0}, stuck, {**SCS, "seed": 0}, {**SCS, "seed": 1}))
    row = row_of(table, target=1e-6)
    assert row["winner"] == "scs"
    assert "(pg: in 1 of 2 runs, verified 1/2, timeout 1/2 after 60.0 s)" in row["failed"]


def test_a_time_of_zero_gives_no_ratio(make_store, frames):
    at_once = {"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 1.0, None)]}
    row = row_of(won(frames, make_store(at_once, SCS)), target=1e-6)
    assert (row["winner"], row["other"]) == ("pg", "scs")
    assert pd.isna(row["ratio"])


def test_solvers_that_ended_alike_are_named_together(make_store, frames):
    slow = [{"solver": name, "family": "conic", "status": "timeout", "limit": limit} for name, limit in (("scs", 20.0), ("ecos", 40.0))]
    failed = row_of(won(frames, make_store(PG, *slow)), target=1e-6)["failed"]
    assert failed.endswith("(scs, ecos: timeout after 20.0 to 40.0 s)")


def test_how_sure_counts_intervals_bounds_and_single_runs(make_store, frames):
    twice = [{**solver, "repetition": number} for number in (0, 1, 2) for solver in (PG, SCS)]
    assert certainty(won(frames, make_store(*twice))) == "3 ratios: 3 with a 95 % interval."
    slow = {**SCS, "status": "timeout", "samples": SCS["samples"][:1], "times": {"solve": 60.0}}
    said = certainty(won(frames, make_store(PG, slow, folder="slow")))
    assert said == "3 ratios: 2 lower bounds (no rival reached the gap) and 1 without an interval."
    assert certainty(won(frames, make_store(PG, folder="alone"))) == ""
