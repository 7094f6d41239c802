"""Convergence figures: proven relative gap against seconds and against passes over the data, in one style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bench_mtl.core.types import Status
from bench_mtl.report.figures import style
from bench_mtl.report.figures.style import LineStyle
from bench_mtl.report.render import format_target
from bench_mtl.results.frames import numbers, status_counts

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from bench_mtl.core.types import Array

#: A logarithmic axis has no zero: a time and a number of passes of zero are drawn here ...
ZERO_SECONDS, ZERO_PASSES = 1e-6, 0.5
#: ... and a gap below this share of the tightest target at it.
LEAST_SHARE = 1e-3
#: A greater gap, such as where there is no bound yet, is drawn as this one.
GREATEST_GAP = 1e6

#: The band of a solver holds all its runs on a problem if these are not more.
MOST_ENCLOSED = 10

#: A curve has at most about this many points on paper: its levels are then two thirds of a point apart, less than a line is wide.
LEVELS = 300

#: Of the runs of a solver: the lower end of its band, its line, the upper end; of few runs and of many.
_ALL, _MOST = (0.0, 0.5, 1.0), (0.1, 0.5, 0.9)

#: A curve has set out where its gap is below this share of the first one: until then nothing is drawn.
SET_OUT = 0.9

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

    A solver with one run has its curve; one with more has the median of them in a band. A long curve is drawn through as many of its
    points as can be told apart.

    Parameters
    ----------
    points : the rows of `curves` of that problem, at least one
    runs : all runs of that problem, for the legend
    targets : relative gaps, drawn as thin horizontal lines
    styles : by solver, from `style.line_styles`
    """
    targets = tuple(targets)
    counted = points[counts_passes(points)]
    totals = runs_tried(runs)
    low, high = gap_limits(points, targets)
    panels = [("seconds", "solve time (s)", points), ("passes", "passes over the data", counted)][: 2 if len(counted) else 1]
    with style.styled():
        handles = _legend(points, runs, styles)
        title = str(points["problem"].iloc[0])
        figure, axes = style.sheet(title, [3.75] * len(panels), 2.9, handles, share_y=True)
        axes[0].set_ylabel("proven relative gap")
        style.logarithmic(axes[0], "y", low, high, style.gap, most=9)
        for axis, (column, label, rows) in zip(axes, panels, strict=True):
            curves = drawn_curves(rows, column, targets)
            left = left_edge(curves)
            style.logarithmic(axis, "x", left / 1.3, 1.5 * max(left, *(curve.end[0] for curve in curves)))
            axis.set_xlabel(label)
            _panel(axis, curves, styles, totals, left, high)
            for target in targets:
                axis.axhline(target, color=_TARGET_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    return figure


def caption(points: pd.DataFrame, runs: pd.DataFrame, targets: Iterable[float]) -> str:
    """How the figure of one problem was made, and what is not in it, in sentences."""
    targets = tuple(targets)
    counts = counts_passes(points)
    parts = ["Proven relative gap against solve time" + (" and passes over the data" if counts.any() else "") + "."]
    one_shot = points["asked_tolerance"].notna()
    if not one_shot.all():
        parts.append("Stepped lines: best gap so far of an iterative solver.")
    if one_shot.any():
        parts.append("Joined markers: a generic solver, one marker for each tolerance asked of it, its time counted from zero.")
    if not counts.any():
        parts.append("No solver here counts passes over the data.")
    totals = runs_tried(runs)
    several = [total for solver, total in totals.items() if total > 1 and (points["solver"] == solver).any()]
    if several:
        band = "from the best to the worst of them" if min(several) <= MOST_ENCLOSED else ""
        if max(several) > MOST_ENCLOSED:
            band += (f", or of more than {MOST_ENCLOSED} " if band else "") + "from a tenth of them to nine tenths"
        answers = " (markers: the same of the answers to each tolerance, with bars)" if one_shot.any() else ""
        parts.append(f"A solver with several seeds or repetitions: the gap that half of its runs have proven, in a band {band}{answers}.")
    parts.append("Dashed: the targets.")
    if points["status"].isin(LIMITS).any():
        parts.append("A cross: the run met its time or memory limit there" + (" (the median of such runs)." if several else "."))
    least = least_gap(targets)
    if (points["relative_gap"] < least).any():
        parts.append(f"Gaps below {format_target(least)}, zero among them, are drawn there.")
    if (points["relative_gap"] > GREATEST_GAP).any():
        parts.append(f"Gaps above {format_target(GREATEST_GAP)} are drawn there.")
    in_seconds = drawn_curves(points, "seconds", targets)
    in_passes = drawn_curves(points[counts], "passes", targets)
    if any(curve.x[0] < left_edge(group) for group in (in_seconds, in_passes) for curve in group):
        parts.append("Cut off on the left, where no solver has gained a tenth on its first gap.")
    if (points["seconds"] <= 0).any() and left_edge(in_seconds) <= ZERO_SECONDS:
        parts.append(f"Times of zero are drawn at {format_target(ZERO_SECONDS)} s.")
    if in_passes and (points.loc[counts, "passes"] <= 0).any() and left_edge(in_passes) <= ZERO_PASSES:
        early = ", or at half of a run's first count where that is less" if any(curve.x[0] < ZERO_PASSES for curve in in_passes) else ""
        parts.append(f"Points before the first pass are drawn at {ZERO_PASSES:g}{early}.")
    absent = runs[~runs["id"].isin(points["run_id"])]
    if len(absent):
        names = [f"{solver} ({status_counts(group['status'])})" for solver, group in absent.groupby("solver_label", sort=False)]
        parts.append(f"Without a proven point, so not drawn: {', '.join(names)}.")
    return " ".join(parts)


def least_gap(targets: Iterable[float]) -> float:
    """The least gap that is drawn as what it is."""
    return min(targets) * LEAST_SHARE


LIMITS = (str(Status.TIMEOUT), str(Status.MEMORY))


def counts_passes(points: pd.DataFrame) -> pd.Series[bool]:
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
    """Whether `x` are, or else passes over the data or iterations."""
    one_shot: bool
    x: Array
    """More than zero, not decreasing."""
    y: Array
    """Relative gaps, more than zero."""
    asked: Array

    @property
    def stopped(self) -> bool:
        """Whether a limit ended it."""
        return self.status in LIMITS

    @property
    def start(self) -> float | None:
        """Where it sets out, or has its first answer; None if it stands still."""
        if self.one_shot:
            return float(self.x[0])
        below = self.y < SET_OUT * self.y[0]
        return float(self.x[below.argmax()]) if below.any() else None

    @property
    def end(self) -> tuple[float, float]:
        """Where the run was stopped, and the best gap it had proven; a one-shot solver was at work on its next tolerance."""
        at_limit = self.in_seconds and self.status == Status.TIMEOUT and self.limit == self.limit
        return max(self.x[-1], self.limit) if at_limit else self.x[-1], self.y.min()


def drawn_curves(points: pd.DataFrame, column: str, targets: Iterable[float], levels: int = LEVELS) -> list[Curve]:
    """The runs of one problem, in their order, against seconds, passes or iterations, through what is `visible` at so many levels."""
    import numpy as np

    if points.empty:
        return []
    targets, in_seconds = tuple(targets), column == "seconds"
    ids, limits = points["run_id"].to_numpy(), numbers(points, "limit_seconds").to_numpy()
    x, y, asked = (np.array(points[name], np.float64) for name in (column, "relative_gap", "asked_tolerance"))
    x[~(x > 0)] = ZERO_SECONDS if in_seconds else ZERO_PASSES
    y = np.clip(y, least_gap(targets), GREATEST_GAP)
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    labels = zip(points["solver"].iloc[starts], points["status"].iloc[starts], strict=True)
    curves = []
    for start, end, (solver, status) in zip(starts, [*starts[1:], len(ids)], labels, strict=True):
        run = slice(start, end)
        one_shot = bool((~np.isnan(asked[run])).any())
        if not in_seconds and x[run].min() < ZERO_PASSES:
            x[run] = _spaced(x[run], points[column].to_numpy(np.float64)[run])
        kept = slice(None) if one_shot else visible(y[run], targets, levels)
        curve = Curve(str(solver), str(status), limits[start], in_seconds, one_shot, x[run][kept], y[run][kept], asked[run][kept])
        curves.append(curve)
    return curves


def _spaced(places: Array, counts: Array) -> Array:
    """The places of a run that shows points within its first half pass: what is before its first pass stays before all others."""
    import numpy as np

    known = counts > 0
    return np.where(known, places, 0.5 * counts[known].min())


def visible(gaps: Array, targets: Iterable[float], levels: int = LEVELS) -> NDArray[np.bool_]:
    """Which points of a curve of best gaps so far are drawn: all of one that has no more than `levels`.

    Of a longer one the first point at every one of so many levels from its first gap to its last, even on a logarithmic axis, the
    first at every target, and the last. The line in steps through them is nowhere below the whole one, and less than a level above.
    """
    import numpy as np

    kept = np.ones(len(gaps), bool)
    if len(gaps) <= levels:
        return kept
    depth = np.log(gaps[0]) - np.log(gaps)
    level = np.floor(depth * (levels / depth[-1] if depth[-1] > 0 else 0.0))
    kept[1:] = level[1:] > level[:-1]
    reached = [int(np.argmax(gaps <= target)) for target in targets if gaps[-1] <= target]
    kept[[*reached, -1]] = True
    return kept


def left_edge(curves: Sequence[Curve]) -> float:
    """Where the first curve sets out, or a one-shot solver has its first answer; where the first one begins if none sets out."""
    starts = [curve.start for curve in curves if curve.start is not None]
    return float(min(starts or [curve.x[0] for curve in curves]))


def quantiles(curves: Sequence[Curve], total: int, shares: Sequence[float], start: float = 0.0) -> tuple[Array, Array]:
    """What shares of `total` iterative runs have proven, as they go on.

    Returns
    -------
    x : Array
        Even on a logarithmic axis, from the first point of the curves, or from `start` if that is later.
    y : Array of shape (shares, x)
        The least gap that the share of the runs has proven by x; infinite as long as fewer have any. A run that has ended keeps its
        gap, and one without a curve has none.
    """
    import numpy as np

    last = max(curve.x[-1] for curve in curves)
    x = logarithmic_grid(min(max(start, min(curve.x[0] for curve in curves)), last), last, LEVELS)
    gaps = np.full((total, LEVELS), np.inf)
    for row, curve in zip(gaps, curves, strict=False):
        known = np.searchsorted(curve.x, x, side="right")
        row[known > 0] = curve.y[known[known > 0] - 1]
    ordered = np.sort(gaps, axis=0)
    return x, ordered[[_place(share, total) for share in shares]]


def logarithmic_grid(first: float, last: float, count: int) -> Array:
    """Return `count` places from `first` to `last`, 0 < first <= last, even on a logarithmic axis, with both ends exact.

    `np.geomspace` rounds: its places may lie outside the two ends, where a curve that begins at `first` has no value yet.
    """
    import numpy as np

    grid = np.clip(np.geomspace(first, last, count), first, last)
    grid[0], grid[-1] = first, last
    return grid


def _place(share: float, total: int) -> int:
    """Of the least of `total` ordered values that at least this share of them do not exceed."""
    return max(0, math.ceil(share * total - 1e-9) - 1)


def runs_tried(runs: pd.DataFrame) -> dict[str, int]:
    """How many runs a solver has on a problem, the skipped ones apart."""
    tried = runs.loc[runs["status"] != Status.SKIPPED, "solver_label"].value_counts()
    return {str(solver): int(count) for solver, count in tried.items()}


def _panel(
    axis: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyle], totals: Mapping[str, int], left: float, highest: float
) -> None:
    by_solver: dict[str, list[Curve]] = {}
    for curve in curves:
        by_solver.setdefault(curve.solver, []).append(curve)
    for solver, group in by_solver.items():
        total = totals.get(solver, len(group))
        if total > 1:
            _draw_several(axis, group, styles[solver], total, left, highest)
        else:
            _draw_run(axis, group[0], styles[solver], left)


def _draw_run(axis: Axes, curve: Curve, look: LineStyle, left: float) -> None:
    if curve.one_shot:
        axis.plot(curve.x, curve.y, **JOINED, **style.line(look))
    else:
        seen = curve.x >= left
        seen[:-1] |= seen[1:]  # the step that the left edge cuts
        axis.plot(curve.x[seen], curve.y[seen], **STEPPED, **style.line(look))
    _draw_ends(axis, [curve], look)


def _draw_several(axis: Axes, curves: Sequence[Curve], look: LineStyle, total: int, left: float, highest: float) -> None:
    """The runs of one solver as a median in a band."""
    import numpy as np
    from matplotlib.patches import Polygon

    shares = enclosed(total)
    one_shot = [curve for curve in curves if curve.one_shot]
    if one_shot:
        x, y = answer_quantiles(one_shot, shares)
        axis.plot(x[1], y[1], **JOINED, **style.line(look))
        gap = np.full(len(x[1]), np.nan)  # lifts the pen between two bars
        for bars in ((np.c_[x[0], x[2], gap], np.c_[y[1], y[1], gap]), (np.c_[x[1], x[1], gap], np.c_[y[0], y[2], gap])):
            axis.plot(*(ends.ravel() for ends in bars), color=look.colour, linewidth=0.8, alpha=0.5, zorder=2)
    if len(one_shot) < len(curves):
        grid, (low, middle, high) = quantiles([curve for curve in curves if not curve.one_shot], total, shares, left)
        axis.add_artist(Polygon(outline(grid, low, np.minimum(high, highest)), facecolor=look.colour, alpha=0.2, linewidth=0.0, zorder=1.5))
        seen = _steps(middle) & np.isfinite(middle)
        axis.plot(grid[seen], middle[seen], **STEPPED, **style.line(look))
    _draw_ends(axis, [curve for curve in curves if curve.stopped], look)


def outline(x: Array, low: Array, high: Array) -> Array:
    """The corners of the band between two functions that step at `x`, from where the lower one is finite."""
    import numpy as np

    known = np.isfinite(low)
    x, low, high = x[known], low[known], high[known]
    sides = []
    for values in (low, high):
        steps = _steps(values)
        places, levels = x[steps], values[steps]
        sides.append(np.c_[np.r_[places[0], np.repeat(places[1:], 2)], np.r_[np.repeat(levels[:-1], 2), levels[-1]]])
    return np.concatenate([sides[0], sides[1][::-1]])


def _steps(values: Array) -> NDArray[np.bool_]:
    """Where a function in steps has a corner: where it changes, and both ends."""
    import numpy as np

    return np.r_[True, values[1:] != values[:-1]] | (np.arange(len(values)) == len(values) - 1)


#: Markers are spaced by a float, which is even on the paper.
STEPPED: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.4, "markersize": 4.0, "markevery": (0.07, 0.15), "zorder": 2}
JOINED: dict[str, Any] = {"linewidth": 0.7, "markersize": 5.5, "alpha": 0.95, "zorder": 3}


def _draw_ends(axis: Axes, curves: Sequence[Curve], look: LineStyle) -> None:
    """A cross where runs were stopped, in the median, and a dotted line to it from the last point."""
    import numpy as np

    ends = [(*curve.end, curve.x[-1]) for curve in curves if curve.stopped]
    if ends:
        where, best, last = np.median(ends, axis=0)
        if where > last:
            axis.plot([last, where], [best, best], color=look.colour, linewidth=0.8, linestyle=":", zorder=2)
        axis.plot([where], [best], color=look.colour, **style.mark())


def enclosed(total: int) -> tuple[float, float, float]:
    """Of so many runs the shares that the lower end of their band, its line and its upper end stand for."""
    return _ALL if total <= MOST_ENCLOSED else _MOST


class Answers(Protocol):
    """What a one-shot solver has answered in one run."""

    @property
    def x(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def asked(self) -> Array:
        """The tolerances."""


def answer_quantiles(curves: Sequence[Answers], shares: Sequence[float]) -> tuple[Array, Array]:
    """The quantiles of the x and of the y of all answers to each tolerance asked, in order of the median x."""
    import numpy as np

    x, y, asked = (np.concatenate([getattr(curve, name) for curve in curves]) for name in ("x", "y", "asked"))
    groups = [asked == tolerance for tolerance in np.unique(asked)]
    found = [[np.quantile(values[group], shares, method="inverted_cdf") for group in groups] for values in (x, y)]
    order = np.argsort([one[1] for one in found[0]], kind="stable")
    return np.array(found[0])[order].T, np.array(found[1])[order].T


def gap_limits(points: pd.DataFrame, targets: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis of gaps of one problem."""
    gaps = points["relative_gap"]
    return min(max(gaps.min(), least_gap(targets)), *targets) / 2.0, min(max(1.0, gaps.max()), GREATEST_GAP) * 2.0


def _legend(points: pd.DataFrame, runs: pd.DataFrame, styles: Mapping[str, LineStyle]) -> list[Line2D]:
    """An entry per solver that was not skipped, with its status unless every run is verified; then the other marks."""
    from matplotlib.lines import Line2D

    drawn = set(points["solver"])
    handles = []
    for solver, group in runs.groupby("solver_label", sort=False):
        look, statuses = styles[str(solver)], set(group["status"])
        label = str(solver) if statuses == {str(Status.VERIFIED)} else f"{solver} ({status_counts(group['status'])})"
        if solver in drawn:
            handles.append(Line2D([], [], **style.line(look, markersize=5.0, linewidth=1.2, label=label)))
        elif statuses != {str(Status.SKIPPED)}:
            handles.append(Line2D([], [], linestyle="none", label=f"{label}: nothing proven"))
    handles.append(Line2D([], [], color=_TARGET_GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="targets"))
    if points["status"].isin(LIMITS).any():
        handles.append(Line2D([], [], color="0.3", **style.mark(label="stopped by a limit")))
    return handles
