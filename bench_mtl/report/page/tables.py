"""Tables of the page: the cells of the printed tables, with what a script needs to sort and to choose rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.columns import BLANK, NUMBER, shown
from bench_mtl.report.page.markup import json_script, raw
from bench_mtl.report.registry import TABLES
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

#: Of a table on the page; its CSV file has them all.
MOST_ROWS = 5000

#: Of these in HTML; a script makes the others when somebody looks for them, since a browser takes seconds to read a million cells.
MOST_IN_HTML = 200

#: Of these on paper: of the tables at the head of a report, and of the others.
MOST_ON_PAPER = {"winners": 45, "speed_ups": 45, "scaling": 45}
_MOST_OF_OTHERS = 12

#: What a reader looks for, first: on a narrow screen the rest is beyond its edge.
_BEFORE_OTHERS = {"winners": ("problem", "target", "ratio"), "speed_ups": ("group", "target", "ratio")}

_BAD = (Status.WRONG, Status.CRASHED, Status.ERROR)


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    title: str
    role: str
    """Which choice of the whole page picks rows by it: problem, solver, status, target, or empty."""
    numeric: bool


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    key: str | None = None
    """What a number sorts by, where that is not its text; empty where the text will do or there is no number; None for words."""
    tone: str = ""
    """How the cell of a status is coloured: good, bad, mixed or quiet; empty for other cells."""
    address: str = ""
    """Where it leads, relative to the page; in `linked_table` alone."""


@dataclass(frozen=True)
class Table:
    """A table as the template draws it."""

    name: str
    title: str
    about: Markup
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]
    """Those that are in HTML."""
    more: int
    """Rows that a script makes."""
    rest: Markup
    """These, as JSON: per column its distinct cells, each of text, key and tone, and the place of every row's among them."""
    left_out: int
    """Rows that are in the CSV file alone."""
    on_paper: int
    """Rows that are printed."""

    @property
    def total(self) -> int:
        """All rows of the page."""
        return len(self.rows) + self.more


def html_table(name: str, title: str, about: Markup, frame: pd.DataFrame) -> Table:
    """Return a table of `bench_mtl.report.tables`: the columns and the texts of its printed form, in rows of cells."""
    import pandas as pd

    head = frame.head(MOST_ROWS)
    order = dict.fromkeys(_BEFORE_OTHERS.get(name, ()))
    columns, cells = [], []
    for column in sorted(shown(head, TABLES[name].columns), key=lambda column: [*order, column.name].index(column.name)):
        source = column.name
        numeric = pd.api.types.is_numeric_dtype(frame[source]) and not pd.api.types.is_bool_dtype(frame[source])
        columns.append(Column(column.heading, column.role, numeric))
        texts = column.cells(head)
        if numeric:
            cells.append([Cell(text, _key(text, value)) for text, value in zip(texts, numbers(head, source).tolist(), strict=True)])
        else:
            cells.append([Cell(text, None, _tone(text) if source == "status" else "") for text in texts])
    return _table(name, title, about, columns, cells, len(head), len(frame))


def text_table(name: str, title: str, about: Markup, frame: pd.DataFrame) -> Table:
    """Return a table whose cells are texts already: a column is one of numbers where every text in it begins with one, or is a dash."""
    head = frame.head(MOST_ROWS).astype(str)
    columns, cells = [], []
    for place, heading in enumerate(head.columns):
        texts = head.iloc[:, place].tolist()
        found = [NUMBER.match(text) for text in texts]
        numeric = any(found) and all(match or text in ("", BLANK) for match, text in zip(found, texts, strict=True))
        columns.append(Column(str(heading), "", numeric))
        keys = [(_key(text, float(match[1])) if match else "") if numeric else None for match, text in zip(found, texts, strict=True)]
        cells.append([Cell(text, key) for text, key in zip(texts, keys, strict=True)])
    return _table(name, title, about, columns, cells, len(head), len(frame))


def linked_table(name: str, title: str, about: Markup, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Table:
    """Return a table of cells that may be links, all of whose rows are in HTML and on paper."""
    return Table(name, title, about, tuple(columns), rows, 0, raw(""), 0, len(rows))


def _table(
    name: str, title: str, about: Markup, columns: Sequence[Column], cells: Sequence[Sequence[Cell]], on_page: int, in_all: int
) -> Table:
    rows = list(zip(*(column[:MOST_IN_HTML] for column in cells), strict=True))
    rest = json_script([_packed(column[MOST_IN_HTML:]) for column in cells])
    on_paper = MOST_ON_PAPER.get(name, _MOST_OF_OTHERS)
    return Table(name, title, about, tuple(columns), rows, on_page - len(rows), rest, in_all - on_page, on_paper)


def _packed(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the cells of a column: labels that thousands of rows share are written once."""
    distinct = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    return {"cells": [_short(cell) for cell in distinct], "rows": [distinct[cell] for cell in cells]}


def _short(cell: Cell) -> list[str | None]:
    """Without what is not there at the end."""
    if cell.tone:
        return [cell.text, cell.key, cell.tone]
    return [cell.text] if cell.key is None else [cell.text, cell.key]


def _key(text: str, value: float) -> str:
    if not math.isfinite(value):
        return ""
    key = f"{value:.6g}"
    return "" if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) and float(text) == float(key) else key


def _tone(text: str) -> str:
    """Return what kind of end the texts of `status_counts` tell of."""
    named = [status for status in Status if re.search(rf"\b{status}\b", text)]
    if any(status in named for status in _BAD):
        return "bad"
    return {Status.VERIFIED: "good", Status.SKIPPED: "quiet"}.get(named[0], "mixed") if len(named) == 1 else "mixed"
