"""Scaling figures: time to the last target against the size of the data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import style
from bench_mtl.report.figures.style import LineStyle
from bench_mtl.report.render import format_count, format_target

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A logarithmic axis has no zero: shorter times are drawn here.
LEAST_SECONDS = 1e-6


def scaling_figure(points: pd.DataFrame, fits: pd.DataFrame, styles: Mapping[str, LineStyle]) -> Figure:
    """The figure of one sweep, from its rows of `scaling_points` and `scaling_fits`: a line per solver, crosses where it failed.

    The exponents have their intervals where the fits have the columns ``exponent_low`` and ``exponent_high``.
    """
    from matplotlib.lines import Line2D

    solvers = [str(solver) for solver in points["solver"].unique()]
    exponents = {str(row["solver"]): _exponent(row) for row in fits.to_dict("records")}
    sizes, limit = sorted(points["size"].unique()), points["limit_seconds"].max()
    seconds = points["seconds"].clip(lower=LEAST_SECONDS)
    times = [*seconds.dropna(), *([limit] if limit == limit else [])] or [1.0]
    with style.styled():
        handles = [
            Line2D([], [], **style.line(styles[solver], markersize=5.0, linewidth=1.3, label=solver + exponents[solver]))
            for solver in solvers
        ]
        if limit == limit:
            handles.append(Line2D([], [], color="0.4", linewidth=0.9, linestyle=_DASHED, label=f"limit {limit:g} s (x: not reached)"))
        figure, (axis,) = style.sheet(str(points["sweep"].iloc[0]), [4.2], 3.0, handles)
        spread = min(0.03, 0.4 / len(solvers))  # crosses side by side, or those of one solver would hide those of another
        for place, solver in enumerate(solvers):
            group = points[points["solver"] == solver].sort_values("size")
            known = group[group["seconds"].notna()]
            look: dict[str, Any] = style.line(styles[solver], markersize=5.0, linewidth=1.3, zorder=2)
            axis.plot(known["size"], known["seconds"].clip(lower=LEAST_SECONDS), **look)
            failed = group.loc[group["seconds"].isna(), "size"]
            if len(failed) and limit == limit:
                shift = 1.0 + spread * (place - 0.5 * (len(solvers) - 1))
                axis.plot(failed * shift, [limit] * len(failed), color=styles[solver].colour, **style.mark(clip_on=False))
        if limit == limit:
            axis.axhline(limit, color="0.4", linewidth=0.9, linestyle=_DASHED, zorder=1)
        axis.set_xlabel(str(points["key"].iloc[0]))
        axis.set_ylabel(f"s to a proven gap of {format_target(points['target'].iloc[0])}")
        style.logarithmic(axis, "x", sizes[0] / 1.3, sizes[-1] * 1.3)
        style.ticks(axis, "x", sizes, format_count)
        style.logarithmic(axis, "y", min(times) / 2.0, max(times) * 2.0)
    return figure


_DASHED = (0, (4, 3))


def _exponent(fit: Mapping[Hashable, Any]) -> str:
    """What the legend says of a fit."""
    if fit["exponent"] != fit["exponent"]:
        return ""
    low, high = fit.get("exponent_low", math.nan), fit.get("exponent_high", math.nan)
    interval = f" [{low:.2f}, {high:.2f}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"  (exponent {fit['exponent']:.2f}{interval})"


def caption(points: pd.DataFrame, fits: pd.DataFrame) -> str:
    """How the figure of one sweep was made, and what is not in it, in sentences."""
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
