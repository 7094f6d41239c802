"""A heat map of speed-ups: how many times faster the best specialised solver is than the best generic one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench_mtl.report.figures import style
from bench_mtl.report.render import BLANK, format_ratio, format_target
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Rows on paper; the data have them all.
MOST_ROWS = 60

#: The colours reach at least from a tenth to ten times, and at most from a thousandth to a thousand times.
_LEAST_DECADES, _MOST_DECADES = 1.0, 3.0

#: Of red, green and blue.
_LUMINANCE = (0.299, 0.587, 0.114)

_CELL_WIDTH, _CELL_HEIGHT, _LABEL_WIDTH = 0.68, 0.23, 3.2


def speed_up_points(winners: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the heat map, from the table `winners`.

    Returns
    -------
    DataFrame
        problem, target, speed_up (seconds of the fastest generic solver, or the baseline, / seconds of the fastest specialised, or other,
        one: below 1 where the former is faster; missing where neither or only one of them gives a number), bound (``>=`` or ``<=`` where
        one of them did not get there, and the time that it had stands for its time), winner, kind.
    """
    generic, ratio = winners["reference_wins"].astype(bool), numbers(winners, "ratio")
    table = winners[["problem", "target", "winner", "kind"]].copy()
    table.insert(2, "speed_up", ratio.where(~generic, 1.0 / ratio))
    bounded = winners["at_least"].astype(bool) & ratio.notna()
    table.insert(3, "bound", [("<=" if slow else ">=") if least else "" for slow, least in zip(generic, bounded, strict=True)])
    return table


def speed_ups(points: pd.DataFrame, baseline: str | None = None) -> Figure:
    """Return the heat map of `speed_up_points`, of which at least one is known: a row per problem, a column per target."""
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    problems = _shown(points)[:MOST_ROWS]
    targets = list(points["target"].unique())
    rows = points[points["problem"].isin(problems)]
    values = np.full((len(problems), len(targets)), np.nan)
    words = [[BLANK] * len(targets) for _ in problems]
    for problem, target, ratio, bound in zip(*(rows[name] for name in ("problem", "target", "speed_up", "bound")), strict=True):
        place = problems.index(problem), targets.index(target)
        if ratio == ratio:
            values[place] = math.log10(ratio)
            words[place[0]][place[1]] = f"{bound} {format_ratio(ratio, bound)}".strip()
    reach = min(max(_LEAST_DECADES, float(np.nanmax(np.abs(values)))), _MOST_DECADES)
    colours, scale = colormaps["PuOr"], Normalize(-reach, reach)
    with style.styled():
        labels = [style.broken(str(problem), _LABEL_WIDTH) for problem in problems]
        left = 0.15 + max(style.text_width(label) for label in labels)
        size = _CELL_WIDTH * len(targets), _CELL_HEIGHT * len(problems) * (1.0 + 0.5 * any("\n" in label for label in labels))
        figure, (axis,) = style.sheet(
            "Specialised against generic solvers" if baseline is None else f"All solvers against {baseline}",
            [max(size[0], 1.6)],
            size[1],
            left=left,
            below=1.0,
        )
        axis.pcolormesh(np.ma.masked_invalid(values), cmap=colours, norm=scale, edgecolors="white", linewidth=1.0)
        for i, line in enumerate(words):
            for j, word in enumerate(line):
                light = word == BLANK or np.dot(colours(scale(values[i, j]))[:3], _LUMINANCE) > 0.55
                axis.text(j + 0.5, i + 0.5, word, ha="center", va="center", fontsize=7.5, color="0.1" if light else "white")
        axis.set(xlim=(0, len(targets)), ylim=(len(problems), 0), xlabel="proven relative gap")
        axis.set_xticks(np.arange(len(targets)) + 0.5, [format_target(target) for target in targets])
        axis.set_yticks(np.arange(len(problems)) + 0.5, labels)
        axis.set_facecolor("0.97")
        axis.grid(visible=False)
        axis.tick_params(length=0)
        for side in ("left", "bottom"):
            axis.spines[side].set_visible(False)
        _key(figure, axis.get_position().x0, axis.get_position().width, reach)
    return figure


def caption(points: pd.DataFrame, baseline: str | None = None) -> str:
    """Return how the heat map was made, and what is not in it, in sentences."""
    who, against = ("specialised solver", "the fastest generic one") if baseline is None else ("other solver", baseline)
    parts = [
        f"How many times faster the fastest {who} is to each proven relative gap than {against}, on each problem: above 1 (purple) it is "
        "faster, below 1 (orange) slower."
    ]
    if (points["bound"] != "").any():
        parts.append("A bound, >= or <=: one of the two did not get there, and the time that it had stands for its time.")
    if points.loc[points["problem"].isin(_shown(points)), "speed_up"].isna().any():
        parts.append(f"{BLANK}: one of the two was not run, or not everywhere, or stopped short of its limit, or neither got there.")
    shown, total = _shown(points), points["problem"].nunique()
    if len(shown) < total:
        parts.append(f"Problems without a number to any target are left out: {total - len(shown)} of {total}.")
    if len(shown) > MOST_ROWS:
        parts.append(f"The first {MOST_ROWS} of {len(shown)} problems; the data have them all.")
    return " ".join(parts)


def _shown(points: pd.DataFrame) -> list[str]:
    """Return the problems with a number."""
    return [str(problem) for problem in points.loc[points["speed_up"].notna(), "problem"].unique()]


def _key(figure: Figure, left: float, width: float, reach: float) -> None:
    """The colours and what they mean, below."""
    import numpy as np

    height = figure.get_figheight()
    axis = figure.add_axes((left, 0.3 / height, width, 0.12 / height))
    axis.pcolormesh(np.linspace(-reach, reach, 65), [0.0, 1.0], np.linspace(-reach, reach, 64)[None, :], cmap="PuOr", edgecolors="face")
    ends = math.floor(reach)
    places = [float(place) for place in range(-ends, ends + 1)]
    axis.set_xticks(places, [style.plain(10.0**place) for place in places], fontsize=7.5)
    axis.set_yticks([])
    axis.grid(visible=False)
    for side in ("left", "bottom"):
        axis.spines[side].set_visible(False)
