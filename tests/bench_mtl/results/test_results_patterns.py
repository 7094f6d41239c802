"""Patterns in a results file: kept with their runs, merged, exported, and left out where they are damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import case, fill, in_python, outcome, resealed, results_bytes, suite
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Status
from bench_mtl.report import write_report
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.results.comparison import compare
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge
from bench_mtl.results.view import View

HERE = Path(__file__).parent
QUICK = suite("quick", targets=(1e-2, 1e-4, 1e-6))


def read(folder: Path) -> list[tuple[int, str, list[list[bool]], int, int | None]]:
    with Store.open(folder) as store:
        return [(each.run_id, each.part, each.mask.tolist(), each.nonzeros, each.rank) for each in store.patterns()]


def change(folder: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute(statement, values)
    with suppress(sqlite3.OperationalError):  # a table is gone
        resealed(folder)


MATRICES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.sampled_from([0.0, 1.0, -2.0, 1e-8]))


@given(solutions=st.lists(st.dictionaries(st.sampled_from(["P", "Q", "W", "ä b"]), MATRICES), max_size=4))
def test_what_is_stored_is_read(tmp_path_factory: pytest.TempPathFactory, solutions: list[dict[str, Array]]) -> None:
    folder = tmp_path_factory.mktemp("results")
    fill(folder, {number: outcome(solution=solution) for number, solution in enumerate(solutions)})
    expected = [
        (number + 1, part, (np.abs(matrix) > 1e-6 * np.abs(matrix).max()).tolist(), np.count_nonzero(matrix))
        for number, solution in enumerate(solutions)
        for part, matrix in sorted(solution.items())
    ]
    assert [row[:4] for row in read(folder)] == expected
    merge([folder, folder], folder / "merged")
    assert read(folder / "merged") == read(folder)


def test_only_patterns_of_listed_runs_are_read(tmp_path: Path) -> None:
    fill(tmp_path, {number: outcome(solution={"W": np.eye(number + 1)}) for number in range(4)})
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1), case(0)])
        assert [pattern.run_id for pattern in store.patterns()] == [1, 2, 4]  # while a run writes
        store.plan([case(3), case(1)], force=True)
        assert store.patterns() == ()
        store.add(case(1), outcome(solution={"W": np.ones((2, 2))}), 1)
    assert read(tmp_path) == [(5, "W", [[True, True]] * 2, 4, 1)]
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM pattern").fetchone() == (5,)


def test_a_report_has_the_patterns(tmp_path: Path) -> None:
    folder = fill(tmp_path / "some", {0: outcome(solution={"P": np.eye(2), "Q": np.ones((2, 2))}), 1: outcome(0, Status.ERROR)})
    assert [(pattern.run_id, pattern.part, pattern.rank) for pattern in read_results(folder).patterns] == [(1, "P", 2), (1, "Q", 1)]
    assert read_results(fill(tmp_path / "none", [0])).patterns == ()
    fill(folder, {2: outcome(status=Status.TIMEOUT, solution={"W": np.eye(2)})}, plan=[case(0), case(1), case(2)])
    assert len(read_results(folder).patterns) == 3
    fill(folder, {}, plan=[case(0), case(1), case(2, solver="other")])  # the label alone is new
    assert [pattern.part for pattern in read_results(folder, View(select=("solver=other",))).patterns] == ["W"]


def test_the_columns_are_those_a_table_can_show(tmp_path: Path) -> None:
    with Store.open(fill(tmp_path, [0])) as store:
        kinds = {"run_id": "INTEGER", "part": "TEXT", "rows": "INTEGER", "columns": "INTEGER", "nonzeros": "INTEGER", "rank": "INTEGER"}
        assert store.columns("patterns") == kinds


def test_merged_patterns_are_those_of_their_runs(tmp_path: Path) -> None:
    first = fill(tmp_path / "first", range(4))
    second = fill(tmp_path / "second", {4: outcome(solution={"W": np.eye(2)}), 5: outcome(solution={"P": np.eye(2), "Q": np.eye(2)})})
    merged = merge([first, second, fill(tmp_path / "third", [6])], tmp_path / "out")
    assert (merged.runs, merged.superseded) == (7, 0)
    assert [row[:2] for row in read(tmp_path / "out")] == [(5, "W"), (6, "P"), (6, "Q")]
    assert [row[2:] for row in read(tmp_path / "out")] == [row[2:] for row in read(second)]


def test_a_comparison_has_nothing_to_do_with_patterns(tmp_path: Path) -> None:
    fill(tmp_path, {number: outcome(solution={"W": np.eye(2)}) for number in range(3)})
    with_patterns = compare(tmp_path, tmp_path)
    change(tmp_path, "DELETE FROM pattern")
    assert compare(tmp_path, tmp_path) == with_patterns


# Damage ------------------------------------------------------------------------------------------------------------------------------

DAMAGED: dict[str, tuple[str, Any]] = {
    "empty bits": ("bits", b""),
    "bits that are none": ("bits", b"garbage"),
    "bits as text": ("bits", "text"),
    "negative rows": ("rows", -3),
    "more rows": ("rows", 300),
    "rows without end": ("rows", 2**62),
    "columns as text": ("columns", "many"),
    "more non-zeros than entries": ("nonzeros", 1000),
    "negative rank": ("rank", -1),
    "rank as a fraction": ("rank", 0.5),
    "part as bytes": ("part", b"\xff"),
}


def test_damaged_patterns_are_left_out_and_their_runs_kept(tmp_path: Path) -> None:
    """One run for each damage, and one that is whole."""
    a, b, runs = tmp_path / "a", tmp_path / "b", len(DAMAGED) + 1
    fill(a, {number: outcome(solution={"W": np.eye(30)}) for number in range(runs)})
    for run_id, (column, value) in enumerate(DAMAGED.values(), start=1):
        change(a, f"UPDATE pattern SET {column} = ? WHERE run_id = ?", value, run_id)
    assert [row[0] for row in read(a)] == [runs]
    assert len(read_results(a).runs) == runs
    assert write_report(a, formats=["md", "svg"]).exists()
    merge([a, a], b)
    assert [row[0] for row in read(b)] == [runs]


def test_any_flipped_byte_is_a_pattern_less_or_the_same_one(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).random((40, 30)) < 0.3
    fill(tmp_path, {0: outcome(solution={"W": mask.astype(float)})})
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        (bits,) = connection.execute("SELECT bits FROM pattern").fetchone()
    for place in range(0, len(bits), 7):
        change(tmp_path, "UPDATE pattern SET bits = ?", bytes([*bits[:place], bits[place] ^ 4, *bits[place + 1 :]]))
        assert [row[2] for row in read(tmp_path)] in ([], [mask.tolist()])


def test_a_half_written_file_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, {number: outcome(solution={"W": np.random.default_rng(number).normal(size=(200, 60))}) for number in range(20)})
    whole = results_bytes(tmp_path)
    for share in (0.5, 0.9, 0.999):
        (tmp_path / FILE_NAME).write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(InputError, match="not a readable results file"):
            read(tmp_path)


def test_a_file_without_its_table_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    change(tmp_path, "DROP TABLE pattern")
    with pytest.raises(InputError, match="other columns than it should have"):
        read(tmp_path)


KILLED = """
import os, sys
import numpy as np
from pathlib import Path
from hand_made import case, outcome, suite
from bench_mtl.results import Store
with Store.create(Path(sys.argv[1]), suite()) as store:
    store.plan([case(number) for number in range(5)])
    for number in range(5):
        store.add(case(number), outcome(solution={"W": np.eye(50)}), store.add_environment({}))
    os.kill(os.getpid(), 9)
"""


def test_the_patterns_of_a_killed_run_are_whole(tmp_path: Path) -> None:
    assert in_python(KILLED, tmp_path / "results").returncode == -9
    assert [row[0] for row in read(tmp_path / "results")] == [1, 2, 3, 4, 5]


def test_a_row_and_its_patterns_are_stored_together_or_not_at_all(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    with Store.create(tmp_path, suite()) as store:
        twice = outcome(solution={"W": np.eye(2)})
        with pytest.raises(InputError):
            store.add(case(1), type(twice)(**{**vars(twice), "patterns": twice.patterns * 2}), 1)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM pattern)").fetchone() == (1, 0)
