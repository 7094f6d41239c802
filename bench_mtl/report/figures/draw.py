"""Draws a `Chart` on paper, with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from bench_mtl.report.figures import chart as charts
from bench_mtl.report.figures import sheets as style
from bench_mtl.report.figures.chart import Chart, Series
from bench_mtl.report.figures.sheets import LineStyle

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    from bench_mtl.core.types import Array

#: Width and height of a panel in inches, by kind of chart.
_SIZES = {"runs": (3.75, 2.9), "shares": (2.5, 2.4), "points": (4.2, 3.0), "tracks": (4.2, 3.0)}

#: Markers of curves are spaced by a float, which is even on the paper.
_STEPPED: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.4, "markersize": 4.0, "markevery": (0.07, 0.15), "zorder": 2}
_JOINED: dict[str, Any] = {"linewidth": 0.7, "markersize": 5.5, "alpha": 0.95, "zorder": 3}
_SHARES: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.3, "markersize": 4.0, "zorder": 2}
_POINTS: dict[str, Any] = {"linewidth": 1.2, "markersize": 5.0, "zorder": 2}
_TRACK: dict[str, Any] = {"marker": "None", "linewidth": 1.1, "alpha": 0.8, "zorder": 2}
#: Hollow, for several tracks may end at one point.
_TRACK_END: dict[str, Any] = {
    "linestyle": "none", "markersize": 9.0, "markerfacecolor": "none", "markeredgewidth": 1.6, "zorder": 3,
}  # fmt: skip

#: Inches between the crosses of two solvers on a limit.
_CROSS_STEP = 0.09

#: Shares of the panel that a cross at the top edge takes.
_CROSS_WIDTH, _CROSS_HEIGHT = 0.025, 0.036

_DASHED = (0, (4, 3))
_TARGET: dict[str, Any] = {"color": "0.65", "linewidth": 0.8, "linestyle": _DASHED}
_LIMIT: dict[str, Any] = {"color": "0.4", "linewidth": 0.9, "linestyle": _DASHED}
_FRONT: dict[str, Any] = {"color": "0.8", "linewidth": 5.0, "solid_capstyle": "round", "zorder": 1}


def draw(chart: Chart, styles: Mapping[str, LineStyle]) -> Figure:
    """Return the figure of a chart, with solvers in these styles."""
    width, height = _SIZES[chart.kind]
    panels = chart.panels
    with style.styled():
        headed = int(any(panel.title for panel in panels))
        left = style.left_of(None if chart.y.logarithmic or chart.y.ticks else (chart.y.low, chart.y.high))
        handles = _legend(chart, styles)
        figure, axes = style.sheet(chart.title, [width] * len(panels), height, handles, share_y=True, left=left, headed=headed)
        _scale(axes[0], "y", chart.y)
        for axis, panel in zip(axes, panels, strict=True):
            _scale(axis, "x", panel.x)
            if panel.title:
                axis.set_title(panel.title)
            for series in panel.series:
                if chart.kind == "runs":
                    _draw_runs(axis, series, styles[series.solver], panel, chart.y)
                else:
                    _draw_line(axis, chart, series, styles[series.solver])
            _draw_crosses(axis, chart, panel, styles)
            _draw_failures(axis, panel, styles)
            if panel.equal is not None:
                axis.axvline(panel.equal, zorder=1, **_LIMIT)
            for target in chart.targets:
                axis.axhline(target, zorder=1, **_TARGET)
            if chart.limit is not None:
                axis.axhline(chart.limit, zorder=1, **_LIMIT)
            if chart.front is not None:
                axis.plot(*chart.front, drawstyle="steps-post", **_FRONT)
    return figure


def _scale(axes: Axes, which: Literal["x", "y"], axis: charts.Axis) -> None:
    axes.set(**{f"{which}label": axis.label})
    if axis.logarithmic:
        style.logarithmic(axes, which, axis.low, axis.high, axis.form, most=axis.most_ticks)
    else:
        axes.set(**{f"{which}lim": (axis.low, axis.high)})
    if axis.ticks:
        style.ticks(axes, which, axis.ticks, axis.form or style.plain)


def _legend(chart: Chart, styles: Mapping[str, LineStyle]) -> list[Line2D]:
    """Return an entry per solver, then one for each other mark."""
    from matplotlib.lines import Line2D

    def entry(label: str, **look: Any) -> Line2D:
        return Line2D([], [], label=label, **look)

    series = {one.solver: one for panel in reversed(chart.panels) for one in panel.series}
    first = [one.solver for panel in chart.panels for one in panel.series]
    entries = []
    for solver in dict.fromkeys(first):
        note = series[solver].note
        look = style.line(styles[solver], markersize=5.0, linewidth=1.2)
        entries.append(entry(f"{solver} ({note})" if note else solver, **look))
    entries += [entry(label, color=styles[solver].colour, **style.mark(markersize=6.0)) for solver, label in chart.without_line]
    if chart.targets:
        entries.append(entry("targets", **_TARGET))
    if chart.limit is not None:
        entries.append(entry(f"limit {chart.limit:g} s (x: not reached)", **_LIMIT))
    if chart.front is not None:
        entries.append(entry("front: no solver is ahead", **_FRONT))
    if any(panel.failed for panel in chart.panels):
        entries.append(entry("ended short of its target, at that time", color="0.3", **style.mark(markersize=6.0)))
    elif any(one.stop for one in series.values()) and chart.panels[0].failed is None:
        entries.append(entry("stopped by a limit", color="0.3", **style.mark()))
    return entries


def _draw_line(axis: Axes, chart: Chart, series: Series, look: LineStyle) -> None:
    import numpy as np

    x, y = series.x, np.maximum(series.y, chart.y.low)
    if chart.kind == "shares":
        places = range(1, len(x) - 1, 1 if len(x) < 12 else len(x) // 8)
        axis.plot(x, y, markevery=list(places), **style.line(look, **_SHARES))
    elif chart.kind == "tracks":
        axis.plot(x, y, **style.line(look, **_TRACK))
        axis.plot(x[-1:], y[-1:], **style.line(look, **_TRACK_END))
    else:
        axis.plot(x, y, **style.line(look, **_POINTS))


def _draw_crosses(axis: Axes, chart: Chart, panel: charts.Panel, styles: Mapping[str, LineStyle]) -> None:
    """Crosses on the limit, side by side around each x: those of one solver would hide those of another."""
    from matplotlib.transforms import ScaledTranslation

    if chart.limit is None:
        return
    at: dict[float, list[str]] = {}
    for series in panel.series:
        for place in series.crosses:
            at.setdefault(place, []).append(series.solver)
    spans = [math.log(after / before) for before, after in pairwise(sorted(at))] if panel.x.logarithmic else []
    between = _SIZES[chart.kind][0] * min(spans, default=math.inf) / math.log(panel.x.high / panel.x.low)
    for place, solvers in at.items():
        step = min(_CROSS_STEP, 0.8 * between / len(solvers))
        for turn, solver in enumerate(solvers):
            aside = ScaledTranslation(step * (turn - 0.5 * (len(solvers) - 1)), 0.0, axis.figure.dpi_scale_trans)
            look = style.mark(markersize=6.0, clip_on=False, transform=axis.transData + aside)
            axis.plot([place], [chart.limit], color=styles[solver].colour, **look)


def _draw_failures(axis: Axes, panel: charts.Panel, styles: Mapping[str, LineStyle]) -> None:
    """Crosses at the top edge, below each other where those of several solvers would hide one another."""
    found: dict[str, list[float]] = {}
    for solver, place in panel.failed or ():
        found.setdefault(solver, []).append(min(max(place, panel.x.low), panel.x.high))
    span = math.log(panel.x.high / panel.x.low)
    rows: list[list[float]] = []
    for solver, places in found.items():
        shares = [math.log(place / panel.x.low) / span for place in places]
        free = (place for place, row in enumerate(rows) if all(abs(share - other) > _CROSS_WIDTH for share in shares for other in row))
        own = next(free, len(rows))
        if own == len(rows):
            rows.append([])
        rows[own] += shares
        height = 1.0 - _CROSS_HEIGHT * own
        look = style.mark(markersize=6.0, clip_on=False, transform=axis.get_xaxis_transform())
        axis.plot(places, [height] * len(places), color=styles[solver].colour, **look)


def _draw_runs(axis: Axes, series: Series, look: LineStyle, panel: charts.Panel, limits: charts.Axis) -> None:
    """The curve of one run, or the median of several in a band; where limits stopped them a dotted line to there, and a cross at its end
    unless crosses are at the top edge."""
    import numpy as np
    from matplotlib.patches import Polygon

    if series.runs == 1 and series.asked is not None:
        axis.plot(series.x, np.maximum(series.y, limits.low), **style.line(look, **_JOINED))
    elif series.runs == 1:
        seen = series.x >= panel.start
        seen[:-1] |= seen[1:]  # the step that the left edge cuts
        axis.plot(series.x[seen], np.maximum(series.y[seen], limits.low), **style.line(look, **_STEPPED))
    if series.answers is not None:
        x, y = series.answers[0], np.maximum(series.answers[1], limits.low)
        axis.plot(x[1], y[1], **style.line(look, **_JOINED))
        gap = np.full(len(x[1]), np.nan)  # lifts the pen between two bars
        for bars in ((np.c_[x[0], x[2], gap], np.c_[y[1], y[1], gap]), (np.c_[x[1], x[1], gap], np.c_[y[0], y[2], gap])):
            axis.plot(*(ends.ravel() for ends in bars), color=look.colour, linewidth=0.8, alpha=0.5, zorder=2)
    if series.band is not None:
        x, (low, middle, high) = series.band[0], np.maximum(series.band[1], limits.low)
        corners = _outline(x, low, np.minimum(high, limits.high))
        axis.add_artist(Polygon(corners, facecolor=look.colour, alpha=0.2, linewidth=0.0, zorder=1.5))
        seen = _corners(middle) & np.isfinite(middle)
        axis.plot(x[seen], middle[seen], **style.line(look, **_STEPPED))
    if series.stop is not None:
        where, value, last = series.stop
        value = max(value, limits.low)
        if where > last:
            axis.plot([last, where], [value, value], color=look.colour, linewidth=0.6, zorder=2)
        if panel.failed is None:
            axis.plot([where], [value], color=look.colour, **style.mark())


def _outline(x: Array, low: Array, high: Array) -> Array:
    """Return the corners of the band between two functions that step at `x`, from where the lower one is finite."""
    import numpy as np

    known = np.isfinite(low)
    x, low, high = x[known], low[known], high[known]
    sides = []
    for values in (low, high):
        steps = _corners(values)
        places, levels = x[steps], values[steps]
        sides.append(np.c_[np.r_[places[0], np.repeat(places[1:], 2)], np.r_[np.repeat(levels[:-1], 2), levels[-1]]])
    return np.concatenate([sides[0], sides[1][::-1]])


def _corners(values: Array) -> NDArray[np.bool_]:
    """Return where a function in steps has a corner: where it changes, and both ends."""
    import numpy as np

    return np.r_[True, values[1:] != values[:-1]] | (np.arange(len(values)) == len(values) - 1)
