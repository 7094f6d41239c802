"""Measures of points in a results file: kept with their samples, merged, exported."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hand_made import case, fill, outcome, resealed, suite
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Certificate, Sample, Status
from bench_mtl.results import FILE_NAME, Outcome, Store
from bench_mtl.results.export import export
from bench_mtl.results.loading import read_results
from bench_mtl.results.merge import merge
from bench_mtl.results.view import View

HERE = Path(__file__).parent
QUICK = suite("quick", targets=(1e-2, 1e-4, 1e-6))

Measures = dict[str, float]


def measured(*measures: Measures) -> Outcome:
    """A run with so many samples, which have these measures."""
    return outcome([Sample(0.1 * i, i, 1.0, Certificate(1.0, 0.5, 0.0), measures=tuple(of.items())) for i, of in enumerate(measures)])


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [(run_id, number, str(name), value) for run_id, number, name, value in frame.itertuples(index=False)]


def read(folder: Path) -> list[tuple[Any, ...]]:
    with Store.open(folder) as store:
        return rows(store.measures())


def change(folder: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute(statement, values)
    with suppress(sqlite3.OperationalError, ValueError):  # a table is gone, or what has no digest is in it
        resealed(folder)


NAMES = st.sampled_from(["non-zeros", "held-out error", 'ä b, "c"', "0"])
RUNS = st.lists(st.lists(st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=3), max_size=3), max_size=3)


@given(runs=RUNS)
def test_what_is_stored_is_read_merged_and_exported(tmp_path_factory: pytest.TempPathFactory, runs: list[list[Measures]]) -> None:
    folder = tmp_path_factory.mktemp("results")
    fill(folder, {number: measured(*of_run) for number, of_run in enumerate(runs)})
    expected = [
        (run + 1, number, name, value)
        for run, of_run in enumerate(runs)
        for number, of_sample in enumerate(of_run)
        for name, value in sorted(of_sample.items())
    ]
    assert read(folder) == expected
    merge([folder, folder], folder / "merged")
    assert read(folder / "merged") == expected
    assert export(folder, "parquet")[folder / "export" / "measures.parquet"] == len(expected)
    assert rows(pd.read_parquet(folder / "export" / "measures.parquet")) == expected


def test_only_measures_of_listed_and_selected_runs_are_read(tmp_path: Path) -> None:
    fill(tmp_path, {number: measured({"non-zeros": 1.0 + number}) for number in range(4)})
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(3), case(1, solver="other"), case(0)])
        assert rows(store.measures()) == [(1, 0, "non-zeros", 1.0), (2, 0, "non-zeros", 2.0), (4, 0, "non-zeros", 4.0)]
    assert rows(read_results(tmp_path, View(select=("solver=other",))).measures) == [(2, 0, "non-zeros", 2.0)]
    with Store.create(tmp_path, suite()) as store:
        store.plan([case(0)], force=True)
        assert store.measures().empty
        store.add(case(0), measured({"non-zeros": 9.0}), 1)
    assert read(tmp_path) == [(5, 0, "non-zeros", 9.0)]


def test_merged_measures_are_those_of_their_runs(tmp_path: Path) -> None:
    first = fill(tmp_path / "a", {0: measured({"a": 1.0}), 1: outcome(0, Status.ERROR)})
    second = fill(tmp_path / "b", {2: measured({}, {"b": 2.0, "a": 3.0})})
    merge([first, second], tmp_path / "out")
    assert read(tmp_path / "out") == [(1, 0, "a", 1.0), (3, 1, "a", 3.0), (3, 1, "b", 2.0)]


def test_measures_of_points_that_are_damaged_are_named(tmp_path: Path) -> None:
    fill(tmp_path, {0: measured({"a": 1.0})})
    change(tmp_path, "UPDATE measure SET name = ?", b"\xff")
    with pytest.raises(InputError, match=r"damaged: row 1 \(pg on lasso\)"):
        read(tmp_path)
    change(tmp_path, "UPDATE measure SET name = 'a', value = 'text'")
    with pytest.raises(InputError, match=r"damaged: row 1 \(pg on lasso\)"):
        read(tmp_path)
    change(tmp_path, "UPDATE measure SET value = 9e999")  # finite in every file that this project writes
    assert read_results(tmp_path).measures.empty


def test_a_file_without_its_table_is_refused(tmp_path: Path) -> None:
    change(fill(tmp_path, [0]), "DROP TABLE measure")
    with pytest.raises(InputError, match="other columns than it should have"):
        read(tmp_path)
