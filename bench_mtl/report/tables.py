"""Tables of a report: pure functions from the runs and samples of a store to DataFrames of plain numbers.

A group is one solver on one labelled problem: its seeds and repetitions. `bench_mtl.report.render` formats the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bench_mtl.report.render import format_target
from bench_mtl.types import Status

if TYPE_CHECKING:
    import pandas as pd

SPECIALISED, GENERIC, UNKNOWN = "specialised", "generic", "unknown"

_TIMES = ("build_seconds", "compile_seconds", "setup_seconds", "solve_seconds", "certify_seconds")


def summary(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """One row per problem and solver: how its runs ended, and what is proven of them.

    Returns
    -------
    DataFrame
        problem, solver, kind, runs, status (counted), relative_gap and infeasibility (the worst of the group), proven
        (how many of the runs have any certified point), iterations, passes (medians; missing where unknown), and for
        every target ``seconds_to_T`` (median time to the gap T; missing unless all runs reached it) and ``reached_T``.
    """
    import pandas as pd

    targets = tuple(targets)
    kind = kinds(runs, samples)
    reached = times_to_gap(runs, samples, targets)
    rows = []
    for (problem, solver), group in runs.groupby(["problem_label", "solver_label"], sort=False):
        proven = numbers(group, "relative_gap").dropna()
        one_shot = kind[group["solver"].iloc[0]] == GENERIC
        row: dict[str, Any] = {
            "problem": problem,
            "solver": solver,
            "kind": kind[group["solver"].iloc[0]],
            "runs": len(group),
            "status": status_counts(group["status"]),
            "relative_gap": proven.max(),
            "proven": len(proven),
            "infeasibility": numbers(group, "infeasibility").max(),
            "iterations": _median(group, "iterations", zero_is_unknown=one_shot),
            "passes": _median(group, "passes", zero_is_unknown=one_shot),
        }
        of_group = reached[reached["run_id"].isin(group["id"])]
        for target in targets:
            seconds = of_group.loc[of_group["target"] == target, "seconds"]
            row[f"seconds_to_{format_target(target)}"] = seconds.median() if seconds.notna().all() else float("nan")
            row[f"reached_{format_target(target)}"] = int(seconds.notna().sum())
        rows.append(row)
    return pd.DataFrame(rows)


def times_to_gap(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """Seconds of solving until each run first has a proven relative gap of at most each target; missing if it never has.

    For an iterative solver that is its first such sample. For a generic one, whose seconds count from zero at every
    tolerance, it is the cheapest tolerance that proves the target. Both are the least seconds over such samples.

    Returns
    -------
    DataFrame
        run_id, problem_label, solver_label, target, seconds: a row per run and target.
    """
    import pandas as pd

    verified = runs["status"] == Status.VERIFIED
    gap, seconds = numbers(samples, "relative_gap"), numbers(samples, "seconds")
    last = seconds.groupby(samples["run_id"]).last()
    parts = []
    for target in targets:
        first = seconds[gap <= target].groupby(samples["run_id"]).min()
        part = runs[["id", "problem_label", "solver_label"]].rename(columns={"id": "run_id"})
        part["target"] = target
        # Where the optimum is almost zero `Tolerance.met_by` verifies a run although its relative gap is large.
        accepted = last.where(last.index.isin(runs.loc[verified & (numbers(runs, "target") <= target), "id"]))
        part["seconds"] = part["run_id"].map(first).astype(float).fillna(part["run_id"].map(accepted).astype(float))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def times(runs: pd.DataFrame) -> pd.DataFrame:
    """Median seconds by what they were spent on, and the largest peak memory, per problem and solver.

    Skipped runs have no times and do not enter; a solver that was skipped throughout has a row without numbers. A run that
    was killed has lost all times but `solve`, and does not enter the medians of the others.
    """
    import pandas as pd

    rows = []
    for (problem, solver), group in runs.groupby(["problem_label", "solver_label"], sort=False):
        spent = pd.DataFrame({name: numbers(group, name) for name in _TIMES})
        lost = (spent["build_seconds"] == 0) & (spent["certify_seconds"] == 0)
        spent = spent.mask(lost & (spent["solve_seconds"] == 0))
        spent.loc[lost, [name for name in _TIMES if name != "solve_seconds"]] = float("nan")
        ran = int((group["status"] != Status.SKIPPED).sum())
        memory = numbers(group[group["status"] != Status.SKIPPED], "peak_memory_mib").max()
        rows.append({"problem": problem, "solver": solver, "runs": ran, **spent.median().to_dict(), "peak_memory_mib": memory})
    return pd.DataFrame(rows)


def tolerances(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """What each tolerance asked of a generic solver gave, per problem and solver.

    Returns
    -------
    DataFrame
        problem, solver, asked, answers (how many runs gave a point), seconds and iterations (medians), relative_gap and
        infeasibility (the worst).
    """
    import pandas as pd

    asked = samples[samples["asked_tolerance"].notna()]
    about = runs[["id", "problem_label", "solver_label"]]
    table = about.merge(asked, left_on="id", right_on="run_id", how="inner", sort=False)
    rows = []
    for (problem, solver, tolerance), group in table.groupby(["problem_label", "solver_label", "asked_tolerance"], sort=False):
        rows.append(
            {
                "problem": problem,
                "solver": solver,
                "asked": tolerance,
                "answers": len(group),
                "seconds": numbers(group, "seconds").median(),
                "iterations": _median(group, "iteration", zero_is_unknown=True),
                "relative_gap": numbers(group, "relative_gap").max(),
                "infeasibility": numbers(group, "infeasibility").max(),
            }
        )
    columns = ["problem", "solver", "asked", "answers", "seconds", "iterations", "relative_gap", "infeasibility"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def not_verified(runs: pd.DataFrame) -> pd.DataFrame:
    """Every run that did not end `verified`, with its reason in full: problem, seed, repetition, solver, status, reason."""
    columns = {"problem_label": "problem", "seed": "seed", "repetition": "repetition", "solver_label": "solver"}
    failed = runs.loc[runs["status"] != Status.VERIFIED, [*columns, "status", "reason"]].rename(columns=columns)
    return failed.assign(seed=integers(failed, "seed")).reset_index(drop=True)


def kinds(runs: pd.DataFrame, samples: pd.DataFrame) -> dict[str, str]:
    """Per solver name whether it is generic, specialised or (it never got anywhere) unknown.

    Generic solvers are the one-shot ones: they are asked for a tolerance, and have a model to build.
    """
    kind = {}
    asked = set(samples.loc[samples["asked_tolerance"].notna(), "run_id"])
    sampled = set(samples["run_id"])
    for solver, group in runs.groupby("solver", sort=False):
        if asked.intersection(group["id"]) or (numbers(group, "build_seconds") > 0).any():
            kind[str(solver)] = GENERIC
        else:
            kind[str(solver)] = SPECIALISED if sampled.intersection(group["id"]) else UNKNOWN
    return kind


def status_counts(statuses: Iterable[str]) -> str:
    """``"verified"`` for one run, ``"verified 2/3, timeout 1/3"`` for several, in the order of `Status`."""
    given = list(statuses)
    if len(given) == 1:
        return given[0]
    return ", ".join(f"{status} {given.count(status)}/{len(given)}" for status in Status if status in given)


def numbers(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """A column as floats; SQL's null is missing. (A column of nulls alone comes out of SQLite without a type.)"""
    import pandas as pd

    return pd.to_numeric(frame[column]).astype("float64")


def integers(frame: pd.DataFrame, column: str) -> pd.Series[int]:
    """A column as whole numbers that may be missing."""
    return numbers(frame, column).astype("Int64")


def _median(group: pd.DataFrame, column: str, *, zero_is_unknown: bool) -> float:
    values = numbers(group, column)
    return float((values.mask(values == 0) if zero_is_unknown else values).median())
