"""The tables and figures of README, of results at a glance and of the paper: that they say what the rows of the reports say."""

import re
import sqlite3
from contextlib import closing
from html import unescape
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean, median

import pytest

from bench_mtl.results.frames import AUTO
from benchmarks import glance
from benchmarks.glance import GLANCE, LINES, PAPER, README, REPORTS, lines

ROOT = Path(__file__).parents[2]


WRITE = "python -m benchmarks.glance --write"


@pytest.mark.parametrize("page", [README, GLANCE, PAPER])
def test_a_page_says_what_the_reports_say(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text == glance.on_page(page, text), WRITE


@pytest.mark.parametrize("path", [glance.FIGURE, glance.SMALL_FIGURE])
def test_a_figure_says_what_the_reports_say(path: str) -> None:
    dots = glance.points() if path == glance.FIGURE else glance.small_points()
    (said,) = re.findall(r"<desc>(.*?)</desc>", (ROOT / path).read_text(), re.DOTALL)
    assert unescape(said) == glance.words(dots), WRITE
    assert any(f"figures/{Path(path).name}" in (ROOT / page).read_text() for page in (README, GLANCE))


def test_every_problem_of_the_headline_reports_is_there_the_closest_contest_first() -> None:
    labels = [label for report in glance.HEADLINES for label in glance._times(report)["problem"].unique()]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines(GLANCE)]
    assert sorted(re.sub(r", \d+ draws|, older clock", "", row[0]) for row in rows) == sorted(labels)
    ratios = [[float(found[1]) for cell in (row[3], row[6]) if (found := re.match(r"\**([\d.]+)", cell))] for row in rows]
    closest = [min(max(ratio, 1.0 / ratio) for ratio in of) if of else float("inf") for of in ratios]
    assert closest == pytest.approx(sorted(closest), rel=0.2), "as far as digits that are shown can tell"
    assert closest[-1] == float("inf")
    assert glance.points()["problem"].nunique() == len(rows)


def test_every_problem_is_counted_once_to_every_target() -> None:
    total, *counts = re.split(r"; to |, to ", glance.score())
    assert [sum(map(int, re.findall(r" on (\d+)", text))) for text in counts] == [int(re.findall(r"\d+", total)[0])] * len(glance.TARGETS)


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
    (cells,) = ([cell.strip() for cell in text.split("|")] for text in lines(PAPER) if text.startswith(f"| {line.text} |"))
    assert float(cells[3]) == pytest.approx(expected, rel=5e-3)


def test_another_day_is_of_the_same_problems_and_says_its_seconds() -> None:
    """Of one report, from SQL alone: medians of the later runs of `auto` on both days."""
    folders = [glance.REPORTS / "headline-peers", glance.REPORTS / "headline-peers" / glance.ANOTHER_DAY]
    of_days = [_medians_of_auto(folder) for folder in folders]
    assert of_days[0].keys() == of_days[1].keys()
    ratios = [second / of_days[0][problem] for problem, second in of_days[1].items()]
    (line,) = (line for line in glance.days() if line.startswith("| headline-peers |"))
    mean, low, high = map(float, re.findall(r"[\d.]+", line.split("|")[3]))
    assert (mean, low, high) == pytest.approx((geometric_mean(ratios), min(ratios), max(ratios)), abs=0.051)


def _medians_of_auto(folder: Path) -> dict[str, float]:
    with closing(sqlite3.connect(folder / "results.sqlite")) as database:
        rows = database.execute(
            "select problem_label, setup_seconds + solve_seconds from runs where solver_label = ? and target = 1e-6 "
            "and clock = 'timed' and status = 'verified' order by problem_label, repetition",
            (AUTO,),
        ).fetchall()
    return {problem: median([seconds for _, seconds in of][1:]) for problem, of in groupby(rows, key=lambda row: row[0])}
