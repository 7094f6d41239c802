"""What commands say where code of a problem or a solver has raised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.cli.console import say
from bench_mtl.core.text import LONGEST_LINE, one_line

if TYPE_CHECKING:
    from bench_mtl.core.types import Place


def say_places(places: Sequence[Place]) -> None:
    """Print where an exception was raised on standard error: two lines a line of code; nothing where nobody knows."""
    from bench_mtl.engine.places import traceback_lines

    for line in traceback_lines(places):
        say(line, error=True)


def say_tracebacks(folder: Path) -> None:
    """Print the reasons of the listed runs of status `error` in a folder on standard error, each with the lines of code it came from."""
    from bench_mtl.core.types import Status
    from bench_mtl.results import Store

    with Store.open(folder) as store, store.snapshot():
        runs, places = store.runs(), store.places()
    failed = runs[runs["status"] == Status.ERROR]
    for run, problem, solver, reason in zip(*(failed[name] for name in ("id", "problem_label", "solver_label", "reason")), strict=True):
        say(one_line(f"{problem} | {solver}: {reason}", LONGEST_LINE), error=True)
        say_places(places.get(run, ()))


def at(places: Sequence[Place]) -> str:
    """Return where an exception was raised as the end of a sentence, `` (solvers/mine.py:31)``; empty where nobody knows."""
    from bench_mtl.engine.places import place_text

    return f" ({place_text(places)})" if places else ""
