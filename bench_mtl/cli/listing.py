"""`bench-mtl list`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli.console import answer, answer_json
from bench_mtl.cli.options import NearChoice, json_option, source_options

if TYPE_CHECKING:
    from bench_mtl.engine.description import Entry

_Row = Mapping[str, Any]


@click.command("list")
@click.argument("what", type=NearChoice(["problems", "solvers", "suites", "data"]))
@source_options
@json_option
def list_(what: str, data_dir: Path | None, plugins: Path | None) -> None:
    """List what there is: problems, solvers, suites or data.

    \b
    Examples:
      bench-mtl list solvers
      bench-mtl list data --data-dir ~/data
    """
    rows = found(what, data_dir=data_dir, plugins=plugins)
    answer(render(what, rows, data_dir=data_dir))
    answer_json(lambda: {what: rows})


def found(what: str, *, data_dir: Path | None = None, plugins: Path | None = None) -> list[_Row]:
    """Return the problems, solvers, suites or data, a row each."""
    from bench_mtl.data import catalogue
    from bench_mtl.engine.description import entries
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.engine.suite_file import read_suite, shipped_suites
    from bench_mtl.runner.planning import listed_entries

    if what == "suites":
        return [{"name": name, "description": read_suite(name).description} for name in shipped_suites()]
    if what == "data":
        return [asdict(entry) for entry in catalogue.entries(catalogue.data_directory(data_dir))]
    of = entries(load_registry(), what) if plugins is None else listed_entries(plugins, what)
    return [_row(entry, is_problem=what == "problems") for entry in of]


def render(what: str, rows: Sequence[_Row], *, data_dir: Path | None = None) -> str:
    """Return the rows of `found` as a text, a paragraph or a line each."""
    from bench_mtl.data.catalogue import data_directory

    if what == "suites":
        return "\n".join(f"{row['name']:18} {row['description']}" for row in rows)
    if what != "data":
        return "\n".join(map(_paragraph, rows))
    width = max(len(row["name"]) for row in rows)
    lines = [f"{row['name']:{width}}  {row['kind']:9}  {row['description']}" for row in rows]
    more = ["more with --data-dir DIR or the environment variable BENCH_MTL_DATA"] if data_directory(data_dir) is None else []
    return "\n".join([*lines, *more])


def _row(entry: Entry, *, is_problem: bool) -> _Row:
    row: dict[str, Any] = {"name": entry.name, "sentence": entry.sentence}
    if is_problem:
        return row | {"offers": _words(entry.offers), "forms": _words(entry.forms), "parameters": entry.options}
    row |= {"needs": _words(entry.offers), "takes": _words(entry.forms, " or "), "aliases": _words(entry.aliases)}
    return row | {"options": entry.options}


def _words(text: str, between: str = ", ") -> list[str]:
    return text.split(between) if text else []


def _paragraph(row: _Row) -> str:
    lines = [row["name"], f"  {row['sentence']}"]
    for title, words in row.items():
        if title not in ("name", "sentence") and words:
            lines.append(f"  {title}: {words if isinstance(words, str) else (' or ' if title == 'takes' else ', ').join(words)}")
    return "\n".join(lines)
