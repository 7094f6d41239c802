"""How commands speak: lines on standard output for as long as somebody reads them, one JSON document instead, warnings on standard error.

A command says three kinds of things: `say` what goes on, which --quiet and --json leave out, `answer` what it was asked for, which --json
gives as a document (`answer_json`), and `warn` what went wrong, which is always said. The options are in `bench_mtl.cli.options`; what was
given of them stands in Click's context of the command that runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LINE, one_line, visible

if TYPE_CHECKING:
    from bench_mtl.core.types import Array, Certificate, Place, Record, Sample
    from bench_mtl.model.protocols import Problem

#: A norm that is this close to its bound is at it.
_AT_THE_BOUND = 1.0 - 1e-6

#: Under these names the context knows that it is quiet, and the documents of a command that was given --json.
_QUIET, _DOCUMENTS = "bench_mtl.quiet", "bench_mtl.documents"


def say(text: str = "", *, error: bool = False) -> None:
    """Print lines on standard output, or on standard error, with nothing in them that a terminal would obey.

    On standard output --quiet and --json leave them out. Once the reader has gone (``| head``), print nowhere: the work goes on to its end.
    """
    if error or not is_quiet():
        _print(text, error=error)


def answer(text: str) -> None:
    """Print lines of what the command was asked for: --quiet leaves them, --json has them in its document."""
    if _DOCUMENTS not in _meta():
        _print(text)


def answer_json(make: Callable[[], Any]) -> None:
    """Give what `make` returns as the document of a command that was given --json; otherwise nothing is made."""
    if _DOCUMENTS in _meta():
        _meta()[_DOCUMENTS].append(make())


def warn(text: str) -> None:
    """Print a line on standard error, under the name of the command."""
    say(f"bench-mtl: {one_line(text, LONGEST_LINE)}", error=True)


def fail(message: str, code: int) -> int:
    """Say on standard error what went wrong, in one line; returns `code`."""
    warn(message)
    return code


def is_quiet() -> bool:
    """Return whether the command that runs leaves out what goes on."""
    return bool(_meta().get(_QUIET)) or _DOCUMENTS in _meta()


def be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Take note of --quiet."""
    context.meta[_QUIET] = value
    if value:
        logging.getLogger("bench_mtl").setLevel(logging.ERROR)


@contextlib.contextmanager
def only_json() -> Iterator[None]:
    """Keep standard output for the document of the command that runs; whatever else is printed goes to standard error.

    That is so for libraries of other languages too, which know nothing of `sys.stdout`. The document is printed at the end, and not where
    the command raises.
    """
    documents: list[Any] = []
    _meta()[_DOCUMENTS] = documents
    sys.stdout.flush()
    output = -1
    with contextlib.suppress(OSError):  # one of the two is closed
        output = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _flush_libraries()
        if output >= 0:
            os.dup2(output, 1)
            os.close(output)
    for document in documents:
        _print(to_json(document))


def _flush_libraries() -> None:
    """Print what C libraries have printed and still hold."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):  # a system without such a library
        ctypes.CDLL(None).fflush(None)


def _meta() -> dict[str, Any]:
    """Return what is known of the command that runs; nothing outside of one."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def _print(text: str, *, error: bool = False) -> None:
    text, stream = visible(text), sys.stderr if error else sys.stdout
    try:
        try:
            click.echo(text, err=error)
        except UnicodeEncodeError:  # characters that this terminal does not have
            encoding = stream.encoding or "ascii"
            click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=error)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # what is left in Python's buffer goes there too
        os.close(nowhere)


def to_json(content: Any) -> str:
    """Return JSON in ASCII, which no terminal obeys: tables, lists, texts, numbers, true, false and null.

    NaN, which is no number, is null; infinite numbers are the texts "inf" and "-inf". Paths and whatever else only has words are texts.
    """
    return json.dumps(_plain(content), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def run_document(record: Record) -> dict[str, Any]:
    """Return how a run ended, what it proved, and what it took."""
    return {
        "status": record.status,
        "reason": record.reason,
        "places": [place._asdict() for place in record.places],
        **_bounds(record.best),
        "seconds": record.times.setup + record.times.solve,
        "iterations": record.samples[-1].step if record.samples else None,
        "times": record.times,
        "info": dict(record.info),
    }


def sample_document(sample: Sample) -> dict[str, Any]:
    """Return one certified point of a run."""
    counts = {"seconds": sample.seconds, "iteration": sample.step, "passes": sample.work, "asked": sample.asked}
    return counts | _bounds(sample.certificate) | {"measures": dict(sample.measures)}


def _bounds(certificate: Certificate | None) -> dict[str, float | None]:
    names = {"objective": "primal", "dual_bound": "dual", "relative_gap": "relative_gap", "infeasibility": "infeasibility"}
    return {name: getattr(certificate, field, None) for name, field in names.items()}


def _plain(value: Any) -> Any:
    """Return a value as what JSON has."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(float(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_word(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(_word, value))
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        return _plain(value.tolist())
    return _word(value)


def _word(value: Any) -> str:
    """Return a text that can be written as UTF-8."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def say_problem(name: str, problem: Problem) -> None:
    """Say how large a problem is, and what was done to its data."""
    design, m = getattr(problem, "design", None), int(problem.dimensions["m"])
    sizes = ", ".join(f"{key} = {value}" for key, value in problem.dimensions.items())
    if design is not None:
        rows = plural(design.sizes[0] if design.is_shared else design.n_examples, "row")
        tasks = f"that {m} tasks share" if design.is_shared and m > 1 else f"of {plural(m, 'task')}"
        sizes = f"{rows} {tasks}, {plural(design.n_features, 'feature')}"
    say(f"{name}: {sizes}")
    for note in problem.notes:
        say(f"note: {one_line(note, LONGEST_LINE)}")


def say_solution(problem: Problem, point: Array | None) -> None:
    """Say how well a solution fits its examples, and whether its bounds bind: what the next radius or penalty is chosen by."""
    from bench_mtl.model.fit_problem import FitProblem
    from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
    from bench_mtl.model.squared_norms import PenaltyAndRidge

    if not isinstance(problem, FitProblem) or point is None or problem.is_in_shards:
        return
    what = "of the squares of the targets not explained" if not problem.loss.is_of_labels else "of the predictions wrong"
    say(f"training error: {problem.training_error(point):.4g} {what}")
    stack = problem.regulariser
    for part, matrix in zip(stack.parts, point, strict=True) if isinstance(stack, Stacked) else [(stack, point)]:
        if isinstance(part, PenaltyAndRidge):
            part = part.penalty
        if isinstance(part, Penalty):
            say(f"penalty {part.weight:.6g}: from {problem.largest_penalty(part.norm):.6g} on the solution is 0")
        elif isinstance(part, Constraint):
            size = part.norm.value(matrix)
            rest = "binds" if size >= part.radius * _AT_THE_BOUND else f"does not bind: from the solution's norm, {size:.6g}, on none does"
            say(f"radius {part.radius:.6g} {rest}")


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
