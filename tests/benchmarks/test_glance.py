"""The tables of README, of results at a glance and of the paper: that they say what the rows of the reports say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median

import pytest

from bench_mtl.results.frames import AUTO
from benchmarks.glance import GLANCE, HEAD, LINES, PAPER, README, REPORTS, lines

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", [README, GLANCE, PAPER])
def test_a_page_says_what_the_reports_say(page: str) -> None:
    table = "\n".join([HEAD, *lines(page)])
    assert f"\n{table}\n" in (ROOT / page).read_text(), f"python -m benchmarks.glance prints the table:\n{table}"


def test_seconds_are_those_of_the_rows() -> None:
    """Of one problem, from SQL alone: the median of the later runs that are proven."""
    (line,) = (line for line in LINES if line.text == "sparse + low rank, Scene")
    with closing(sqlite3.connect(REPORTS / line.report / "results.sqlite")) as database:
        rows = database.execute(
            "select repetition, setup_seconds + solve_seconds from runs where problem_label like ? and solver_label = ? and target = ? "
            "and clock = 'timed' and status = 'verified' order by repetition",
            ("%, Scene", AUTO, line.targets[0]),
        ).fetchall()
    assert len(rows) > 1
    expected = median(seconds for _, seconds in rows[1:])
    (cells,) = ([cell.strip() for cell in text.split("|")] for text in lines(GLANCE) if text.startswith(f"| {line.text} |"))
    assert float(cells[3]) == pytest.approx(expected, rel=5e-3)
