"""Holds a written report against its rows: it is made again, and every line that differs is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path

from bench_mtl.core.errors import InputError, plural
from bench_mtl.report.formats import COVER, COVER_FILE

REPORT = "report.md"

#: Characters of a line that are quoted, and those of them that stand before what differs.
_QUOTED, _BEFORE = 160, 40


@dataclass(frozen=True)
class Fault:
    """A line that the rows do not give."""

    file: Path
    line: int
    text: str  # what is there
    why: str  # what the rows give instead

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}: {self.text!r}"


def check_report(folder: Path, again: Callable[[Path, str], str]) -> tuple[list[Fault], int]:
    """Return the lines of the report.md in `folder` that its rows do not give, and how many lines it has.

    `again` makes it again from the rows in the folder; it is given the text too, which shows in what forms the report was written. Raises
    InputError where there is no report.md, or the rows cannot be read, or it is a view of the results.
    """
    path = folder / REPORT
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")  # a line of other bytes differs
    except FileNotFoundError:
        raise InputError(f"{folder} has no {REPORT} to check (bench-mtl report {folder} writes one)") from None
    return list(differing_lines(path, text, again(folder, text))), text.count("\n") + 1


def suite_report(folder: Path, text: str) -> str:
    """Return the report.md that the rows of a suite in `folder` give, in the forms that `text` was written in."""
    from bench_mtl.report.figures.gallery import gallery
    from bench_mtl.report.registry import report_tables
    from bench_mtl.report.render.markdown import markdown
    from bench_mtl.report.suite_report import suite_document
    from bench_mtl.results.loading import read_results
    from bench_mtl.results.view import VIEW

    if f"\n> {VIEW}" in text:
        raise InputError(f"{folder / REPORT} is a view of the results (--target, --baseline or --select), which --check does not cover")
    results = read_results(folder)
    tables = report_tables(results)
    return markdown(suite_document(results, tables, gallery(results, tables)), linked_forms(text))


def linked_forms(text: str) -> list[str]:
    """Return the forms of tables and figures that a report links to."""
    forms = [form for form in ("svg", "pdf", "png", "csv") if re.search(rf"\]\((?:figures|tables)/[^)]*\.{form}\)", text)]
    return [*forms, *([COVER] if f"]({COVER_FILE})" in text else [])]


def differing_lines(file: Path, text: str, true_text: str) -> Iterator[Fault]:
    """Yield the lines that are not those of the rows, and where lines are missing that the rows give."""
    written, true = text.split("\n"), true_text.split("\n")
    for tag, low, high, start, end in SequenceMatcher(None, true, written, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for place in range(start, end):
            yield _fault(file, place + 1, written[place], next(iter(true[low + place - start : high]), None))
        if (missing := high - low - (end - start)) > 0:
            place = min(end, len(written) - 1)
            why = f"{plural(missing, 'line')} not there before this: {true[high - missing]!r}"
            yield Fault(file, place + 1, written[place][:_QUOTED], why)


def _fault(file: Path, number: int, text: str, true: str | None) -> Fault:
    """Return the fault of a line in the place of which the rows give another one, or none; both are quoted where they differ."""
    if true is None:
        return Fault(file, number, text[:_QUOTED], "the rows do not give this line")
    first = max(0, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, true, strict=False))) - _BEFORE)
    return Fault(file, number, text[first : first + _QUOTED], f"the rows give {true[first : first + _QUOTED]!r}")
