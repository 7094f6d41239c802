"""The experiments by name. A file is loaded when its experiment is used."""

from __future__ import annotations

import importlib

from bench_mtl import InputError
from papers.experiment import Experiment

#: In the order of lists: by paper.
MODULES = {
    "quattoni-fig1": "quattoni.fig1",
    "quattoni-annotation": "quattoni.annotation",
    "quattoni-cost": "quattoni.cost",
    "quattoni-report": "quattoni.report2008",
    "chen-fig2": "chen.fig2",
    "chen-faces": "chen.faces",
    "chen-table4": "chen.table4",
    "chen-table2": "chen.table2",
    "chen-table3": "chen.table3",
    "chen-ratio": "chen.ratio",
    "chen-tasks": "chen.tasks",
    "chen-table5": "chen.table5",
    "chen-table7": "chen.table7",
    "singer-online": "singer.online",
    "singer-sequential": "singer.sequential",
    "boosting-rivals": "boosting.rivals",
}


def experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises
    ------
    InputError : there is none.
    """
    if name not in MODULES:
        raise InputError(f"there is no experiment '{name}': {', '.join(MODULES)}")
    loaded: Experiment = importlib.import_module(f"papers.{MODULES[name]}").EXPERIMENT
    return loaded
