"""An audit of the report of a paper's experiment: every line against the rows, and its own numbers against each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from bench_mtl.core.errors import InputError
from bench_mtl.papers.experiment import Verdict
from bench_mtl.papers.report import ANY_CODE, BESIDE, CANNOT, FOUND, text_from_rows
from bench_mtl.report.check.document import Block, blocks, readable, table
from bench_mtl.report.check.faults import Fault, Finding
from bench_mtl.report.formats import COVER, COVER_FILE

REPORT = "report.md"

_FIGURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
_SCALE = re.compile(r"^Scale `(small|full)`", re.MULTILINE)


def check_paper_report(folder: Path, name: str) -> tuple[list[Fault], int]:
    """Return what in the report of the experiment `name` does not follow from the rows in its folder, and how many parts were looked at.

    Its verdicts are counted and its differences computed again from what it shows itself; figures that it names are looked for; and every
    line is compared with that which the rows give.

    Raises
    ------
    InputError : there is no report.md, or the rows cannot be read.
    """
    path = folder / REPORT
    if not path.is_file():
        raise InputError(f"{folder} has no {REPORT} to check (bench-mtl report {folder} writes one)")
    text = path.read_text(encoding="utf-8")
    parts = blocks(text)
    found = [*_counts(parts), *_differences(parts), *_figures(parts, folder)]
    known = {finding.line for finding in found}
    found += [finding for finding in _lines(text, folder, name) if finding.line not in known]
    return [finding.of(path) for finding in sorted(found, key=lambda each: each.line)], sum(block.kind != "heading" for block in parts)


def _counts(parts: Sequence[Block]) -> Iterator[Finding]:
    """Yield the counts of verdicts that are not those of the statements and numbers that the report itself lists."""
    listed: Counter[str] = Counter()
    for block in parts:
        if block.section == BESIDE and block.kind == "list":
            listed.update(match[1] for _, item in block.items() if (match := re.match(r"\*\*([^*]+)\*\*", item)))
        elif block.section == BESIDE and block.kind == "table":
            listed.update(cells.get("Reading", "") for _, cells in table(block).rows)
        elif block.section == CANNOT and block.kind == "table":
            listed[str(Verdict.UNKNOWN)] += len(table(block).rows)
    for block in parts:
        if block.section == FOUND and block.kind == "table":
            shown = table(block)
            for verdict in map(str, Verdict):
                said = sum(int(cells[verdict]) for _, cells in shown.rows if cells.get(verdict, "").isdigit())
                if said != listed[verdict]:
                    yield block.fault(f"{listed[verdict]} are listed as {verdict}, not {said}")


def _differences(parts: Sequence[Block]) -> Iterator[Finding]:
    """Yield the differences that are not those of the numbers beside them, to the digits shown."""
    for block in parts:
        if block.section != BESIDE or block.kind != "table":
            continue
        for line, cells in table(block).rows:
            numbers = [_number(cells.get(title, "")) for title in ("Published", "Ours", "Difference")]
            published, ours, difference = numbers
            if published is None or ours is None or difference is None:
                continue
            room = 0.006 * abs(difference) + _last_digit(cells["Published"]) + _last_digit(cells["Ours"])
            if abs(ours - published - difference) > room:
                yield block.fault(f"{cells['Ours']} minus {cells['Published']} is not {cells['Difference']}", line=line)


def _number(text: str) -> float | None:
    """Return the number that a cell begins with; None where it is no number, or one in per cent of another unit."""
    match = re.match(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?=$| ± )", text)
    return None if match is None else float(match[0].replace(",", ""))


def _last_digit(text: str) -> float:
    """Return the worth of the last digit that a cell's number is shown with."""
    match = re.match(r"[+-]?[\d,]+(?:\.(\d+))?(?:e([+-]?\d+))?", text)
    if match is None:
        return 0.0
    return float(10.0 ** (int(match[2] or 0) - len(match[1] or "")))


def _figures(parts: Sequence[Block], folder: Path) -> Iterator[Finding]:
    for block in parts:
        for place, line in enumerate(block.lines):
            for address in _FIGURE.findall(line):
                if not (folder / address).is_file():
                    yield block.fault("this figure is not there", line, block.line + place)


def _lines(text: str, folder: Path, name: str) -> Iterator[Finding]:
    """Yield the lines that the rows do not give, and where lines are missing that they give."""
    pictures = [COVER] if f"]({COVER_FILE})" in text else [form for form in ("svg", "png") if f".{form})" in text]
    formats = ["md", *(["csv"] if "\n[All digits](" in text else []), *pictures]
    match = _SCALE.search(text)
    is_rewritten = ANY_CODE.split(":")[0] in text
    scale = None if match is None else match[1]
    true = text_from_rows(folder, name, formats, scale, is_rewritten=is_rewritten).split("\n")
    said = text.split("\n")
    for tag, low, high, start, end in SequenceMatcher(None, true, said, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        wanted = [readable(line) for line in true[low:high] if line]
        for place in range(start, end):
            own = true[low + place - start] if low + place - start < high else ""
            yield Finding(place + 1, said[place], f"the rows give: {readable(own)}" if own else "the rows do not give this line")
        if start == end and wanted:
            yield Finding(min(start + 1, len(said)), said[min(start, len(said) - 1)], f"a line is missing before this one: {wanted[0]}")
