"""Time to the last target against the size of the data, where a suite sweeps one: points and fits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import one_line
from bench_mtl.core.types import Status
from bench_mtl.results.frames import numbers, times_to_gap
from bench_mtl.stats import power_law

if TYPE_CHECKING:
    import pandas as pd

#: How many processes compute with the data, see `bench_mtl.report.tables.workers`: no size of the data.
WORKERS = "workers"

#: A sweep has at least this many sizes, and a fit this many points.
FEWEST = 3

_COLUMNS = ["sweep", "key", "target", "solver", "size", "runs", "reached", "seconds", "limit_seconds"]
_FITTED = ["sweep", "key", "target", "solver", "points", "exponent", "exponent_low", "exponent_high", "size"]


def scaling_points(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return the data of all scaling figures: a row per sweep, solver and size.

    A sweep is a set of problems that differ in one whole-numbered option of their data alone, of which there are `FEWEST` or more.

    Returns
    -------
    DataFrame
        sweep, key (the option), target, solver, size, runs, reached (how many of the runs reached the target), seconds (their
        median; missing unless all did), limit_seconds. Skipped runs do not enter, and neither do those that do not count for the target.
    """
    import pandas as pd

    ran = runs[runs["status"] != Status.SKIPPED]
    parts = []
    for key, rows, sizes in _sweeps(ran):
        seconds = times_to_gap(rows, samples, [target]).set_index("run_id")["seconds"]
        counted = rows[rows["id"].isin(seconds.index)]  # a run for a looser target alone says nothing of this one
        table = pd.DataFrame({"solver": counted["solver_label"], "size": sizes[counted.index], "seconds": counted["id"].map(seconds)})
        table["limit_seconds"] = numbers(counted, "limit_seconds")
        groups = table.groupby(["solver", "size"], sort=False)
        points = groups["seconds"].agg(["size", "count", "median"]).set_axis(["runs", "reached", "seconds"], axis=1)
        points["seconds"] = points["seconds"].where(points["runs"] == points["reached"])
        points["limit_seconds"] = groups["limit_seconds"].max()
        name = sweep_name(rows, key)
        parts.append(points.reset_index().assign(sweep=name, key=key, target=target))
    return pd.concat(parts, ignore_index=True)[_COLUMNS] if parts else pd.DataFrame(columns=_COLUMNS)


def scaling_fits(points: pd.DataFrame) -> pd.DataFrame:
    """Return the exponents p of seconds ~ size^p by sweep and solver: least squares on logarithms, over the sizes that reached the target.

    Returns
    -------
    DataFrame
        sweep, key, target, solver, points, exponent (missing with fewer than `FEWEST` points), exponent_low and exponent_high (see
        `power_law`), size (the largest that was reached).
    """
    import pandas as pd

    rows = []
    for (sweep, key, target, solver), group in points.groupby(["sweep", "key", "target", "solver"], sort=False):
        known = group[group["seconds"].notna() & (group["seconds"] > 0)]
        fit = power_law(*(known[name].to_numpy(dtype="float64") for name in ("size", "seconds"))) if len(known) >= FEWEST else None
        fitted = {"exponent": fit.exponent, "exponent_low": fit.low, "exponent_high": fit.high} if fit else {}
        largest = known["size"].max() if len(known) else float("nan")
        row = {"sweep": sweep, "key": key, "target": target, "solver": solver, "points": len(known)}
        rows.append({**row, **fitted, "size": largest})
    return pd.DataFrame(rows, columns=_FITTED).astype(dict.fromkeys(_FITTED[5:8], "float64"))


def _sweeps(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.Series[int]]]:
    """Yield the option, the runs and their sizes of every sweep, in the order of the runs."""
    data = runs["data"].map(json.loads)
    keys = dict.fromkeys(key for table in data for key, value in table.items() if _is_size(value) and key != WORKERS)
    for key in keys:
        for group, sizes in sweeps_of(runs, key):
            if sizes.nunique() >= FEWEST:
                yield key, group, sizes


def sweeps_of(runs: pd.DataFrame, key: str) -> Iterator[tuple[pd.DataFrame, pd.Series[int]]]:
    """Yield the runs of problems that are alike but for one option of their data, a whole number, and that number of each."""
    data = runs["data"].map(json.loads)
    having = runs[data.map(lambda table: _is_size(table.get(key))).astype(bool)]
    sizes = data[having.index].map(lambda table: table[key])
    others = data[having.index].map(lambda table: json.dumps({k: v for k, v in table.items() if k != key}, sort_keys=True))
    machines = having["machine"] if "machine" in having else having["problem"].map(lambda _: "")
    for _, group in having.groupby([having["problem"], having["parameters"], others, machines], sort=False):
        yield group, sizes[group.index]


def _is_size(value: Any) -> bool:
    """Return whether a value can be a place on a logarithmic axis of sizes."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def sweep_name(runs: pd.DataFrame, key: str) -> str:
    """Return what the labels of a sweep have in common, and what is held."""
    data = {name: value for name, value in json.loads(runs["data"].iloc[0]).items() if name != key}
    what = data.pop("name", None) or data.pop("file", "data")
    options = ", ".join(f"{name} = {value}" for name, value in data.items())
    machine = runs["machine"].iloc[0] if "machine" in runs else ""
    where = f", {machine}" if machine else ""
    return one_line(f"{runs['problem'].iloc[0]} on {what}" + (f", {options}" if options else "") + f", by {key}{where}")
