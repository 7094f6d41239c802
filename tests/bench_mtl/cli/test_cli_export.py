"""`bench-mtl export` as a user meets it: its files, its output and its exit code."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bench_mtl.results import Store

RUNS = [{"seed": seed, "seconds": 1.0 + seed / 7} for seed in range(3)]


def test_tables_are_written_beside_the_results(command: Callable[..., Any], make_results: Callable[..., Path]) -> None:
    folder = make_results("a", RUNS)
    result = command("export", folder)
    assert (result.code, result.err) == (0, [])
    assert result.out == [
        f"{folder}/export/runs.parquet: 3 rows", f"{folder}/export/samples.parquet: 6 rows",
        f"{folder}/export/measures.parquet: 0 rows",
        f"{folder}/export/environments.parquet: 1 row", f"{folder}/export/patterns.parquet: 0 rows",
        f"{folder}/export/rungs.parquet: 0 rows", f"{folder}/export/places.parquet: 0 rows",
    ]  # fmt: skip
    with Store.open(folder) as store:
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "export" / "samples.parquet"), store.samples())


def test_csv_has_all_digits(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results("a", RUNS)
    assert command("export", folder, "--format", "csv", "--out", tmp_path / "out").code == 0
    with Store.open(folder) as store:
        expected = store.samples()["primal"].tolist()
    with (tmp_path / "out" / "samples.csv").open(newline="") as file:
        assert [float(row["primal"]) for row in csv.DictReader(file)] == expected
    assert not (folder / "export").exists()


def test_what_cannot_be_exported_is_one_line(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results("a", RUNS)
    (tmp_path / "file").write_text("x")
    for arguments, message in [
        ([tmp_path / "nothing"], "no results in"),
        ([folder, "--out", tmp_path / "file"], "cannot be written"),
        ([folder, "--out", folder], "is the results folder itself"),
        ([folder, "--format", "xlsx"], "'xlsx' is not one of 'parquet', 'csv'"),
    ]:
        result = command("export", *arguments)
        assert result.code == 2
        (line,) = result.err
        assert line.startswith("bench-mtl: ")
        assert message in line
