"""`bench-mtl path`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.engine.stopping import BySteps

HINGE = ["path", "l1inf_hinge", "projected_subgradient", "--data", "synthetic_l1inf"]
SMALL = ["--data-option", "tasks=3", "--data-option", "features=8", "--data-option", "examples=10", "--target", "1e-2"]


def test_a_path_is_a_table_and_a_csv(command: Callable[..., Any], tmp_path: Path) -> None:
    result = command(*HINGE, *SMALL, "--over", "radius=2,0.5,1", "--csv", tmp_path / "path.csv")
    assert result.code == 0, result.err
    assert result.out[0] == "l1inf_hinge: 30 rows of 3 tasks, 8 features"
    assert result.out[1].split() == ["radius", "status", "objective", "dual", "bound", "rel.", "gap", "seconds", "iterations", "rows"]
    assert [line.split()[:2] for line in result.out[2:5]] == [["0.5", "verified"], ["1", "verified"], ["2", "verified"]]
    assert result.out[5].startswith("total: ")
    with (tmp_path / "path.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["radius"]) for row in rows] == [0.5, 1.0, 2.0]
    for row in rows:
        assert float(row["dual_bound"]) <= float(row["objective"])
        assert float(row["relative_gap"]) <= 1e-2
        assert 1 <= int(row["rows"]) <= 8


def test_cold_starts_and_a_stack(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.engine.driver.ByWork", lambda *_, **__: BySteps())  # so that steps do not depend on the time
    arguments = ["path", "sparse_low_rank", "accelerated_gradient", "--data", "synthetic_sparse_low_rank", "--param", "gamma=2"]
    small = ["--data-option", "tasks=12", "--data-option", "features=35", "--data-option", "examples=40", "--target", "1e-3"]
    steps = []
    for flags in ([], ["--cold"]):
        result = command(*arguments, *small, "--over", "tau=4,5,6", "--option", "restart=gradient", *flags)
        assert result.code == 0, result.err
        assert result.out[1].split()[-2:] == ["non-zeros", "rank"]
        steps.append([int(line.split()[6]) for line in result.out[2:5]])
    warm, cold = steps
    assert warm[0] == cold[0]
    assert sum(warm) < sum(cold)


def test_a_run_that_falls_short_says_why(command: Callable[..., Any]) -> None:
    result = command(*HINGE, *SMALL, "--over", "radius=1,2", "--iterations", "1")
    assert result.code == 0
    assert "limit of 1 iteration, " in result.out[3]
    skipped = command("path", "l1inf_hinge", "projected_gradient", "--data", "synthetic_l1inf", "--over", "radius=1")
    assert skipped.code == 1
    assert "projected_gradient needs smooth" in skipped.out[3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--over", "radius"], "--over must be KEY=V1,V2,..., not 'radius'"),
        (["--over", "=1"], "--over must be KEY=V1,V2"),
        (["--over", "radius=1,x"], "--over radius must be numbers"),
        (["--over", "radius="], "--over radius must be numbers"),
        (["--over", "radius=-1"], "radius must be finite and at least 0"),
        (["--over", "radius=1,nan"], "finite"),
        (["--over", "radio=1"], "did you mean 'radius'?"),
        (["--over", "radius=1", "--param", "radius=2"], "give it once"),
        (["--over", "radius=1", "--param", "penalty=2"], "exactly one of radius"),
        (["--over", "radius=1", "--target", "0"], "--target must be"),
        (["--over", "radius=1", "--iterations", "0"], "--iterations must be"),
        (["--over", "radius=1", "--csv", "no/where.csv"], "--csv: the table cannot be written to no/where.csv"),
        (["--over", "radius=1", "--csv", "."], "--csv: . is not a file"),
        (["--over", "radius=1", "--option", "step_sizes=[0]"], "step_sizes must be"),
        ([], "Missing option '--over'"),
    ],
)
def test_bad_input_is_one_line(command: Callable[..., Any], arguments: list[str], words: str) -> None:
    result = command(*HINGE, *SMALL, *arguments)
    assert result.code == 2
    assert len(result.err) == 1
    assert words in result.err[0], result.err
