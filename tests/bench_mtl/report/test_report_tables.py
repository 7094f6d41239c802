"""What tables and words say that no oracle derives: baselines, sentences, times of zero, results that are hardly there."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
from audited import TARGETS, audited, iterative, run_of

from bench_mtl.core.errors import InputError
from bench_mtl.report.registry import TABLES, Source, report_tables
from bench_mtl.report.tables.groups import FASTEST_SPECIALISED, groups
from bench_mtl.report.words import certainty, contradictions, failures, headlines, reading
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN, kinds, status_counts
from bench_mtl.results.loading import read_results

# relative gaps 0.5, 5e-3, 5e-7 of the primal 1
PG = {
    "solver": "pg",
    "samples": [(0.1, 0, 1.0, 1.0, 0.5, None), (0.2, 9, 10.0, 1.0, 1 - 5e-3, None), (0.4, 99, 100.0, 1.0, 1 - 5e-7, None)],
}
SCS = {
    "solver": "scs",
    "family": "conic",
    "samples": [(3.0, 40, 0.0, 1.0, 1 - 5e-3, 1e-3), (2.0, 50, 0.0, 1.0, 1 - 5e-5, 1e-5), (6.0, 90, 0.0, 1.0, 1 - 5e-7, 1e-7)],
}
#: It gets to the loosest target alone, and is stopped.
SLOW = {**SCS, "status": "timeout", "samples": SCS["samples"][:1], "times": {"solve": 60.0}}


def run(solver, seconds, seed=0, **more):
    """A run that proves everything after so many seconds; scs and ecos are generic."""
    generic = solver in ("scs", "ecos")
    return {
        "solver": solver, "family": "conic" if generic else solver, "seed": seed,
        "samples": [(seconds, 9, 9.0, 1.0, 1.0, 1e-7 if generic else None)], **more,
    }  # fmt: skip


@pytest.fixture
def made(make_store, frames):
    """What tables are made from, of hand-made runs."""

    def of(*runs, baseline=None, folder="results"):
        read, samples = frames(make_store(*runs, folder=folder))
        return Source(read, samples, pd.DataFrame(), TARGETS, baseline, {})

    return of


def table(name, source):
    return TABLES[name].build(source)


def test_a_run_verified_where_the_optimum_is_almost_zero_has_reached_its_target(made):
    source = made({"solver": "pg", "samples": [(0.1, 0, 1.0, 60.0, 0.0, None), (0.7, 9, 9.0, 1e-13, 0.0, None)]})
    assert table("winners", source)["seconds"].tolist() == [0.7] * 3


def test_times_of_zero_count_as_the_shortest_that_can_be_told_from_it(made):
    source = made(run("pg", 0.0), run("pg", 0.0, 1), run("scs", 0.0), run("scs", 1.0, 1))
    pair = table("comparisons", source).iloc[0]
    assert (pair["ratio"], pair["ties"]) == (pytest.approx(1e3), 1)
    assert set(table("means", source)["shift"]) == {1e-6}
    once = table("winners", made(run("pg", 0.0), run("scs", 1.0), folder="once"))
    assert once["ratio"].isna().all(), "who is there at once is not so many times faster"


@pytest.mark.parametrize("status", ["crashed", "skipped"])
def test_results_that_are_hardly_there(made, status):
    source = made({"solver": "pg", "status": status, "limit": None})
    tables = {name: table(name, source) for name in ("winners", "comparisons", "speed_ups", "means", "objectives", "enclosures")}
    assert {name for name, one in tables.items() if len(one)} == {"winners", *(["means"] if status == "crashed" else [])}
    assert failures(tables["winners"]) == [("lasso", f"To 1e-2, 1e-4 and 1e-6, no solver reaches it (pg: {status}).")]
    assert headlines(tables["winners"]) == ["To a proven relative gap of 1e-2, 1e-4 and 1e-6, no solver reaches it on 1 of 1 problem."]
    assert certainty(tables["winners"]) == ""
    assert contradictions(tables["enclosures"]) == []


def test_a_failure_that_took_no_known_time_leaves_no_ratio_and_no_mean(made):
    source = made(
        run("pg", 1.0, limit=None), {**run("pg", 1.0, 1, limit=None), "samples": [], "status": "timeout"},
        *(run("scs", seconds, seed, limit=None) for seed, seconds in enumerate((2.0, 4.0))),
    )  # fmt: skip
    pair = table("comparisons", source).iloc[0]
    assert (math.isnan(pair["ratio"]), pair["wins"], pair["losses"], pair["at_most"]) == (True, 1, 1, True)
    assert table("means", source).set_index("solver").loc["pg", ["mean", "mean_ten_times"]].isna().all(axis=None)


def test_against_a_baseline(made):
    runs = [run("pg", 1.0), run("ag", 2.0), run("scs", 4.0), run("ecos", 8.0)]
    runs = [each | {"seed": seed} for each in runs for seed in (0, 1)]
    source = made(*runs, baseline="ecos", folder="ecos")
    row = table("winners", source).iloc[0]
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", "ecos", pytest.approx(8.0), False)
    assert table("speed_ups", source)["ratio"][0] == pytest.approx(8.0)
    against = table("comparisons", source)
    assert list(against["solver"].unique()) == ["pg", "ag", "scs", FASTEST_SPECIALISED]
    assert set(against["reference"]) == {"ecos"}
    source = made(*runs, baseline="pg", folder="pg")
    row = table("winners", source).iloc[0]
    assert (row["winner"], row["other"], row["ratio"], row["reference_wins"]) == ("pg", "ag", pytest.approx(2.0), True)
    assert table("speed_ups", source)["ratio"][0] == pytest.approx(0.5)
    failed = table("winners", made(PG, SLOW, baseline="scs", folder="failed"))["failed"]
    assert failed.iloc[-1] == "no run of the baseline scs reaches it (scs: timeout after 60.0 s)"
    with pytest.raises(InputError, match="unknown baseline 'sc': did you mean 'scs'"):
        table("comparisons", made(*runs, baseline="sc", folder="unknown"))


def test_failures_say_what_the_table_does_not(made):
    assert failures(table("winners", made(PG, SCS))) == []
    assert failures(table("winners", made(PG, folder="alone"))) == [], "no rival was run"
    slow = [{"solver": name, "family": "conic", "status": "timeout", "limit": limit} for name, limit in (("scs", 20.0), ("ecos", 40.0))]
    slow[0]["times"] = {"build": 0.1, "solve": 20.0}
    both = [("lasso", "To 1e-2, 1e-4 and 1e-6, no generic solver reaches it (scs, ecos: timeout after 20.0 to 40.0 s).")]
    assert failures(table("winners", made(PG, *slow, folder="slow"))) == both
    some = [*(PG | {"seed": seed} for seed in range(3)), SCS | {"seed": 0}, SLOW | {"seed": 1}, SCS | {"solver": "ecos", "seed": 0}]
    ((_, sentence),) = failures(table("winners", made(*some, folder="some")))
    assert "scs: run on 2 of 3 seeds, in 1 of 2 runs, else timeout after 60.0 s" in sentence
    assert "ecos: run on 1 of 3 seeds, in 1 of 1 runs" in sentence


def test_who_is_fastest_and_how_sure_that_is_are_counted(made):
    peer = {**SCS, "solver": "celer", "family": "peer_celer", "samples": [(0.05, 1, 0.0, 1.0, 1.0, 1e-7)], "problem": "ridge"}
    rows = table("winners", made(PG, SLOW, PG | {"problem": "ridge"}, peer, PG | {"problem": "alone"}))
    said = "a specialised solver is fastest on 1 of 3 problems, a peer solver is fastest on 1 and only solvers of one kind were run on 1."
    assert headlines(rows) == [f"To a proven relative gap of 1e-2, 1e-4 and 1e-6, {said}"]
    assert certainty(rows) == "6 ratios: 2 lower bounds (no rival reached the gap) and 4 without an interval."
    again = [solver | {"repetition": number} for number in range(3) for solver in (PG, SCS)]
    assert certainty(table("winners", made(*again, folder="again"))) == "3 ratios: 3 with a 95 % interval."
    assert ("**Peer.**" in reading([SPECIALISED, PEER]), "**Peer.**" in reading([SPECIALISED, GENERIC])) == (True, False)


def test_kinds_do_not_need_a_point(make_store, frames):
    slow = {"solver": "ecos", "family": "conic_b", "status": "timeout", "times": {"build": 0.1, "solve": 60.0}}
    lost = {"solver": "celer", "family": "peer_celer", "status": "crashed"}
    known = kinds(*frames(make_store(PG, slow, lost, {"solver": "mystery", "status": "crashed"})))
    assert known == {"pg": SPECIALISED, "conic_b": GENERIC, "peer_celer": PEER, "mystery": UNKNOWN}
    assert (status_counts(["timeout", "verified", "timeout"]), status_counts(["skipped"])) == ("verified 1/3, timeout 2/3", "skipped")


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


def test_groups_are_a_family_on_one_data_set_on_one_machine_and_the_family_as_a_whole():
    data = [{"name": "synthetic", "n": 3}, {"name": "scene"}, {"file": "x.npz"}, {"name": "synthetic", "n": 3, "preprocess": "scaled"}]
    runs = pd.DataFrame({"problem_label": [*"abcd"], "problem": ["hinge", "low_rank", "hinge", "hinge"], "data": map(json.dumps, data)})
    assert groups(pd.concat([runs, runs])) == {
        "hinge on synthetic (n = 3)": ("a", "d"),
        "hinge on x.npz": ("c",),
        "all of hinge": ("a", "d", "c"),
        "low_rank on scene": ("b",),
    }
    apart = groups(runs.assign(machine=["machine 1", "machine 1", "machine 1", "machine 2"]))
    assert apart["hinge on synthetic (n = 3), machine 2"] == ("d",)


def test_tables_of_shards_and_measures_are_there_where_they_have_rows(tmp_path):
    plain = report_tables(read_results(audited(tmp_path / "plain", [run_of("alone", "pg", iterative(1.0))])))
    assert TABLES.keys() - plain.keys() == {"measures", "workers", "communication"}
    info = {"rounds": 10, "messages": 20, "sent": 10240, "received": 5120, "again": 0, "shards": 8}
    shared = [
        run_of(f"many {workers}", "pg", iterative(1.0 + workers), data={"file": "a.json", "workers": workers}, radius=1.0, info=info)
        for workers in (1, 2)
    ]
    folder = audited(tmp_path / "shared", shared)
    assert TABLES.keys() - report_tables(read_results(folder)).keys() == {"measures"}
    assert "Model, 1,000 workers (s)" in (folder / "report.md").read_text()
