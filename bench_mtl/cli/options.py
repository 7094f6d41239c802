"""What commands share: options, names that a shell completes, files that are written at the end, and exit codes."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from bench_mtl.cli.console import be_quiet, in_json
from bench_mtl.core.errors import BenchError, InputError, did_you_mean, not_written
from bench_mtl.core.files import exists, is_file

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # which older releases of Click do not let one subscript

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INCOMPLETE, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class _UserPath(click.Path):
    """A path; `~` at its front is the user's home, which shells only see at the front of a word, and not in ``--out=~/results``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; an empty one, which would be the current folder, is refused."""
        if value == "":
            self.fail("a path must not be empty", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


A_PATH = _UserPath(path_type=Path)


class NearChoice(_Choice):
    """One of a few words; for another one the nearest is suggested."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or refuse it."""
        if value not in self.choices:
            words = ", ".join(f"'{choice}'" for choice in self.choices)
            self.fail(f"'{value}' is not one of {words}{did_you_mean(str(value), self.choices)}", param, ctx)
        return str(value)


def repeatable(name: str, metavar: str, words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return an option that can be given several times."""
    return click.option(name, multiple=True, metavar=metavar, help=f"{words} Repeatable.")


def _completer(kind: str, *, files: bool = False) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes names of a kind, and names of files where `files` says so.

    A shell asks at every press of a key, so nothing is imported that solves, compiles or draws, no plug-in is run and no data are read.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items = [CompletionItem(incomplete, type="file")] if files else []
        with contextlib.suppress(BenchError, OSError):  # such as a data directory that is not there: the command itself says so
            names = _names(kind, context.params.get("data_dir"))
            items = [*(CompletionItem(name) for name in names if name.startswith(incomplete)), *items]
        return items

    return complete


def _names(kind: str, data_dir: str | Path | None) -> Iterable[str]:
    from bench_mtl.data.catalogue import names
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.engine.suite_file import shipped_suites

    if kind == "suites":
        return shipped_suites()
    if kind == "data":
        return names(None if data_dir is None else Path(data_dir))
    registry = load_registry()
    return sorted(registry.problems if kind == "problems" else set(registry.solver_words()))


solvers, problems = _completer("solvers"), _completer("problems")
suites, data_sets = _completer("suites", files=True), _completer("data", files=True)


data_dir_option = click.option(
    "--data-dir", type=A_PATH, help="Folder of data files (.npz by name); the environment variable BENCH_MTL_DATA by default."
)
plugins_option = click.option(
    "--plugins", type=A_PATH, help="Folder with problems/*.py and solvers/*.py to use besides the installed ones."
)
traceback_option = click.option(
    "--traceback", is_flag=True, help="Print the last lines of code of every run that raised, on standard error."
)
_quiet_option = click.option(
    "--quiet", is_flag=True, is_eager=True, expose_value=False, callback=be_quiet,
    help="Print nothing on the way: no progress, only what was asked for. Warnings and errors stay.",
)  # fmt: skip


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the option --json, with which the document of its `console.Answer` is all of its output.

    It is the last of a command's decorators, next to the function, which it wraps.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and nothing else, on standard output.")
    @functools.wraps(command)
    def speaking(*arguments: Any, as_json: bool, **options: Any) -> Any:
        run = functools.partial(command, *arguments, **options)
        answered = in_json(run) if as_json else run()
        return answered[0] if isinstance(answered, tuple) else answered

    return speaking


def script_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with --quiet and --json; the last of its decorators, as `json_option`."""
    return _quiet_option(json_option(command))


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with --data-dir and --plugins."""
    return data_dir_option(plugins_option(command))


@contextlib.contextmanager
def replacing(option: str, what: str, path: Path, *, is_trial: bool = False) -> Iterator[IO[bytes]]:
    """Yield PATH.part, open to be written, which takes the name PATH at the end unless that `is_trial`.

    Raises InputError where it cannot be, and IncompleteError where the disk is full.
    """
    if exists(option, path) and not is_file(option, path):
        raise InputError(f"{option}: {path} is not a file, so it cannot be replaced by one")
    if not path.name:
        raise InputError(f"{option}: '{path}' names no file")
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not is_trial:
            os.replace(part, path)
    except OSError as error:
        raise not_written(f"{option}: the {what} cannot be written to {path}", error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def require_replaceable(option: str, what: str, path: Path | None) -> None:
    """Raise InputError, as `replacing` would later, where a file that is asked for cannot be written."""
    if path is not None:
        with replacing(option, what, path, is_trial=True):
            pass
