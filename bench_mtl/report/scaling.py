"""Time to the last target against the size of the data, where a suite sweeps one: a table of fits, a figure and its data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import STYLE, LineStyle, plain_seconds
from bench_mtl.report.render import format_target
from bench_mtl.report.tables import numbers, times_to_gap
from bench_mtl.types import Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A sweep has at least so many sizes, and a fit so many points.
FEWEST = 3

_COLUMNS = ["sweep", "key", "target", "solver", "size", "runs", "reached", "seconds", "limit_seconds"]


def scaling_points(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """The data of all scaling figures: a row per sweep, solver and size.

    A sweep is a set of problems that differ in one whole-numbered option of their data alone, of which there are `FEWEST` or more.

    Returns
    -------
    DataFrame
        sweep, key (the option), target, solver, size, runs, reached (how many of the runs reached the target), seconds (their
        median; missing unless all did), limit_seconds. Skipped runs do not enter.
    """
    import pandas as pd

    ran = runs[runs["status"] != Status.SKIPPED]
    parts = []
    for key, rows, sizes in _sweeps(ran):
        seconds = times_to_gap(rows, samples, [target]).set_index("run_id")["seconds"]
        table = pd.DataFrame({"solver": rows["solver_label"], "size": sizes, "seconds": rows["id"].map(seconds)})
        table["limit_seconds"] = numbers(rows, "limit_seconds")
        groups = table.groupby(["solver", "size"], sort=False)
        points = groups["seconds"].agg(["size", "count", "median"]).set_axis(["runs", "reached", "seconds"], axis=1)
        points["seconds"] = points["seconds"].where(points["runs"] == points["reached"])
        points["limit_seconds"] = groups["limit_seconds"].max()
        name = _name(rows, key)
        parts.append(points.reset_index().assign(sweep=name, key=key, target=target))
    return pd.concat(parts, ignore_index=True)[_COLUMNS] if parts else pd.DataFrame(columns=_COLUMNS)


def scaling_fits(points: pd.DataFrame) -> pd.DataFrame:
    """Per sweep and solver the exponent p of seconds ~ size^p, by least squares on logarithms over the sizes that reached the target.

    Returns
    -------
    DataFrame
        sweep, key, target, solver, points, exponent (missing with fewer than `FEWEST` points), size (the largest that was reached).
    """
    import numpy as np
    import pandas as pd

    rows = []
    for (sweep, key, target, solver), group in points.groupby(["sweep", "key", "target", "solver"], sort=False):
        known = group[group["seconds"].notna() & (group["seconds"] > 0)]
        x, y = (np.log(known[name].to_numpy(dtype=np.float64)) for name in ("size", "seconds"))
        exponent = float(np.polyfit(x, y, 1)[0]) if len(known) >= FEWEST else float("nan")
        largest = known["size"].max() if len(known) else float("nan")
        row = {"sweep": sweep, "key": key, "target": target, "solver": solver, "points": len(known)}
        rows.append({**row, "exponent": exponent, "size": largest})
    return pd.DataFrame(rows, columns=["sweep", "key", "target", "solver", "points", "exponent", "size"])


def scaling_figure(points: pd.DataFrame, fits: pd.DataFrame, styles: Mapping[str, LineStyle]) -> Figure:
    """The figure of one sweep, from its rows of `scaling_points` and `scaling_fits`: a line per solver, crosses where it failed."""
    import matplotlib.style
    from matplotlib.figure import Figure

    exponents = dict(zip(fits["solver"], fits["exponent"], strict=True))
    with matplotlib.style.context(["default", STYLE]):
        solvers = list(points["solver"].unique())
        figure = Figure(figsize=(6.0, 3.8 + 0.19 * -(-len(solvers) // 2)), layout="constrained")
        axis = figure.subplots()
        limit = points["limit_seconds"].max()
        for place, solver in enumerate(solvers):
            group = points[points["solver"] == solver].sort_values("size")
            look, p = styles[str(solver)], exponents[solver]
            label = str(solver) + (f"  (exponent {p:.2f})" if p == p else "")
            known = group[group["seconds"].notna()]
            line: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 5.0, "linewidth": 1.3}
            axis.plot(known["size"], known["seconds"].clip(lower=1e-6), **line, label=label, zorder=2)
            failed = group.loc[group["seconds"].isna(), "size"]
            if len(failed) and limit == limit:
                # Side by side, or the crosses of one solver would hide those of another.
                shift = 1.0 + 0.03 * (place - 0.5 * (len(solvers) - 1))
                cross: dict[str, Any] = {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.6, "linestyle": "none"}
                axis.plot(failed * shift, [limit] * len(failed), color=look.colour, **cross, zorder=4, clip_on=False)
        if limit == limit:
            axis.axhline(limit, color="0.4", linewidth=0.9, linestyle=(0, (4, 3)), label=f"limit {limit:g} s (x: not reached)", zorder=1)
        axis.set(xscale="log", yscale="log", xlabel=str(points["key"].iloc[0]))
        axis.set_ylabel(f"seconds to a proven relative gap of {format_target(points['target'].iloc[0])}")
        plain_seconds(axis, sorted(points["size"].unique()))
        figure.suptitle(str(points["sweep"].iloc[0]), fontsize=10)
        figure.legend(loc="outside lower center", ncols=2)
        layout = figure.get_layout_engine()
        if layout is not None:
            layout.execute(figure)
        figure.set_layout_engine(None)
    return figure


def _sweeps(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.Series[int]]]:
    """The option, the runs and their sizes of every sweep, in the order of the runs."""
    data = runs["data"].map(json.loads)
    keys = dict.fromkeys(key for table in data for key, value in table.items() if isinstance(value, int) and not isinstance(value, bool))
    for key in keys:
        having = runs[data.map(lambda table, key=key: key in table)]
        sizes = data[having.index].map(lambda table, key=key: table[key])
        others = data[having.index].map(lambda table, key=key: json.dumps({k: v for k, v in table.items() if k != key}, sort_keys=True))
        for _, group in having.groupby([having["problem"], having["parameters"], others], sort=False):
            if sizes[group.index].nunique() >= FEWEST:
                yield key, group, sizes[group.index]


def _name(runs: pd.DataFrame, key: str) -> str:
    """What the labels of a sweep have in common, and what is held."""
    data = {name: value for name, value in json.loads(runs["data"].iloc[0]).items() if name != key}
    what = data.pop("name", None) or data.pop("file", "data")
    options = ", ".join(f"{name} = {value}" for name, value in data.items())
    return f"{runs['problem'].iloc[0]} on {what}" + (f", {options}" if options else "") + f", by {key}"
