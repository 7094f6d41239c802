"""Where runs raised, in reports: file and line in the list of failures, lines of code folded below it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from audited import audited, run_of, runs

from bench_mtl.core.types import Place
from bench_mtl.report import tracebacks as words
from bench_mtl.report.registry import report_tables
from bench_mtl.report.tracebacks import TITLE, tracebacks
from bench_mtl.report.write import write_report
from bench_mtl.results.digests import ENVIRONMENT, META, put_all
from bench_mtl.results.loading import read_results
from bench_mtl.results.schema import PLACE, RUN_PARTS

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


def test_failures_have_file_and_line_and_lines_of_code_are_folded(folder):
    text = (folder / "report.md").read_text()
    section = text[text.index("## Not verified") : text.index("## How to read this")]
    assert re.search(r"^\| Problem .*\| Reason +\| Place +\|$", section, re.MULTILINE)
    assert re.search(r"^\| measured .*\| error +\| ValueError: no +\| forms.py:7 +\|$", section, re.MULTILINE)
    assert re.search(r"^\| level .*\| the solver yielded no iterate +\| - +\|$", section, re.MULTILINE)
    fold = section[section.index("<details>") :]
    assert fold.startswith(f"<details><summary>{TITLE}</summary>\n\n````text\nmine on ")
    assert fold.rstrip().endswith("\n````\n\n</details>")
    lines = ["ValueError: no", "solvers/mine.py:31, in Mine.steps", "  helped(point)", "forms.py:7, in helped", "  raise ValueError('```')"]
    assert "\n".join(["mine on measured and 1 more", *(f"  {line}" for line in lines)]) in fold
    assert "yields no iterate" not in fold
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_nothing_is_folded_where_nothing_raised(tmp_path):
    audited(tmp_path / "results")
    text = (tmp_path / "results" / "report.md").read_text()
    assert "<details>" not in text
    assert "| Place" not in text
    assert "place" not in report_tables(read_results(tmp_path / "results"))["not_verified"]


def test_a_file_of_the_schema_before_gives_the_report_that_it_gave(tmp_path):
    folder = audited(tmp_path / "results")
    write_report(folder, formats=("md", "html"))
    before = {name: (folder / name).read_bytes() for name in ("report.md", "report.html")}
    with closing(sqlite3.connect(folder / "results.sqlite")) as connection, connection:
        connection.execute("DROP TABLE place")
        connection.execute("UPDATE meta SET value = '6' WHERE key = 'schema_version'")
        put_all(connection, (META, ENVIRONMENT, *(part for part in RUN_PARTS if part is not PLACE)))
    write_report(folder, formats=("md", "html"))
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_the_page_folds_the_lines_and_obeys_none_of_them(folder, tmp_path):
    write_report(folder, out=tmp_path, formats=("html",))
    page = (tmp_path / "report.html").read_text()
    fold = page[page.index(f"<details><summary>{TITLE}</summary>") :]
    fold = fold[: fold.index("</details>")]
    assert "solvers/mine.py:31, in Mine.steps" in fold
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.py:1, in \\x1b[2J" in fold
    assert "&lt;/pre&gt;&lt;/details&gt;" in fold
    assert "<script>alert" not in page


def test_as_many_tracebacks_as_can_be_read_are_shown(folder, monkeypatch):
    results = read_results(folder)
    assert tracebacks(results.runs, results.places).count("\n\n") == 1
    monkeypatch.setattr(words, "MOST_TRACEBACKS", 1)
    assert tracebacks(results.runs, results.places).endswith("\n\nand 1 other traceback")
