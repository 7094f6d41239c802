"""The experiments by name. A file is loaded when its experiment is used."""

from __future__ import annotations

import pkgutil

from bench_mtl import InputError
from papers.experiment import Experiment

#: File and name, in the order of lists: by paper.
PLACES = {
    "quattoni-fig1": "quattoni.fig1:EXPERIMENT",
    "quattoni-annotation": "quattoni.annotation:EXPERIMENT",
    "quattoni-cost": "quattoni.cost:EXPERIMENT",
    "quattoni-report": "quattoni.report2008:EXPERIMENT",
    "chen-fig2": "chen.fig2:EXPERIMENT",
    "chen-faces": "chen.faces:EXPERIMENT",
    "chen-table4": "chen.table4:EXPERIMENT",
    "chen-table2": "chen.tables:TABLE_2",
    "chen-table3": "chen.tables:TABLE_3",
    "chen-ratio": "chen.tables:RATIO",
    "chen-tasks": "chen.tables:TASKS",
    "chen-table5": "chen.tables:TABLE_5",
    "chen-table7": "chen.tables:TABLE_7",
    "singer-online": "singer.online:EXPERIMENT",
    "singer-sequential": "singer.sequential:EXPERIMENT",
    "boosting-rivals": "boosting.rivals:EXPERIMENT",
}


def experiment(name: str) -> Experiment:
    """Return the experiment of that name. Raises InputError: there is none."""
    if name not in PLACES:
        raise InputError(f"there is no experiment '{name}': {', '.join(PLACES)}")
    loaded: Experiment = pkgutil.resolve_name(f"papers.{PLACES[name]}")
    return loaded
