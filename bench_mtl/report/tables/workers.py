"""Time to the last target against the number of workers, where a suite has the same problem on several, and a model of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.types import Status
from bench_mtl.report.tables.grid import interval_ends
from bench_mtl.report.tables.scaling import WORKERS, sweep_name, sweeps_of
from bench_mtl.results.frames import times_to_gap
from bench_mtl.stats import ratio_interval
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

#: Numbers of workers that the model is asked about.
ASKED = (16, 1000)

_NUMBERS = ["fewest", "most", "seconds_fewest", "seconds_most", "speed_up", "speed_up_low", "speed_up_high", "efficiency"]
_NUMBERS += ["shared_seconds", "fixed_seconds", *(f"model_{count}" for count in ASKED)]
_COLUMNS = ["sweep", "target", "solver", "points", *_NUMBERS, "same_numbers"]


def workers(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return a row per solver and problem that was run on several numbers of workers.

    Problems are the same where they differ in the option `workers` of their data alone.

    Returns
    -------
    DataFrame
        sweep, target, solver, points (the numbers of workers on which all runs reached the target; with fewer than two all that follows is
        missing), fewest and most of them, seconds_fewest and seconds_most (medians), speed_up (their ratio, with speed_up_low and
        speed_up_high where both were measured more than once), efficiency (the speed-up by that of the workers), shared_seconds and
        fixed_seconds (least squares of shared / workers + fixed), model_16 and model_1000 (what that says; missing where one of the two
        is below zero), same_numbers (whether all these runs have the same objective and the same lower bound, to the last bit).
    """
    import pandas as pd

    rows = []
    for group, counts in sweeps_of(runs[runs["status"] != Status.SKIPPED], WORKERS):
        if counts.nunique() < 2:
            continue
        seconds = times_to_gap(group, samples, [target]).set_index("run_id")["seconds"]
        counted = group[group["id"].isin(seconds.index)]
        for solver, of_solver in counted.groupby("solver_label", sort=False):
            times: dict[int, list[float]] = {}
            for number, taken in zip(counts[of_solver.index].tolist(), of_solver["id"].map(seconds).tolist(), strict=True):
                times.setdefault(number, []).append(max(taken, RESOLUTION) if taken == taken else taken)
            whole = {number: times[number] for number in sorted(times) if all(taken == taken for taken in times[number])}
            proven = of_solver[counts[of_solver.index].isin(whole)]
            same = len(proven[["primal", "dual"]].drop_duplicates()) == 1 if len(whole) > 1 else None
            row = {"sweep": sweep_name(group, WORKERS), "target": target, "solver": solver, "points": len(whole), "same_numbers": same}
            rows.append(row | (_numbers(whole) if len(whole) > 1 else {}))
    return pd.DataFrame(rows, columns=_COLUMNS).astype(dict.fromkeys(_NUMBERS, "float64"))


def _numbers(times: Mapping[int, Sequence[float]]) -> dict[str, Any]:
    """Return the speed-up and the model of times by the number of workers, which is in order."""
    counts = list(times)
    fewest, most = counts[0], counts[-1]
    medians = np.array([float(np.median(times[count])) for count in counts])
    interval = ratio_interval([times[fewest]], [times[most]])
    low, high = interval_ends(interval)
    shares = 1.0 / np.array(counts, dtype=np.float64)
    around = shares - shares.mean()
    shared = float(around @ (medians - medians.mean()) / (around @ around))
    fixed = float(medians.mean() - shared * shares.mean())
    is_sensible = min(shared, fixed) >= 0.0
    return {
        "fewest": fewest, "most": most, "seconds_fewest": medians[0], "seconds_most": medians[-1], "speed_up": interval.value,
        "speed_up_low": low, "speed_up_high": high, "efficiency": interval.value * fewest / most,
        "shared_seconds": shared, "fixed_seconds": fixed,
        **{f"model_{count}": shared / count + fixed if is_sensible else float("nan") for count in ASKED},
    }  # fmt: skip
