"""`bench-mtl publish` as a user meets it: its output and its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUNS = [{"seed": 0, "seconds": 1.0}, {"seed": 0, "seconds": 2.0, "solver": "admm"}]


def test_a_site_is_made(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = make_results("a", RUNS), tmp_path / "site"
    (tmp_path / "papers").mkdir()
    result = command("publish", folder, tmp_path / "papers", "--out", out)
    assert (result.code, result.err) == (0, ["bench-mtl: no results of a suite, left out: papers"])
    assert result.out == ["1 suite, leader boards of 1 problem", f"site: {out}/index.html, 1 instance"]


def test_contradictions_are_told(command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_results("a", [RUNS[0], {**RUNS[1], "optimum": 0.5}])
    result = command("publish", folder, "--out", tmp_path / "site")
    assert (result.code, result.err) == (1, ["bench-mtl: proven bounds in hand contradict each other"])
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--jobs", "0"], "--jobs must be a whole number of at least 1"),
        (["--title", " "], "--title must be"),
        (["--data-dir", "nowhere", "--instances"], "is not a folder"),
    ],
    ids=["jobs", "title", "data"],
)
def test_what_cannot_be_done_is_one_line(
    more: list[str], message: str, command: Callable[..., Any], make_results: Callable[..., Path], tmp_path: Path
) -> None:
    result = command("publish", make_results("a", RUNS), "--out", tmp_path / "site", *more)
    assert result.code == 2
    (line,) = result.err
    assert message in line
    assert not (tmp_path / "site").exists()
