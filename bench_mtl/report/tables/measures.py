"""What problems measure of points, such as non-zeros and held-out errors: along the runs, and at their best and their last points."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench_mtl.report.columns import KIND, PROBLEM, SOLVER, Column, column_names, count_of, format_measure, seconds_of
from bench_mtl.results.frames import ONE_SHOT, numbers

if TYPE_CHECKING:
    import pandas as pd

#: What is drawn along runs beside what problems measure: the objective, of the best point so far of an iterative solver.
OBJECTIVE = "objective"

NONZEROS = "non-zeros"

#: Measures of these names are one side of sparsity against accuracy, the first that there is.
SIZES = ("features used", NONZEROS)

#: Of trajectories and their runs, beside measures.
_OTHER_COLUMNS = (
    "problem", "solver", "run_id", "seed", "repetition", "status", "limit_seconds", "asked_tolerance", "number", "iteration", "seconds",
    "passes", "examples", OBJECTIVE,
)  # fmt: skip

COLUMNS = [
    PROBLEM, SOLVER, KIND, Column("measure"), count_of("runs", is_dull_alike=True),
    Column("value", "At the best point", format_measure, interval=("value_low", "value_high")), seconds_of("seconds"), count_of("passes"),
    Column("last", "At the last point", format_measure, interval=("last_low", "last_high")),
]  # fmt: skip


def measures_table(runs: pd.DataFrame, samples: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return one row per problem, solver and measure, over all seeds and repetitions.

    Columns: problem, solver, kind, measure, runs (how many have it), value (median, over them, at each run's point of the lowest objective:
    its solution), value_low and value_high (the least and the greatest; missing where there is one run), seconds and passes (medians, until
    that point; passes are missing where a solver does not say), last, last_low, last_high (the same at the last sample).
    """
    import pandas as pd

    if measures.empty:
        return pd.DataFrame(columns=column_names(COLUMNS))
    primal = numbers(samples, "primal")
    best = samples.loc[primal.groupby(samples["run_id"]).idxmin(), ["run_id", "number", "seconds", "passes"]]
    last = samples.groupby("run_id")["number"].max().rename("last").reset_index()
    names = {"id": "run_id", "problem_label": "problem", "solver_label": "solver", "kind": "kind"}
    about = runs[list(names)].rename(columns=names)
    at_best = best.merge(measures, on=["run_id", "number"], sort=False).drop(columns="number")
    at_last = last.merge(measures.rename(columns={"number": "last", "value": "at_last"}), on=["run_id", "last"], sort=False)
    both = at_best.merge(at_last.drop(columns="last"), on=["run_id", "name"], how="outer", sort=False)
    table = about.merge(both.assign(name=both["name"].astype(str)), on="run_id", sort=False)
    table["passes"] = table["passes"].mask(table["kind"].isin(ONE_SHOT) & (table["passes"] == 0))
    groups = table.groupby(["problem", "solver", "name"], sort=False)
    found = groups["kind"].first().to_frame()
    found["runs"] = groups.size()
    several = found["runs"] > 1
    for name, column in {"value": "value", "last": "at_last"}.items():
        found[name] = groups[column].median()
        found[f"{name}_low"], found[f"{name}_high"] = groups[column].min().where(several), groups[column].max().where(several)
    for name in ("seconds", "passes"):
        found[name] = groups[name].median()
    return found.reset_index().rename(columns={"name": "measure"})[column_names(COLUMNS)]


def trajectories(runs: pd.DataFrame, samples: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return the objective and what problems measure along the runs, a row per sample.

    Columns: run_id, examples (passes times the n of the problem's dimensions; missing where that is not known), asked_tolerance (missing
    for an iterative solver), number, iteration, seconds, passes, objective (of the best point so far of an iterative solver), and a column
    for each measure, missing where there is none. In the order of the runs, and of their samples.
    """
    examples = [float(json.loads(text).get("n") or "nan") for text in runs["dimensions"]]
    about = runs[["id"]].rename(columns={"id": "run_id"}).assign(examples=examples)
    points = samples[["run_id", "asked_tolerance", "number", "iteration", "seconds", "passes"]].copy()
    for column in ("asked_tolerance", "seconds", "passes"):
        points[column] = numbers(points, column)
    points[OBJECTIVE] = numbers(samples, "primal")
    for name, of_name in measures.groupby("name", sort=False, observed=True):
        values = of_name[["run_id", "number", "value"]].rename(columns={"value": quantity_of(str(name))})
        points = points.merge(values, on=["run_id", "number"], how="left", sort=False)
    table = about.merge(points, on="run_id", how="inner", sort=False)
    table["examples"] = table["examples"] * table["passes"]
    return table


def quantity_of(name: str) -> str:
    """Return the column of `trajectories` that holds a measure: its name, unless another column is called so."""
    return f"{name} (measured)" if name in _OTHER_COLUMNS else name


def quantities(points: pd.DataFrame, measures: pd.DataFrame) -> list[str]:
    """Return what there is to draw of rows of `trajectories`: the objective, then what is measured of them, by name."""
    names = [quantity_of(str(name)) for name in measures["name"].unique()]
    return [OBJECTIVE, *(name for name in sorted(names) if points[name].notna().any())]
