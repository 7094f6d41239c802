"""The experiments by name. A file is loaded when its experiment is used."""

from __future__ import annotations

import importlib

from bench_mtl.core.errors import unknown
from bench_mtl.papers.experiment import Experiment

_MODULES = {
    "quattoni-fig1": "quattoni.fig1",
    "quattoni-annotation": "quattoni.annotation",
    "quattoni-report": "quattoni.report2008",
    "chen-fig2": "chen.fig2",
    "chen-faces": "chen.faces",
    "chen-table2": "chen.table2",
    "chen-table3": "chen.table3",
    "chen-table5": "chen.table5",
    "chen-table7": "chen.table7",
    "singer-online": "singer.online",
    "singer-sequential": "singer.sequential",
}


def experiments() -> tuple[str, ...]:
    """Return names of all experiments."""
    return tuple(_MODULES)


def experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises
    ------
    InputError : there is none.
    """
    if name not in _MODULES:
        raise unknown("experiment", name, _MODULES, more="bench-mtl list papers")
    found: Experiment = importlib.import_module(f"bench_mtl.papers.{_MODULES[name]}").EXPERIMENT
    return found
