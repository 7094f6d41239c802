"""Names that a shell completes: of solvers, problems, suites and data sets.

A shell asks at every press of a key, so nothing here imports a package that solves, compiles or draws, runs a plug-in, or reads data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bench_mtl.engine.registry import Registry

_Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem]]"


def _completer(names: Callable[[click.Context], Iterable[str]], *, files: bool = False) -> _Completer:
    """Return what completes the names that a function gives for a context, and names of files where `files` says so.

    A name that cannot be looked up, for a data directory is not there, completes nothing: the command itself says what is wrong.
    """

    @functools.wraps(names)
    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from bench_mtl.core.errors import BenchError

        try:
            found = [CompletionItem(name) for name in names(context) if name.startswith(incomplete)]
        except (BenchError, OSError):
            found = []
        return [*found, CompletionItem(incomplete, type="file")] if files else found

    return complete


def _registry() -> Registry:
    from bench_mtl.engine.registry import load_registry

    return load_registry()


def _solvers(_: click.Context) -> list[str]:
    return sorted(set(_registry().solver_words()))


def _problems(_: click.Context) -> list[str]:
    return sorted(_registry().problems)


def _suites(_: click.Context) -> list[str]:
    from bench_mtl.engine.suite_file import shipped_suites

    return list(shipped_suites())


def _data_sets(context: click.Context) -> list[str]:
    from bench_mtl.data.catalogue import names

    return names(_data_dir(context))


def _data_dir(context: click.Context) -> Path | None:
    folder = context.params.get("data_dir")
    return None if folder is None else Path(folder)


solvers, problems = _completer(_solvers), _completer(_problems)
suites, data_sets = _completer(_suites, files=True), _completer(_data_sets, files=True)
