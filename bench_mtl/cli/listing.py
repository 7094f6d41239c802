"""The texts of `bench-mtl list`."""

from __future__ import annotations

from pathlib import Path

from bench_mtl.data import catalogue
from bench_mtl.engine.description import Entry, entries
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite_file import read_suite, shipped_suites
from bench_mtl.papers import experiment, experiments


def render(what: str, *, data_dir: Path | None = None, plugins: Path | None = None) -> str:
    """Return the list of problems, solvers, suites, papers' experiments or data, a paragraph or a line each."""
    if what == "suites":
        return "\n".join(f"{name:18} {read_suite(name).description}" for name in shipped_suites())
    if what == "papers":
        return "\n".join(f"{name:18} {experiment(name).source}" for name in experiments())
    if what == "data":
        return _data(data_dir)
    if plugins is None:
        return "\n".join(_entry(what, entry) for entry in entries(load_registry(), what))
    from bench_mtl.runner.planning import PluginPlanner

    with PluginPlanner(plugins) as planner:
        return "\n".join(_entry(what, entry) for entry in planner.entries(what))


def _entry(what: str, entry: Entry) -> str:
    offers, forms, noun = ("offers", "forms", "parameters") if what == "problems" else ("needs", "takes", "options")
    lines = [f"  {title}: {words}" for title, words in ((offers, entry.offers), (forms, entry.forms)) if words]
    return "\n".join([entry.name, f"  {entry.sentence}", *lines, f"  {noun}: {entry.options}"])


def _data(data_dir: Path | None) -> str:
    folder = catalogue.data_directory(data_dir)
    found = catalogue.entries(folder)
    width = max(len(entry.name) for entry in found)
    lines = [f"{entry.name:{width}}  {entry.kind:9}  {entry.description}" for entry in found]
    if folder is None:
        lines.append("more with --data-dir DIR or the environment variable BENCH_MTL_DATA")
    return "\n".join(lines)
