"""`bench-mtl report FOLDER --check` on papers: a report edited by hand, or rows changed under it, are named, and published ones pass."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from published_reports import EACH, REPORTS

from bench_mtl.papers.experiment import Verdict
from bench_mtl.papers.report import ANY_CODE, BESIDE, CANNOT, FOUND, text_from_rows
from bench_mtl.report.check import Fault, check_report

NAME = "chen-faces"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPORTS / NAME, tmp_path / NAME))


def faults_of(folder: Path, name: str = NAME) -> list[Fault]:
    return check_report(folder, lambda rows, text: text_from_rows(rows, name, text))[0]


@EACH
def test_a_published_report_passes_in_lines_that_have_room(name: str) -> None:
    assert faults_of(REPORTS / name, name) == []
    assert [line for line in (REPORTS / name / "report.md").read_text().split("\n") if len(line) >= 120] == []


@EACH
def test_a_published_report_counts_what_it_lists_and_its_differences_are_those_of_its_numbers(name: str) -> None:
    text = (REPORTS / name / "report.md").read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    beside = list(rows_of(sections[BESIDE]))
    listed = Counter(re.findall(r"^- \*\*([^*]+)\*\*", sections[BESIDE], re.MULTILINE)) + Counter(row["Reading"] for row in beside)
    listed[str(Verdict.UNKNOWN)] += len(list(rows_of(sections.get(CANNOT, ""))))
    counted = {str(verdict): sum(int(row[str(verdict)]) for row in rows_of(sections[FOUND])) for verdict in Verdict}
    assert counted == {str(verdict): listed[str(verdict)] for verdict in Verdict}
    for row in beside:
        published, ours, difference = (number(row[title]) for title in ("Published", "Ours", "Difference"))
        if published is not None and ours is not None and difference is not None:
            room = 0.006 * abs(difference) + last_digit(row["Published"]) + last_digit(row["Ours"])
            assert abs(ours - published - difference) <= room, row


def rows_of(section: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the first table of a section by its titles."""
    lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in section.split("\n") if line.startswith("|")]
    yield from (dict(zip(lines[0], cells, strict=True)) for cells in lines[2:])


def number(text: str) -> float | None:
    """Return the number that a cell begins with; None where it is no number, or one in per cent of another unit."""
    match = re.match(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?=$| ± )", text)
    return None if match is None else float(match[0].replace(",", ""))


def last_digit(text: str) -> float:
    """Return the worth of the last digit that a cell's number is shown with."""
    match = re.match(r"[+-]?[\d,]+(?:\.(\d+))?(?:e([+-]?\d+))?", text)
    return 0.0 if match is None else float(10.0 ** (int(match[2] or 0) - len(match[1] or "")))


def test_a_report_edited_by_hand(copy: Path) -> None:
    path = copy / "report.md"
    text = path.read_text()
    for old, new in (
        ("| statements, other data | 12 |", "| statements, other data | 13 |"),
        ("- **reproduced**: ORL: a larger rank", "- **not reproduced**: ORL: a larger rank"),
        ("11.64", "11.65"),
        ("larger gamma and tau.", "smaller gamma and tau."),
        ("figures/orl-grid.svg", "figures/none.svg"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        (fault,) = faults_of(copy)
        assert fault.line == text[: text.index(old)].count("\n") + 1
        assert fault.why.startswith("the rows give ")


def test_rows_changed_under_a_report(tmp_path: Path, rewritten: Callable[..., None]) -> None:
    copy = Path(shutil.copytree(REPORTS / "quattoni-fig1", tmp_path / "copy"))
    rewritten(copy, "UPDATE cell SET found = replace(found, '\"test_error\": 0.1', '\"test_error\": 0.2')")
    assert any("the rows give" in fault.why for fault in faults_of(copy, "quattoni-fig1"))


def test_a_line_that_is_missing(copy: Path) -> None:
    path = copy / "report.md"
    path.write_text("\n".join(line for line in path.read_text().split("\n") if not line.startswith("1. ")))
    (fault,) = faults_of(copy)
    assert fault.why.startswith("1 line not there before this: '1. ")


def test_the_report_of_a_run_passes_too(copy: Path) -> None:
    """It has no note that its rows were there before, which that of a rewriting has."""
    path = copy / "report.md"
    text = path.read_text()
    note = next(part for part in text.split("\n\n") if part.startswith(ANY_CODE.split(":")[0]))
    path.write_text(text.replace(f"{note}\n\n", "", 1))
    assert faults_of(copy) == []
