"""What a chart shows, as plain data: made once from the results, drawn on paper by `draw` and on the page from `report.page.charts`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from bench_mtl.core.types import Status

if TYPE_CHECKING:
    from bench_mtl.core.types import Array

#: A logarithmic axis has no zero: a time and a number of passes of zero are drawn here.
ZERO_SECONDS, ZERO_PASSES = 1e-6, 0.5

#: A band holds all runs of a solver on a problem if these are not more.
MOST_ENCLOSED = 10

#: A curve has at most about this many points on paper: its levels are then two thirds of a point apart, less than a line is wide.
LEVELS = 300

#: Curves of a figure on paper, of which more cannot be told apart: the others have a second figure.
MOST_CURVES = 8

#: A curve has set out where its value is below this share of the first one.
SET_OUT = 0.9

LIMITS = (str(Status.TIMEOUT), str(Status.MEMORY))

#: Lower end, line and upper end of the band of few runs and of many, as shares of the runs.
_ALL, _MOST = (0.0, 0.5, 1.0), (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Axis:
    """One axis of a chart."""

    label: str
    low: float
    high: float
    logarithmic: bool = True
    most_ticks: int = 7
    ticks: tuple[float, ...] = ()
    """Where the ticks are; empty for round numbers."""
    form: Callable[[float], str] | None = None
    """Text of a tick; None for plain numbers."""


@dataclass(frozen=True)
class Series:
    """What one solver has in one panel: a line or, of several runs, a median in a band."""

    solver: str
    x: Array
    """Places of the line; empty where there are several runs."""
    y: Array
    note: str = ""
    """Said of the solver in brackets."""
    runs: int = 1
    asked: Array | None = None
    """The tolerances asked of a one-shot solver's only run, point by point."""
    band: tuple[Array, Array] | None = None
    """Several iterative runs: places, and an array of shape (3, places) of lower end, median and upper end; infinite where unknown."""
    answers: tuple[Array, Array] | None = None
    """Several one-shot runs: lower ends, medians and upper ends of x and of y, each of shape (3, answers)."""
    stop: tuple[float, float, float] | None = None
    """Where a limit stopped the runs, the value there, and the x of the last point: medians over the runs that were stopped."""
    crosses: tuple[float, ...] = ()
    """Each x at which the limit was met; the limit is the y."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes and what is between them; panels side by side share the y axis of their chart."""

    x: Axis
    series: tuple[Series, ...]
    title: str = ""
    start: float = 0.0
    """Lines of single runs are cut off on its left."""
    equal: float | None = None
    """An x at which two solvers are equal."""
    failed: tuple[tuple[str, float], ...] | None = None
    """The solver of each run that ended short of its target, and the x that it had: crosses at the top edge. None where curves that a
    limit stopped have their crosses at their ends."""


@dataclass(frozen=True)
class Chart:
    """A figure with lines."""

    kind: Literal["runs", "shares", "points", "tracks"]
    """Curves of runs; shares in steps; points joined by lines; or tracks, which have one marker, at their end."""
    title: str
    y: Axis
    panels: tuple[Panel, ...]
    targets: tuple[float, ...] = ()
    """Each y of a target."""
    limit: float | None = None
    """The y of a time limit."""
    front: tuple[Array, Array] | None = None
    """Points that no solver is ahead of."""
    without_line: tuple[tuple[str, str], ...] = ()
    """Solvers that have no curve, with their labels in the legend."""

    @property
    def solvers(self) -> list[str]:
        """Those that have a curve, in their order."""
        return list(dict.fromkeys(series.solver for panel in self.panels for series in panel.series))

    def only(self, solvers: Collection[str], title: str | None = None) -> Chart:
        """Return the same with these solvers alone, on the same axes; of the panels that they have nothing in, the first one stays."""
        panels = [
            replace(
                panel,
                series=tuple(series for series in panel.series if series.solver in solvers),
                failed=panel.failed and tuple(one for one in panel.failed if one[0] in solvers),
            )
            for panel in self.panels
        ]
        kept = [panel for panel in panels if panel.series or panel.failed] or panels[:1]
        rest = tuple(one for one in self.without_line if one[0] in solvers)
        return replace(self, title=self.title if title is None else title, panels=tuple(kept), without_line=rest)


@dataclass(frozen=True)
class Trajectory:
    """One run as it is drawn against one axis."""

    solver: str
    one_shot: bool
    x: Array
    """More than zero; not decreasing for an iterative solver."""
    y: Array
    asked: Array
    """The tolerance of each point; not a number for an iterative solver."""
    stop: tuple[float, float, float] | None
    """Where a limit stopped it, as in a `Series`; None where no limit ended the run."""

    @property
    def start(self) -> float | None:
        """Where it sets out, or has its first answer; None if it stands still."""
        if self.one_shot:
            return float(self.x[0])
        below = self.y < SET_OUT * self.y[0]
        return float(self.x[below.argmax()]) if below.any() else None

    @property
    def end(self) -> float:
        """Where it was stopped, or its last point."""
        return float(self.x[-1]) if self.stop is None else self.stop[0]


def stop_of(status: str, limit: float | None, x: Array, value: float, *, in_seconds: bool) -> tuple[float, float, float] | None:
    """Return where a run with these places `x` was stopped, `value` and its last place; None if it ended by itself.

    A run that met its time limit was stopped there, which is later than its last point.
    """
    if status not in LIMITS:
        return None
    last = float(x[-1])
    met = in_seconds and status == Status.TIMEOUT and limit is not None and limit == limit
    return (max(last, float(limit or 0.0)) if met else last), float(value), last


def enclosed(total: int) -> tuple[float, float, float]:
    """Return the shares of `total` runs that the lower end of their band, its line and its upper end stand for."""
    return _ALL if total <= MOST_ENCLOSED else _MOST


def logarithmic_grid(first: float, last: float, count: int) -> Array:
    """Return `count` places from `first` to `last`, 0 < first <= last, even on a logarithmic axis, with both ends exact.

    `np.geomspace` rounds: its places may lie outside the two ends, where a curve that begins at `first` has no value yet.
    """
    import numpy as np

    grid = np.clip(np.geomspace(first, last, count), first, last)
    grid[0], grid[-1] = first, last
    return grid


def values_at(curves: Sequence[Trajectory], places: Array, unknown: float) -> Array:
    """Return the value of every run at every place, of shape (runs, places): the last known one, and `unknown` before the first."""
    import numpy as np

    values = np.full((len(curves), len(places)), unknown)
    for row, curve in zip(values, curves, strict=True):
        known = np.searchsorted(curve.x, places, side="right")
        row[known > 0] = curve.y[known[known > 0] - 1]
    return values


def first_of_each_kind(ranked: Sequence[str], kinds: Mapping[str, str]) -> list[str]:
    """Return solvers in their order, but the first of each kind before all others."""
    first = {kinds.get(solver, ""): solver for solver in reversed(ranked)}
    return sorted(ranked, key=lambda solver: solver not in first.values())


def by_solver(curves: Sequence[Trajectory]) -> dict[str, list[Trajectory]]:
    """Return the curves of each solver."""
    found: dict[str, list[Trajectory]] = {}
    for curve in curves:
        found.setdefault(curve.solver, []).append(curve)
    return found


def runs_panel(
    axis: str,
    groups: Mapping[str, Sequence[Trajectory]],
    totals: Mapping[str, int],
    notes: Mapping[str, str],
    start: float,
    band: Callable[[Sequence[Trajectory], int], tuple[Array, Array]],
    answers: Callable[[Sequence[Trajectory], int], tuple[Array, Array]],
) -> Panel:
    """Return the panel of the runs of several solvers.

    Parameters
    ----------
    axis : label of the x axis
    groups : the runs of each solver
    totals : how many runs each solver has, those without a curve included
    notes : what the legend says of each solver
    start : the x from which curves are drawn
    band, answers : of several iterative and of several one-shot runs, and the number of all runs of the solver; see `Series`
    """
    import numpy as np

    series = []
    for solver, curves in groups.items():
        total, note = totals.get(solver, len(curves)), notes.get(solver, "")
        stops = [curve.stop for curve in curves if curve.stop is not None]
        stop = tuple(np.median(stops, axis=0).tolist()) if stops else None
        if total == 1:
            (only,) = curves
            series.append(Series(solver, only.x, only.y, note, asked=only.asked if only.one_shot else None, stop=stop))
            continue
        lines, one_shot = [curve for curve in curves if not curve.one_shot], [curve for curve in curves if curve.one_shot]
        median = band(lines, total) if lines else None
        points = answers(one_shot, total) if one_shot else None
        series.append(Series(solver, np.empty(0), np.empty(0), note, total, band=median, answers=points, stop=stop))
    last = max(start, *(curve.end for curves in groups.values() for curve in curves))
    return Panel(Axis(axis, start / 1.3, 1.5 * last), tuple(series), start=start)
