"""The dot plot that a report begins with: a row a problem, on it the seconds of `auto` and of the best solver of each kind.

`benchmarks.glance` draws the problems of several reports on one, by family.
"""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import shortened
from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import style
from bench_mtl.report.figures.maps import MOST_ROWS
from bench_mtl.report.tables.contests import FIELD, interval_ends, later
from bench_mtl.results.frames import AUTO, GENERIC, PEER, SPECIALISED
from bench_mtl.stats import shifted_mean_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Who is on a row, with the name in the legend: `auto`, and the best of each kind. A library is a peer.
ROLES = {AUTO: "auto", SPECIALISED: "best specialised", GENERIC: "best generic", PEER: "best library"}

_LOOKS: dict[str, dict[str, Any]] = {
    AUTO: {"color": "#4A9600", "marker": "*", "markersize": 9.0, "gid": "solver-auto"},
    SPECIALISED: {"color": "#1F77D0", "marker": "o", "markersize": 5.5},
    GENERIC: {"color": "#CF4209", "marker": "s", "markersize": 5.0},
    PEER: {"color": "#9A4C96", "marker": "D", "markersize": 5.0},
}

#: How a mark looks at a limit within which nobody of the kind reached the target.
_OPEN: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.2}


def described(points: pd.DataFrame) -> str:
    """Return who is on the rows of a dot plot, and what bars and open marks are where there are any."""
    auto = "auto and " if (points["role"] == AUTO).any() else ""
    bars = ", with 95 % intervals" if points["low"].notna().any() else ""
    open_marks = ". An open mark: nobody of the kind reaches the target on every seed in that time"
    rule = "chosen by first runs, measured by later ones where there are any"
    return f"{auto}the best solver of each kind, {rule}{bars}" + (open_marks if points["limit_seconds"].notna().any() else "")


def seconds_points(field: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the dot plots from the contests of single problems: first runs choose the best, later ones measure it.

    Columns: problem, target, role (of `ROLES`), solver, seconds (geometric mean over instances of the medians over repetitions), low and
    high (its 95 % interval), limit_seconds (the longest time that one in this role had, where none of them reached the target on all
    instances and one was stopped by its limit).
    """
    import pandas as pd

    rows = []
    for (problem, target), of_field in field[field["tried"]].groupby(FIELD, sort=False):
        solvers = [own for _, own in of_field.groupby("solver", sort=False)]
        for role in ROLES:
            those = [own for own in solvers if own["solver" if role == AUTO else "kind"].iloc[0] == role]
            if those:
                rows.append({"problem": problem, "target": target, "role": role, **_best(those)})
    return pd.DataFrame(rows, columns=["problem", "target", "role", "solver", "seconds", "low", "high", "limit_seconds"])


def _best(those: list[pd.DataFrame]) -> dict[str, Any]:
    complete = [own for own in those if len(own) == own["instances"].iloc[0] and own["first_seconds"].notna().all()]
    if not complete:
        return {"limit_seconds": max((had for own in those for timeouts in own["timeouts"] for had in timeouts), default=float("nan"))}
    best = min(complete, key=lambda own: geometric_mean(own["first_seconds"]))
    interval = shifted_mean_interval([later(repetitions) for repetitions in best["repetitions"]], 0.0)
    return {"solver": best["solver"].iloc[0], "seconds": interval.value, **dict(zip(("low", "high"), interval_ends(interval), strict=True))}


def seconds(points: pd.DataFrame, *, is_small: bool = False) -> Figure:
    """Draw the dot plot of `seconds_points` of one target. `auto` alone is shown where it is the best specialised solver.

    A column `family` of the points, where they have one, names parts of the rows. `is_small` draws it for a narrow page: names of problems
    are broken, and those of solvers left out.
    """
    problems = list(points["problem"].unique())[:MOST_ROWS]
    points = points[points["problem"].isin(problems)].assign(at=points["seconds"].fillna(points["limit_seconds"]))
    names, places, titles = _rows(points, 22 if is_small else 60)
    points["row"] = points["problem"].map(places)
    beside, room = ([], 0.0) if is_small else _best_solvers(points)
    with style.styled():
        width = (3.0 if is_small else 4.4) + 0.074 * max(len(line) for name in names for line in name.split("\n")) + room / 72.0
        figure, axis = style.row_panel(f"Seconds to a proven relative gap of {format_target(points['target'].iloc[0])}", names, width)
        for title in titles:
            axis.get_yticklabels()[title].set_fontweight("bold")
        low, high = points[["at", "low"]].min().min(), points[["at", "high"]].max().max()
        style.logarithmic(axis, "x", low / 1.5, high * 1.5)
        axis.set(xlabel=f"seconds{'' if is_small else ', set-up and solve'} (log scale); left is faster")
        for turn, (role, name) in enumerate(ROLES.items()):
            own = points[(points["role"] == role) & ((role == AUTO) | (points["solver"] != AUTO))]
            own, look = own.assign(row=own["row"] + 0.14 * (turn - 1.5)), _LOOKS[role] | {"linestyle": "none"}
            there, missed = own[own["seconds"].notna()], own[own["seconds"].isna()]
            low_ends, high_ends = (there[end].fillna(there["at"]) for end in ("low", "high"))
            axis.hlines(there["row"], low_ends, high_ends, color=look["color"], linewidth=1.4, alpha=0.6)
            axis.plot(there["at"], there["row"], label=name if len(there) else None, zorder=3, **look)
            axis.plot(missed["at"], missed["row"], zorder=3, **look | _OPEN)
        if points["limit_seconds"].notna().any():
            axis.plot([], [], color=style.INK, marker="o", linestyle="none", label="open: not within that time", **_OPEN)
        for name, row, start, colour in beside:
            at: dict[str, Any] = {"xycoords": axis.get_yaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
            axis.annotate(name, (1.0, row), (start, 0.0), **at, fontsize=7.0, va="center", color=colour)
        style.legend(figure)
    return figure


def _rows(points: pd.DataFrame, width: int) -> tuple[list[str], dict[str, int], list[int]]:
    """Return the names of the rows from the top down, the row of every problem, and the rows that name a family."""
    names: list[str] = []
    places: dict[str, int] = {}
    titles: list[int] = []
    one_family = points.assign(family=points.get("family", ""))
    for family, of_family in one_family.groupby("family", sort=False):
        if family:
            titles.append(len(names))
            names.append(style.wrapped(str(family), width))
        for problem in of_family["problem"].unique():
            places[problem] = len(names)
            names.append(style.wrapped(str(problem).removeprefix(f"{family}, "), width))
    return names, places, titles


def _best_solvers(points: pd.DataFrame) -> tuple[list[tuple[str, float, float, str]], float]:
    """Return names, rows, places and colours of who is best of each kind, and the room that they need beside the axes, in points."""
    texts, start = [], 8.0
    for role in (SPECIALISED, GENERIC, PEER):
        own = points[points["role"] == role]
        if len(own):
            names = [shortened(name, 28) for name in own["solver"].fillna("-")]
            texts.append((ROLES[role], -0.75, start, _LOOKS[role]["color"]))
            texts += [(name, float(row), start, style.INK) for name, row in zip(names, own["row"], strict=True)]
            start += 4.4 * max(map(len, [ROLES[role], *names])) + 10.0
    return texts, start
