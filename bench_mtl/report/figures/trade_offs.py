"""Sparsity against accuracy: the non-zeros or features of the points that solvers go through, and the error that goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bench_mtl.report.figures.chart import LEVELS, Axis, Chart, Panel, Series
from bench_mtl.report.figures.trajectories import answers_of, drawn_trajectories, spread, value_axis
from bench_mtl.report.tables.measures import OBJECTIVE, SIZES

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array

#: A logarithmic axis has no zero: a point of zeros alone is drawn here.
NO_NONZEROS = 0.5


@dataclass(frozen=True)
class Track:
    """Where the runs of one solver go."""

    solver: str
    runs: int
    one_shot: bool
    x: Array
    """The size, at least `NO_NONZEROS`; of several runs the median at equal iterations, or of the answers to equal tolerances. Points of
    zeros alone are left out where there are others."""
    y: Array
    """The other quantity, likewise. The last one is where the runs end."""


class Axes(NamedTuple):
    """What is drawn against what."""

    size: str
    accuracy: str


def axes_of(quantities: Sequence[str]) -> Axes | None:
    """Return the features used, or else the non-zeros, and against them what is measured on held-out examples, an error above all, or
    another error, or the objective. None where neither size is measured."""
    size = next((name for name in SIZES if name in quantities), None)
    if size is None:
        return None
    others = [name for name in quantities if name not in SIZES]
    return Axes(size, next((name for word in ("held-out error", "held-out", "error") for name in others if word in name), OBJECTIVE))


def tracks(points: pd.DataFrame, axes: Axes, levels: int = LEVELS) -> list[Track]:
    """Return the solvers of one problem, from its rows of `bench_mtl.report.tables.measures.trajectories`."""
    import numpy as np

    known = points[points[axes.size].notna() & points[axes.accuracy].notna()]
    found = []
    for solver, own in known.groupby("solver", sort=False, observed=True):
        counts, values = (drawn_trajectories(own, quantity, "seconds", levels) for quantity in axes)
        one_shot = counts[0].one_shot
        if one_shot:
            x, y = (answers_of(curves)[1][1] for curves in (counts, values))
        elif len(counts) == 1:
            x, y = counts[0].y, values[0].y
        else:
            column = "iteration" if (own["iteration"].groupby(own["run_id"]).max() > 0).all() else "seconds"
            x, y = (spread(drawn_trajectories(own, quantity, column, levels), levels)[1][1] for quantity in axes)
        left = x > 0 if (x > 0).any() else np.ones(len(x), bool)  # the start at zero is no point of interest, and far from all others
        x, y = np.maximum(x[left], NO_NONZEROS), y[left]
        moved = np.r_[True, (x[1:] != x[:-1]) | (y[1:] != y[:-1])]
        found.append(Track(str(solver), len(counts), one_shot, x[moved], y[moved]))
    return found


def chart(points: pd.DataFrame, axes: Axes) -> Chart:
    """Return the chart of one problem."""
    import numpy as np

    drawn = tracks(points, axes)
    places = np.concatenate([track.x for track in drawn])
    y = value_axis(axes.accuracy, np.concatenate([track.y for track in drawn]))
    series = tuple(Series(track.solver, track.x, track.y, runs=track.runs) for track in drawn)
    x = Axis(axes.size, float(places.min()) / 1.3, float(places.max()) * 1.3)
    return Chart("tracks", str(points["problem"].iloc[0]), y, (Panel(x, series),))


def caption(points: pd.DataFrame, axes: Axes) -> str:
    """Return how the figure of one problem was made, and what is not in it, in sentences."""
    drawn = tracks(points, axes)
    parts = [
        f"{axes.size.capitalize()} and {axes.accuracy} of the points that a solver goes through, each repaired, along the run; "
        "the marker is where it ends."
    ]
    if axes.accuracy == OBJECTIVE:
        parts.append("No error is measured here; the objective of an iterative solver is of its best point so far.")
    if any(track.runs > 1 for track in drawn):
        parts.append("Of several seeds or repetitions both medians, at equal iterations.")
    if any(track.one_shot for track in drawn):
        parts.append(
            "A generic solver: its answers, from the loosest tolerance to the tightest; tiny values count, which it has in place of zeros."
        )
    if any((track.x <= NO_NONZEROS).any() for track in drawn):
        parts.append(f"Where there are points of zeros alone they are drawn at {NO_NONZEROS:g}.")
    elif (points[axes.size] == 0).any():
        parts.append("Points of zeros alone, such as a start at zero, are left out.")
    absent = [str(solver) for solver in points["solver"].unique() if solver not in {track.solver for track in drawn}]
    if absent:
        parts.append(f"Not measured, so not drawn: {', '.join(absent)}.")
    return " ".join(parts)
