"""Tables of the page, whose cells are texts already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench_mtl.core.types import Status
from bench_mtl.report.columns import is_numeric

if TYPE_CHECKING:
    import pandas as pd

_BAD = (Status.WRONG, Status.CRASHED, Status.ERROR)
_STATUS = re.compile(rf"\b({'|'.join(Status)})\b")


class Column(NamedTuple):
    """The head of a column."""

    title: str
    is_numeric: bool


class Cell(NamedTuple):
    """One cell."""

    text: str
    tone: str  # how it is coloured: good, bad, mixed or quiet; empty for most cells
    address: str  # where it leads, relative to the page; empty where it does not


class Table(NamedTuple):
    """A table as the template draws it."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def text_table(name: str, title: str, frame: pd.DataFrame, addresses: Sequence[str]) -> Table:
    """Return a table of texts; `addresses` is where the cells of the first column lead to.

    A column is one of numbers where every text in it begins with one, or is a dash.
    """
    columns, cells = [], []
    for place, heading in enumerate(frame.columns):
        texts = frame.iloc[:, place].astype(str).tolist()
        columns.append(Column(str(heading), is_numeric(texts)))
        tones = [_tone(text) if heading == "Status" else "" for text in texts]
        cells.append(list(map(Cell, texts, tones, [""] * len(texts) if place else addresses)))
    return Table(name, title, columns, list(zip(*cells, strict=True)))


def _tone(text: str) -> str:
    """Return what kind of end a text of statuses tells of: ``verified``, or ``verified 2/3, timeout 1/3``."""
    named = set(_STATUS.findall(text))
    if named.intersection(_BAD):
        return "bad"
    return {frozenset([Status.VERIFIED]): "good", frozenset([Status.SKIPPED]): "quiet"}.get(frozenset(map(Status, named)), "mixed")
