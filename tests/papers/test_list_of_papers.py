"""The list of published reports counts the verdicts that the reports of papers have."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from papers.overview import END, START
from papers.report import differences_of

REPORTS = Path(__file__).parents[2] / "reports"


def test_the_list_has_the_verdicts_of_every_report() -> None:
    table = (REPORTS / "README.md").read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    listed = {name: _numbers(rest) for name, rest in re.findall(r"^\| \[([\w-]+)\]\([^|]*\| [^|]* \|(.*)\|$", table, re.MULTILINE)}
    every = re.findall(r"^\| together \| \|(.*)\|$", table, re.MULTILINE)
    assert listed.keys() == {path.parent.name for path in REPORTS.glob("*/cells.sqlite")}
    for name, counts in listed.items():
        text = (REPORTS / name / "report.md").read_text(encoding="utf-8").partition("## What was run")[0]
        assert _numbers(text.strip().splitlines()[-1].split("|", 2)[2]) == counts, name
    assert [_numbers(line) for line in every] == [[sum(column) for column in zip(*listed.values(), strict=True)]]


def test_a_report_is_checked_without_the_files_that_the_repository_leaves_out(tmp_path: Path) -> None:
    for name in ("cells.sqlite", "report.md"):
        shutil.copy(REPORTS / "chen-table5" / name, tmp_path)
    assert differences_of(tmp_path) == []
    (tmp_path / "values.csv").write_text("nothing")
    assert differences_of(tmp_path)


def _numbers(cells: str) -> list[int]:
    return [int(cell) for cell in cells.strip().strip("|").split("|")]
