"""Names that a shell completes: of solvers, problems, suites and data sets.

A shell asks at every press of a key, so nothing here imports a package that solves, compiles or draws, runs a plug-in, or reads data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _completer(kind: str, *, files: bool = False) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes names of a kind, and names of files where `files` says so.

    A name that cannot be looked up, for a data directory is not there, completes nothing: the command itself says what is wrong.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from bench_mtl.core.errors import BenchError

        try:
            items = [CompletionItem(name) for name in _names(kind, context.params.get("data_dir")) if name.startswith(incomplete)]
        except (BenchError, OSError):
            items = []
        return [*items, CompletionItem(incomplete, type="file")] if files else items

    return complete


def _names(kind: str, data_dir: str | Path | None) -> Iterable[str]:
    if kind == "suites":
        from bench_mtl.engine.suite_file import shipped_suites

        return shipped_suites()
    if kind == "data":
        from bench_mtl.data.catalogue import names

        return names(None if data_dir is None else Path(data_dir))
    from bench_mtl.engine.registry import load_registry

    registry = load_registry()
    return sorted(registry.problems if kind == "problems" else set(registry.solver_words()))


solvers, problems = _completer("solvers"), _completer("problems")
suites, data_sets = _completer("suites", files=True), _completer("data", files=True)
