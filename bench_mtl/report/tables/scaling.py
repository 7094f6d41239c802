"""Time to the last target against the size of the data or the number of workers, where a suite sweeps one; what workers were sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.text import one_line
from bench_mtl.core.types import Status
from bench_mtl.report.columns import PROBLEM, SOLVER, TARGET, Column, column_names, count_of, format_decimals, ratio_of, seconds_of, yes_of
from bench_mtl.report.tables.contests import interval_ends
from bench_mtl.report.tables.groups import data_words
from bench_mtl.results.frames import numbers, times_to_gap
from bench_mtl.stats import power_law, ratio_interval
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

#: How many processes compute with the data: no size of the data.
WORKERS = "workers"

#: A sweep has at least this many sizes, and a fit this many points.
FEWEST = 3

#: Numbers of workers that the model is asked about.
ASKED = (16, 1000)

#: What a run counts, see `bench_mtl.core.dask_blocks.Workers`.
COUNTS = ("rounds", "messages", "sent", "received", "again", "shards")

_KIB = 1024.0

EXPONENTS = [
    Column("sweep"), Column("key"), TARGET, SOLVER, count_of("points"),
    Column("exponent", form=format_decimals, interval=("exponent_low", "exponent_high")), count_of("size"),
]  # fmt: skip

MODEL = [
    count_of("fewest", "Fewest workers"), count_of("most", "Most workers"), seconds_of("seconds_fewest", "Seconds, fewest"),
    seconds_of("seconds_most", "Seconds, most"),
    ratio_of("speed_up", "Speed-up", interval=("speed_up_low", "speed_up_high")),
    Column("efficiency", form=format_decimals), seconds_of("shared_seconds", "Shared (s)"),
    seconds_of("fixed_seconds", "Fixed (s)"),
    *(seconds_of(f"model_{number}", f"Model, {number:,} workers (s)") for number in ASKED),
]  # fmt: skip
SPEED_UPS_BY_WORKERS = [Column("sweep"), TARGET, SOLVER, count_of("points"), *MODEL, yes_of("same_numbers")]

SENT = [
    PROBLEM, SOLVER, count_of("workers"), count_of("shards"), count_of("runs", is_dull_alike=True), count_of("rounds"),
    count_of("messages_a_round"), seconds_of("sent_a_round_kib", "Sent a round (KiB)"),
    seconds_of("received_a_round_kib", "Received a round (KiB)"), count_of("again", "Made again"),
    seconds_of("a_pass_kib", "A pass (KiB)"),
]  # fmt: skip

_POINTS = ["sweep", "key", "target", "solver", "size", "runs", "reached", "seconds", "longest_attempt_seconds"]
_EXPONENT = ["exponent", "exponent_low", "exponent_high"]


def scaling_points(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return the data of all scaling figures: a row per sweep, solver and size.

    A sweep is a set of problems that differ in one whole-numbered option of their data alone, of which there are `FEWEST` or more.

    Columns: sweep, key (the option), target, solver, size, runs, reached (how many of the runs reached the target), seconds (their median;
    missing unless all did), longest_attempt_seconds. Skipped runs do not enter, and neither do those that do not count for the target.
    """
    import pandas as pd

    ran = runs[runs["status"] != Status.SKIPPED]
    data = ran["data"].map(json.loads)
    keys = dict.fromkeys(key for table in data for key, value in table.items() if _is_size(value) and key != WORKERS)
    parts = [
        _by_size(rows, samples, target)
        .agg(
            runs=("seconds", "size"),
            reached=("seconds", "count"),
            seconds=("seconds", "median"),
            longest_attempt_seconds=("longest_attempt_seconds", "max"),
        )
        .reset_index()
        .assign(sweep=sweep_name(rows, key), key=key, target=target)
        for key in keys
        for rows in _sweeps(ran, key, FEWEST)
    ]
    if not parts:
        return pd.DataFrame(columns=_POINTS)
    points = pd.concat(parts, ignore_index=True)[_POINTS]
    return points.assign(seconds=points["seconds"].where(points["runs"] == points["reached"]))


def scaling_fits(points: pd.DataFrame) -> pd.DataFrame:
    """Return the exponents p of seconds ~ size^p by sweep and solver: least squares on logarithms, over the sizes that reached the target.

    Columns: sweep, key, target, solver, points, exponent (missing with fewer than `FEWEST` points), exponent_low and exponent_high (see
    `power_law`), size (the largest that was reached).
    """
    import pandas as pd

    keys, rows = ["sweep", "key", "target", "solver"], []
    for sweep, group in points.groupby(keys, sort=False):
        reached = group[group["seconds"].notna() & (group["seconds"] > 0)]
        row = dict(zip(keys, sweep, strict=True)) | {
            "points": len(reached),
            "size": reached["size"].max() if len(reached) else float("nan"),
        }
        if len(reached) >= FEWEST:
            fit = power_law(*(reached[name].to_numpy(dtype="float64") for name in ("size", "seconds")))
            row |= dict(zip(_EXPONENT, (fit.exponent, fit.low, fit.high), strict=True))
        rows.append(row)
    return pd.DataFrame(rows, columns=column_names(EXPONENTS)).astype(dict.fromkeys(_EXPONENT, "float64"))


def _by_size(rows: pd.DataFrame, samples: pd.DataFrame, target: float) -> Any:
    """Return the runs of a sweep that count for a target, grouped by solver and size: seconds, longest_attempt_seconds, primal, dual."""
    seconds = times_to_gap(rows, samples, [target]).set_index("run_id")["seconds"]
    counted = rows[rows["id"].isin(seconds.index)]  # a run for a looser target alone says nothing of this one
    table = counted[["swept", "primal", "dual"]].rename(columns={"swept": "size"}).assign(solver=counted["solver_label"])
    table = table.assign(seconds=counted["id"].map(seconds), longest_attempt_seconds=numbers(counted, "longest_attempt_seconds"))
    return table.groupby(["solver", "size"], sort=False)


def _sweeps(runs: pd.DataFrame, key: str, fewest: int) -> Iterator[pd.DataFrame]:
    """Yield the runs of problems that are alike but for one option of their data, a whole number, with that number as `swept`."""
    data = runs["data"].map(json.loads)
    having = runs[data.map(lambda table: _is_size(table.get(key))).astype(bool)]
    sizes = data[having.index].map(lambda table: table[key])
    others = data[having.index].map(lambda table: json.dumps({k: v for k, v in table.items() if k != key}, sort_keys=True))
    for _, rows in having.assign(swept=sizes).groupby([having["problem"], having["parameters"], others], sort=False):
        if rows["swept"].nunique() >= fewest:
            yield rows


def _is_size(value: Any) -> bool:
    """Return whether a value can be a place on a logarithmic axis of sizes."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def sweep_name(runs: pd.DataFrame, key: str) -> str:
    """Return what the labels of a sweep have in common, and what is held."""
    what, options = data_words(runs["data"].iloc[0], key)
    return one_line(", ".join(filter(None, [f"{runs['problem'].iloc[0]} on {what}", options, f"by {key}"])))


def workers(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return a row per solver and problem that was run on several numbers of workers.

    Problems are the same where they differ in the option `workers` of their data alone.

    Columns: sweep, target, solver, points (the numbers of workers on which all runs reached the target; with fewer than two all that
    follows is missing), fewest and most of them, seconds_fewest and seconds_most (medians), speed_up (their ratio, with speed_up_low and
    speed_up_high where both were measured more than once), efficiency (the speed-up by that of the workers), shared_seconds and
    fixed_seconds (least squares of shared / workers + fixed), model_16 and model_1000 (what that says; missing where one of the two is
    below zero), same_numbers (whether all these runs have the same objective and the same lower bound, to the last bit).
    """
    import pandas as pd

    table = []
    for rows in _sweeps(runs[runs["status"] != Status.SKIPPED], WORKERS, 2):
        solved: dict[str, dict[int, pd.DataFrame]] = {}
        for (solver, number), of_number in _by_size(rows, samples, target):
            solved.setdefault(solver, {})
            if of_number["seconds"].notna().all():
                solved[solver][number] = of_number
        for solver, parts in solved.items():
            row = {"sweep": sweep_name(rows, WORKERS), "target": target, "solver": solver, "points": len(parts), "same_numbers": None}
            if len(parts) > 1:
                row["same_numbers"] = len(pd.concat(parts.values())[["primal", "dual"]].drop_duplicates()) == 1
                row |= _model({number: parts[number]["seconds"].clip(lower=RESOLUTION).tolist() for number in sorted(parts)})
            table.append(row)
    return pd.DataFrame(table, columns=column_names(SPEED_UPS_BY_WORKERS)).astype(dict.fromkeys(column_names(MODEL), "float64"))


def _model(times: Mapping[int, Sequence[float]]) -> dict[str, float]:
    """Return the speed-up and the model of times by the number of workers, which is in order."""
    fewest, *_, most = times
    medians = np.array([float(np.median(each)) for each in times.values()])
    interval = ratio_interval([times[fewest]], [times[most]])
    shares = 1.0 / np.array([*times], dtype=np.float64)
    around = shares - shares.mean()
    shared = float(around @ (medians - medians.mean()) / (around @ around))
    fixed = float(medians.mean() - shared * shares.mean())
    says = [shared / count + fixed if min(shared, fixed) >= 0.0 else float("nan") for count in ASKED]
    speed_up = (interval.value, *interval_ends(interval), interval.value * fewest / most)
    return dict(zip(column_names(MODEL), (fewest, most, medians[0], medians[-1], *speed_up, shared, fixed, *says), strict=True))


def communication(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per problem, solver and number of workers, of the runs that have counted what they sent.

    Columns: problem, solver, workers (missing where a scheduler has them), shards, runs, rounds (median), messages_a_round,
    sent_a_round_kib and received_a_round_kib (medians of a run's means), again (sum), a_pass_kib (median of what was sent and received by
    passes over the data; missing where no run says how many those were).
    """
    import pandas as pd

    counts = runs["info"].map(_counts).dropna()
    keys = ["problem", "solver", "workers", "shards"]
    if counts.empty:
        return pd.DataFrame(columns=column_names(SENT))
    ran, sums = runs.loc[counts.index], pd.DataFrame([*counts], index=counts.index).astype("float64")
    table = sums[["shards", "rounds", "again"]].assign(problem=ran["problem_label"], solver=ran["solver_label"])
    table["workers"] = [json.loads(text).get(WORKERS, float("nan")) for text in ran["data"]]
    table["messages_a_round"] = sums["messages"] / sums["rounds"]
    for way in ("sent", "received"):
        table[f"{way}_a_round_kib"] = sums[way] / sums["rounds"] / _KIB
    passes = numbers(ran, "passes")
    table["a_pass_kib"] = (sums["sent"] + sums["received"]) / passes.where(passes > 0) / _KIB
    groups = table.groupby(keys, sort=False, dropna=False)
    return groups.median().assign(runs=groups.size(), again=groups["again"].sum()).reset_index()[column_names(SENT)]


def _counts(info: str) -> dict[str, int] | None:
    """Return what a run has counted; None where it has not, or has asked for nothing."""
    notes: dict[str, Any] = {"again": 0, **json.loads(info)}  # Dask repeats requests by itself; earlier runs have counted theirs
    counts = {name: notes[name] for name in COUNTS if isinstance(notes.get(name), int)}
    return counts if len(counts) == len(COUNTS) and counts["rounds"] > 0 else None
