"""What a report is made from, read once from a store."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import one_line
from bench_mtl.core.types import Place
from bench_mtl.engine.environment import machines
from bench_mtl.results import Store
from bench_mtl.results.frames import counting, integers, kinds, longest_attempts, numbers, with_ranges
from bench_mtl.results.schema import TRACED
from bench_mtl.results.view import View

if TYPE_CHECKING:
    import pandas as pd

#: Columns of `Results.runs` that are made when it is read.
OF_READING = ("kind", "position", "longest_attempt_seconds", "counts_from", "counts_below")

#: Characters of a label of a problem or solver that a report shows.
LONGEST_LABEL = 400


@dataclass(frozen=True)
class Results:
    """What a store holds of the runs that are reported.

    `name`, `description` and `text` are the suite's, `targets` are relative gaps, loose to tight, `machines` are the environments that
    differ in what times depend on, and `missing` cases have no row yet. `runs` are those whose times count, and `traced` those for curves;
    both have the columns `machine`, the name of each run's (empty where there is one alone), `kind`, of its solver, `position`, their place
    in the order of the suite, `longest_attempt_seconds` (`frames.longest_attempts`), and the targets that it counts for
    (`frames.with_ranges`). `measures` are of the samples' own points, all finite: run_id, number, name, value. `places` are the lines of
    code, by the id of the run, where runs of status `error` raised, the last one last.
    """

    name: str
    description: str
    text: str
    targets: tuple[float, ...]
    environments: tuple[dict[str, Any], ...]
    machines: tuple[dict[str, Any], ...]
    missing: int
    view: View
    runs: pd.DataFrame
    traced: pd.DataFrame
    samples: pd.DataFrame
    measures: pd.DataFrame
    places: Mapping[int, tuple[Place, ...]] = field(default_factory=dict)

    @property
    def by_machine(self) -> dict[str, Results]:
        """The results of each machine, by its name: no time of one is set against that of another."""
        return {
            str(machine): replace(self, runs=runs.reset_index(drop=True), traced=self.traced[self.traced["machine"] == machine])
            for machine, runs in self.runs.groupby("machine", sort=False)
        }

    @property
    def in_full(self) -> Results:
        """The same with what curves are drawn of: the runs to the tightest target, and in the place of those of a solver that has one, the
        run for its curve."""
        import pandas as pd

        names = ["problem_label", "solver_label", "instance_key"]
        has_curve = self.runs[names].apply(tuple, axis=1).isin(set(self.traced[names].itertuples(index=False, name=None)))
        rest = self.runs[counting(self.runs, self.targets[-1]) & ~has_curve]
        runs = pd.concat([rest, self.traced]).sort_values("position", kind="stable")
        samples = self.samples[self.samples["run_id"].isin(runs["id"])].reset_index(drop=True)
        return replace(self, runs=runs.reset_index(drop=True), samples=samples)


def read_results(folder: Path, view: View | None = None) -> Results:
    """Return the results in `folder`, or what `view` says of them.

    Raises InputError where there is no results file, or it is damaged, of another schema version, or holds no finished run, or none that is
    asked for.
    """
    view = View() if view is None else view
    with Store.open(folder) as store, store.snapshot():
        meta, environments, places = store.meta(), store.environments(), store.places()
        runs, samples, measures = store.runs(), store.samples(), store.measures()
        runs["longest_attempt_seconds"] = runs["id"].map(longest_attempts(runs, samples, store.rungs()))
    if runs.empty:
        raise InputError(f"{folder} has no finished run: nothing to report yet")
    missing = max(0, int(meta.get("cases", 0)) - len(runs))
    runs = runs.assign(seed=integers(runs, "seed"), iterations=integers(runs, "iterations"))
    for column in ("problem", "problem_label", "solver", "solver_label"):
        runs[column] = _shortened(runs[column])
    runs["kind"] = runs["solver"].map(kinds(runs, samples))  # of all runs, for some may show it that are not selected
    runs = view.selected(with_ranges(runs))
    if view.select:
        chosen, used = set(runs["id"]), set(runs["environment_id"])
        environments = [environment for environment in environments if environment["id"] in used]
        samples = samples[samples["run_id"].isin(chosen)].reset_index(drop=True)
        measures = measures[measures["run_id"].isin(chosen)]
    distinct, places_of = machines(environments)
    names = {each["id"]: machine_name(at) if len(distinct) > 1 else "" for each, at in zip(environments, places_of, strict=True)}
    runs = runs.assign(machine=runs["environment_id"].map(names))
    # A resumed run stores some rows late; a problem's rows belong together all the same.
    order = {label: place for place, label in enumerate(runs["problem_label"].unique())}
    runs = runs.sort_values("problem_label", key=lambda labels: labels.map(order), kind="stable", ignore_index=True)
    runs["position"] = runs.index
    # A run without a point of its own has the bounds of the zero point, which no solver has answered.
    runs.loc[runs["infeasibility"].isna(), ["primal", "dual", "relative_gap"]] = math.nan
    # Files that others wrote may hold infinite numbers, which prove nothing, and gaps that rounding has left a hair below zero.
    samples = _finite_rows(samples, ["seconds", "passes", "primal", "dual", "relative_gap", "infeasibility"])
    runs = runs.replace([math.inf, -math.inf], math.nan)
    for frame in (runs, samples):
        frame["relative_gap"] = numbers(frame, "relative_gap").clip(lower=0.0)
    targets = tuple(sorted(set(view.targets or json.loads(meta["targets"])), reverse=True))
    is_traced = runs["clock"] == TRACED
    if is_traced.all():
        raise InputError(f"{folder} has no timed run, only runs for curves: nothing to report yet")
    return Results(
        name=meta["suite_name"], description=meta["description"], text=meta["suite_text"], targets=targets,
        environments=tuple(environments), machines=tuple(distinct), missing=missing, view=view,
        runs=runs[~is_traced].reset_index(drop=True), traced=runs[is_traced].reset_index(drop=True), samples=samples,
        measures=_finite_rows(measures, ["value"]), places=places,
    )  # fmt: skip


def _shortened(labels: pd.Series[str]) -> pd.Series[str]:
    """Return the labels as they can be seen, on one line; those that are not that, or too long, numbered, so that different ones stay
    different."""
    shown = {label: one_line(label, LONGEST_LABEL) for label in labels.unique()}
    names = {label: f"{name} ({place})" for place, (label, name) in enumerate(((a, b) for a, b in shown.items() if a != b), start=1)}
    return labels.map(lambda label: names.get(label, label)) if names else labels


def _finite_rows(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the rows of `frame` whose numbers in `columns` are all finite."""
    finite = (frame[columns].abs() < math.inf).all(axis=1)
    return frame if finite.all() else frame[finite].reset_index(drop=True)


def machine_name(place: int) -> str:
    """Return what a report calls the machine at this place of `Results.machines`."""
    return f"machine {place + 1}"
