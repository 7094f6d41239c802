"""What all runs together prove of each optimum, and whether they contradict one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_mtl.core.types import Certificate
from bench_mtl.results.frames import integers, numbers

if TYPE_CHECKING:
    import pandas as pd

#: A lower bound that exceeds the best objective by more than this share of it is no rounding error ...
ROUNDING = 1e-9
#: ... unless it is below this share of the objective where the iterative solvers started: an optimum may be zero.
ROUNDING_OF_START = 1e-12


def objectives(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run with a certified point: its enclosure of the optimum beside the best one of its instance.

    Columns: problem, instance, seed, repetition, solver, primal (objective of the best feasible point), dual (best proven lower bound),
    relative_gap, best_dual and best_primal (over all runs of the instance), agrees (whether [dual, primal] meets both, up to rounding).
    """
    proven = runs[runs["primal"].notna()].reset_index(drop=True)
    names = {"problem_label": "problem", "instance_key": "instance", "seed": "seed", "repetition": "repetition", "solver_label": "solver"}
    table = proven[list(names)].rename(columns=names)
    table["seed"] = integers(proven, "seed")
    for column in ("primal", "dual", "relative_gap"):
        table[column] = numbers(proven, column)
    of_instance = table.groupby("instance", sort=False)
    table["best_dual"], table["best_primal"] = of_instance["dual"].transform("max"), of_instance["primal"].transform("min")
    allowed = _rounding(proven, samples)
    table["agrees"] = (table["dual"] - table["best_primal"] <= allowed) & (table["best_dual"] - table["primal"] <= allowed)
    return table


def enclosures(objectives: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance: the best bounds over all its runs, and who proved them.

    Columns: problem, instance, seed, dual, dual_solver, primal, primal_solver, relative_gap (missing where they contradict each other),
    agrees, disagreeing (solvers).
    """
    by_instance = objectives.groupby("instance", sort=False)
    low = objectives.loc[by_instance["dual"].idxmax()].reset_index(drop=True)
    high = objectives.loc[by_instance["primal"].idxmin()].reset_index(drop=True)
    table = low[["problem", "instance", "seed", "dual"]].assign(dual_solver=low["solver"], primal=high["primal"])
    table["primal_solver"] = high["solver"]
    missing = objectives[~objectives["agrees"]].drop_duplicates(["instance", "solver"])
    disagreeing = {instance: ", ".join(solvers.map(str)) for instance, solvers in missing.groupby("instance", sort=False)["solver"]}
    names = [disagreeing.get(instance, "") for instance in table["instance"]]
    table["relative_gap"] = [
        float("nan") if wrong else Certificate(primal, dual, 0.0).relative_gap
        for primal, dual, wrong in zip(table["primal"], table["dual"], names, strict=True)
    ]
    return table.assign(agrees=[not wrong for wrong in names], disagreeing=names)


def _rounding(proven: pd.DataFrame, samples: pd.DataFrame) -> pd.Series[float]:
    """Return, for each run, how far the bounds of its instance may cross."""
    iterative = samples[samples["asked_tolerance"].isna()]
    start = numbers(iterative, "primal").abs().groupby(iterative["run_id"]).first()
    scale = proven["id"].map(start).astype(float).groupby(proven["instance_key"]).transform("max").fillna(0.0)
    lowest = numbers(proven, "primal").abs().groupby(proven["instance_key"]).transform("min")
    return (ROUNDING * lowest).clip(lower=ROUNDING_OF_START * scale)
