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
    """One part of a report: a heading, words, its figure, its table, and words below the table; words are in Markdown."""

    title: str = ""  # of its heading; without one it goes on with the part before
    words: str = ""
    _: KW_ONLY
    figure: Entry | bytes | None = None  # one that can be drawn, or an SVG drawing
    table: pd.DataFrame | None = None  # as text
    after: str = ""
    name: str = ""  # of the files of its figure and table, where it has any, and its address on the page
    level: int = 2  # of its heading
    subject: str = ""  # the problem that it is of: the page shows the parts of one at a time
    addresses: Sequence[str] = ()  # where the cells of the first column of its table lead to


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str  # of the window
    introduction: str  # what comes before all parts, with its heading, in Markdown
    parts: tuple[Part, ...]
    solvers: Mapping[str, str] = field(default_factory=dict)  # kinds by label, of those that figures show: the page switches them
