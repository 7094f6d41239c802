"""What all runs together prove of each optimum, and whether they contradict one another."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import TYPE_CHECKING

from bench_mtl.core.types import Certificate
from bench_mtl.results.frames import integers, numbers

if TYPE_CHECKING:
    import pandas as pd

#: How the sentences of reports begin on bounds that cannot both be true.
CONTRADICTION = "CONTRADICTION"

#: A lower bound that exceeds the best objective by more than this share of it is no rounding error ...
ROUNDING = 1e-9
#: ... unless it is below this share of the objective where the iterative solvers started: an optimum may be zero.
ROUNDING_OF_START = 1e-12


def objectives(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run with a certified point: its enclosure of the optimum beside the best one of its instance.

    Columns: problem, machine (where there are several), instance, seed, repetition, solver, primal (objective of the best feasible point),
    dual (best proven lower bound), relative_gap, best_dual and best_primal (over all runs of the instance), agrees (whether [dual, primal]
    meets both, up to rounding).
    """
    proven = runs[runs["primal"].notna()].reset_index(drop=True)
    names = {"problem_label": "problem", "instance_key": "instance", "seed": "seed", "repetition": "repetition", "solver_label": "solver"}
    shown = {column: numbers(proven, column) for column in ("primal", "dual", "relative_gap")}
    table = proven[list(names)].rename(columns=names).assign(seed=integers(proven, "seed"), **shown)
    if "machine" in proven and (proven["machine"] != "").any():
        table.insert(1, "machine", proven["machine"])
    best = bounds(proven, samples, "instance_key").loc[table["instance"]].reset_index(drop=True)
    table["best_dual"], table["best_primal"] = best["dual"], best["primal"]
    allowed = (ROUNDING * best["lowest"]).clip(lower=ROUNDING_OF_START * best["start"])
    # A bound that is missing contradicts nothing.
    table["agrees"] = ~((table["dual"] - table["best_primal"] > allowed) | (table["best_dual"] - table["primal"] > allowed))
    return table


def bounds(runs: pd.DataFrame, samples: pd.DataFrame, instance: str) -> pd.DataFrame:
    """Return, by a column that tells instances apart, `dual` and `primal`, the best bounds of all runs, and what rounding is measured by.

    That is `lowest`, the least size of an objective, and `start`, the largest one of those that iterative solvers started from.
    """
    iterative = samples[samples["asked_tolerance"].isna()]
    starts = numbers(iterative, "primal").abs().groupby(iterative["run_id"]).first()
    primal, dual = numbers(runs, "primal"), numbers(runs, "dual")
    table = runs[[instance]].assign(dual=dual, primal=primal, lowest=primal.abs(), start=runs["id"].map(starts).astype(float))
    of_instance = table[primal.notna()].groupby(instance, sort=False)
    best = of_instance.agg({"dual": "max", "primal": "min", "lowest": "min", "start": "max"})
    return best.fillna({"start": 0.0})


def enclosures(objectives: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance: the best bounds over all its runs, and who proved them.

    Columns: problem, instance, seed, dual, dual_solver, primal, primal_solver, relative_gap (missing where they contradict each other, or
    nothing is proven from below), agrees, disagreeing (solvers).
    """
    by_instance = objectives.groupby("instance", sort=False)
    low = objectives.loc[objectives["dual"].fillna(-inf).groupby(objectives["instance"], sort=False).idxmax()].reset_index(drop=True)
    high = objectives.loc[by_instance["primal"].idxmin()].reset_index(drop=True)
    by = low["solver"].where(low["dual"].notna())
    table = low[["problem", "instance", "seed", "dual"]].assign(dual_solver=by, primal=high["primal"])
    table["primal_solver"] = high["solver"]
    missing = objectives[~objectives["agrees"]].drop_duplicates(["instance", "solver"])
    disagreeing = {instance: ", ".join(solvers.map(str)) for instance, solvers in missing.groupby("instance", sort=False)["solver"]}
    names = [disagreeing.get(instance, "") for instance in table["instance"]]
    table["relative_gap"] = [
        nan if wrong or isnan(dual) else Certificate(primal, dual, 0.0).relative_gap
        for primal, dual, wrong in zip(table["primal"], table["dual"], names, strict=True)
    ]
    return table.assign(agrees=[not wrong for wrong in names], disagreeing=names)
