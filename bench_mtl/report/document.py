"""A report as a list of parts in the order in which they are read, whatever it is written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.report.figures.gallery import Entry


@dataclass(frozen=True)
class Part:
    """One part of a report: a heading, words, its figure, its table, and words below the table."""

    title: str = ""
    """Of its heading; without one it goes on with the part before."""
    words: str = ""
    """In Markdown."""
    _: KW_ONLY
    figure: Entry | bytes | None = None
    """One that can be drawn, or an SVG drawing."""
    table: pd.DataFrame | None = None
    """As text."""
    after: str = ""
    """Words below the table, in Markdown."""
    name: str = ""
    """Of the files of its figure and table, where it has any, and its address on the page."""
    level: int = 2
    """Of its heading."""
    subject: str = ""
    """The problem that it is of: the page shows the parts of one at a time."""
    addresses: Sequence[str] = ()
    """Where the cells of the first column of its table lead to."""


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    """Of the window."""
    introduction: str
    """What comes before all parts, with its heading, in Markdown."""
    parts: tuple[Part, ...]
    solvers: Mapping[str, str] = field(default_factory=dict)
    """The kinds of the solvers that figures show, by label: the page switches them on and off."""
