"""What commands share: options, exit codes, and how a failure is said."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench_mtl.cli import completion
from bench_mtl.cli.console import be_quiet, only_json, warn
from bench_mtl.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from bench_mtl.core.types import Limits

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # which older releases of Click do not let one subscript

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: What may be names with commas between, as in labels=a,b.
_LISTS = ("labels", "targets", "drop")

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INCOMPLETE, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class _UserPath(click.Path):
    """A path; `~` at its front is the user's home, which shells only see at the front of a word, and not in ``--out=~/results``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises
        ------
        click.BadParameter : it is empty, which would be the current folder.
        """
        if value == "":
            self.fail("a path must not be empty", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


A_PATH = _UserPath(path_type=Path)


class NearChoice(_Choice):
    """One of a few words; for another one the nearest is suggested."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word.

        Raises
        ------
        click.BadParameter : it is none of them.
        """
        if value not in self.choices:
            words = ", ".join(f"'{choice}'" for choice in self.choices)
            self.fail(f"'{value}' is not one of {words}{did_you_mean(str(value), self.choices)}", param, ctx)
        return str(value)


data_dir_option = click.option(
    "--data-dir", type=A_PATH, help="Folder of .npz data sets; the environment variable BENCH_MTL_DATA by default."
)
plugins_option = click.option(
    "--plugins", type=A_PATH, help="Folder with problems/*.py and solvers/*.py to use besides the installed ones."
)
isolation_option = click.option(
    "--isolation",
    type=NearChoice(["process", "inline"]),
    default="process",
    show_default=True,
    help="inline runs in this process, without hard limits: to debug and to profile.",
)

quiet_option = click.option(
    "--quiet",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=be_quiet,
    help="Print nothing on the way: no progress, only what was asked for. Warnings and errors stay.",
)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the option --json, with which the document that it gives to `console.answer_json` is all of its output.

    It is the last of a command's decorators, next to the function, which it wraps.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and nothing else, on standard output.")
    @functools.wraps(command)
    def speaking(*arguments: Any, as_json: bool, **options: Any) -> Any:
        with only_json() if as_json else contextlib.nullcontext():
            return command(*arguments, **options)

    return speaking


_problem_options = (
    click.option(
        "--data",
        required=True,
        shell_complete=completion.data_sets,
        help="A generator, an embedded or catalogued data set, or a data file.",
    ),
    click.option(
        "--data-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of the data, e.g. tasks=10. Repeatable.",
    ),
    click.option(
        "--preprocess",
        multiple=True,
        help="none, unit_rows, standardise, tfidf, svd:K, perceptron_kernel, stumps:J or trees:J:DEPTH. Repeatable, in order.",
    ),
    click.option(
        "--param",
        multiple=True,
        metavar="KEY=VALUE",
        help="Parameter of the problem, e.g. radius=5 or penalty=0.1. Repeatable.",
    ),
    click.option(
        "--option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of the solver, e.g. restart=gradient. Repeatable.",
    ),
    click.option(
        "--seconds", type=float, default=60.0, show_default=True, help="Time limit of a run, in path of each; checked between steps."
    ),
    click.option("--iterations", type=int, help="Iteration limit of a run, in path of each."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the data generator."),
    click.option("--threads", type=int, default=1, show_default=True, help="At most the processors that this process may use."),
    data_dir_option,
    plugins_option,
)


def problem_options(command: _Command) -> _Command:
    """Return the options of commands that solve a problem in this process: its data and parameters, the solver's options, limits."""
    for option in reversed(_problem_options):
        command = option(command)
    return command


def allowed_threads(threads: int) -> int:
    """Return the number of --threads.

    Raises
    ------
    InputError : fewer than one, or more than this process may use processors.
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.core.threads import available_processors

    if whole_number("--threads", threads, minimum=1) > available_processors():
        raise InputError(f"--threads must be at most {available_processors()}, the processors that this process may use, not {threads}")
    return threads


def data_spec(data: str, data_option: tuple[str, ...], preprocess: tuple[str, ...], data_dir: Path | None) -> dict[str, Any]:
    """Return the table of a suite that these options stand for."""
    from bench_mtl.data.catalogue import spec_of

    spec = {**spec_of(os.path.expanduser(data), data_dir), **key_values(data_option, "--data-option")}
    return spec | ({"preprocess": list(preprocess)} if preprocess else {})


def _number(text: str) -> int | float | str:
    """Return a number that a text is, or the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def limits_of(seconds: float, iterations: int | None) -> Limits:
    """Return the limits that these options stand for."""
    from bench_mtl.core.checks import real_number, whole_number
    from bench_mtl.core.types import Limits

    return Limits(
        seconds=real_number("--seconds", seconds, strict=True),
        iterations=None if iterations is None else whole_number("--iterations", iterations, minimum=1),
    )


def fail(message: str, code: int) -> int:
    """Say on standard error what went wrong, in one line; returns `code`."""
    warn(message)
    return code


def key_values(texts: tuple[str, ...], where: str) -> dict[str, Any]:
    """KEY=VALUE texts as a table; values are read as TOML and otherwise as strings, or lists with commas."""
    from bench_mtl.engine.suite_file import read_toml, require_storable

    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise InputError(f"{where} must be KEY=VALUE, not '{text}'")
        if key in table:
            raise InputError(f"{where} {key} is given twice")
        try:
            table[key] = read_toml(f"value = {value}")["value"]
        except InputError as error:
            raise InputError(f"{where} {key}: {error}") from None
        except ValueError:  # names without quotes, or numbers with commas between them
            parts = [_number(part.strip()) for part in value.split(",")]
            is_list = len(parts) > 1 and (key in _LISTS or not any(isinstance(part, str) for part in parts))
            table[key] = parts if is_list else value
        require_storable(f"{where} {key}", table[key])
    return table
