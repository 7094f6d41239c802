"""Several solvers on one problem, in one command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.report.check import check_report, suite_report

PROBLEM = ["--data", "own.csv", "--data-option", "labels=2", "--param", "radius=1", "--target", "1e-3"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    Y = (X @ rng.standard_normal((3, 2)) > 0.0).astype(int)
    lines = [",".join([*(f"{x:.6f}" for x in row), *map(str, labels)]) for row, labels in zip(X, Y, strict=True)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,c,red,round", *lines, ""]))


def test_each_has_a_line_and_a_report_is_kept(command: Callable[..., Any], tmp_path: Path) -> None:
    result = command("solve", "l1inf_hinge", "projected_subgradient", "clarabel", *PROBLEM, "--out", "kept")
    assert result.code == 0, result.err
    assert "note: The labels are red, round." in result.out
    rows = [line.split() for line in result.out if line.startswith(("projected_subgradient ", "clarabel "))]
    assert [row[:3] for row in rows] == [["projected_subgradient", "specialised", "verified"], ["clarabel", "generic", "verified"]]
    assert any(line.startswith("[1/3] l1inf_hinge | projected_subgradient: verified") for line in result.out)  # a table has no seed
    assert result.out[-1] == "report: kept/report.md"
    report = (tmp_path / "kept" / "report.md").read_text()
    assert report.startswith("# l1inf_hinge, own.csv\n")
    assert "bench-mtl solve l1inf_hinge projected_subgradient clarabel --data own.csv" in report
    assert check_report(tmp_path / "kept", suite_report)[0] == []
    assert "3 of 3 rows proven again" in " ".join(command("check", "kept", "--recertify").out)
    assert (tmp_path / "kept" / "results.sqlite").is_file()


def test_what_a_script_gets_and_what_counts_as_a_failure(command: Callable[..., Any]) -> None:
    skipped = command("solve", "l1inf_hinge", "projected_subgradient", "partial_minimisation", *PROBLEM, "--json")
    found = json.loads("\n".join(skipped.out))
    assert [run["status"] for run in found["runs"]] == ["verified", "skipped"]
    assert skipped.code == 0  # one of them proves it
    assert command("solve", "l1inf_hinge", "admm", "partial_minimisation", *PROBLEM, "--quiet").code == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["auto", "pdgh"], "unknown solver 'pdgh': did you mean 'pdhg'?"),
        (["auto", "auto"], "solvers: two are labelled 'auto'"),
        (["auto", "pdhg", "--option", "threads=1"], "--option is for one solver"),
        (["auto", "pdhg", "--save", "x.npz"], "--save is for one solver"),
        (["auto", "--out", "kept"], "--out is for several solvers"),
    ],
)
def test_what_does_not_go_together_is_one_line(command: Callable[..., Any], given: list[str], said: str) -> None:
    result = command("solve", "l1inf_hinge", *given, *PROBLEM)
    assert result.code == 2
    assert len(result.err) == 1
    assert said in result.err[0]
