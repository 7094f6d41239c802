"""Leader boards: every count and every mean again, by slow loops over the runs as they were given."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from shown_results import TARGETS, fill, run

from bench_mtl.publish import sources
from bench_mtl.publish.boards import KINDS, Board, boards, counts, standings
from bench_mtl.publish.sources import read_sources
from bench_mtl.results.loading import read_results

Runs = list[dict[str, Any]]

SIDES = {"specialised": "own", "generic": "other", "peer": "other"}
COLUMNS = [
    "run_on", "gets_there_on", "fails_on",
    "fastest_alone_on", "among_the_fastest_on", "fastest_of_its_kind_on", "among_the_fastest_of_its_kind_on",
]  # fmt: skip

PAIR = [run("pg", 1.0, 2.0), run("scs", 2.0, 4.0, kind="generic")]
SLOWER = [run("pg", 1.0, 9.0), PAIR[1]]


def boards_of(*folders: Path) -> list[Board]:
    """Return the boards of results to the tightest target."""
    return [board for board in boards(read_sources(folders)) if board.target == TARGETS[-1]]


def board_of(tmp_path: Path, *suites: Runs) -> Board:
    (board,) = boards_of(*(fill(tmp_path / f"suite{place}", *runs, name=f"suite{place}") for place, runs in enumerate(suites)))
    return board


def winners_of(board: Board) -> list[tuple[str, str, str]]:
    rows = board.entries[board.entries["is_winner"]]
    return list(zip(rows["suite"], rows["problem"], rows["solver"], strict=True))


def random_runs(seed: int) -> Runs:
    """Two specialised solvers, two generic ones and a peer on seven instances, with repetitions, ties, failures and gaps."""
    dice = random.Random(seed)
    kinds = {"pg": "specialised", "admm": "specialised", "scs": "generic", "ecos": "generic", "celer": "peer"}
    runs = []
    for problem in range(3):
        for number in range(2):
            for solver, kind in kinds.items():
                if dice.random() < 0.2:
                    runs.append(run(solver, None, None, kind=kind, problem=f"p{problem}", seed=number, status="skipped"))
                    continue
                fails = dice.choice((0.0, 0.0, 0.3, 1.0))
                for repetition in range(dice.choice((1, 1, 3))):
                    early = dice.choice((0.5, 0.52, 1.0, 2.0)) + dice.random() / 1000  # no two are equal
                    late = None if dice.random() < fails else early + dice.choice((0.5, 1.0, 1.04))
                    runs.append(run(solver, early, late, kind=kind, problem=f"p{problem}", seed=number, repetition=repetition))
    # of both kinds each solver is known to be of its kind
    return [*runs, *(run(solver, 1.0, 2.0, kind=kind, problem="last", seed=0) for solver, kind in kinds.items())]


def by_instance(runs: Runs) -> dict[tuple[str, int | None], dict[str, tuple[str, float, float]]]:
    """By instance and solver: kind, first time and measured time to the tightest target; infinite where no run got there."""
    table: dict[tuple[str, int | None], dict[str, tuple[str, float, float]]] = {}
    runs = [one for one in runs if one.get("status") != "skipped"]
    for one in runs:
        key = one["problem"], one.get("seed")
        alike = [other for other in runs if (other["problem"], other.get("seed"), other["solver"]) == (*key, one["solver"])]
        every = [other["seconds"][-1] for other in sorted(alike, key=lambda each: each.get("repetition", 0))]
        times = [seconds for seconds in every if seconds is not None] or [math.inf]
        table.setdefault(key, {})[one["solver"]] = (one["kind"], times[0], median(times[1:] or times))
    return table


@pytest.mark.parametrize("seed", range(6))
def test_counts_and_means_are_those_of_slow_loops(tmp_path: Path, seed: int) -> None:
    runs = random_runs(seed)
    table, board = by_instance(runs), board_of(tmp_path, runs)
    tally: dict[str, Counter[str]] = {name: Counter() for name in COLUMNS}
    fastest, equal, nobody, one_side, best = Counter[str](), 0, 0, 0, {}
    for key, row in table.items():
        for solver, (_, _, seconds) in row.items():
            tally["run_on"][solver] += 1
            tally["gets_there_on" if seconds < math.inf else "fails_on"][solver] += 1
        leaders = []
        for kind in SIDES:
            of_kind = [solver for solver in row if row[solver][0] == kind]
            arrived = [solver for solver in of_kind if row[solver][2] < math.inf]
            if arrived:
                leader = min(arrived, key=lambda solver: row[solver][1])
                leaders.append(leader)
                near = {solver for solver in arrived if row[solver][2] < 1.1 * row[leader][2]} | {leader}
                if len(of_kind) > 1:
                    tally["fastest_of_its_kind_on" if len(near) == 1 else "among_the_fastest_of_its_kind_on"].update(near)
        if leaders:
            winner = min(leaders, key=lambda solver: row[solver][2])
            best[key] = row[winner][2]
        if len({SIDES[kind] for kind, _, _ in row.values()}) < 2:
            one_side += 1
        elif not leaders:
            nobody += 1
        else:
            near = {solver for solver in row if row[solver][2] < 1.1 * row[winner][2]} | {winner}
            tally["fastest_alone_on" if len(near) == 1 else "among_the_fastest_on"].update(near)
            is_equal = len({SIDES[row[solver][0]] for solver in near}) > 1
            equal += is_equal
            fastest[row[winner][0]] += not is_equal
    shown = standings(board).set_index("solver")
    assert {name: dict(shown[name]) for name in COLUMNS} == {
        name: {solver: tally[name][solver] for solver in shown.index} for name in COLUMNS
    }
    assert set(shown.index) == set(tally["run_on"])
    assert (shown["fails_on"] / shown["run_on"]).is_monotonic_increasing, "success before speed"
    assert list(counts(board).values()) == [len(table), *(fastest[kind] for kind in KINDS), equal, nobody, one_side]
    for solver in shown.index:
        ratios = [table[key][solver][2] / least for key, least in best.items() if solver in table[key]]
        if tally["run_on"][solver] < len(table) or math.inf in ratios:
            assert math.isnan(shown.loc[solver, "mean_ratio"])
        else:
            expected = math.exp(math.fsum(math.log(ratio + 1.0) for ratio in ratios) / len(ratios)) - 1.0
            assert shown.loc[solver, "mean_ratio"] == pytest.approx(expected)


def test_an_instance_of_two_suites_counts_once(tmp_path: Path) -> None:
    """By the one that ran most solvers, of two with as many by the last one, in whatever order they are given."""
    board = board_of(tmp_path / "most", PAIR, [*SLOWER, run("admm", 2.0, 9.5)])
    assert (winners_of(board), board.repeated) == ([("suite1", "lasso", "scs")], 1)
    folders = [fill(tmp_path / "a", *SLOWER, name="a", started="2026-02-02T00:00:00"), fill(tmp_path / "b", *PAIR, name="b")]
    for ordered in (folders, folders[::-1]):
        assert [winners_of(board) for board in boards_of(*ordered)] == [[("a", "lasso", "scs")]]


def test_machines_are_kept_apart(tmp_path: Path) -> None:
    fill(tmp_path / "a", *PAIR)
    fill(tmp_path / "a", *({**one, "seed": 1} for one in SLOWER), processor="slow one")  # one result of two machines
    found = boards_of(tmp_path / "a", fill(tmp_path / "b", *SLOWER, processor="third", started="2026-02-02T00:00:00"))
    assert [(board.machine, winners_of(board)) for board in found] == [
        ("machine 1", [("hand", "lasso", "pg")]), ("machine 2", [("hand", "lasso", "scs")]), ("machine 3", [("hand-2", "lasso", "scs")]),
    ]  # fmt: skip


def test_the_latest_results_of_a_suite_count_unless_they_are_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a part of a suite lacks may be what failed."""
    folders = [fill(tmp_path / "new", *PAIR, started="2026-02-02T00:00:00"), fill(tmp_path / "old", *SLOWER)]
    assert [winners_of(board) for board in boards_of(*folders)] == [[("hand-2", "lasso", "pg")]]
    monkeypatch.setattr(sources, "read_results", lambda folder: replace(read_results(folder), missing=int(folder.name == "new")))
    assert [winners_of(board) for board in boards_of(*folders)] == [[("hand", "lasso", "scs")]]
    assert [winners_of(board) for board in boards_of(folders[0])] == [[("hand", "lasso", "pg")]]


def test_bounds_that_contradict_each_other_keep_an_instance_off_the_board(tmp_path: Path) -> None:
    runs = [run("pg", 1.0, 2.0), run("scs", 1.0, 3.0, kind="generic", optimum=0.5), run("pg", 1.0, 2.0, problem="b", seed=3)]
    board = board_of(tmp_path, runs)
    assert (board.contradicted, list(board.entries["problem"])) == (1, ["b"])


def test_a_label_with_several_options_or_classes_is_several_solvers(tmp_path: Path) -> None:
    usual = {"ladder": [1e-2], "restart": True}
    runs = [run("pg", 1.0, 2.0, problem=str(place), options=usual) for place in range(2)]
    runs.append(run("pg", 1.0, 2.0, problem="other", options={"ladder": [1e-4], "step": 2}))
    runs.append(run("pg", 1.0, 2.0, problem="third", name="another", options={"restart": True}))
    runs.append(run("pg (solver another)", 1.0, 2.0, problem="third"))
    table = standings(board_of(tmp_path, runs))
    assert dict(zip(table["solver"], table["run_on"], strict=True)) == {
        "pg": 2, "pg (restart=default, step=2)": 1, "pg (solver another)": 1, "pg (solver another)-2": 1,
    }  # fmt: skip


def test_kinds_are_of_a_class_and_not_of_its_name(tmp_path: Path) -> None:
    """Another plug-in of the same name is another solver; one that gets nowhere is of the kind that it is elsewhere."""
    theirs = [run("pg", 1.0, 1.0, kind="generic", problem="b"), run("scs", None, None, kind="generic", problem="b", status="crashed")]
    board = board_of(tmp_path, PAIR, theirs)
    table = standings(board)
    assert {solver: (kind, runs) for solver, kind, runs in zip(table["solver"], table["kind"], table["run_on"], strict=True)} == {
        "pg": ("specialised", 1), "pg (solver pg, generic)": ("generic", 1), "scs": ("generic", 2),
    }  # fmt: skip
    assert counts(board)["A specialised solver fastest on"] == 1
