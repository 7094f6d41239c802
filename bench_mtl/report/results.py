"""What a report is made from, read once from a store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.errors import InputError
from bench_mtl.report.tables.frames import integers
from bench_mtl.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Results:
    """The whole content of a store."""

    name: str
    """Of the suite."""
    description: str
    text: str
    """The suite file, verbatim."""
    targets: tuple[float, ...]
    """Relative gaps, loose to tight."""
    environments: tuple[dict[str, Any], ...]
    runs: pd.DataFrame
    samples: pd.DataFrame


def read_results(folder: Path) -> Results:
    """The results in `folder`.

    Raises
    ------
    InputError : there is no results file, or it is damaged, of another schema version, or holds no finished run.
    """
    with Store.open(folder) as store, store.snapshot():
        meta, environments = store.meta(), store.environments()
        runs, samples = store.runs(), store.samples()
    if runs.empty:
        raise InputError(f"{folder} has no finished run: nothing to report yet")
    runs = runs.assign(seed=integers(runs, "seed"), iterations=integers(runs, "iterations"))
    # A resumed run stores some rows late; a problem's rows belong together all the same.
    order = {label: place for place, label in enumerate(runs["problem_label"].unique())}
    runs = runs.sort_values("problem_label", key=lambda labels: labels.map(order), kind="stable", ignore_index=True)
    return Results(
        meta["suite_name"],
        meta["description"],
        meta["suite_text"],
        tuple(float(target) for target in json.loads(meta["targets"])),
        tuple(environments),
        runs,
        samples,
    )
