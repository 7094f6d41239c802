"""Leader boards: every count and every mean again, by slow loops over the runs as they were given."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from shown_results import TARGETS, Page, fill, run

from bench_mtl.publish import sources
from bench_mtl.publish.instance_pages import instances
from bench_mtl.publish.leader_pages import counts_sentence, leader_pages
from bench_mtl.publish.leaders import Board, boards
from bench_mtl.publish.sources import all_machines, read_sources
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.loading import read_results

Runs = list[dict[str, Any]]

SIDES = {"specialised": "own", "generic": "other", "peer": "other"}


def boards_of(tmp_path: Path, *suites: Runs, **more: Any) -> list[Board]:
    folders = [fill(tmp_path / f"suite{place}", *runs, name=f"suite{place}", **more) for place, runs in enumerate(suites)]
    return boards(read_sources(folders))


def board_of(tmp_path: Path, runs: Runs, target: float = TARGETS[-1]) -> Board:
    (found,) = (board for board in boards_of(tmp_path, runs) if board.target == target)
    return found


def random_runs(seed: int) -> Runs:
    """Two specialised solvers, two generic ones and a peer on seven instances, with repetitions, ties, failures and gaps."""
    dice = random.Random(seed)
    kinds = {"pg": "specialised", "admm": "specialised", "scs": "generic", "ecos": "generic", "celer": "peer"}
    runs = []
    for problem in range(3):
        for number in range(2):
            for solver, kind in kinds.items():
                if dice.random() < 0.2:
                    continue
                fails = dice.random() < 0.25
                for repetition in range(dice.choice((1, 1, 3))):
                    early = dice.choice((0.5, 0.52, 1.0, 2.0)) + dice.random() / 1000  # no two are equal
                    late = None if fails else early + dice.choice((0.5, 1.0, 1.04))
                    runs.append(run(solver, early, late, kind=kind, problem=f"p{problem}", seed=number, repetition=repetition))
    # of both kinds each solver is known to be of its kind
    return [*runs, *(run(solver, 1.0, 2.0, kind=kind, problem="last", seed=0) for solver, kind in kinds.items())]


def by_instance(runs: Runs, place: int) -> dict[tuple[str, int | None], dict[str, tuple[str, float, float]]]:
    """By instance and solver: kind, first time and measured time; infinite where a run did not get there."""
    found: dict[tuple[str, int | None], dict[str, tuple[str, float, float]]] = {}
    for one in runs:
        key = one["problem"], one.get("seed")
        times = [
            math.inf if other["seconds"][place] is None else other["seconds"][place]
            for other in sorted(runs, key=lambda each: each.get("repetition", 0))
            if (other["problem"], other.get("seed"), other["solver"]) == (*key, one["solver"])
        ]
        lost = math.inf in times
        later = times[1:] if len(times) > 1 else times
        found.setdefault(key, {})[one["solver"]] = (one["kind"], math.inf if lost else times[0], math.inf if lost else median(later))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_counts_and_means_are_those_of_slow_loops(tmp_path: Path, seed: int) -> None:
    runs = random_runs(seed)
    for place, target in enumerate(TARGETS):
        table = by_instance(runs, place)
        board = board_of(tmp_path / str(place), runs, target)
        run_on, there = Counter[str](), Counter[str]()
        alone, level, kind_alone, kind_level = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        kinds, nobody, one_side, best = Counter[tuple[str, bool]](), 0, 0, {}
        for key, row in table.items():
            for solver, (_, _, seconds) in row.items():
                run_on[solver] += 1
                there[solver] += seconds < math.inf
            leaders = []
            for kind in SIDES:
                of_kind = [solver for solver in row if row[solver][0] == kind]
                arrived = [solver for solver in of_kind if row[solver][2] < math.inf]
                if arrived:
                    leader = sorted(arrived, key=lambda solver: row[solver][1])[0]
                    leaders.append(leader)
                    near = {solver for solver in arrived if row[solver][2] < 1.1 * row[leader][2]} | {leader}
                    if len(of_kind) > 1:
                        (kind_alone if len(near) == 1 else kind_level).update(near)
            if leaders:
                winner = sorted(leaders, key=lambda solver: row[solver][2])[0]
                best[key] = row[winner][2]
            if len({SIDES[kind] for kind, _, _ in row.values()}) < 2:
                one_side += 1
            elif not leaders:
                nobody += 1
            else:
                near = {solver for solver in row if row[solver][2] < 1.1 * row[winner][2]} | {winner}
                (alone if len(near) == 1 else level).update(near)
                kinds[row[winner][0], len({SIDES[row[solver][0]] for solver in near}) > 1] += 1
        for each in board.standings:
            name = each.solver
            expected = (run_on[name], there[name], alone[name], level[name], kind_alone[name], kind_level[name])
            assert (each.run_on, each.there, each.fastest, each.level, each.fastest_of_kind, each.level_of_kind) == expected
        assert {each.solver for each in board.standings} == set(run_on)
        assert (board.nobody, board.alone) == (nobody, one_side)
        for count in board.kinds:
            assert (count.fastest, count.level) == (kinds[count.kind, False], kinds[count.kind, True])
        assert sum(count.fastest + count.level for count in board.kinds) + nobody + one_side == len(table)
        common = {solver for solver in run_on if run_on[solver] == len(table)}
        assert [block.suite for block in board.blocks] == ([None] if len(common) > 1 and best else [])
        for ratio in board.blocks[0].ratios if board.blocks else ():
            logs = [math.log(table[key][ratio.solver][2] / least + 1.0) for key, least in best.items()]
            failed = sum(math.isinf(value) for value in logs)
            assert (ratio.failed, ratio.there) == (failed, len(best) - failed)
            if failed:
                assert ratio.mean is None
            else:
                assert ratio.mean == pytest.approx(math.exp(math.fsum(logs) / len(logs)) - 1.0)
        if board.blocks:
            assert {ratio.solver for ratio in board.blocks[0].ratios} == common
            failures = [ratio.failed for ratio in board.blocks[0].ratios]
            assert failures == sorted(failures), "success before speed"


def test_the_winner_is_that_of_the_report(tmp_path: Path) -> None:
    runs = [one for one in random_runs(7) if one["seed"] == 0]  # where a problem is one instance
    (source,) = read_sources([fill(tmp_path / "results", *runs)])
    table = winners(contests(source.times))
    told = {(row["problem"], row["target"]): row["winner"] for row in table.to_dict("records")}
    for board in boards([source]):
        for contest in board.contests:
            winner = contest.winner
            assert (winner and winner.solver) == told[contest.problem, board.target]


def test_nobody_is_beaten_where_it_was_not_run(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0, kind="specialised", problem="a"), run("scs", 0.1, 0.2, kind="generic", problem="b")]
    board = board_of(tmp_path, runs)
    assert {(each.solver, each.run_on, each.there, each.fastest, each.level) for each in board.standings} == {
        ("pg", 1, 1, 0, 0), ("scs", 1, 1, 0, 0),
    }  # fmt: skip
    assert board.alone == 2
    assert board.blocks == ()
    assert counts_sentence(board) == "Of 2 instances solvers of one side alone were run on 2, which is no win."


def test_a_failure_is_no_slow_success(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0, problem="a"), run("scs", 1.0, None, kind="generic", problem="a")]
    runs += [run("pg", 1.0, None, problem="b"), run("scs", 1.0, None, kind="generic", problem="b")]
    board = board_of(tmp_path, runs)
    (block,) = board.blocks
    assert (block.instances, block.solved) == (2, 1)
    assert [(each.solver, each.there, each.failed, each.mean) for each in block.ratios] == [("pg", 1, 0, 1.0), ("scs", 0, 1, None)]
    assert counts_sentence(board) == "Of 2 instances a specialised solver is fastest on 1 and no solver gets there on 1."


def test_skipped_solvers_were_not_run(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 1.0, 3.0, kind="generic"), run("qp", None, None, kind="generic", status="skipped")]
    board = board_of(tmp_path, runs)
    assert {each.solver for each in board.standings} == {"pg", "scs"}


def test_an_instance_of_two_suites_counts_once(tmp_path: Path) -> None:
    few = [run("pg", 1.0, 2.0), run("scs", 2.0, 3.0, kind="generic")]
    more = [run("pg", 1.0, 4.0), run("scs", 2.0, 3.0, kind="generic"), run("admm", 2.0, 9.0)]
    (board,) = (each for each in boards_of(tmp_path, few, more) if each.target == TARGETS[-1])
    (contest,) = board.contests
    assert (contest.suite, board.repeated) == ("suite1", 1)
    assert contest.winner is not None
    assert contest.winner.solver == "scs"


def test_the_order_in_which_results_are_given_decides_nothing(tmp_path: Path) -> None:
    early, late = [run("pg", 1.0, 9.0), run("scs", 2.0, 4.0, kind="generic")], [run("pg", 1.0, 2.0), run("scs", 2.0, 4.0, kind="generic")]
    folders = [fill(tmp_path / "a", *late, name="a", started="2026-02-02T00:00:00"), fill(tmp_path / "b", *early, name="b")]
    for given in (folders, folders[::-1]):
        assert {board.contests[0].suite for board in boards(read_sources(given))} == {"a"}


def test_a_plug_in_of_the_same_name_in_other_results_changes_nobodys_kind(tmp_path: Path) -> None:
    ours = [run("pg", 1.0, 2.0, problem="a"), run("scs", 2.0, 4.0, kind="generic", problem="a")]
    theirs = [run("pg", 1.0, 1.0, kind="generic", problem="b"), run("scs", 2.0, 4.0, kind="generic", problem="b")]
    (board,) = (each for each in boards_of(tmp_path, ours, theirs) if each.target == TARGETS[-1])
    assert [(each.kind, each.fastest) for each in board.kinds] == [("specialised", 1), ("generic", 0), ("peer", 0)]
    assert {(each.solver, each.kind) for each in board.standings} == {
        ("pg", "specialised"), ("pg (solver pg, generic)", "generic"), ("scs", "generic"),
    }  # fmt: skip


def test_suites_have_parts_of_their_own(tmp_path: Path) -> None:
    one = [run("pg", 1.0, 2.0, problem="a"), run("scs", 2.0, 4.0, kind="generic", problem="a")]
    two = [run("pg", 1.0, 2.0, problem="b", seed=1), run("ecos", 2.0, 2.1, kind="generic", problem="b", seed=1)]
    (board,) = (each for each in boards_of(tmp_path, one, two) if each.target == TARGETS[-1])
    assert [block.suite for block in board.blocks] == ["suite0", "suite1"]
    assert [[each.solver for each in block.ratios] for block in board.blocks] == [["pg", "scs"], ["pg", "ecos"]]
    assert [each.mean for each in board.blocks[0].ratios] == pytest.approx([1.0, 2.0])
    assert [(each.fastest, each.level) for each in board.kinds] == [(1, 1), (0, 0), (0, 0)]


def test_machines_are_kept_apart(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 2.0, 4.0, kind="generic")]
    slow = [run("pg", 1.0, 9.0), run("scs", 2.0, 4.0, kind="generic")]
    folders = [fill(tmp_path / "a", *runs), fill(tmp_path / "b", *slow, processor="slow one", started="2026-02-02T00:00:00")]
    sources = read_sources(folders)
    assert [source.slug for source in sources] == ["hand", "hand-2"]
    found = [board for board in boards(sources) if board.target == TARGETS[-1]]
    assert [(board.machine, board.contests[0].winner.solver) for board in found if board.contests[0].winner] == [(0, "pg"), (1, "scs")]
    page = Page(leader_pages(boards(sources), sources, all_machines(sources))["leaders/l1inf_hinge.html"])
    assert {"to-1e-4-1", "to-1e-4-2"} <= page.places
    assert "machine 1: quick one, 4 cores, 16.0 GiB, Linux x86_64; machine 2: slow one" in page.text


def test_one_result_may_be_of_several_machines(tmp_path: Path) -> None:
    fill(tmp_path / "a", run("pg", 1.0, 2.0, seed=0), run("scs", 2.0, 4.0, kind="generic", seed=0))
    fill(tmp_path / "a", run("pg", 1.0, 9.0, seed=1), run("scs", 2.0, 4.0, kind="generic", seed=1), processor="slow one")
    (source,) = read_sources([tmp_path / "a"])
    found = [board for board in boards([source]) if board.target == TARGETS[-1]]
    assert [(board.machine, [(each.problem, each.seed) for each in board.contests]) for board in found] == [
        (0, [("lasso", 0)]), (1, [("lasso", 1)]),
    ]  # fmt: skip
    assert [each.title for each in instances(source.results)] == ["lasso, seed 0", "lasso, seed 1"]


def test_runs_that_no_other_process_certified_are_named(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 2.0, 4.0, kind="generic")]
    sources = read_sources(
        [fill(tmp_path / "a", *runs, name="apart", isolation="process"), fill(tmp_path / "b", *runs, name="here", isolation="inline")]
    )
    for these, warned in ((sources, True), (sources[1:], True), (sources[:1], False)):
        pages = leader_pages(boards(these), these, all_machines(these))
        said = "Runs of here were certified in the process of the solvers alone (isolation inline)"
        assert (said in Page(pages["leaders.html"]).text) == warned
    assert said in Page(leader_pages(boards(sources[1:]), sources[1:], all_machines(sources))["leaders/l1inf_hinge.html"]).text


def test_the_latest_results_of_a_suite_count(tmp_path: Path) -> None:
    old = [run("pg", 1.0, 9.0), run("scs", 2.0, 4.0, kind="generic")]
    new = [run("pg", 1.0, 2.0), run("scs", 2.0, 4.0, kind="generic")]
    folders = [fill(tmp_path / "new", *new, started="2026-02-02T00:00:00"), fill(tmp_path / "old", *old)]
    (board,) = (board for board in boards(read_sources(folders)) if board.target == TARGETS[-1])
    (contest,) = board.contests
    assert contest.suite == "hand-2"
    assert contest.winner is not None
    assert contest.winner.solver == "pg"


def test_a_part_of_a_suite_does_not_hide_what_failed_in_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [run("pg", 1.0, None, problem="a"), run("scs", 2.0, 4.0, kind="generic", problem="a")]
    folders = [fill(tmp_path / "whole", *whole), fill(tmp_path / "part", run("pg", 1.0, 2.0, problem="b"), started="2026-02-02T00:00:00")]
    monkeypatch.setattr(sources, "read_results", lambda folder: replace(read_results(folder), missing=int(folder.name == "part")))
    assert [source.is_latest for source in read_sources(folders)] == [True, False]
    assert [source.is_latest for source in read_sources(folders[1:])] == [True]


def test_bounds_that_contradict_each_other_keep_an_instance_off_the_board(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 1.0, 3.0, kind="generic", optimum=0.5), run("pg", 1.0, 2.0, problem="b", seed=3)]
    board = board_of(tmp_path, runs)
    assert board.contradicted == 1
    assert [contest.problem for contest in board.contests] == ["b"]


def test_a_label_with_several_options_is_several_solvers(tmp_path: Path) -> None:
    usual = {"ladder": [1e-2], "restart": True}
    runs = [run("pg", 1.0, 2.0, problem=str(place), options=usual) for place in range(2)]
    runs.append(run("pg", 1.0, 2.0, problem="other", options={"ladder": [1e-4], "restart": True, "step": 2}))
    runs += [run("pg", 1.0, 2.0, problem=problem, name="another", options={"at": problem}) for problem in ("third", "fourth")]
    board = board_of(tmp_path, runs)
    assert {each.solver: each.run_on for each in board.standings} == {
        "pg": 2, "pg (step=2)": 1, "pg (solver another)": 1, "pg (solver another) (2)": 1,
    }  # fmt: skip
