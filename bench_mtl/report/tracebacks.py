"""Where runs of status `error` raised, in words: the last lines of code of each, one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench_mtl.core.errors import plural
from bench_mtl.core.text import one_line
from bench_mtl.core.types import Status
from bench_mtl.engine.places import MOST_PLACES, traceback_lines
from bench_mtl.report.columns import LONGEST_CELL

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Place

#: What is above them.
TITLE = "Where the runs of status error raised"

#: Of different tracebacks, how many are shown.
MOST_TRACEBACKS = 100


def tracebacks(runs: pd.DataFrame, places: Mapping[int, Sequence[Place]]) -> str:
    """Return the tracebacks of failed runs as plain text, each once: the runs that have it, the reason, and its lines of code.

    Parameters
    ----------
    runs : with id, problem_label, solver_label, status and reason
    places : by the id of the run; empty text where none of the runs of status `error` has any
    """
    named: dict[str, list[str]] = {}
    columns = (runs[name] for name in ("id", "problem_label", "solver_label", "status", "reason"))
    for run, problem, solver, status, reason in zip(*columns, strict=True):
        if status == Status.ERROR and (passed := places.get(run)):
            lines = [f"  {one_line(str(reason), LONGEST_CELL)}", *traceback_lines(passed[-MOST_PLACES:])]
            named.setdefault("\n".join(lines), []).append(f"{solver} on {problem}")
    texts = [f"{_named(labels)}\n{text}" for text, labels in named.items()]
    rest = [f"and {plural(len(texts) - MOST_TRACEBACKS, 'other traceback')}"] if len(texts) > MOST_TRACEBACKS else []
    return "\n\n".join([*texts[:MOST_TRACEBACKS], *rest])


def _named(labels: Sequence[str]) -> str:
    more = len(labels) - 1
    return f"{labels[0]}{f' and {more} more' if more else ''}"
