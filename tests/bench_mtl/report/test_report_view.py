"""What of the results is reported: selections, targets, baselines, machines kept apart, results that are not whole."""

import pandas as pd
import pytest
from hand_reports import GOOD, descent, ladder, runs, timed

from bench_mtl.core.errors import InputError
from bench_mtl.engine.environment import machines
from bench_mtl.report import View
from bench_mtl.report.figures.gallery import gallery
from bench_mtl.report.registry import printed, report_tables
from bench_mtl.report.render.markdown import markdown
from bench_mtl.report.suite_report import suite_document
from bench_mtl.report.words import not_asked
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN
from bench_mtl.results.loading import read_results

PG, SCS = descent("pg"), ladder("scs")
#: It gets to the loosest target alone, and is stopped.
SLOW = ladder("scs", (5e-3,), status="timeout", times={"solve": 60.0})


def both(label, **more):
    return [{**run, "problem": label, **more} for run in (PG, SCS)]


def labels(results):
    return list(zip(results.runs["problem_label"], results.runs["solver_label"], strict=True))


def test_a_view_takes_what_it_names(make_store):
    folder = make_store(*both("one"), *both("two", seed=3), *both("three", status="timeout"))
    assert labels(read_results(folder, View(select=("problem=t*", "solver=pg")))) == [("two", "pg"), ("three", "pg")]
    assert labels(read_results(folder, View(select=("problem=one", "problem=three", "family=fam*", "solver=scs")))) == [
        ("one", "scs"),
        ("three", "scs"),
    ]
    assert labels(read_results(folder, View(select=("seed=3",)))) == [("two", "pg"), ("two", "scs")]
    chosen = read_results(folder, View(select=("problem=two",)))
    assert set(chosen.samples["run_id"]) == set(chosen.runs["id"])
    assert "only runs with problem=two" in chosen.view.sentence


def test_a_run_that_was_stopped_at_its_target_has_not_failed_beyond(make_store):
    """It counts as far as it got: beyond that nobody knows. One that was not stopped has failed."""
    stopped, further = descent("pg", target=1e-6), ladder("scs", (5e-3, 5e-5, 1e-9), target=1e-6)
    failed = descent("ag", GOOD[:3], target=1e-6, status="timeout")
    folder = make_store(stopped, further, failed)
    assert report_tables(read_results(folder), ["winners"])["winners"]["other"].tolist() == ["scs"] * 3
    (row,) = report_tables(read_results(folder, View(targets=(1e-8,))), ["winners"])["winners"].to_dict("records")
    assert (row["winner"], row["failed"]) == ("scs", "no rival reached it (ag: not in 60 s)")


def test_later_repetitions_alone_count_as_all_do(make_store):
    """A run to every target by itself: each counts from its own to the next."""
    runs = [descent("pg", gaps, target=target, seconds=seconds, repetition=1) for target, gaps, seconds in
            ((1e-2, GOOD[:2], 0.1), (1e-4, GOOD[:3], 0.2), (1e-6, GOOD, 0.3))]  # fmt: skip
    table = report_tables(read_results(make_store(*runs)), ["time_to_gap"])["time_to_gap"]
    assert table["runs"].tolist() == [1, 1, 1]
    assert table["seconds"].tolist() == pytest.approx([0.1, 0.4, 0.9])


def test_targets_of_a_view_take_the_place_of_the_suite_s_in_their_order(make_store):
    results = read_results(make_store(PG), View(targets=(1e-5, 1e-1, 1e-5)))
    assert results.targets == (1e-1, 1e-5)


def test_a_target_that_no_run_was_asked_for_is_named(make_store):
    folder = make_store(descent("pg", target=1e-4))
    assert not_asked(read_results(folder, View(targets=(1e-4, 1e-2)))) == ""
    assert "1e-9: the tightest target of these runs is 1e-4" in not_asked(read_results(folder, View(targets=(1e-4, 1e-9))))


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"select": ("solver=pgd", "solver=fw")}, r"--select: no run has a solver like pgd or fw: did you mean 'pg'\? there are pg, scs$"),
        ({"select": ("problem=one", "seed=3")}, r"--select: no run fits problem=one and seed=3 together"),
        ({"baseline": "scs", "select": ("solver=pg",)}, r"unknown solver of --baseline 'scs': allowed: pg$"),
    ],
)
def test_a_view_of_what_is_not_there_is_refused_by_name(make_store, view, message):
    with pytest.raises(InputError, match=message):
        read_results(make_store(*both("one"), *both("two", seed=3)), View(**view))


HERE = {"processor": "A", "logical_cores": 2, "memory_gib": 24.0, "system": "Linux"}


def test_machines_are_told_by_what_times_depend_on():
    found, places = machines(
        [HERE, {**HERE, "memory_gib": 23.9, "numpy": "3"}, {**HERE, "processor": "B"}, {**HERE, "memory_gib": 12.0}, HERE]
    )
    assert places == [0, 0, 1, 2, 0]
    assert [machine["processor"] for machine in found] == ["A", "B", "A"]


def test_every_machine_has_tables_and_figures_of_its_own_and_one_alone_is_not_named(make_store, rewritten):
    """With two environments in turn each has every run once; what is proven is of both."""
    folder = make_store(*(run for run in runs() for _ in range(2)), environments=2)
    assert set(read_results(folder).by_machine) == {""}, "they differ in nothing that tells machines apart"
    rewritten(folder, "UPDATE environment SET description = json_set(description, '$.processor', 'C') WHERE id = 2")
    results = read_results(folder)
    assert [machine["processor"] for machine in results.machines] == ["a | b", "C"]
    both, alone = report_tables(results), read_results(make_store(*runs(), folder="alone"))
    single = report_tables(alone)
    for name, table in both.items():
        if name != "enclosures":
            for machine in results.by_machine:
                part = table[table["machine"] == machine].drop(columns="machine").reset_index(drop=True)
                pd.testing.assert_frame_equal(part, single[name])
    pd.testing.assert_frame_equal(both["enclosures"], single["enclosures"])
    assert printed("winners", both["winners"]).columns[1] == "Machine"
    entries = gallery(alone, single)
    names = [f"{entry.name}-machine-{number}" for number in (1, 2) for entry in entries]
    assert [entry.name for entry in gallery(results, both)] == names
    text = markdown(suite_document(results, both, gallery(results, both)), ("md",))
    assert "On machine 2, to a proven relative gap of 1e-6, a specialised solver is fastest on" in text
    assert "- **hard, machine 1**: " in text
    assert set(read_results(folder, View(select=("problem=level", "solver=pg"))).by_machine) == {"machine 1", "machine 2"}


def test_against_a_baseline(make_store):
    solvers = {"pg": 1.0, "ag": 2.0, "scs": 4.0, "ecos": 8.0}
    folder = make_store(*(timed(solver, seconds, seed=seed) for solver, seconds in solvers.items() for seed in (0, 1)))
    for baseline, other, ratio, faster, wins in (("ecos", "ecos", 8.0, 8.0, False), ("pg", "ag", 2.0, 0.5, True)):
        tables = report_tables(read_results(folder, View(baseline=baseline)))
        row = tables["winners"].iloc[0]
        assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", other, pytest.approx(ratio), wins)
        assert tables["speed_ups"]["ratio"][0] == pytest.approx(faster)
        assert list(tables["comparisons"]["solver"].unique())[:3] == [solver for solver in solvers if solver != baseline]
        assert set(tables["comparisons"]["reference"]) == {baseline}
    failed = report_tables(read_results(make_store(PG, SLOW, folder="failed"), View(baseline="scs")))["winners"]["failed"]
    assert failed.iloc[-1] == "no rival reached it (scs: not in 60 s)"


def test_kinds_do_not_need_a_point(make_store):
    slow = {"solver": "ecos", "status": "timeout", "times": {"build": 0.1, "solve": 60.0}}
    lost = [{"solver": solver, "status": "crashed"} for solver in ("peer_celer", "mystery")]
    runs = read_results(make_store(PG, PG | {"solver": "generated_lp"}, slow, *lost)).runs
    assert dict(zip(runs["solver"], runs["kind"], strict=True)) == {
        "pg": SPECIALISED, "generated_lp": GENERIC, "ecos": GENERIC, "peer_celer": PEER, "mystery": UNKNOWN
    }  # fmt: skip


@pytest.mark.parametrize(("start", "primal", "dual"), [(1.0, 1.0, 1.0 + 1e-10), (60.0, 1e-14, 2e-14)])
def test_rounding_is_no_contradiction(make_store, start, primal, dual):
    runs = [
        {"solver": solver, "samples": [(0.1, 0, 1.0, start, 0.0, None), (0.2, 1, 2.0, *bounds, None)]}
        for solver, bounds in (("a", (primal, 0.0)), ("b", (start, dual)))
    ]
    assert report_tables(read_results(make_store(*runs)))["objectives"]["agrees"].all()
