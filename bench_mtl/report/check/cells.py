"""Cells of tables against derived values, and tables against derived rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bench_mtl.core.text import one_line
from bench_mtl.report.check import patterns
from bench_mtl.report.check.document import Table
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.numbers import BLANK, Form, is_as_printed, is_between, shown
from bench_mtl.report.check.pairs import Interval

#: Characters of a cell.
_LONGEST = 2_000

#: Columns that are left out where all rows share what they say.
_SHARED = {"Seed", "Repetition", "Runs"}

_CELL = re.compile(r"(?:(?P<sign>>=|<=) )?(?P<number>\S+)(?: \((?P<low>\S+) to (?P<high>\S+)\))?(?: \((?P<count>\d+)/(?P<total>\d+)\))?")


@dataclass(frozen=True)
class Number:
    """A number as a cell shows it."""

    value: float | None
    form: Form
    sign: str = ""
    interval: Interval | None = None
    ends: tuple[float, float] | None = None
    """Of a range, which is printed exactly so."""
    counted: tuple[int, int] | None = None
    """Of how many runs it is, of how many."""
    has_interval: bool = False
    """Whether an interval belongs to it, where the runs give one."""


Cell: TypeAlias = Number | str
Row: TypeAlias = dict[str, Cell]


def cell_fault(text: str, cell: Cell) -> str:
    """Return what is wrong with a cell; nothing where it follows."""
    if isinstance(cell, str):
        true = one_line(cell, _LONGEST) or BLANK
        return "" if text == true else f"the rows give {true}"
    match = _CELL.fullmatch(text)
    if match is None:
        return "not a number as reports print it"
    wanted = f"the rows give {shown(cell.value, cell.form, cell.sign)}"
    if (match["sign"] or "") != (cell.sign if cell.value is not None else "") or not is_as_printed(
        match["number"], cell.value, cell.form, cell.sign
    ):
        return wanted
    count, total = cell.counted or (0, 0)
    if (match["count"], match["total"]) != ((str(count), str(total)) if count not in (0, total) else (None, None)):
        return f"{wanted}, of {count} of {total} runs"
    return _ends_fault(match, cell)


def _ends_fault(match: re.Match[str], cell: Number) -> str:
    low, high = match["low"], match["high"]
    if cell.ends is not None:
        is_there = low is not None and is_as_printed(low, cell.ends[0], cell.form) and is_as_printed(high, cell.ends[1], cell.form)
        return "" if is_there else f"the rows give a range of {shown(cell.ends[0], cell.form)} to {shown(cell.ends[1], cell.form)}"
    interval = cell.interval if cell.has_interval else None
    if low is None:
        return "the runs give an interval, and none is printed" if interval is not None and interval.is_told else ""
    if interval is None or not interval.may_be_told:
        return "the runs give no interval"
    value = cell.value or 0.0
    is_in = is_between(low, cell.form, interval.lowest, min(interval.low, value))
    is_in &= is_between(high, cell.form, max(interval.high, value), interval.highest)
    must = f"{shown(interval.low, cell.form)} to {shown(interval.high, cell.form)}"
    return "" if is_in else f"the interval must hold {must} and no more than the runs can give"


def table_faults(table: Table, expected: Sequence[Row], keys: Sequence[str], left_out: int = 0) -> Iterator[Finding]:
    """Yield the faults of a table whose rows are known.

    Parameters
    ----------
    keys : the titles that name a row; those that a table leaves out where all rows share them need not be there
    left_out : how many rows the table says that it leaves out
    """
    titles = dict.fromkeys(title for row in expected for title in row)
    for title in table.titles:
        if title not in titles:
            yield table.block.fault(f"no rule derives the column '{title}'")
    missing = [title for title in titles if title not in table.titles and title not in _SHARED]
    if missing:
        yield table.block.fault(f"the column '{missing[0]}' is not there")
    keys = [title for title in keys if title in table.titles]
    waiting: dict[tuple[str, ...], list[Row]] = {}
    for row in expected:
        waiting.setdefault(tuple(_key(row[title]) for title in keys), []).append(row)
    for line, cells in table.rows:
        candidates = waiting.get(tuple(cells.get(title, "") for title in keys), [])
        text = table.block.lines[line - table.block.line]
        if not candidates:
            yield table.block.fault("the rows have no such row", text, line)
            continue
        wrong = [_row_faults(cells, candidate) for candidate in candidates]
        best = min(range(len(wrong)), key=lambda place: len(wrong[place]))
        candidates.pop(best)
        for title, why in wrong[best].items():
            yield table.block.fault(f"{title} {cells[title]}: {why}", text, line)
    rest = [key for key, rows in waiting.items() for _ in rows]
    if len(rest) != left_out:
        names = " / ".join(rest[0]) if rest else ""
        yield table.block.fault(
            f"{len(rest)} rows are not there{f', such as {names}' if names else ''}, where {left_out} are said to be left out"
        )


def _key(cell: Cell) -> str:
    """Return how a cell that names a row is printed."""
    if isinstance(cell, str):
        return one_line(cell, _LONGEST) or BLANK
    return BLANK if cell.value is None else target_words(cell.value) if cell.form == "target" else f"{cell.value:.0f}"


def _row_faults(cells: Mapping[str, str], row: Row) -> dict[str, str]:
    found = {title: cell_fault(cells[title], cell) for title, cell in row.items() if title in cells}
    return {title: why for title, why in found.items() if why}


def target_words(value: float) -> str:
    """Return a relative gap as reports write it: ``1e-6``."""
    mantissa, power = f"{value:.6e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"


def said_to_be_left_out(text: str) -> int | None:
    """Return how many rows a line below a table says that it leaves out; None for another line."""
    match = patterns.MORE_ROWS.fullmatch(text)
    return None if match is None else int(match["count"])
