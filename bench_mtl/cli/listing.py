"""The texts of `bench-mtl list`."""

from __future__ import annotations

import inspect
from pathlib import Path

from bench_mtl.data.catalogue import data_directory, entries
from bench_mtl.engine.registry import load_registry, problem_parameters, solver_options
from bench_mtl.engine.suite_file import read_suite, shipped_suites
from bench_mtl.model.protocols import Capability, Form
from bench_mtl.papers import experiment, experiments


def render(what: str, *, data_dir: Path | None = None, plugins: Path | None = None) -> str:
    """Return the list of problems, solvers, suites, papers' experiments or data, a paragraph or a line each."""
    if what == "suites":
        return "\n".join(f"{name:18} {read_suite(name).description}" for name in shipped_suites())
    if what == "papers":
        return "\n".join(f"{name:18} {experiment(name).source}" for name in experiments())
    if what == "data":
        return _data(data_dir)
    registry = load_registry(plugins)
    if what == "problems":
        return "\n".join(
            _entry(name, cls, {"offers": _listed(cls.offers), "forms": _named(cls.forms, ", ")}, "parameters", problem_parameters(cls))
            for name, cls in sorted(registry.problems.items())
        )
    return "\n".join(
        _entry(name, cls, {"needs": _listed(cls.requires), "takes": _named(cls.takes, " or ")}, "options", solver_options(cls))
        for name, cls in sorted(registry.solvers.items())
    )


def _entry(name: str, cls: type, interface: dict[str, str], noun: str, options: dict[str, object]) -> str:
    lines = [f"  {what}: {words}" for what, words in interface.items() if words]
    return "\n".join([name, f"  {_first_sentence(cls)}", *lines, f"  {noun}: {_options(options)}"])


def _listed(capabilities: frozenset[Capability]) -> str:
    return ", ".join(sorted(capabilities))


def _named(kinds: tuple[type[Form], ...], between: str) -> str:
    return between.join(kind.__name__ for kind in kinds)


def _data(data_dir: Path | None) -> str:
    folder = data_directory(data_dir)
    found = entries(folder)
    width = max(len(entry.name) for entry in found)
    lines = [f"{entry.name:{width}}  {entry.kind:9}  {entry.description}" for entry in found]
    if folder is None:
        lines.append("more with --data-dir DIR or the environment variable BENCH_MTL_DATA")
    return "\n".join(lines)


def _first_sentence(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")


def _options(options: dict[str, object]) -> str:
    return ", ".join(name if default is inspect.Parameter.empty else f"{name}={default!r}" for name, default in options.items()) or "none"
