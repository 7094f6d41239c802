"""A report of words, tables and figures in one order, as a page with the look of the reports of suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.report.page.inline_figures import holds_pictures, inline_figure
from bench_mtl.report.page.markup import raw
from bench_mtl.report.page.shell import Markdown, rendered
from bench_mtl.report.page.tables import Table, text_table

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup


@dataclass(frozen=True)
class Part:
    """One part of the report: words, then its figure, then its table."""

    title: str
    words: str = ""
    """In Markdown."""
    figure: bytes | None = None
    """An SVG drawing."""
    table: pd.DataFrame | None = None
    """As text."""
    after: str = ""
    """Words below the table, in Markdown."""
    name: str = ""
    """Of the files of its figure and table, where it has any."""


@dataclass(frozen=True)
class _Shown:
    """A part as the template draws it."""

    title: str
    name: str
    words: Markup
    figure: Markup | None
    table: Table | None
    after: Markup


def article(title: str, introduction: str, parts: Sequence[Part]) -> bytes:
    """Return the report as one HTML file that asks the network for nothing: the same parts give the same bytes.

    Parameters
    ----------
    title : of the window
    introduction : what comes before all parts, with its heading, in Markdown
    parts : in the order in which they are read
    """
    md = Markdown()
    shown = [_shown(part, f"part-{place}", md) for place, part in enumerate(parts, start=1)]
    pictures = any(part.figure is not None and holds_pictures(part.figure) for part in parts)
    words = {"name": one_line(title, LONGEST_LABEL), "introduction": md(introduction), "parts": shown}
    return rendered("article.html", words, pictures=pictures)


def _shown(part: Part, name: str, md: Markdown) -> _Shown:
    figure = None if part.figure is None else inline_figure(part.figure, part.title, name)
    table = None if part.table is None else text_table(name, part.title, raw(""), part.table)
    return _Shown(part.title, name, md(part.words), figure, table, md(part.after))
