"""`bench-mtl list`, `shard`, `validate` and `doctor`: what there is, and whether it works here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from bench_mtl.cli.asked import data_spec
from bench_mtl.cli.console import Answer, answer, say
from bench_mtl.cli.options import (
    A_PATH,
    EXIT_FAILED,
    NearChoice,
    data_dir_option,
    data_sets,
    json_option,
    plugins_option,
    repeatable,
    script_options,
    source_options,
)
from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LINE, one_line
from bench_mtl.data import catalogue
from bench_mtl.data.catalogue import data_directory
from bench_mtl.data.sharding import shard_file
from bench_mtl.engine.description import entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import read_suite, shipped_suites
from bench_mtl.runner.planning import listed_entries, require_importable
from bench_mtl.validation.ahead_of_time import Compiled, compile_all
from bench_mtl.validation.doctor import Finding
from bench_mtl.validation.doctor import findings as look
from bench_mtl.validation.validate import Check
from bench_mtl.validation.validate import validate as checks_of

_Row = Mapping[str, Any]
T = TypeVar("T")


@click.command("list")
@click.argument("what", type=NearChoice(["problems", "solvers", "suites", "data"]))
@source_options
@json_option
def list_(what: str, data_dir: Path | None, plugins: Path | None) -> Answer:
    """List what there is: problems, solvers, suites or data.

    \b
    Examples:
      bench-mtl list solvers
      bench-mtl list data --data-dir ~/data
    """
    rows = found(what, data_dir=data_dir, plugins=plugins)
    answer(render(what, rows, data_dir=data_dir))
    return 0, lambda: {what: rows}


def found(what: str, *, data_dir: Path | None = None, plugins: Path | None = None) -> list[_Row]:
    """Return the problems, solvers, suites or data, a row each."""
    if what == "suites":
        return [{"name": name, "description": read_suite(name).description} for name in shipped_suites()]
    if what == "data":
        return [asdict(entry) for entry in catalogue.entries(catalogue.data_directory(data_dir))]
    keys = ("offers", "forms", "parameters") if what == "problems" else ("needs", "takes", "aliases", "options")
    rows: list[_Row] = []
    for entry in entries(load_registry(), what) if plugins is None else listed_entries(plugins, what):
        lists = [entry.offers.split(", "), entry.forms.split(" or " if what == "solvers" else ", "), entry.aliases.split(", ")]
        values = [*([word for word in words if word] for words in lists[: len(keys) - 1]), entry.options]
        rows.append({"name": entry.name, "sentence": entry.sentence, **dict(zip(keys, values, strict=True))})
    return rows


def render(what: str, rows: Sequence[_Row], *, data_dir: Path | None = None) -> str:
    """Return the rows of `found` as a text, a paragraph or a line each."""
    if what == "suites":
        width = max(len(row["name"]) for row in rows)
        return "\n".join(f"{row['name']:{width}}  {row['description']}" for row in rows)
    if what == "data":
        width = max(len(row["name"]) for row in rows)
        lines = [f"{row['name']:{width}}  {row['kind']:9}  {row['description']}" for row in rows]
        more = ["more with --data-dir DIR or the environment variable BENCH_MTL_DATA"] if data_directory(data_dir) is None else []
        return "\n".join([*lines, *more])
    lines = []
    for row in rows:
        lines += [row["name"], f"  {row['sentence']}"]
        for title, words in list(row.items())[2:]:
            text = words if isinstance(words, str) else (" or " if title == "takes" else ", ").join(words)
            lines += [f"  {title}: {text}"] if text else []
    return "\n".join(lines)


@click.command()
@click.argument("source", shell_complete=data_sets)
@click.option("--out", required=True, type=A_PATH, help="Folder of the shards: a new one.")
@click.option("--rows", type=int, help="Rows of a shard.")
@click.option("--megabytes", type=float, help="MiB of the features of a shard, and of its targets at most; 128 by default.")
@click.option("--name", help="Of the data set; that of the file by default.")
@repeatable("--data-option", "KEY=VALUE", "Option of the file, e.g. labels=3.")
@data_dir_option
@script_options
def shard(
    source: str, out: Path, rows: int | None, megabytes: float | None, name: str | None, data_option: tuple[str, ...], data_dir: Path | None
) -> Answer:
    """Write the data of a file, SOURCE, in shards, for more examples than memory holds: about two shards are in memory.

    SOURCE is LIBSVM, .csv, .tsv, .parquet, .npz or .npy. OUT/shards.json is a data file like any other, with the data that the file
    itself has, bit by bit. OUT appears when all of it is written.

    \b
    Examples:
      bench-mtl shard clicks.svm --out clicks
      bench-mtl shard flowers.csv --out flowers --data-option labels=3 --data-option drop=name --rows 100000
      bench-mtl solve l1inf_hinge auto --data clicks/shards.json --param penalty="0.1 max" --target 1e-4
    """
    spec = data_spec(source, data_option, (), data_dir)
    written = shard_file(spec, out, rows=rows, megabytes=megabytes, name=name, data_dir=data_dir, notify=say)
    for note in written.notes:
        say(f"note: {one_line(note, LONGEST_LINE)}")
    answer(f"{written.manifest}: {written}")
    return 0, lambda: written


@click.command()
@click.option("--cases", type=int, default=50, show_default=True, help="Random cases for each projection and each problem.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Only this problem, solver or projection, and its pairs. Repeatable.")
@plugins_option
@script_options
def validate(cases: int, seed: int, only: tuple[str, ...], plugins: Path | None) -> Answer:
    """Check projections, certificates and every problem-solver pair against CVXPY on random small cases.

    Bounds of the built-in problems are also held to exact rational arithmetic, on as many small nasty instances of each.

    \b
    Examples:
      bench-mtl validate --cases 200
      bench-mtl validate --plugins my-plugins --only heavy_ball
    """
    whole_number("--cases", cases, minimum=1)
    whole_number("--seed", seed)
    require_importable(plugins)
    made = checks_of(load_registry(plugins), cases=cases, seed=seed, only=only)
    say(f"{'subject':44} {'check':24} {'cases':>6} {'failed':>6}  worst error")

    def line(check: Check) -> str:
        worst = "-" if check.worst is None else f"{check.worst:.1e}"
        message = f"\n    {check.message}" if check.message else ""
        return f"{check.subject:44} {check.what:24} {check.cases:6} {check.failures:6}  {worst}{message}"

    checks = _shown(made, line, lambda check: check.failures > 0)
    failures = sum(check.failures for check in checks)
    say("all checks passed" if not failures else f"{failures} cases failed")
    return EXIT_FAILED if failures else 0, lambda: {"failures": failures, "checks": checks}


def _shown(parts: Iterable[T], line: Callable[[T], str], is_bad: Callable[[T], bool]) -> list[T]:
    """Return the parts, each shown in its line, if it has one, as it comes; --quiet leaves what is bad."""
    shown = []
    for part in parts:
        shown.append(part)
        if text := line(part):
            (answer if is_bad(part) else say)(text)
    return shown


@click.command()
@source_options
@click.option(
    "--compile/--no-compile", default=None,
    help="Only compile what solvers and projections call, so that no run has to; or check everything except what would compile.",
)  # fmt: skip
@script_options
def doctor(data_dir: Path | None, plugins: Path | None, compile: bool | None) -> Answer:
    """Say what is installed, solver by solver, and whether clock, limits and storage work here.

    The first call compiles for a minute or two; --no-compile leaves out what compiles.

    \b
    Examples:
      bench-mtl doctor
      bench-mtl doctor --compile
      bench-mtl doctor --no-compile
    """
    require_importable(plugins)
    if compile:
        return _compile(plugins)
    topics: list[str] = []

    def line(finding: Finding) -> str:
        if finding.topic not in topics:
            say(f"\n{finding.topic}" if topics else finding.topic)
            topics.append(finding.topic)
        return f"  {finding.what:32} {({True: 'ok', False: 'BROKEN', None: ''})[finding.works]:7} {finding.found}"

    findings = _shown(look(plugins, data_dir, compiles=compile is None), line, lambda finding: finding.works is False)
    broken = sum(finding.works is False for finding in findings)
    say("\nall works" if not broken else f"\n{broken} broken")
    return EXIT_FAILED if broken else 0, lambda: {"broken": broken, "findings": findings}


def _compile(plugins: Path | None) -> Answer:
    """Compile ahead of time, and say what takes how long."""

    def line(part: Compiled) -> str:
        words = f"does not work: {part.trouble}" if part.trouble else plural(part.functions, "function")
        return f"  {part.part:28} {part.seconds:6.1f} s  {words}" if part.trouble or part.functions else ""

    start = time.perf_counter()
    parts = _shown(compile_all(plugins), line, lambda part: bool(part.trouble))
    functions, broken = sum(part.functions for part in parts), sum(bool(part.trouble) for part in parts)
    say(f"{plural(functions, 'function')} compiled in {time.perf_counter() - start:.0f} s; the rest was there")
    return EXIT_FAILED if broken else 0, lambda: {"broken": broken, "functions": functions, "parts": parts}
