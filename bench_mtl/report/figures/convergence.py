"""Convergence figures: proven relative gap against seconds and against passes over the data, in one style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures.style import STYLE, LineStyle
from bench_mtl.report.render import format_target
from bench_mtl.report.tables.frames import numbers, status_counts
from bench_mtl.types import Status

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from bench_mtl.types import Array

#: A logarithmic axis has no zero: a gap of exactly zero, a time and a number of passes of zero are drawn here.
ZERO_GAP, ZERO_SECONDS, ZERO_PASSES = 1e-16, 1e-6, 0.5


#: A solver with more runs than this on one problem is drawn as their median and a band, not as a line for each.
MOST_LINES = 10

#: A curve has at most about this many points on paper: its levels are then two thirds of a point apart, less than a line is wide.
LEVELS = 300

#: Of the runs of a crowd: the lower end of its band, its line, the upper end.
_SHARES = (0.1, 0.5, 0.9)

_TARGET_GREY = "0.65"


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
    # Labels that millions of points share are kept once.
    about = about.astype(dict.fromkeys(("problem", "solver", "status"), "category"))
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

    A solver with at most `MOST_LINES` runs has a line for each; one with more has the median of them in a band. A long curve is
    drawn through as many of its points as can be told apart.

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
    with matplotlib.style.context(["default", STYLE]):
        counted = points[_counts_passes(points)]
        panels = 2 if len(counted) else 1
        handles = _legend(points, runs, styles)
        columns = 3 if panels == 2 else 2
        figure = Figure(figsize=(5.0 * panels, 3.8 + 0.19 * -(-len(handles) // columns)), layout="constrained")
        axes: Sequence[Axes] = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
        crowds = _crowds(points, runs)
        lowest, highest = _gap_limits(points, targets)
        _panel(axes[0], drawn_curves(points, "seconds", targets), styles, crowds, highest)
        axes[0].set(xlabel="solve time (s)", ylabel="proven relative gap")
        if panels == 2:
            _panel(axes[1], drawn_curves(counted, "passes", targets), styles, crowds, highest)
            axes[1].set(xlabel="passes over the data")
        for axis in axes:
            axis.set(xscale="log", yscale="log", ylim=(lowest, highest))
            _plain_ticks(axis)
            for target in targets:
                axis.axhline(target, color=_TARGET_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        figure.suptitle(str(points["problem"].iloc[0]), fontsize=11)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        # Laid out once, not again for every file.
        layout = figure.get_layout_engine()
        if layout is not None:
            layout.execute(figure)
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
    crowds = _crowds(points, runs)
    if (runs.groupby("solver_label").size().drop(list(crowds)) > 1).any():
        parts.append("One thin line for each seed and repetition.")
    if crowds:
        parts.append(
            f"A solver with more than {MOST_LINES} runs: the gap that half of them have proven, in a band from a tenth of them to nine "
            "tenths (markers: the same of the answers to each tolerance, with bars)."
        )
    parts.append("Dashed: the targets.")
    if points["status"].isin(_LIMITS).any():
        parts.append("A cross: the run met its time or memory limit there" + (" (the median of such runs)." if crowds else "."))
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


_LIMITS = (str(Status.TIMEOUT), str(Status.MEMORY))


def _counts_passes(points: pd.DataFrame) -> pd.Series[bool]:
    """Which points belong to a run that counts its passes over the data."""
    counts = points.groupby("run_id")["passes"].transform("max") > 0
    return counts & points["asked_tolerance"].isna()


@dataclass(frozen=True)
class Curve:
    """One run as it is drawn in one panel."""

    solver: str
    status: str
    limit: float
    """Of its time, in seconds; not a number where there is none."""
    in_seconds: bool
    """Whether `x` are, or else passes over the data."""
    one_shot: bool
    x: Array
    """More than zero, not decreasing."""
    y: Array
    """Relative gaps, more than zero."""
    asked: Array

    @property
    def stopped(self) -> bool:
        """Whether a limit ended it."""
        return self.status in _LIMITS

    @property
    def end(self) -> tuple[float, float]:
        """Where the run was stopped, and the best gap it had proven; a one-shot solver was at work on its next tolerance."""
        at_limit = self.in_seconds and self.status == Status.TIMEOUT and self.limit == self.limit
        return max(self.x[-1], self.limit) if at_limit else self.x[-1], self.y.min()


def drawn_curves(points: pd.DataFrame, column: str, targets: Iterable[float]) -> list[Curve]:
    """The runs of one problem, in their order, against seconds or passes."""
    import numpy as np

    targets, in_seconds = tuple(targets), column == "seconds"
    ids, limits = points["run_id"].to_numpy(), numbers(points, "limit_seconds").to_numpy()
    x, y, asked = (np.array(numbers(points, name), np.float64) for name in (column, "relative_gap", "asked_tolerance"))
    x[~(x > 0)], y[~(y > 0)] = ZERO_SECONDS if in_seconds else ZERO_PASSES, ZERO_GAP
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.array([], int)
    labels = zip(points["solver"].iloc[starts], points["status"].iloc[starts], strict=True)
    curves = []
    for start, end, (solver, status) in zip(starts, [*starts[1:], len(ids)], labels, strict=True):
        run = slice(start, end)
        one_shot = bool((~np.isnan(asked[run])).any())
        kept = slice(None) if one_shot else visible(y[run], targets)
        curve = Curve(str(solver), str(status), limits[start], in_seconds, one_shot, x[run][kept], y[run][kept], asked[run][kept])
        curves.append(curve)
    return curves


def visible(gaps: Array, targets: Iterable[float]) -> NDArray[np.bool_]:
    """Which points of a curve of best gaps so far are drawn: all of a short one.

    Of a long one the first point at every one of `LEVELS` levels from its first gap to its last, even on a logarithmic axis, the
    first at every target, and the last. The line in steps through them is nowhere below the whole one, and less than a level above.
    """
    import numpy as np

    kept = np.ones(len(gaps), bool)
    if len(gaps) <= LEVELS:
        return kept
    depth = np.log(gaps[0]) - np.log(gaps)
    level = np.floor(depth * (LEVELS / depth[-1] if depth[-1] > 0 else 0.0))
    kept[1:] = level[1:] > level[:-1]
    reached = [int(np.argmax(gaps <= target)) for target in targets if gaps[-1] <= target]
    kept[[*reached, -1]] = True
    return kept


def quantiles(curves: Sequence[Curve], total: int, shares: Sequence[float]) -> tuple[Array, Array]:
    """What shares of `total` iterative runs have proven, as they go on.

    Returns
    -------
    x : Array
        Even on a logarithmic axis.
    y : Array of shape (shares, x)
        The least gap that the share of the runs has proven by x; infinite as long as fewer have any. A run that has ended keeps its
        gap, and one without a curve has none.
    """
    import numpy as np

    x = np.geomspace(min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), LEVELS)
    gaps = np.full((total, LEVELS), np.inf)
    for row, curve in zip(gaps, curves, strict=False):
        known = np.searchsorted(curve.x, x, side="right")
        row[known > 0] = curve.y[known[known > 0] - 1]
    ordered = np.sort(gaps, axis=0)
    return x, ordered[[_place(share, total) for share in shares]]


def _place(share: float, total: int) -> int:
    """Of the least of `total` ordered values that at least this share of them do not exceed."""
    return max(0, math.ceil(share * total - 1e-9) - 1)


def _crowds(points: pd.DataFrame, runs: pd.DataFrame) -> dict[str, int]:
    """Solvers with too many runs on a problem for a line each, and how many runs they have, the skipped ones apart."""
    drawn = set(points["solver"].unique())
    tried = runs.loc[runs["status"] != Status.SKIPPED, "solver_label"].value_counts()
    return {str(solver): int(count) for solver, count in tried.items() if count > MOST_LINES and solver in drawn}


def _panel(axis: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyle], crowds: Mapping[str, int], highest: float) -> None:
    by_solver: dict[str, list[Curve]] = {}
    for curve in curves:
        by_solver.setdefault(curve.solver, []).append(curve)
    for curve in curves:
        if curve.solver not in crowds:
            _draw_run(axis, curve, styles[curve.solver], single=len(by_solver[curve.solver]) == 1)
    for solver, group in by_solver.items():
        if solver in crowds:
            _draw_crowd(axis, group, styles[solver], crowds[solver], highest)


def _draw_run(axis: Axes, curve: Curve, style: LineStyle, *, single: bool) -> None:
    look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
    if curve.one_shot:
        axis.plot(curve.x, curve.y, **look, linewidth=0.7, markersize=6.0, alpha=0.95 if single else 0.7, zorder=3)
    else:
        # a float spaces the markers evenly on the paper, not by number
        look |= {"markersize": 4.0, "markevery": 0.15, "linewidth": 1.5 if single else 0.8, "alpha": 1.0 if single else 0.7}
        axis.plot(curve.x, curve.y, **look, drawstyle="steps-post", zorder=2)
    if curve.stopped:
        where, best = curve.end
        if curve.in_seconds and curve.status == Status.TIMEOUT and curve.limit == curve.limit:
            axis.plot([curve.x[-1], where], [best, best], color=style.colour, linewidth=0.8, linestyle=":", zorder=2)
        _draw_cross(axis, where, best, style.colour)


def _draw_crowd(axis: Axes, curves: Sequence[Curve], style: LineStyle, total: int, highest: float) -> None:
    """Many runs of one solver as a median and the middle four fifths of them."""
    import numpy as np

    look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
    one_shot = [curve for curve in curves if curve.one_shot]
    if one_shot:
        x, y = _answers(one_shot)
        axis.plot(x[1], y[1], **look, linewidth=0.7, markersize=6.0, alpha=0.95, zorder=3)
        gap = np.full(len(x[1]), np.nan)  # lifts the pen between two bars
        for bars in ((np.c_[x[0], x[2], gap], np.c_[y[1], y[1], gap]), (np.c_[x[1], x[1], gap], np.c_[y[0], y[2], gap])):
            axis.plot(*(ends.ravel() for ends in bars), color=style.colour, linewidth=0.8, alpha=0.5, zorder=2)
    if len(one_shot) < len(curves):
        grid, (low, middle, high) = quantiles([curve for curve in curves if not curve.one_shot], total, _SHARES)
        known = np.isfinite(low)
        filling: dict[str, Any] = {"step": "post", "color": style.colour, "alpha": 0.15, "linewidth": 0.0, "zorder": 1.5}
        axis.fill_between(grid[known], low[known], np.minimum(high[known], highest), **filling)
        known = np.isfinite(middle)
        axis.plot(grid[known], middle[known], **look, markersize=4.0, markevery=0.15, linewidth=1.5, drawstyle="steps-post", zorder=2)
    ends = [curve.end for curve in curves if curve.stopped]
    if ends:
        where, best = np.median(ends, axis=0)
        _draw_cross(axis, where, best, style.colour)


def _answers(curves: Sequence[Curve]) -> tuple[Array, Array]:
    """The quantiles of the x and of the gaps of all answers to each tolerance asked, in order of the median x."""
    import numpy as np

    x, y, asked = (np.concatenate([getattr(curve, name) for curve in curves]) for name in ("x", "y", "asked"))
    groups = [asked == tolerance for tolerance in np.unique(asked)]
    found = [[np.quantile(values[group], _SHARES, method="inverted_cdf") for group in groups] for values in (x, y)]
    order = np.argsort([one[1] for one in found[0]], kind="stable")
    return np.array(found[0])[order].T, np.array(found[1])[order].T


def _draw_cross(axis: Axes, where: float, best: float, colour: str) -> None:
    axis.plot([where], [best], color=colour, marker="x", markersize=8.0, markeredgewidth=1.8, linestyle="none", zorder=4)


def _plain_ticks(axis: Axes) -> None:
    """Numbers written as in the tables; matplotlib's powers of ten take longer to typeset than the rest of the figure."""
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullLocator

    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_target(value) if value < 0.99 else f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(LogFormatter())


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
