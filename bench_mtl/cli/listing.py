"""The texts of `bench-mtl list`, and the rows that they are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench_mtl.data import catalogue
from bench_mtl.engine.description import Entry, entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import read_suite, shipped_suites

_Row = Mapping[str, Any]


def found(what: str, *, data_dir: Path | None = None, plugins: Path | None = None) -> list[_Row]:
    """Return the problems, solvers, suites or data, a row each."""
    if what == "suites":
        return [{"name": name, "description": read_suite(name).description} for name in shipped_suites()]
    if what == "data":
        return [asdict(entry) for entry in catalogue.entries(catalogue.data_directory(data_dir))]
    row = _problem if what == "problems" else _solver
    if plugins is None:
        return [row(entry) for entry in entries(load_registry(), what)]
    from bench_mtl.runner.planning import listed_entries

    return [row(entry) for entry in listed_entries(plugins, what)]


def render(what: str, rows: Sequence[_Row], *, data_dir: Path | None = None) -> str:
    """Return the rows of `found` as a text, a paragraph or a line each."""
    if what == "suites":
        return "\n".join(f"{row['name']:18} {row['description']}" for row in rows)
    if what == "data":
        return _data(rows, data_dir)
    return "\n".join(map(_paragraph, rows))


def _problem(entry: Entry) -> _Row:
    return {
        "name": entry.name,
        "sentence": entry.sentence,
        "offers": _words(entry.offers),
        "forms": _words(entry.forms),
        "parameters": entry.options,
    }


def _solver(entry: Entry) -> _Row:
    return {
        "name": entry.name,
        "sentence": entry.sentence,
        "needs": _words(entry.offers),
        "takes": _words(entry.forms, " or "),
        "aliases": _words(entry.aliases),
        "options": entry.options,
    }


def _words(text: str, between: str = ", ") -> list[str]:
    return text.split(between) if text else []


def _paragraph(row: _Row) -> str:
    between = {"takes": " or "}
    lines = [
        f"  {title}: {words if isinstance(words, str) else between.get(title, ', ').join(words)}"
        for title, words in row.items()
        if title not in ("name", "sentence") and words
    ]
    return "\n".join([row["name"], f"  {row['sentence']}", *lines])


def _data(rows: Sequence[_Row], data_dir: Path | None) -> str:
    width = max(len(row["name"]) for row in rows)
    lines = [f"{row['name']:{width}}  {row['kind']:9}  {row['description']}" for row in rows]
    if catalogue.data_directory(data_dir) is None:
        lines.append("more with --data-dir DIR or the environment variable BENCH_MTL_DATA")
    return "\n".join(lines)
