"""`bench-mtl report FOLDER --check` on papers: a report edited by hand, or rows changed under it, are found, and published ones pass."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_mtl.papers import experiments
from bench_mtl.papers.check import check_paper_report
from bench_mtl.papers.report import ANY_CODE

REPORTS = Path(__file__).parents[3] / "reports"
NAME = "chen-faces"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPORTS / NAME, tmp_path / NAME))


@pytest.mark.parametrize("name", experiments())
def test_a_published_report_passes_in_lines_that_have_room(name: str) -> None:
    faults, parts = check_paper_report(REPORTS / name, name)
    assert faults == []
    assert parts > 5
    assert [line for line in (REPORTS / name / "report.md").read_text().split("\n") if len(line) >= 120] == []


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("| statements, other data | 12 |", "| statements, other data | 13 |", "are listed as reproduced, not 13"),
        ("- **reproduced**: ORL: a larger rank", "- **not reproduced**: ORL: a larger rank", "are listed as"),
        ("11.64", "11.65", "the rows give"),
        ("larger gamma and tau.", "smaller gamma and tau.", "the rows give"),
        ("](cover.svg)", "](figures/none.svg)", "this figure is not there"),
        ("`figures/orl-grid.svg`", "`figures/none.svg`", "the rows give"),
    ],
    ids=["count", "verdict", "number", "sentence", "figure", "named figure"],
)
def test_a_report_edited_by_hand(copy: Path, old: str, new: str, why: str) -> None:
    path = copy / "report.md"
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    assert path.read_text() != text
    faults, _ = check_paper_report(copy, NAME)
    assert any(why in fault.why for fault in faults), faults


def test_rows_changed_under_a_report(tmp_path: Path, rewritten: Callable[..., None]) -> None:
    copy = Path(shutil.copytree(REPORTS / "boosting-rivals", tmp_path / "copy"))
    rewritten(copy, "UPDATE cell SET found = replace(found, '\"test_error\": 0.1', '\"test_error\": 0.2')")
    faults, _ = check_paper_report(copy, "boosting-rivals")
    assert any("the rows give" in fault.why for fault in faults)


def test_a_line_that_is_missing(copy: Path) -> None:
    path = copy / "report.md"
    path.write_text("\n".join(line for line in path.read_text().split("\n") if not line.startswith("1. ")))
    assert any("a line is missing" in fault.why for fault in check_paper_report(copy, NAME)[0])


def test_the_report_of_a_run_passes_too(copy: Path) -> None:
    """It has no note that its rows were there before, which that of a rewriting has."""
    path = copy / "report.md"
    text = path.read_text()
    note = next(part for part in text.split("\n\n") if part.startswith(ANY_CODE.split(":")[0]))
    path.write_text(text.replace(f"{note}\n\n", "", 1))
    assert check_paper_report(copy, NAME)[0] == []
