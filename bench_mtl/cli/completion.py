"""Names that a shell completes: of solvers, problems, suites, experiments, data sets, and of their options.

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


def _steps(_: click.Context) -> list[str]:
    from bench_mtl.data.preprocess import FORMS

    return [form.partition(":")[0] + (":" if ":" in form else "") for form in FORMS]


def _parameters(context: click.Context) -> list[str]:
    from bench_mtl.engine.registry import problem_parameters

    return [f"{name}=" for name in problem_parameters(_registry().problem(_given(context, "problem")))]


def _solver_options(context: click.Context) -> list[str]:
    from bench_mtl.engine.registry import solver_options

    registry = _registry()
    name, _ = registry.meant(_given(context, "solvers") or _given(context, "solver"))
    return [f"{option}=" for option in solver_options(registry.solvers[name])]


def _data_options(context: click.Context) -> list[str]:
    from bench_mtl.data.catalogue import option_names, spec_of

    folder = _data_dir(context)
    return [f"{name}=" for name in option_names(spec_of(_given(context, "data"), folder), folder)]


def _source_options(context: click.Context) -> list[str]:
    from bench_mtl.data.catalogue import spec_of
    from bench_mtl.data.sharding import allowed_options

    folder = _data_dir(context)
    return [f"{name}=" for name in allowed_options(spec_of(_given(context, "source"), folder), folder)]


def _selections(_: click.Context) -> list[str]:
    from bench_mtl.results.selection import KEYS

    return [f"{key}=" for key in KEYS]


def _formats(_: click.Context) -> tuple[str, ...]:
    from bench_mtl.report.formats import ALL, COVER

    return (*ALL, COVER)


def _given(context: click.Context, name: str) -> str:
    """Return what was given for an argument or an option before the word that is completed, of several the first; empty for nothing."""
    arguments = [parameter.name for parameter in context.command.params if isinstance(parameter, click.Argument)]
    # Click gives arguments no names yet where an option is still without its value.
    unnamed = dict(zip(arguments, context.args, strict=False))
    found = context.params.get(name) or unnamed.get(name) or ""
    return str(next(iter(found), "") if isinstance(found, tuple) else found)


def _data_dir(context: click.Context) -> Path | None:
    folder = context.params.get("data_dir")
    return None if folder is None else Path(folder)


solvers, problems = _completer(_solvers), _completer(_problems)
suites, data_sets = _completer(_suites, files=True), _completer(_data_sets, files=True)
parameters, solver_options, data_options = _completer(_parameters), _completer(_solver_options), _completer(_data_options)
source_options = _completer(_source_options)
steps, selections, formats = _completer(_steps), _completer(_selections), _completer(_formats)
