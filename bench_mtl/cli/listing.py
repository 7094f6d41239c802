"""`bench-mtl list` and `bench-mtl shard`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli import completion
from bench_mtl.cli.asked import data_spec
from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.options import A_PATH, NearChoice, data_dir_option, json_option, repeatable, script_options, source_options
from bench_mtl.core.text import LONGEST_LINE, one_line

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


@click.command()
@click.argument("source", shell_complete=completion.data_sets)
@click.option("--out", required=True, type=A_PATH, help="Folder of the shards: a new one.")
@click.option("--rows", type=int, help="Rows of a shard.")
@click.option("--megabytes", type=float, help="MiB of the features of a shard, and of its targets at most; 128 by default.")
@click.option("--name", help="Of the data set; that of the file by default.")
@repeatable("--data-option", "KEY=VALUE", "Option of the file, e.g. labels=3.")
@data_dir_option
@script_options
def shard(
    source: str, out: Path, rows: int | None, megabytes: float | None, name: str | None, data_option: tuple[str, ...], data_dir: Path | None
) -> None:
    """Write the data of a file, SOURCE, in shards, for more examples than memory holds: about two shards at a time are in memory.

    SOURCE is LIBSVM, .csv, .tsv, .parquet, .npz or .npy. OUT/shards.json is a data file like any other, with the data that the file
    itself has, bit by bit. OUT appears when all of it is written.

    --quiet leaves the line that says what was written.

    \b
    Examples:
      bench-mtl shard clicks.svm --out clicks
      bench-mtl shard flowers.csv --out flowers --data-option labels=3 --data-option drop=name --rows 100000
      bench-mtl solve l1inf_hinge auto --data clicks/shards.json --param penalty="0.1 max" --target 1e-4
    """
    from bench_mtl.data.sharding import shard_file

    spec = data_spec(source, data_option, (), data_dir)
    written = shard_file(spec, out, rows=rows, megabytes=megabytes, name=name, data_dir=data_dir, notify=say)
    for note in written.notes:
        say(f"note: {one_line(note, LONGEST_LINE)}")
    answer(f"{written.manifest}: {written}")
    answer_json(lambda: written)
