"""What a report is made from, read once from a store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.environment import machines
from bench_mtl.errors import InputError
from bench_mtl.report.tables.frames import integers, kinds, numbers
from bench_mtl.report.view import View
from bench_mtl.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.store import Pattern


@dataclass(frozen=True)
class Results:
    """What a store holds of the runs that are reported."""

    name: str
    """Of the suite."""
    description: str
    text: str
    """The suite file, verbatim."""
    targets: tuple[float, ...]
    """Relative gaps, loose to tight."""
    environments: tuple[dict[str, Any], ...]
    """That the runs were made in."""
    machines: tuple[dict[str, Any], ...]
    """Distinct ones of them, by what their times depend on."""
    missing: int
    """How many cases the suite lists that have no row yet."""
    view: View
    runs: pd.DataFrame
    """With the columns `machine`, the name of each run's (empty where there is one alone), and `kind`, of its solver."""
    samples: pd.DataFrame
    measures: pd.DataFrame
    """What the problems measure of the samples' own points, all finite: run_id, number, name, value."""
    patterns: tuple[Pattern, ...] = ()
    """Of the solutions, as far as runs have them."""


def read_results(folder: Path, view: View | None = None) -> Results:
    """The results in `folder`, or what `view` says of them.

    Where they come from several machines, the labels of the problems tell them apart: what is grouped by label, times above all, is
    then of one machine.

    Raises
    ------
    InputError : there is no results file, or it is damaged, of another schema version, or holds no finished run, or none that is asked for.
    """
    view = View() if view is None else view
    with Store.open(folder) as store, store.snapshot():
        meta, environments = store.meta(), store.environments()
        runs, samples, measures, patterns = store.runs(), store.samples(), store.measures(), store.patterns()
    if runs.empty:
        raise InputError(f"{folder} has no finished run: nothing to report yet")
    missing = max(0, int(meta.get("cases", 0)) - len(runs))
    runs = runs.assign(seed=integers(runs, "seed"), iterations=integers(runs, "iterations"))
    runs["kind"] = runs["solver"].map(kinds(runs, samples))  # of all runs, for some may show it that are not selected
    runs = view.selected(runs)
    if view.select:
        environments = [environment for environment in environments if environment["id"] in set(runs["environment_id"])]
        samples = samples[samples["run_id"].isin(runs["id"])].reset_index(drop=True)
        measures = measures[measures["run_id"].isin(runs["id"])]
        chosen = set(runs["id"])
        patterns = tuple(pattern for pattern in patterns if pattern.run_id in chosen)
    found, places = machines(environments)
    if len(found) > 1:
        names = {environment["id"]: machine_name(place) for environment, place in zip(environments, places, strict=True)}
        runs["machine"] = runs["environment_id"].map(names)
        runs["problem_label"] = runs["problem_label"] + " [" + runs["machine"] + "]"
    else:
        runs["machine"] = ""
    # A resumed run stores some rows late; a problem's rows belong together all the same.
    order = {label: place for place, label in enumerate(runs["problem_label"].unique())}
    runs = runs.sort_values("problem_label", key=lambda labels: labels.map(order), kind="stable", ignore_index=True)
    # Rounding may leave a gap a hair below zero in a file that others wrote.
    samples["relative_gap"] = numbers(samples, "relative_gap").clip(lower=0.0)
    runs["relative_gap"] = numbers(runs, "relative_gap").clip(lower=0.0)
    measures = measures[measures["value"].abs() < float("inf")].reset_index(drop=True)  # in a file that others wrote
    return Results(
        name=meta["suite_name"],
        description=meta["description"],
        text=meta["suite_text"],
        targets=tuple(sorted(set(view.targets or json.loads(meta["targets"])), reverse=True)),
        environments=tuple(environments),
        machines=tuple(found),
        missing=missing,
        view=view,
        runs=runs,
        samples=samples,
        measures=measures,
        patterns=patterns,
    )


def machine_name(place: int) -> str:
    """What a report calls the machine at this place of `Results.machines`."""
    return f"machine {place + 1}"
