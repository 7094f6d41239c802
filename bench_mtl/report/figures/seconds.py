"""The dot plot that a report begins with: a row a problem, on it the seconds of `auto` and of the best solver of each kind."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import style
from bench_mtl.report.render import format_target
from bench_mtl.report.tables.grid import Column, grids, interval_ends
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED
from bench_mtl.stats import shifted_mean_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AUTO = "auto"

#: Who is on a row, with the name in the legend: `auto`, and the best of each kind. The best library is a peer.
ROLES = {AUTO: "auto", SPECIALISED: "best specialised", GENERIC: "best generic", PEER: "best library"}

#: Rows on paper; the data have them all.
MOST_ROWS = 60

_LOOKS: dict[str, dict[str, Any]] = {
    AUTO: {"color": "#4A9600", "marker": "*", "markersize": 9.0, "gid": "solver-auto"},
    SPECIALISED: {"color": "#1F77D0", "marker": "o", "markersize": 5.5},
    GENERIC: {"color": "#CF4209", "marker": "s", "markersize": 5.0},
    PEER: {"color": "#9A4C96", "marker": "D", "markersize": 5.0},
}


def seconds_points(times: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the dot plots, by the rule of the table of winners: first runs choose the best, later ones measure it.

    Parameters
    ----------
    times : of runs, as of `bench_mtl.report.tables.instances.run_times`

    Returns
    -------
    DataFrame
        problem, target, role (of `ROLES`), solver, kind, seconds (geometric mean over instances of the medians over repetitions, low and
        high (its 95 % interval, missing where there is none), longest_attempt_seconds (where nobody in this role reached the target on
        all instances: the longest time that any of them had; solver and seconds are missing).
    """
    import pandas as pd

    rows = []
    for grid in grids(times, {label: (label,) for label in times["problem"].unique()}):
        for role in ROLES:
            those = [column for column in grid.columns if (column.name if role == AUTO else column.kind) == role]
            if those:
                rows.append({"problem": grid.group, "target": grid.target, "role": role, **_best(those)})
    columns = ["problem", "target", "role", "solver", "kind", "seconds", "low", "high", "longest_attempt_seconds"]
    return pd.DataFrame(rows, columns=columns)


def _best(those: list[Column]) -> dict[str, Any]:
    import numpy as np

    complete = [column for column in those if column.solved.all()]
    if not complete:
        had = [float(time) for column in those for time in column.had if time == time]
        return {"kind": those[0].kind, "longest_attempt_seconds": max(had, default=np.nan)}
    best = min(complete, key=lambda column: geometric_mean(column.first)).measured
    interval = shifted_mean_interval(best.repetitions, 0.0)
    low, high = interval_ends(interval)
    return {"solver": best.name, "kind": best.kind, "seconds": interval.value, "low": low, "high": high}


def seconds(points: pd.DataFrame) -> Figure:
    """Draw the dot plot of `seconds_points` of one target."""
    import numpy as np

    problems = list(points["problem"].unique())[:MOST_ROWS]
    points = points[points["problem"].isin(problems)]
    place = points["problem"].map({problem: row for row, problem in enumerate(problems)})
    known = points["seconds"].notna()
    at = points["seconds"].where(known, points["longest_attempt_seconds"])
    names = [style.wrapped(str(problem), 50) for problem in problems]
    with style.styled():
        target = format_target(points["target"].iloc[0])
        height = 1.2 + sum(0.17 + 0.13 * (1 + name.count("\n")) for name in names)
        figure, (axis,) = style.panels(f"Seconds to a proven relative gap of {target}", [9.2], height)
        reach = [at.min(), at.max(), points.loc[known, "low"].min(), points.loc[known, "high"].max()]
        style.logarithmic(axis, "x", float(np.nanmin(reach)) / 1.5, float(np.nanmax(reach)) * 1.5)
        axis.set(ylim=(len(problems) - 0.5, -0.5), xlabel="seconds, set-up and solve (log scale); left is faster")
        axis.set_yticks(range(len(problems)), names)
        axis.tick_params(axis="y", length=0)
        for turn, role in enumerate(ROLES):
            own = (points["role"] == role) & at.notna() & ((role == AUTO) | (points["solver"] != AUTO))
            if not own.any():
                continue
            height_of = place[own] + 0.14 * (turn - 1.5)
            look = _LOOKS[role] | {"linestyle": "none"}
            there = known[own]
            x, y = at[own][there], height_of[there]
            axis.hlines(y, *(points.loc[x.index, end].fillna(x) for end in ("low", "high")), color=look["color"], linewidth=1.4, alpha=0.6)
            axis.plot(x, y, label=ROLES[role], **look, zorder=3)
            axis.plot(at[own][~there], height_of[~there], **look | {"marker": "x", "markersize": 6.0, "markeredgewidth": 1.6})
        if not known.all():
            axis.plot([], [], "x", color=style.INK, label="nobody of the kind gets there, in so long", markeredgewidth=1.6)
        _names(axis, points, place)
        style.legend(figure)
    return figure


def _names(axis: Axes, points: pd.DataFrame, place: pd.Series[int]) -> None:
    """Write who is best beside the rows, a column for each kind."""
    start = 8.0
    for role in (SPECIALISED, GENERIC, PEER):
        own = points[points["role"] == role]
        if own.empty:
            continue
        names = own["solver"].fillna("-").map(lambda name: str(name) if len(str(name)) <= 28 else f"{str(name)[:26]}...")
        of_axis = {"xycoords": axis.get_yaxis_transform(), "textcoords": "offset points"}
        text: dict[str, Any] = of_axis | {"fontsize": 7.0, "va": "center", "color": _LOOKS[role]["color"], "annotation_clip": False}
        axis.annotate(ROLES[role], (1.0, -0.75), (start, 0.0), weight="bold", **text)
        for name, row in zip(names, place[own.index], strict=True):
            axis.annotate(name, (1.0, row), (start, 0.0), **text)
        start += 4.5 * max(map(len, [*names, f"{ROLES[role]} "])) + 8.0


def caption(points: pd.DataFrame) -> str:
    """Return what is drawn, and how, in two sentences."""
    cut = f" The first {MOST_ROWS} of {points['problem'].nunique()} problems." if points["problem"].nunique() > MOST_ROWS else ""
    return (
        f"Seconds of set-up and solve until a relative gap of {format_target(points['target'].iloc[0])} is proven, of auto and of the best "
        "solver of each kind: the first runs choose it, the others measure it, over all seeds, with 95 % intervals. A cross: nobody of the "
        f"kind gets there, and the longest of them had so long.{cut}"
    )
