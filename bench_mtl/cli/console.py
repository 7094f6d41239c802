"""How commands speak: lines on standard output for as long as somebody reads them, one JSON document instead, warnings on standard error.

A command says three kinds of things: `say` what goes on, which --quiet and --json leave out, `answer` what it was asked for, which --json
gives as a document, and `warn` what went wrong, which is always printed. It returns its exit code and what makes the document (`Answer`).
The options are in `bench_mtl.cli.options`; their values are in Click's context of the command that runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.core.text import LONGEST_LINE, encodable, one_line, visible

if TYPE_CHECKING:
    from bench_mtl.core.types import Certificate, Record, Sample

#: The exit code of a command, and what makes its document for --json.
Answer = tuple[int, Callable[[], Any]]

#: Under these names the context knows that a command was given --quiet or --json.
_QUIET, _JSON = "bench_mtl.quiet", "bench_mtl.json"


def say(text: str = "", *, error: bool = False) -> None:
    """Print lines on standard output, or on standard error, with nothing in them that a terminal would obey.

    On standard output --quiet and --json leave them out. Once the reader has gone (``| head``), print nowhere: the work goes on to its end.
    """
    if error or not is_quiet():
        _print(text, error=error)


def answer(text: str) -> None:
    """Print lines of what the command was asked for: --quiet leaves them, --json has them in its document."""
    if not _meta().get(_JSON):
        _print(text)


def warn(text: str) -> None:
    """Print a line on standard error, under the name of the command."""
    say(f"bench-mtl: {one_line(text, LONGEST_LINE)}", error=True)


def fail(message: str, code: int) -> int:
    """Say on standard error what went wrong, in one line; returns `code`."""
    warn(message)
    return code


def is_quiet() -> bool:
    """Return whether the command that runs leaves out what goes on."""
    return bool(_meta().get(_QUIET) or _meta().get(_JSON))


def be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Take note of --quiet."""
    context.meta[_QUIET] = value
    if value:
        logging.getLogger("bench_mtl").setLevel(logging.ERROR)


def in_json(command: Callable[[], Answer | int]) -> Answer | int:
    """Run a command, and print its document on standard output; whatever else is printed goes to standard error.

    That is so for libraries of other languages too, which know nothing of `sys.stdout`. Where the command raises, there is no document.
    """
    import ctypes

    _meta()[_JSON] = True
    sys.stdout.flush()
    output = -1
    with contextlib.suppress(OSError):  # one of the two is closed
        output = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            answered = command()
            text = to_json(answered[1]()) if isinstance(answered, tuple) else ""
    finally:
        with contextlib.suppress(OSError, AttributeError, TypeError):  # a system without such a library
            ctypes.CDLL(None).fflush(None)  # what libraries of C still hold
        if output >= 0:
            os.dup2(output, 1)
            os.close(output)
    if text:
        _print(text)
    return answered


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
    return encodable(str(value))
