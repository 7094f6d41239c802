"""A table of one's own, from the command line and in a suite."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SUITE = """
name = "own"
targets = [1e-2]

[limits]
seconds = 10.0

[[problems]]
name = "l1inf_hinge"
data = {{ file = "own.csv", {options} }}
parameters = {{ radius = 1.0 }}

[[solvers]]
name = "projected_gradient"
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    Y = (X @ rng.standard_normal((3, 2)) > 0.0).astype(int)
    lines = [",".join([*(f"{x:.6f}" for x in row), *map(str, labels)]) for row, labels in zip(X, Y, strict=True)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["a,b,c,red,round", *lines, ""]))
    return path


def test_it_is_solved_in_one_line(table: Path, command: Callable[..., Any]) -> None:
    result = command("solve", "l1inf_hinge", "auto", "--data", "own.csv", "--data-option", "labels=2", "--param", "radius=1")
    assert result.code == 0, result.err
    assert "note: The labels are red, round." in result.out


def test_it_is_no_table_of_prices(table: Path, command: Callable[..., Any]) -> None:
    for name in ("solve", "path"):
        over = ["--param", "radius=1"] if name == "solve" else ["--over", "radius=1,2"]
        result = command(name, "l1inf_hinge", "auto", "--data", "own.csv", *over)
        assert result.code == 2
        assert len(result.err) == 1
        assert "which columns are to be learned?" in result.err[0]
        assert result.err[0].endswith("The columns are a, b, c, red, round")


def test_an_option_given_twice_is_refused(table: Path, command: Callable[..., Any]) -> None:
    result = command(
        "solve", "l1inf_hinge", "auto", "--data", "own.csv", "--data-option", "labels=2", "--param", "radius=1", "--param", "radius=2"
    )
    assert (result.code, result.err) == (2, ["bench-mtl: --param radius is given twice"])


def test_in_a_suite(table: Path, command: Callable[..., Any]) -> None:
    Path("own.toml").write_text(SUITE.format(options='labels = ["red", "round"]'))
    result = command("run", "own.toml", "--isolation", "inline")
    assert (result.code, result.err) == (1, ["no solver fits its problem: the run was skipped"])
    Path("own.toml").write_text(SUITE.format(options="held_out = 2").replace('"own"', '"other"'))
    result = command("run", "own.toml", "--isolation", "inline")
    assert result.code == 2
    assert "which columns are to be learned?" in result.err[-1]


BLOCKS = """
name = "blocks"
targets = [1e-2]

[limits]
seconds = 10.0

[[problems]]
name = "l1inf_glm"
data = { name = "blocks_sparse", folder = "kept", examples = 600, features = 20, nonzeros = 4, tasks = 2, shard_rows = 200 }
parameters = { radius = "truth", loss = "logistic" }

[[solvers]]
name = "accelerated_gradient"
"""


def test_data_in_blocks_are_solved_by_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Any]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("blocks.toml").write_text(BLOCKS)
    Path("kept").mkdir()
    result = command("run", "blocks.toml", "--json")
    assert (result.code, result.err) == (0, [])
    (row,) = json.loads("\n".join(result.out))["runs"]
    assert row["status"] == "verified", row["reason"]
    assert [path.name.partition("-")[0] for path in Path("kept").glob("blocks*")] == ["blocks_sparse"]
