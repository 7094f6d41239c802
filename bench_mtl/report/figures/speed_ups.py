"""A heat map of speed-ups: how many times faster the best specialised solver is than the best generic one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import BLANK, format_ratio, format_target
from bench_mtl.report.figures import style
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

#: Rows on paper; the data have them all.
MOST_ROWS = 60

#: The colours reach at least from a tenth to ten times, and at most from a thousandth to a thousand times.
_LEAST_DECADES, _MOST_DECADES = 1.0, 3.0

#: The relative luminance of a colour on which white letters and dark ones are read equally well.
_EVEN = 0.187

#: And one on which dark lines cannot be seen.
_DARKEST = 0.035

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
    import seaborn  # before the style, of which it would keep a copy
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    problems = _shown(points)[:MOST_ROWS]
    targets = list(points["target"].unique())
    rows = points[points["problem"].isin(problems)]
    values = np.full((len(problems), len(targets)), np.nan)
    words = [[BLANK] * len(targets) for _ in problems]
    bounds = []
    for problem, target, ratio, bound in zip(*(rows[name] for name in ("problem", "target", "speed_up", "bound")), strict=True):
        place = problems.index(problem), targets.index(target)
        if ratio == ratio:
            values[place] = math.log10(ratio)
            words[place[0]][place[1]] = f"{bound} {format_ratio(ratio, bound)}".strip()
            bounds += [place] if bound else []
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
        no_ticks: dict[str, Any] = {"xticklabels": False, "yticklabels": False}
        seaborn.heatmap(values, ax=axis, cmap=colours, norm=scale, cbar=False, linewidths=1.0, linecolor="white", **no_ticks)
        for i, line in enumerate(words):
            for j, word in enumerate(line):
                colour = colours(scale(values[i, j]))
                ink = "0.05" if word == BLANK or _relative_luminance(colour[:3]) > _EVEN else "white"
                if (i, j) in bounds:
                    axis.add_patch(_hatching(i, j, "white" if _relative_luminance(colour[:3]) < _DARKEST else "black"))
                behind = {"facecolor": colour, "edgecolor": "none", "pad": 0.8} if (i, j) in bounds else None
                axis.text(j + 0.5, i + 0.5, word, ha="center", va="center", fontsize=7.5, color=ink, bbox=behind)
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
        parts.append(
            "A bound, >= or <=, is hatched: one of the two did not get there, and the time that it had stands for its time. Its colour is "
            "that of the bound, beyond which the ratio lies."
        )
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


def _relative_luminance(colour: Sequence[float]) -> float:
    """Return how light a colour of red, green and blue from 0 to 1 is."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _hatching(row: int, column: int, ink: str) -> Rectangle:
    """Return the lines over a bound. The colour below is that of a measured ratio, and dark lines leave it as strong at least."""
    from matplotlib.patches import Rectangle

    return Rectangle((column, row), 1.0, 1.0, facecolor="none", edgecolor=ink, hatch="////", linewidth=0.0, alpha=0.55)


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
