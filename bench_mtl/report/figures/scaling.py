"""Scaling figures: time to the last target against the size of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures.style import STYLE, LineStyle, plain_seconds
from bench_mtl.report.render import format_target

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A logarithmic axis has no zero: shorter times are drawn here.
LEAST_SECONDS = 1e-6


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
            axis.plot(known["size"], known["seconds"].clip(lower=LEAST_SECONDS), **line, label=label, zorder=2)
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


def caption(points: pd.DataFrame, fits: pd.DataFrame) -> str:
    """How the figure of one sweep was made, and what is not in it, in sentences."""
    target = format_target(points["target"].iloc[0])
    parts = [
        f"{points['sweep'].iloc[0]}: seconds of solving to a proven relative gap of {target}, the median of all runs of a size, "
        "and only where all of them got there."
    ]
    if fits["exponent"].notna().any():
        parts.append("Exponents: least squares on logarithms.")
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
