"""Scaling figures: time to the last target against the size of the data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import format_count, format_target
from bench_mtl.report.figures.chart import ZERO_SECONDS as LEAST_SECONDS
from bench_mtl.report.figures.chart import Axis, Chart, Panel, Series

if TYPE_CHECKING:
    import pandas as pd


def chart(points: pd.DataFrame, fits: pd.DataFrame) -> Chart:
    """Return the chart of one sweep, from its rows of `scaling_points` and `scaling_fits`: a line per solver, crosses where it failed.

    The exponents have their intervals where the fits have the columns ``exponent_low`` and ``exponent_high``.
    """
    exponents = {str(row["solver"]): _exponent(row) for row in fits.to_dict("records")}
    sizes = tuple(sorted(points["size"].unique().tolist()))
    longest = float(points["limit_seconds"].max())
    limit = longest if longest == longest else None
    series = []
    for solver, group in points.assign(seconds=points["seconds"].clip(lower=LEAST_SECONDS)).groupby("solver", sort=False):
        ordered = group.sort_values("size")
        known, failed = ordered[ordered["seconds"].notna()], ordered[ordered["seconds"].isna()]
        crosses = () if limit is None else tuple(failed["size"].tolist())
        x, y = known["size"].to_numpy(), known["seconds"].to_numpy()
        series.append(Series(str(solver), x, y, exponents.get(str(solver), ""), crosses=crosses))
    times = [*(time for one in series for time in one.y), *([] if limit is None else [limit])] or [1.0]
    x_axis = Axis(str(points["key"].iloc[0]), sizes[0] / 1.3, sizes[-1] * 1.3, ticks=sizes, form=format_count)
    y_axis = Axis(f"s to a proven gap of {format_target(points['target'].iloc[0])}", min(times) / 2.0, max(times) * 2.0)
    return Chart("points", str(points["sweep"].iloc[0]), y_axis, (Panel(x_axis, tuple(series)),), limit=limit)


def ranked(chart: Chart) -> list[str]:
    """Return the solvers by the number of sizes that they reached, and then by their time at the largest of these."""
    (panel,) = chart.panels
    ends = {one.solver: (-len(one.y), float(one.y[-1]) if len(one.y) else math.inf) for one in panel.series}
    return sorted(ends, key=ends.__getitem__)


def _exponent(fit: Mapping[Hashable, Any]) -> str:
    """Return what the legend says of a fit."""
    if fit["exponent"] != fit["exponent"]:
        return ""
    low, high = fit.get("exponent_low", math.nan), fit.get("exponent_high", math.nan)
    interval = f" [{low:.2f}, {high:.2f}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"exponent {fit['exponent']:.2f}{interval}"


def caption(points: pd.DataFrame, fits: pd.DataFrame) -> str:
    """Return how the figure of one sweep was made, and what is not in it, in sentences."""
    target = format_target(points["target"].iloc[0])
    parts = [
        f"{points['sweep'].iloc[0]}: seconds of solving to a proven relative gap of {target}, the median of all runs of a size, "
        "and only where all of them got there."
    ]
    if fits["exponent"].notna().any():
        interval = "exponent_low" in fits and fits["exponent_low"].notna().any()
        parts.append("Exponents: least squares on logarithms" + (", with their 95 % intervals in brackets." if interval else "."))
    failed = points[points["seconds"].isna()]
    if len(failed):
        crossed = failed["limit_seconds"].notna()
        parts.append(
            "A cross on the dashed limit: a size that was not reached." if crossed.any() else "A size that was not reached has no point."
        )
    if (points["seconds"] < LEAST_SECONDS).any():
        parts.append(f"Times below {LEAST_SECONDS:.0e} s are drawn there.")
    absent = fits.loc[fits["points"] == 0, "solver"]
    if len(absent):
        parts.append(f"Reached no size: {', '.join(absent)}.")
    return " ".join(parts)
