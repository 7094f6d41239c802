"""The forms that a report can take."""

from __future__ import annotations

from collections.abc import Collection

from bench_mtl.core.checks import one_of

#: Of the text, of every table, of every figure.
TEXTS, TABLES, FIGURES = ("md", "html"), ("csv", "tex", "parquet"), ("svg", "pdf", "png")

ALL = (*TEXTS, *TABLES, *FIGURES)


def chosen(formats: Collection[str]) -> frozenset[str]:
    """`formats`, or all where none is given.

    Raises
    ------
    InputError : one is not known.
    """
    return frozenset(one_of("--format", form, ALL) for form in formats) or frozenset(ALL)
