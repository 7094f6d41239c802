"""Convergence figures: proven relative gap against seconds and against passes over the data, in one style."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.report.render import format_target
from bench_mtl.report.tables import numbers, status_counts
from bench_mtl.types import Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: A logarithmic axis has no zero: a gap of exactly zero, a time and a number of passes of zero are drawn here.
ZERO_GAP, ZERO_SECONDS, ZERO_PASSES = 1e-16, 1e-6, 0.5

DPI = 144

# Okabe and Ito's colours for all kinds of colour vision, without their yellow (too pale for a line), and two of Paul Tol's.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999933")
_MARKERS = ("o", "s", "^", "D", "v", "P", "<", "*", ">", "h")
_TARGET_GREY = "0.65"

_STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "bench-mtl",  # without it the ids in an SVG are random
}


@dataclass(frozen=True)
class LineStyle:
    """How one solver is drawn in all figures of a report."""

    colour: str
    marker: str


def line_styles(solvers: Iterable[str]) -> dict[str, LineStyle]:
    """A style per solver in the order given: 9 colours and 10 markers make 90 different ones."""
    unique = dict.fromkeys(solvers)
    return {name: LineStyle(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]) for i, name in enumerate(unique)}


def curves(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """The data of all figures, a row per point.

    Returns
    -------
    DataFrame
        problem, solver, run_id, seed, repetition, status, asked_tolerance (missing for an iterative solver), iteration,
        seconds, passes, relative_gap: the best so far for an iterative solver, in order of time; at this tolerance for
        a one-shot solver, in order of its seconds.
    """
    about = runs[["id", "problem_label", "solver_label", "seed", "repetition", "status", "limit_seconds"]]
    about = about.rename(columns={"id": "run_id", "problem_label": "problem", "solver_label": "solver"})
    points = samples[["run_id", "number", "asked_tolerance", "iteration", "seconds", "passes", "relative_gap"]].copy()
    for column in ("asked_tolerance", "seconds", "passes", "relative_gap"):
        points[column] = numbers(points, column)
    iterative = points["asked_tolerance"].isna()
    best_so_far = points["relative_gap"].groupby(points["run_id"]).cummin()
    points["relative_gap"] = points["relative_gap"].where(~iterative, best_so_far)
    points = points.sort_values(["run_id", "seconds", "number"], kind="stable").drop(columns="number")
    return about.merge(points, on="run_id", how="inner", sort=False)


def convergence(points: pd.DataFrame, runs: pd.DataFrame, targets: Iterable[float], styles: Mapping[str, LineStyle]) -> Figure:
    """The figure of one problem.

    Parameters
    ----------
    points : the rows of `curves` of that problem, at least one
    runs : all runs of that problem, for the legend
    targets : relative gaps, drawn as thin horizontal lines
    styles : by solver, from `line_styles`
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    targets = tuple(targets)
    with matplotlib.style.context(["default", _STYLE]):
        counted = points[_counts_passes(points)]
        panels = 2 if len(counted) else 1
        handles = _legend(points, runs, styles)
        columns = 3 if panels == 2 else 2
        figure = Figure(figsize=(5.0 * panels, 3.8 + 0.19 * -(-len(handles) // columns)), layout="constrained")
        axes: Sequence[Axes] = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
        _panel(axes[0], points, "seconds", styles)
        axes[0].set(xlabel="solve time (s)", ylabel="proven relative gap")
        if panels == 2:
            _panel(axes[1], counted, "passes", styles)
            axes[1].set(xlabel="passes over the data")
        for axis in axes:
            axis.set(xscale="log", yscale="log", ylim=_gap_limits(points, targets))
            _plain_ticks(axis)
            for target in targets:
                axis.axhline(target, color=_TARGET_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        figure.suptitle(str(points["problem"].iloc[0]), fontsize=11)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        # Laid out once, not again for every file.
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
    return figure


def caption(points: pd.DataFrame, runs: pd.DataFrame) -> str:
    """How the figure of one problem was made, and what is not in it, in sentences."""
    parts = ["Proven relative gap against solve time" + (" and passes over the data" if _counts_passes(points).any() else "") + "."]
    one_shot = points["asked_tolerance"].notna()
    if not one_shot.all():
        parts.append("Stepped lines: best gap so far of an iterative solver.")
    if one_shot.any():
        parts.append("Joined markers: a generic solver, one marker for each tolerance asked of it, its time counted from zero.")
    if not _counts_passes(points).any():
        parts.append("No solver here counts passes over the data.")
    if runs.groupby("solver_label").size().max() > 1:
        parts.append("One thin line for each seed and repetition.")
    parts.append("Dashed: the targets.")
    if points["status"].isin(_LIMITS).any():
        parts.append("A cross: the run met its time or memory limit there.")
    if (points["relative_gap"] == 0).any():
        parts.append(f"Gaps of exactly zero are drawn at {ZERO_GAP:.0e}.")
    if (points["seconds"] <= 0).any():
        parts.append(f"Times of zero are drawn at {ZERO_SECONDS:.0e} s.")
    if (points.loc[_counts_passes(points), "passes"] <= 0).any():
        parts.append(f"Points before the first pass are drawn at {ZERO_PASSES:g}.")
    absent = runs[~runs["id"].isin(points["run_id"])]
    if len(absent):
        names = [f"{solver} ({status_counts(group['status'])})" for solver, group in absent.groupby("solver_label", sort=False)]
        parts.append(f"Without a proven point, so not drawn: {', '.join(names)}.")
    return " ".join(parts)


def to_svg(figure: Figure) -> bytes:
    """The figure as SVG: the same bytes for the same data."""
    return _saved(figure, "svg", {"Date": None})


def to_png(figure: Figure) -> bytes:
    """The figure as PNG: the same bytes for the same data."""
    return _saved(figure, "png", {"Software": None})


_LIMITS = (str(Status.TIMEOUT), str(Status.MEMORY))


def _saved(figure: Figure, form: str, metadata: dict[str, Any]) -> bytes:
    import matplotlib.style

    buffer = io.BytesIO()
    with matplotlib.style.context(["default", _STYLE]):
        figure.savefig(buffer, format=form, dpi=DPI, bbox_inches=figure.get_tightbbox().padded(0.08), metadata=metadata)
    return buffer.getvalue()


def _counts_passes(points: pd.DataFrame) -> pd.Series[bool]:
    """Which points belong to a run that counts its passes over the data."""
    counts = points.groupby("run_id")["passes"].transform("max") > 0
    return counts & points["asked_tolerance"].isna()


def _panel(axis: Axes, points: pd.DataFrame, column: str, styles: Mapping[str, LineStyle]) -> None:
    many = points.groupby("solver")["run_id"].nunique()
    zero = ZERO_SECONDS if column == "seconds" else ZERO_PASSES
    for _, run in points.groupby("run_id", sort=False):
        solver = str(run["solver"].iloc[0])
        single = many[solver] == 1
        x, y = run[column].where(run[column] > 0, zero).tolist(), run["relative_gap"].where(run["relative_gap"] > 0, ZERO_GAP).tolist()
        look: dict[str, Any] = {"color": styles[solver].colour, "marker": styles[solver].marker}
        if run["asked_tolerance"].notna().any():
            axis.plot(x, y, **look, linewidth=0.7, markersize=6.0, alpha=0.95 if single else 0.7, zorder=3)
        else:
            # a float spaces the markers evenly on the paper, not by number
            look |= {"markersize": 4.0, "markevery": 0.15, "linewidth": 1.5 if single else 0.8, "alpha": 1.0 if single else 0.7}
            axis.plot(x, y, **look, drawstyle="steps-post", zorder=2)
        if run["status"].iloc[0] in _LIMITS:
            _mark_limit(axis, run, column, x[-1], y, styles[solver].colour)


def _plain_ticks(axis: Axes) -> None:
    """Numbers written as in the tables; matplotlib's powers of ten take longer to typeset than the rest of the figure."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullLocator

    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_target(value) if value < 0.99 else f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(LogFormatter())


def _mark_limit(axis: Axes, run: pd.DataFrame, column: str, last: float, gaps: list[float], colour: str) -> None:
    """A cross where the run was stopped, at the best gap it had proven; a one-shot solver was at work on its next tolerance."""
    limit = run["limit_seconds"].iloc[0]
    best = min(gaps)
    where = last
    if column == "seconds" and run["status"].iloc[0] == Status.TIMEOUT and limit == limit and limit is not None:
        where = max(last, float(limit))
        axis.plot([last, where], [best, best], color=colour, linewidth=0.8, linestyle=":", zorder=2)
    axis.plot([where], [best], color=colour, marker="x", markersize=8.0, markeredgewidth=1.8, linestyle="none", zorder=4)


def _gap_limits(points: pd.DataFrame, targets: Iterable[float]) -> tuple[float, float]:
    gaps = points["relative_gap"].where(points["relative_gap"] > 0, ZERO_GAP)
    return min(gaps.min(), *targets) / 3.0, max(1.0, gaps.max()) * 2.0


def _legend(points: pd.DataFrame, runs: pd.DataFrame, styles: Mapping[str, LineStyle]) -> list[Line2D]:
    """An entry per solver that was not skipped, with its status unless every run is verified; then the other marks."""
    from matplotlib.lines import Line2D

    drawn = set(points["solver"])
    handles = []
    for solver, group in runs.groupby("solver_label", sort=False):
        look, statuses = styles[str(solver)], set(group["status"])
        label = str(solver) if statuses == {str(Status.VERIFIED)} else f"{solver} ({status_counts(group['status'])})"
        if solver in drawn:
            handles.append(Line2D([], [], color=look.colour, marker=look.marker, markersize=5.0, linewidth=1.2, label=label))
        elif statuses != {str(Status.SKIPPED)}:
            handles.append(Line2D([], [], linestyle="none", label=f"{label}: nothing proven"))
    handles.append(Line2D([], [], color=_TARGET_GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="targets"))
    if points["status"].isin(_LIMITS).any():
        cross: dict[str, Any] = {"marker": "x", "markersize": 8.0, "markeredgewidth": 1.8, "linestyle": "none"}
        handles.append(Line2D([], [], color="0.3", **cross, label="stopped by a limit"))
    return handles
