"""Charts as plain lists and tables that become JSON: no number in them is infinite or missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures.chart import Axis, Chart, Panel, Series
from bench_mtl.report.figures.drawing import Drawing
from bench_mtl.report.page.markup import rounded

if TYPE_CHECKING:
    from bench_mtl.core.types import Array


#: Lines of a chart before somebody asks for more.
MOST_AT_FIRST = 8


def charts(drawn: Sequence[Drawing], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the charts of the drawings that have one: profiles, time against precision, scaling, sparsity against accuracy.

    Parameters
    ----------
    places : of the solvers in the page's list of them

    Returns
    -------
    list of dict
        label, caption, x and y (label, log, ends), step (whether lines are drawn in steps), lines (s: the place of a solver, note, x, y,
        crosses; of a track also end: where its marker is), and where there is one a limit across the chart (label, value), an x at which
        two solvers are equal, a front (x, y), and whether the lines are tracks, without markers along them. Where there are more lines
        than `MOST_AT_FIRST`, lead: the solvers whose lines are shown at first.
    """
    return [
        {**_chart(drawing.chart, panel, places, set(drawing.data["solver"])), "label": _label(drawing, panel), "caption": drawing.caption}
        for drawing in drawn
        if drawing.chart is not None
        for panel in drawing.chart.panels
    ]


def _label(drawing: Drawing, panel: Panel) -> str:
    return f"{panel.title.capitalize()} of {drawing.about}" if panel.title else drawing.title


def _chart(chart: Chart, panel: Panel, places: Mapping[str, int], printed: Collection[str]) -> dict[str, Any]:
    """Return one panel of a chart, of which the figure on paper has these solvers."""
    made: dict[str, Any] = {"x": _axis(panel.x), "y": _axis(chart.y), "step": chart.kind == "shares"}
    made["lines"] = [_line(chart, series, places) for series in panel.series]
    if len(panel.series) > MOST_AT_FIRST:
        ranked = sorted(panel.series, key=lambda series: (series.solver not in printed, *_rank(chart, series)))
        made["lead"] = [places[series.solver] for series in ranked[:MOST_AT_FIRST]]
    if chart.kind == "tracks":
        made["track"] = True
    if panel.equal is not None:
        made["equal"] = rounded(panel.equal)
    if chart.limit is not None:
        made["limit"] = {"label": f"limit {chart.limit:g} s", "value": rounded(chart.limit)}
    if chart.front is not None:
        made["front"] = [numbers(values) for values in chart.front]
    return made


def _rank(chart: Chart, series: Series) -> tuple[float, float]:
    """Return what leading lines have little of: great shares and low curves with many points lead, tracks in their order."""
    import numpy as np

    if chart.kind == "shares":
        return -float(series.y.max(initial=0.0)), -float(series.y.mean()) if len(series.y) else 0.0
    if chart.kind == "points" and len(series.y):
        return -float(len(series.y)), float(np.log(series.y).mean())
    return 0.0, 0.0


def _axis(axis: Axis) -> dict[str, Any]:
    return {"label": axis.label, "log": axis.logarithmic, "ends": ends(axis)}


def _line(chart: Chart, series: Series, places: Mapping[str, int]) -> dict[str, Any]:
    y = series.y.clip(min=chart.y.low)
    crosses = [] if chart.limit is None else [numbers((x, chart.limit)) for x in series.crosses]
    line = {"s": places[series.solver], "note": series.note, "x": numbers(series.x), "y": numbers(y), "crosses": crosses}
    return {**line, "end": numbers((series.x[-1], y[-1]))} if chart.kind == "tracks" else line


def runs_chart(panels: Sequence[Panel | None], y: Axis, places: Mapping[str, int]) -> dict[str, Any]:
    """Return one quantity of one problem against several axes.

    Returns
    -------
    dict
        gaps (the ends of the y axis), axes (the ends of each panel's axis, or null where nothing counts it), and solvers: s (its place),
        note (how its runs ended, unless all are verified), runs (their number), y, asked (of a generic solver), and x, an object for each
        axis or null: its x, or of several runs band ([x, low, middle, high], drawn from place `from` on), answers ([x low, middle, high,
        y low, middle, high]); end ([where its runs were stopped, their value, their last point]).
    """
    of_panels = [{series.solver: series for series in panel.series} if panel else {} for panel in panels]
    solvers = []
    for solver, first in of_panels[0].items():
        entry: dict[str, Any] = {"s": places[solver], "note": first.note, "runs": first.runs}
        if first.runs == 1:
            entry["y"] = numbers(first.y)
            if first.asked is not None:
                entry["asked"] = list(map(format_target, first.asked))
        entry["x"] = [_runs(by_solver[solver], y.high) if solver in by_solver else None for by_solver in of_panels]
        solvers.append(entry)
    return {"gaps": ends(y), "axes": [panel and ends(panel.x) for panel in panels], "solvers": solvers}


def _runs(series: Series, highest: float) -> dict[str, Any]:
    """Return the runs of one solver against one axis."""
    made: dict[str, Any] = {}
    if series.runs == 1:
        made["x"] = numbers(series.x)
    if series.answers is not None:
        made["answers"] = [numbers(values) for of_axis in series.answers for values in of_axis]
    if series.band is not None:
        made |= _band(*series.band, highest)
    if series.stop is not None:
        made["end"] = numbers(series.stop)
    return made


def _band(x: Array, values: Array, highest: float) -> dict[str, Any]:
    """Return a band where its lower end is known, without places at which nothing changes."""
    import numpy as np

    known = np.isfinite(values[0])
    x, values = x[known], values[:, known]
    changed = (values[:, 1:] != values[:, :-1]).any(axis=0)
    changed[-1:] = True
    x, values = (part[..., np.r_[True, changed]] for part in (x, values))
    # Before, fewer than half of the runs have proven anything.
    first = int((~np.isfinite(values[1])).sum())
    return {"band": [numbers(x), *(numbers(np.minimum(row, highest)) for row in values)], "from": first}


def numbers(values: Iterable[float]) -> list[float]:
    """Return the values with four significant digits."""
    return list(map(rounded, map(float, values)))


def ends(axis: Axis) -> list[float]:
    """Return the ends of an axis."""
    return numbers((axis.low, axis.high))
