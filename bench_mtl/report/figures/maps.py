"""Ratios of all problems at once: a map of speed-ups, and how far the ratios of single runs spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import shortened
from bench_mtl.report.columns import format_ratio, format_seconds, format_target, share
from bench_mtl.report.figures import style
from bench_mtl.report.tables.contests import later
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A row of the figure of spreads has at least so many ratios; and rows on paper, of which the data have all.
FEWEST, MOST_ROWS = 4, 60

#: The colours of all reports reach from a thousandth to a thousand times.
REACH = 3.0

#: Dots where the solver is faster, and where its rival is; and how light a colour is on which white letters and black ones are read alike.
FASTER, SLOWER, _EVEN = "#8B62D6", "#C77C02", 0.187

_NAMES = {SPECIALISED: "specialised solver", GENERIC: "generic solver", PEER: "library"}


def compared(points: pd.DataFrame, kinds: Mapping[str, str], baseline: str | None) -> str:
    """Return who is really compared with whom, such as ``"best specialised solver against the best library"``."""
    if baseline is not None:
        return f"best of the others against {baseline}"
    both = points.dropna(subset=["solver", "rival"])
    first, second = (" or ".join(dict.fromkeys(_NAMES.get(kinds[name], "solver") for name in both[side])) for side in ("solver", "rival"))
    return f"best {first} against the best {second}"


def speed_up_points(winners: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the map, from the table of winners.

    Columns: problem, target, solver and rival (a generic solver, a library, or the baseline; missing where none reached it), seconds
    and rival_seconds, share and rival_share (" (3 of 4)" where not all runs reached it), ratio (the rival's time over the solver's: below 1
    where the rival is faster), note (why there is no ratio: of a side that did not reach the target, how it ended).
    """
    flipped, ratio = winners["reference_wins"].astype(bool), numbers(winners, "ratio")
    sides = {"solver": ("winner", "other"), "rival": ("other", "winner")}
    sides |= {"seconds": ("seconds", "other_seconds"), "rival_seconds": ("other_seconds", "seconds")}
    sides |= {"share": ("share", "other_share"), "rival_share": ("other_share", "share")}
    for whose in ("", "other_"):
        counts = zip(winners[f"{whose}reached"].fillna(0), winners[f"{whose}runs"], strict=True)
        winners = winners.assign(**{f"{whose}share": [share(*each) for each in counts]})
    table = winners[["problem", "target"]].assign(
        **{name: winners[own].where(~flipped, winners[its]) for name, (own, its) in sides.items()}
    )
    table["ratio"] = ratio.where(~flipped, 1.0 / ratio)
    in_vain = flipped.map({True: "solver ", False: "rival "}) + winners["rivals"]
    table["note"] = in_vain.where(winners["rivals"] != "", "-").mask(winners["walkover"].astype(bool), "no rival run")
    table["note"] = table["note"].mask(winners["winner"].isna(), "nobody").mask(ratio.notna(), "")
    return table


def has_contest(points: pd.DataFrame) -> pd.Series[bool]:
    """Return in which rows somebody reached the target against a rival that was run."""
    return points[["solver", "rival"]].notna().any(axis=1) & (points["note"] != "no rival run")


def speed_ups(points: pd.DataFrame, who: str) -> Figure:
    """Draw `speed_up_points`: a row a problem, a column a target; below each ratio the two and their seconds. `who` says `compared`."""
    import numpy as np
    import seaborn
    from matplotlib.colors import Normalize
    from seaborn.utils import relative_luminance

    problems = list(points.loc[has_contest(points), "problem"].unique())[:MOST_ROWS]
    targets = list(points["target"].unique())
    cells: dict[Any, Any] = {(row.problem, row.target): row for row in points.itertuples()}
    logs = [[math.log10(cells[problem, target].ratio) for target in targets] for problem in problems]
    with style.styled():
        size = 4.0 + 1.45 * len(targets), 1.5 + 0.42 * len(problems)
        figure, (axis,) = style.panels(f"Times to each proven gap: {who}", [size[0]], size[1])
        seaborn.heatmap(
            np.array(logs), ax=axis, cmap="PuOr", norm=Normalize(-REACH, REACH), cbar_kws={"location": "bottom", "aspect": 40},
            xticklabels=list(map(format_target, targets)), yticklabels=[style.wrapped(str(problem), 50) for problem in problems],
        )  # fmt: skip
        mesh: Any = axis.collections[0]
        for (row, problem), (column, target) in ((row, column) for row in enumerate(problems) for column in enumerate(targets)):
            cell, log = cells[problem, target], logs[row][column]
            ink = style.INK if log != log else "black" if relative_luminance(mesh.to_rgba(log)[:3]) > _EVEN else "white"
            text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
            pairs = ((cell.solver, cell.seconds, cell.share), (cell.rival, cell.rival_seconds, cell.rival_share))
            names = [f"{shortened(str(name), 19)} {format_seconds(time)} s{runs}" for name, time, runs in pairs if time == time]
            speed = f"{format_ratio(cell.ratio)} faster" if cell.ratio >= 1.0 else f"{format_ratio(1.0 / cell.ratio)} slower"
            axis.text(column + 0.5, row + 0.27, shortened(cell.note, 26) or speed, fontsize=7.5, **text)
            axis.text(column + 0.5, row + 0.7, "\n".join(names), fontsize=5.5, **text)
        axis.set(xlabel="proven relative gap")
        axis.tick_params(length=0, labelrotation=0)
        axis.grid(visible=False)
        bar = mesh.colorbar
        bar.set_label("times slower (orange) or faster (purple), log scale")
        bar.set_ticks(range(-3, 4), labels=[f"{10 ** abs(power)}x" for power in range(-3, 4)])
    return figure


def spread_points(field: pd.DataFrame, speed_ups: pd.DataFrame, members: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the ratio of every pair of runs of the two solvers that the map of speed-ups compares, of groups that have enough.

    Runs on one instance are paired in the order of their repetitions, without the first ones where there are others, by which the solvers
    were chosen; a single run of one goes with every run of the other. What did not reach the target has no ratio. `field` is the contests
    of single problems. Of `members`, groups of problem labels, those that hold another one are left out.
    """
    import pandas as pd

    chosen = speed_ups.loc[speed_ups["ratio"].notna(), ["problem", "target", "solver", "rival"]]
    runs = field[["problem", "target", "instance", "solver", "repetitions"]]
    both = chosen.merge(runs, on=["problem", "target", "solver"])
    both = both.merge(runs.rename(columns={"solver": "rival"}), on=["problem", "target", "instance", "rival"], suffixes=("", "_rival"))
    rows = []
    for group, labels in members.items():
        if any(set(some) < set(labels) for some in members.values()):
            continue
        for *about, target, solver, rival, instance, own, its in both[both["problem"].isin(labels)].itertuples(index=False):
            times, others = later(own), later(its)
            pairs = product(times, others) if 1 in (len(times), len(others)) else zip(times, others, strict=False)
            rows += [(group, *about, target, instance, solver, rival, *pair, pair[1] / pair[0]) for pair in pairs]
    table = pd.DataFrame(rows, columns=["group", "problem", "target", "instance", "solver", "rival", "seconds", "rival_seconds", "ratio"])
    table = table[table.groupby(["group", "target"])["ratio"].transform("size") >= FEWEST]
    order = {group: place for place, group in enumerate(members)}
    return table.sort_values(["group", "target"], key=lambda of: of.map(order) if of.name == "group" else -of, kind="stable")


def spread(points: pd.DataFrame, who: str) -> Figure:
    """Draw `spread_points`: a row a group and target, a dot a ratio, a box for the middle half. `who` says `compared`."""
    import seaborn

    place = points.groupby(["group", "target"], sort=False).ngroup()
    rows = points.assign(row=place.astype(str), faster=points["ratio"] >= 1.0)[place < MOST_ROWS]
    heads = rows.drop_duplicates("row")
    names = heads["group"].map(lambda group: style.wrapped(str(group), 46) + 3 * "\N{NO-BREAK SPACE}").mask(heads["group"].duplicated(), "")
    labels = [name + format_target(target) for name, target in zip(names, heads["target"], strict=True)]
    with style.styled():
        figure, axis = style.row_panel(f"Run by run: {who}", labels, 7.5)
        style.logarithmic(axis, "x", min(float(rows["ratio"].min()), 1.0) / 1.4, max(float(rows["ratio"].max()), 1.0) * 1.4)
        axis.axvline(1.0, **style.GUIDE)
        shared: dict[str, Any] = {"data": rows, "x": "ratio", "y": "row", "order": list(heads["row"])}
        shared |= {"orient": "h", "ax": axis, "legend": False}
        # Boxen of a depth of one: seaborn's box plots go through a part of matplotlib that reads all its settings and looks for a screen.
        seaborn.boxenplot(
            **shared, k_depth=1, showfliers=False, width=0.6, color="0.6", saturation=1.0, linewidth=0.6, linecolor=style.INK,
            line_kws={"linewidth": 1.3, "color": style.INK}, box_kws={"alpha": 0.35},
        )  # fmt: skip
        seaborn.stripplot(**shared, hue="faster", hue_order=[True, False], palette=[FASTER, SLOWER], jitter=False, size=4.0, alpha=0.75)
        axis.set(xlabel="rival's time / solver's (log scale); right of 1 the solver is faster", ylabel="")
        axis.set_yticks(range(len(labels)), labels)
        axis.grid(visible=False, axis="y")
    return figure
