"""Tables of the page, whose cells are texts already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.report.columns import is_numeric

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

_BAD = (Status.WRONG, Status.CRASHED, Status.ERROR)
_STATUS = re.compile(rf"\b({'|'.join(Status)})\b")


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    tone: str = ""
    """How it is coloured: good, bad, mixed or quiet; empty for most cells."""
    address: str = ""
    """Where it leads, relative to the page."""


@dataclass(frozen=True)
class Table:
    """A table as the template draws it."""

    name: str
    title: str
    about: Markup
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def text_table(name: str, title: str, about: Markup, frame: pd.DataFrame, addresses: Sequence[str] = ()) -> Table:
    """Return a table of texts: a column is one of numbers where every text in it begins with one, or is a dash.

    Parameters
    ----------
    addresses : where the cells of the first column lead to, empty where they do not
    """
    columns, cells = [], []
    for place, heading in enumerate(frame.columns):
        texts = frame.iloc[:, place].astype(str).tolist()
        columns.append(Column(str(heading), is_numeric(texts)))
        tones = [_tone(text) if heading == "Status" else "" for text in texts]
        leading = [""] * len(texts) if place or not addresses else addresses
        cells.append([Cell(*each) for each in zip(texts, tones, leading, strict=True)])
    return Table(name, title, about, columns, list(zip(*cells, strict=True)))


def _tone(text: str) -> str:
    """Return what kind of end a text of statuses tells of: ``verified``, or ``verified 2/3, timeout 1/3``."""
    named = set(_STATUS.findall(text))
    if named.intersection(_BAD):
        return "bad"
    return {frozenset([Status.VERIFIED]): "good", frozenset([Status.SKIPPED]): "quiet"}.get(frozenset(map(Status, named)), "mixed")
