"""Peers in reports: a kind of their own, on the side of the generic solvers."""

from __future__ import annotations

from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import FASTEST_GENERIC, FASTEST_PEER, FASTEST_SPECIALISED, comparisons, groups, speed_ups
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import winners
from bench_mtl.report.text import headlines, reading
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, kinds

TARGETS = (1e-6,)


def of(solver, seconds, *, family=None, asked=None, problem="lasso", seed=0):
    samples = [(seconds, 9, 0.0, 1.0, 1 - 5e-7, asked)]
    return {"solver": solver, "family": family or solver, "samples": samples, "problem": problem, "seed": seed}


def runs_of(seed=0, fastest=0.5):
    return [
        of("ours", 1.0, seed=seed),
        of("scs", 8.0, family="conic", asked=1e-7, seed=seed),
        of("celer", fastest, family="peer_celer", asked=1e-7, seed=seed),
        of("skglm", 2.0, family="peer_skglm", asked=1e-7, seed=seed),
    ]


def tables(make_store, frames, *runs, **more):
    read, samples = frames(make_store(*runs, **more))
    return read, samples, run_times(read, samples, TARGETS)


def test_a_peer_is_of_its_kind_even_if_it_never_got_anywhere(make_store, frames):
    lost = {"solver": "celer", "family": "peer_celer", "status": "timeout", "times": {"build": 0.1, "solve": 60.0}}
    runs, samples, times = tables(make_store, frames, of("ours", 1.0), of("scs", 8.0, family="conic", asked=1e-7), lost)
    assert kinds(runs, samples) == {"ours": SPECIALISED, "conic": GENERIC, "peer_celer": PEER}
    assert set(times["kind"]) == {SPECIALISED, GENERIC, PEER}
    assert times.loc[times["kind"] != SPECIALISED, "passes"].isna().all()


def test_a_winner_is_measured_against_generic_solvers_and_peers(make_store, frames):
    _, _, times = tables(make_store, frames, *runs_of(fastest=4.0))
    row = winners(contests(times)).iloc[0]
    assert (row["winner"], row["other"], bool(row["reference_wins"])) == ("ours", "skglm", False)


def test_a_peer_that_wins_is_said_to(make_store, frames):
    _, _, times = tables(make_store, frames, *runs_of())
    table = winners(contests(times))
    row = table.iloc[0]
    assert (row["winner"], row["kind"], bool(row["reference_wins"])) == ("celer", PEER, True)
    assert headlines(table) == ["To a proven relative gap of 1e-6, a peer solver is fastest on 1 of 1 problem."]


def test_comparisons_have_the_fastest_peer_and_every_peer(make_store, frames):
    runs, _, times = tables(make_store, frames, *runs_of(0), *runs_of(1, 4.0))
    table = comparisons(contests(times, groups(runs)))
    assert list(zip(table["reference"], table["solver"], strict=True)) == [
        (FASTEST_GENERIC, "ours"), (FASTEST_GENERIC, "celer"), (FASTEST_GENERIC, "skglm"),
        (FASTEST_PEER, "ours"), ("celer", FASTEST_SPECIALISED), ("skglm", FASTEST_SPECIALISED),
    ]  # fmt: skip
    ratio = table.loc[table["reference"] == FASTEST_PEER, "ratio"].item()
    assert abs(ratio - 1.0) < 1e-12  # 0.5 and 2 over 1
    assert abs(speed_ups(contests(times, groups(runs)))["ratio"].item() - 1.0) < 1e-12


def test_what_a_peer_is_stands_where_there_is_one():
    assert "**Peer.**" in reading([SPECIALISED, PEER])
    assert "**Peer.**" not in reading([SPECIALISED, GENERIC])
