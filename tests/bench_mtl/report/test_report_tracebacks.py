"""Where runs raised, in reports: file and line in the list of failures, lines of code folded below it."""

from __future__ import annotations

import re

import pytest
from hand_reports import audited, run_of, runs

from bench_mtl.core.types import Place
from bench_mtl.report import tracebacks as words
from bench_mtl.report.tracebacks import TITLE, tracebacks
from bench_mtl.report.write import write_report
from bench_mtl.results.loading import read_results

PLACES = (Place("solvers/mine.py", 31, "Mine.steps", "helped(point)"), Place("forms.py", 7, "helped", "raise ValueError('```')"))

#: Words that a terminal, Markdown or a browser would obey.
HOSTILE = Place("<script>alert(1)</script>.py", 1, "\x1b[2J", "</pre></details> `| x` \u202e " + "\n" * 3 + "```\n## Heading")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The audited report with runs that raised: two alike, another one, and one that says nothing of where."""
    made = runs()
    made += [
        run_of("measured", "mine", [], "error", reason="ValueError: no", places=PLACES),
        run_of("bounded", "mine", [], "error", reason="ValueError: no", places=PLACES),
        run_of("lost", "yours", [], "error", reason="KeyError: 'a|b'", places=(HOSTILE,)),
        run_of("level", "yours", [], "error", reason="the solver yielded no iterate"),
    ]
    return audited(tmp_path_factory.mktemp("raised") / "results", made)


def test_failures_have_file_and_line_and_lines_of_code_follow(folder):
    text = (folder / "report.md").read_text()
    section = text[text.index("## What failed and why") : text.index("## Speed-ups")]
    assert re.search(r"^\| Problem .*\| Reason +\| Place +\|$", section, re.MULTILINE)
    assert re.search(r"^\| measured .*\| error +\| ValueError: no +\| forms.py:7 +\|$", section, re.MULTILINE)
    assert re.search(r"^\| level .*\| the solver yielded no iterate +\| - +\|$", section, re.MULTILINE)
    block = text[text.index(f"### {TITLE}\n\n````text\nmine on ") : text.index("## How to read this")]
    assert block.rstrip().endswith("\n````")
    lines = ["ValueError: no", "solvers/mine.py:31, in Mine.steps", "  helped(point)", "forms.py:7, in helped", "  raise ValueError('```')"]
    assert "\n".join(["mine on measured and 1 more", *(f"  {line}" for line in lines)]) in block
    assert "yields no iterate" not in block
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_page_obeys_none_of_the_lines(folder, tmp_path):
    write_report(folder, out=tmp_path, formats=("html",))
    page = (tmp_path / "report.html").read_text()
    block = page[page.index(f"<h3>{TITLE}</h3>") :]
    block = block[: block.index("</pre>")]
    assert "solvers/mine.py:31, in Mine.steps" in block
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.py:1, in \\x1b[2J" in block
    assert "&lt;/pre&gt;&lt;/details&gt;" in block
    assert "<script>alert" not in page


def test_as_many_tracebacks_as_can_be_read_are_shown(folder, monkeypatch):
    results = read_results(folder)
    assert tracebacks(results.runs, results.places).count("\n\n") == 1
    monkeypatch.setattr(words, "MOST_TRACEBACKS", 1)
    assert tracebacks(results.runs, results.places).endswith("\n\nand 1 other traceback")
