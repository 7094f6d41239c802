"""Time and passes to each target on every single instance, and their medians by problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bench_mtl.report.columns import KIND, PROBLEM, SOLVER, STATUS, TARGET, column_names, count_of, for_files, seconds_of
from bench_mtl.results.frames import ONE_SHOT, counting, first_samples, integers, numbers, status_counts

if TYPE_CHECKING:
    import pandas as pd

_REACHED = [TARGET, count_of("runs", is_dull_alike=True), count_of("reached")]

BY_INSTANCE = [
    PROBLEM, *for_files("instance"), count_of("seed", is_dull_alike=True), SOLVER, KIND, *_REACHED, seconds_of("seconds"),
    count_of("passes"), count_of("iterations"), seconds_of("limit_seconds", "Limit (s)"), STATUS,
]  # fmt: skip

TIME_TO_GAP = [PROBLEM, SOLVER, KIND, *_REACHED, seconds_of("seconds", interval=("seconds_low", "seconds_high")), count_of("passes")]


def run_times(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """Return what it took each run to reach each target: seconds as in `times_to_gap`, and passes and iterations at that sample.

    Columns: run_id, problem (label), instance (key), seed, solver (label), kind, target, seconds, passes, iterations, limit_seconds,
    longest_attempt_seconds (`bench_mtl.results.frames.longest_attempts`), status, repetition: a row per run and target that it counts for.
    Seconds are missing where the run never reached the target, passes and iterations also where the solver does not say (a generic solver's
    zeros).
    """
    import pandas as pd

    names = {"id": "run_id", "problem_label": "problem", "instance_key": "instance", "solver_label": "solver", "kind": "kind"}
    about = runs[list(names)].rename(columns=names).assign(status=runs["status"].astype(str))
    for name in ("limit_seconds", "longest_attempt_seconds"):
        about[name] = numbers(runs, name)
    for name in ("seed", "repetition"):
        about[name] = integers(runs, name)
    parts = [
        about[counting(runs, target)].join(found.drop(columns="asked"), on="run_id").assign(target=target)
        for target, found in first_samples(runs, samples, targets)
    ]
    table = pd.concat(parts, ignore_index=True)
    for name in ("passes", "iterations"):
        table[name] = table[name].mask(table["kind"].isin(ONE_SHOT) & (table[name] == 0))
    return table


def instance_times(times: pd.DataFrame) -> pd.DataFrame:
    """Return one row per instance, solver and target, from `run_times`.

    Columns: problem (label), instance (key), seed, solver (label), kind, target, runs (repetitions), reached (how many of them reached the
    target), seconds, passes, iterations (medians over those that did; missing where none did, or where the solver does not say),
    limit_seconds, status (counted).
    """
    groups = times.groupby(["problem", "instance", "solver", "target"], sort=False)
    table = groups.agg(
        seed=("seed", "first"), kind=("kind", "first"), runs=("run_id", "size"), reached=("seconds", "count"),
        limit_seconds=("limit_seconds", "max"), status=("status", status_counts),
    )  # fmt: skip
    for name in ("seconds", "passes", "iterations"):
        table[name] = groups[name].median()
    return table.reset_index()[column_names(BY_INSTANCE)]


def time_to_gap(times: pd.DataFrame) -> pd.DataFrame:
    """Return one row per problem, solver and target, from `run_times`: over all instances and repetitions of the problem.

    Columns: problem, solver, kind, target, runs, reached, and of the runs that reached the target seconds (median), seconds_low and
    seconds_high (the fastest and the slowest: a range, not an interval), passes (median). These are missing where the target was reached
    in no run on some instance.
    """
    keys = ["problem", "solver", "target"]
    groups = times.groupby(keys, sort=False)
    has_time = times.groupby([*keys, "instance"], sort=False)["seconds"].count().gt(0).groupby(keys, sort=False).all()
    table = groups["kind"].first().to_frame()
    table["runs"], table["reached"] = groups.size(), groups["seconds"].count()
    seconds = groups["seconds"]
    for name, values in {"seconds": seconds.median(), "seconds_low": seconds.min(), "seconds_high": seconds.max()}.items():
        table[name] = values.where(has_time)
    table["passes"] = groups["passes"].median().where(has_time)
    order = times.drop_duplicates(["problem", "solver"])[["problem", "solver"]]  # a solver's targets stand together
    return order.merge(table.reset_index(), on=["problem", "solver"], how="left", sort=False)[column_names(TIME_TO_GAP)]
