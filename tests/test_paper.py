"""The paper: its head and its references are whole, and its prose has no number that nothing holds it to.

That its table says what the reports say is a test of the published reports (`tests/bench_mtl/report/test_report_published.py`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import shipped_suites

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "paper" / "paper.md"

#: What the paper may count in words, and what there is of it.
COUNTED = {"families of problems": lambda: len(load_registry().problems), "suites": lambda: len(shipped_suites())}
WORDS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
]  # fmt: skip

#: Numbers that are no results: the level of the intervals, and the clause of the licence.
NO_RESULTS = {"95", "3"}


@pytest.fixture(scope="module")
def paper() -> tuple[dict[str, object], str]:
    """The head of the paper, and the text after it."""
    _, head, text = PAPER.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def prose_of(text: str) -> str:
    """Return a text without its table, code, formulas, citations and pictures' places."""
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return re.sub(r"`[^`]*`|\$[^$]*\$|\[@[^\]]*\]|\]\([^)]*\)", " ", "\n".join(lines))


def test_the_head_has_what_the_journal_asks_for(paper) -> None:
    head, _ = paper
    assert {"title", "tags", "authors", "date", "bibliography"} <= set(head)
    assert [author["name"] for author in head["authors"]] == ["the bench_mtl developers"]
    assert (PAPER.parent / head["bibliography"]).is_file()


def test_the_sections_are_those_that_the_journal_asks_for(paper) -> None:
    _, text = paper
    sections = re.findall(r"^# (.*)$", text, re.MULTILINE)
    assert sections[:3] == ["Summary", "Statement of need", "State of the field"]
    assert sections[-1] == "References"
    assert 750 <= len(re.findall(r"\w+", prose_of(text))) <= 1500


def test_every_citation_has_an_entry_and_every_entry_is_cited(paper) -> None:
    _, text = paper
    cited = {key for group in re.findall(r"\[(@[^\]]*)\]", text) for key in re.findall(r"@(\w+)", group)}
    entries = re.findall(r"^@\w+\{(\w+),", (PAPER.parent / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert cited == set(entries)


def test_pictures_are_there(paper) -> None:
    _, text = paper
    found = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert found
    assert [place for place in found if not (PAPER.parent / place).is_file()] == []


def test_prose_has_no_numbers_but_those_of_the_table(paper) -> None:
    _, text = paper
    number = r"(?<![\w.])\d+(?:\.\d+)?(?:e-\d+)?"
    table = {found for line in text.splitlines() if line.startswith("|") for found in re.findall(number, line)}
    assert set(re.findall(number, prose_of(text))) <= table | NO_RESULTS


def test_what_is_counted_in_words_is_counted_right(paper) -> None:
    _, text = paper
    found = re.findall(rf"\b({'|'.join(WORDS)})\b ({'|'.join(COUNTED)})", " ".join(text.split()))
    assert found
    assert [(word, what) for word, what in found if WORDS.index(word) != COUNTED[what]()] == []
