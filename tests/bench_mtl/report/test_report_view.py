"""What of the results is reported: selections, targets, machines kept apart, results that are not whole."""

from __future__ import annotations

import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.engine.environment import machines
from bench_mtl.report import View
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.loading import read_results

PG = {"solver": "pg", "samples": [(0.1, 0, 1.0, 1.0, 0.5, None), (0.4, 99, 100.0, 1.0, 1 - 5e-7, None)]}
SCS = {
    "solver": "scs",
    "family": "conic",
    "times": {"build": 0.5, "solve": 6.0},
    "samples": [(3.0, 40, 0.0, 1.0, 1 - 5e-3, 1e-3), (6.0, 90, 0.0, 1.0, 1 - 5e-7, 1e-7)],
}


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


def test_targets_of_a_view_take_the_place_of_the_suite_s_in_their_order(make_store):
    results = read_results(make_store(PG), View(targets=(1e-5, 1e-1, 1e-5)))
    assert results.targets == (1e-1, 1e-5)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"select": ("problem",)}, r"--select must be KEY=PATTERN with a key of problem, family, solver, .*, not 'problem'"),
        ({"select": ("colour=red",)}, r"--select must be KEY=PATTERN"),
        ({"select": ("status=verified",)}, r"--select must be KEY=PATTERN"),
        ({"select": ("solver=",)}, r"--select must be KEY=PATTERN"),
        ({"targets": (0.0,)}, r"--target must"),
        ({"targets": (float("nan"),)}, r"--target must"),
        ({"targets": (1.5,)}, r"--target must be a relative gap, above 0 and at most 1, not 1.5"),
    ],
)
def test_a_view_that_makes_no_sense_is_refused_by_name(view, message):
    with pytest.raises(InputError, match=message):
        View(**view)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"select": ("solver=ag", "solver=fw")}, r"--select: no run has a solver like ag or fw: did you mean 'pg'\? there are pg, scs$"),
        ({"select": ("problem=one", "seed=3")}, r"--select: no run fits problem=one and seed=3 together"),
        ({"baseline": "ecos"}, r"--baseline: no solver is called 'ecos': there are pg, scs$"),
        ({"baseline": "scs", "select": ("solver=pg",)}, r"--baseline: no solver is called 'scs': there are pg$"),
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


def test_no_ratio_mixes_machines_and_one_machine_is_not_named(make_store, rewritten):
    """With two environments in turn every pg was made on the first, and every scs on the second."""
    folder = make_store(*both("one"), environments=2)
    assert {label for label, _ in labels(read_results(folder))} == {"one"}, "they differ in nothing that tells machines apart"
    rewritten(folder, "UPDATE environment SET description = json_set(description, '$.processor', 'C') WHERE id = 2")
    results = read_results(folder)
    assert labels(results) == [("one [machine 1]", "pg"), ("one [machine 2]", "scs")]
    assert [machine["processor"] for machine in results.machines] == ["a | b", "C"]
    assert winners(contests(run_times(results.runs, results.samples, results.targets)))["ratio"].isna().all()
    assert labels(read_results(folder, View(select=("solver=pg",)))) == [("one", "pg")]


def test_cases_without_a_row_are_counted(make_store, rewritten):
    folder = make_store(*both("one"))
    rewritten(folder, "INSERT INTO meta VALUES ('cases', '7')")
    assert read_results(folder).missing == 5
    assert read_results(folder, View(select=("solver=pg",))).missing == 5
