"""Ratios of all problems at once: a map of speed-ups, and how far the ratios of single runs spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import format_ratio, format_seconds, format_target
from bench_mtl.report.figures import style
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, numbers
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A row of the figure of spreads has at least this many ratios.
FEWEST = 4

#: Rows on paper; the data have them all.
MOST_ROWS = 60

#: The colours of all reports reach from a thousandth to a thousand times.
REACH = 3.0

#: Dots where the solver is faster, and where its rival is.
FASTER, SLOWER = "#8B62D6", "#C77C02"

_NAMES = {SPECIALISED: "specialised solver", GENERIC: "generic solver", PEER: "library"}

#: The relative luminance of a colour on which white letters and black ones are read equally well.
_EVEN = 0.187


def compared(points: pd.DataFrame, kinds: Mapping[str, str], baseline: str | None) -> str:
    """Return who is really compared with whom, such as ``"best specialised solver against the best library"``."""
    if baseline is not None:
        return f"best of the others against {baseline}"
    both = points.dropna(subset=["solver", "rival"])
    first, second = (" or ".join(dict.fromkeys(_NAMES.get(kinds[name], "solver") for name in both[side])) for side in ("solver", "rival"))
    return f"best {first} against the best {second}"


def speed_up_points(winners: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the map, from the table of winners.

    Returns
    -------
    DataFrame
        problem, target, solver and rival (a generic solver, a library, or the baseline; missing where nobody of them got there), seconds
        and rival_seconds, ratio (the rival's time over the solver's: below 1 where the rival is faster), bound (``>=`` or ``<=`` where
        one of them did not get there), note (why there is no ratio).
    """
    import pandas as pd

    flipped, ratio = winners["reference_wins"].astype(bool), numbers(winners, "ratio")
    sides = {"solver": ("winner", "other"), "rival": ("other", "winner")}
    sides |= {"seconds": ("seconds", "other_seconds"), "rival_seconds": ("other_seconds", "seconds")}
    table = winners[["problem", "target"]].assign(
        **{name: winners[own].where(~flipped, winners[its]) for name, (own, its) in sides.items()}
    )
    table["ratio"] = ratio.where(~flipped, 1.0 / ratio)
    table["bound"] = flipped.map({True: "<=", False: ">="}).where(winners["at_least"].astype(bool) & ratio.notna(), "")
    table["note"] = pd.Series("-", winners.index).mask(winners["walkover"].astype(bool), "no rival run")
    table["note"] = table["note"].mask(winners["winner"].isna(), "nobody").mask(ratio.notna(), "")
    return table


def ratio_words(ratio: float, bound: str) -> str:
    """Return a ratio for people: ``12x faster``, ``>= 40x faster``, ``3.7x slower``."""
    faster = ratio >= 1.0
    bound = bound if faster else {"<=": ">=", ">=": "<="}.get(bound, "")
    return f"{bound} {format_ratio(ratio if faster else 1.0 / ratio, bound)} {'faster' if faster else 'slower'}".strip()


def speed_ups(points: pd.DataFrame, who: str) -> Figure:
    """Draw `speed_up_points`: a row a problem, a column a target; below each ratio the two and their seconds. `who` says `compared`."""
    import numpy as np
    import seaborn
    from matplotlib.colors import Normalize

    problems = list(points.loc[points["ratio"].notna(), "problem"].unique())[:MOST_ROWS]
    targets = list(points["target"].unique())
    cells = {(row.problem, row.target): row for row in points.itertuples()}
    logs = [[math.log10(cells[problem, target].ratio) for target in targets] for problem in problems]
    with style.styled():
        size = 4.0 + 1.45 * len(targets), 1.5 + 0.42 * len(problems)
        figure, (axis,) = style.panels(f"Times to each proven gap: {who}", [size[0]], size[1])
        seaborn.heatmap(
            np.array(logs), ax=axis, cmap="PuOr", norm=Normalize(-REACH, REACH), cbar_kws={"location": "bottom", "aspect": 40},
            xticklabels=list(map(format_target, targets)), yticklabels=[style.wrapped(str(problem), 50) for problem in problems],
        )  # fmt: skip
        mesh = axis.collections[0]
        for (row, problem), (column, target) in ((row, column) for row in enumerate(problems) for column in enumerate(targets)):
            cell, log = cells[problem, target], logs[row][column]
            ink = style.INK if log != log else "black" if _luminance(mesh.to_rgba(log)) > _EVEN else "white"
            text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
            pairs = ((cell.solver, cell.seconds), (cell.rival, cell.rival_seconds))
            names = [f"{style.shortened(str(name), 19)} {format_seconds(time)} s" for name, time in pairs if time == time]
            axis.text(column + 0.5, row + 0.27, cell.note or ratio_words(cell.ratio, cell.bound), fontsize=7.5, **text)
            axis.text(column + 0.5, row + 0.7, "\n".join(names), fontsize=5.5, **text)
        axis.set(xlabel="proven relative gap")
        axis.tick_params(length=0, labelrotation=0)
        axis.grid(visible=False)
        bar = mesh.colorbar
        bar.set_label("times slower (orange) or faster (purple), log scale")
        bar.set_ticks(range(-3, 4), labels=[f"{10 ** abs(power)}x" for power in range(-3, 4)])
    return figure


def _luminance(colour: Sequence[float]) -> float:
    """Return how light a colour of red, green and blue from 0 to 1 is."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def spread_points(times: pd.DataFrame, speed_ups: pd.DataFrame, members: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the ratio of every pair of runs of the two solvers that the map of speed-ups compares.

    Runs on one instance are paired in the order of their repetitions, without the first ones where there are others, by which the solvers
    were chosen; a single run of one goes with every run of the other. What did not reach the target has no ratio.

    Parameters
    ----------
    times, speed_ups : `run_times` and `speed_up_points`
    members : the problem labels of every group of like problems; groups that hold another one are left out

    Returns
    -------
    DataFrame
        group, problem, target, instance, solver, rival, seconds, rival_seconds, ratio; only groups with `FEWEST` ratios to a target.
    """
    smallest = {name: labels for name, labels in members.items() if not any(set(some) < set(labels) for some in members.values())}
    group = {label: name for name, labels in smallest.items() for label in labels}
    case = ["problem", "target", "instance"]
    runs = times[[*case, "solver", "repetition", "seconds"]].sort_values("repetition", kind="stable")
    cases = runs.groupby([*case, "solver"])["repetition"]
    runs = runs.assign(turn=cases.cumcount(), runs=cases.transform("size"), seconds=runs["seconds"].clip(lower=RESOLUTION))
    runs = runs[(runs["turn"] > 0) | (runs["runs"] == 1)].drop(columns="repetition")
    both = speed_ups.loc[speed_ups["ratio"].notna() & (speed_ups["bound"] == ""), ["problem", "target", "solver", "rival"]]
    both = both.assign(group=both["problem"].map(group)).dropna().merge(runs, on=["problem", "target", "solver"])
    both = both.merge(runs.rename(columns={"solver": "rival"}), on=[*case, "rival"], suffixes=("", "_rival"))
    both = both[(both["turn"] == both["turn_rival"]) | (both["runs"] == 1) | (both["runs_rival"] == 1)]
    both = both.rename(columns={"seconds_rival": "rival_seconds"}).assign(ratio=lambda pairs: pairs["rival_seconds"] / pairs["seconds"])
    both = both[both.groupby(["group", "target"])["ratio"].transform("size") >= FEWEST]
    order = both.assign(group=both["group"].map(list(members).index), target=-both["target"]).sort_values(
        ["group", "target"], kind="stable"
    )
    return both.loc[order.index, ["group", *case, "solver", "rival", "seconds", "rival_seconds", "ratio"]].reset_index(drop=True)


def spread(points: pd.DataFrame, who: str) -> Figure:
    """Draw `spread_points`: a row a group and target, a dot a ratio, a box for the middle half. `who` says `compared`."""
    import seaborn

    place = points.groupby(["group", "target"], sort=False).ngroup()
    rows = points.assign(row=place.astype(str), faster=points["ratio"] >= 1.0)[place < MOST_ROWS]
    heads = rows.drop_duplicates("row")
    names = heads["group"].map(lambda group: style.wrapped(str(group), 46) + "   ").mask(heads["group"].duplicated(), "")
    labels = [name + format_target(target) for name, target in zip(names, heads["target"], strict=True)]
    with style.styled():
        height = 1.2 + sum(0.16 + 0.13 * (1 + label.count("\n")) for label in labels)
        figure, (axis,) = style.panels(f"Run by run: {who}", [7.5], height)
        style.logarithmic(axis, "x", min(float(rows["ratio"].min()), 1.0) / 1.4, max(float(rows["ratio"].max()), 1.0) * 1.4)
        axis.axvline(1.0, **style.GUIDE)
        shared: dict[str, Any] = {
            "data": rows,
            "x": "ratio",
            "y": "row",
            "order": list(heads["row"]),
            "orient": "h",
            "ax": axis,
            "legend": False,
        }
        # Boxen of a depth of one: seaborn's box plots go through a part of matplotlib that reads all its settings and looks for a screen.
        seaborn.boxenplot(
            **shared, k_depth=1, showfliers=False, width=0.6, color="0.6", saturation=1.0, linewidth=0.6, linecolor=style.INK,
            line_kws={"linewidth": 1.3, "color": style.INK}, box_kws={"alpha": 0.35},
        )  # fmt: skip
        seaborn.stripplot(**shared, hue="faster", hue_order=[True, False], palette=[FASTER, SLOWER], jitter=False, size=4.0, alpha=0.75)
        axis.set(xlabel="rival's time / solver's (log scale); right of 1 the solver is faster", ylabel="")
        axis.set_yticks(range(len(labels)), labels)
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
    return figure
