"""The forms that a report can take."""

from __future__ import annotations

from collections.abc import Collection

from bench_mtl.core.checks import one_of

#: Of the text, of every table, of every figure.
TEXTS, TABLES, FIGURES = ("md", "html"), ("csv", "tex", "parquet"), ("svg", "pdf", "png")

ALL = (*TEXTS, *TABLES, *FIGURES)

#: The first of all figures as SVG, which report.md then shows alone, and names the others. It is no format that is taken by default.
COVER = "cover"

#: Where it is in the folder of a report: not among the figures, which a repository may leave out.
COVER_FILE = "cover.svg"


def chosen(formats: Collection[str]) -> frozenset[str]:
    """Return `formats`, which may hold `COVER` too, or all where none is given; raises InputError where one is not known."""
    for form in formats:
        one_of("--format", form, (*ALL, COVER))
    return frozenset(formats or ALL)
