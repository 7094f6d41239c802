"""Ratios of all problems at once: a map of speed-ups, and how far the ratios of single runs spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import style
from bench_mtl.report.render import format_ratio, format_seconds, format_target
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, numbers
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: A row of the figure of spreads has at least this many ratios, and the figure so many rows.
FEWEST, FEWEST_ROWS = 4, 3

#: Rows on paper; the data have them all.
MOST_ROWS = 60

#: The colours of all reports reach from a thousandth to a thousand times.
REACH = 3.0

#: Where the solver is faster, and where its rival is: the ends of the colours.
FASTER, SLOWER = "#8B62D6", "#C77C02"

#: How kinds of solvers are called.
NAMES = {SPECIALISED: "specialised solver", GENERIC: "generic solver", PEER: "library"}

#: The relative luminance of a colour on which white letters and dark ones are read equally well.
_EVEN = 0.187


def who(points: pd.DataFrame, kinds: Mapping[str, str], baseline: str | None) -> str:
    """Return who is really compared with whom, such as ``"best specialised solver against the best library"``."""
    if baseline is not None:
        return f"best of the others against {baseline}"
    of = points.dropna(subset=["solver", "rival"])
    first, second = (
        " or ".join(dict.fromkeys(NAMES.get(kinds.get(str(label), ""), "solver") for label in of[side])) for side in ("solver", "rival")
    )
    return f"best {first} against the best {second}"


def speed_up_points(winners: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return the data of the map, from the table of winners.

    Returns
    -------
    DataFrame
        problem, target, solver and rival (a generic solver, a library, or the baseline; missing where nobody of them got there), seconds
        and rival_seconds, ratio (the rival's time over the solver's: below 1 where the rival is faster), bound (``>=`` or ``<=`` where
        one of them did not get there), note (why there is no ratio).
    """
    import pandas as pd

    turned, ratio = winners["reference_wins"].astype(bool), numbers(winners, "ratio")
    bound = winners["at_least"].astype(bool) & ratio.notna()
    nobody, alone = winners["winner"].isna(), winners["walkover"].astype(bool)
    note = pd.Series("-", index=winners.index).mask(alone, "no rival run").mask(nobody, "nobody").mask(ratio.notna(), "")
    return pd.DataFrame(
        {
            "problem": winners["problem"],
            "target": winners["target"],
            "solver": winners["winner"].where(~turned, winners["other"]),
            "rival": winners["other"].where(~turned, winners["winner"]),
            "seconds": numbers(winners, "seconds").where(~turned, numbers(winners, "other_seconds")),
            "rival_seconds": numbers(winners, "other_seconds").where(~turned, numbers(winners, "seconds")),
            "ratio": ratio.where(~turned, 1.0 / ratio),
            "bound": [("<=" if rival else ">=") if least else "" for rival, least in zip(turned, bound, strict=True)],
            "note": note,
        }
    )


def words(ratio: float, bound: str) -> str:
    """Return a ratio for people: ``12x faster``, ``>= 40x faster``, ``3.7x slower``."""
    if ratio >= 1.0:
        return f"{bound} {format_ratio(ratio, bound)} faster".strip()
    turned = {"<=": ">=", ">=": "<=", "": ""}[bound]
    return f"{turned} {format_ratio(1.0 / ratio, turned)} slower".strip()


def speed_ups(points: pd.DataFrame, compared: str) -> Figure:
    """Draw `speed_up_points`: a row a problem, a column a target; below each ratio the names of the two.

    Parameters
    ----------
    compared : what `who` says
    """
    import numpy as np
    import seaborn
    from matplotlib.colors import Normalize
    from matplotlib.ticker import FixedLocator, FuncFormatter

    problems = list(points.loc[points["ratio"].notna(), "problem"].unique())[:MOST_ROWS]
    targets = list(points["target"].unique())
    rows = points[points["problem"].isin(problems)]
    cells = {(row.problem, row.target): row for row in rows.itertuples()}
    shares = rows.assign(log=np.log10(numbers(rows, "ratio"))).pivot(index="problem", columns="target", values="log")
    labels = [style.wrapped(str(problem), 50) for problem in problems]
    with style.styled():
        size = 3.4 + 1.35 * len(targets), 1.5 + 0.42 * len(problems)
        figure, (axis,) = style.panels(f"Times to each proven gap: {compared}", [size[0]], size[1])
        seaborn.heatmap(
            shares.loc[problems, targets], ax=axis, cmap="PuOr", norm=Normalize(-REACH, REACH), linewidths=0.0, yticklabels=labels,
            xticklabels=[format_target(target) for target in targets], cbar_kws={"location": "bottom", "shrink": 0.7, "aspect": 40},
        )  # fmt: skip
        mesh = axis.collections[0]
        for row, problem in enumerate(problems):
            for column, target in enumerate(targets):
                cell = cells[problem, target]
                text = {"ha": "center", "va": "center", "color": style.INK}
                if cell.ratio == cell.ratio:
                    text["color"] = "black" if _luminance(mesh.to_rgba(math.log10(cell.ratio))) > _EVEN else "white"
                axis.text(
                    column + 0.5,
                    row + (0.27 if cell.solver == cell.solver else 0.5),
                    cell.note or words(cell.ratio, cell.bound),
                    fontsize=7.5,
                    **text,
                )
                pair = zip((cell.solver, cell.rival), (cell.seconds, cell.rival_seconds), strict=True)
                names = [f"{str(name)[:28]} {format_seconds(time)} s" for name, time in pair if time == time]
                axis.text(column + 0.5, row + 0.7, "\n".join(names), fontsize=5.5, **text)
        axis.set(xlabel="proven relative gap", ylabel="")
        axis.tick_params(length=0, labelrotation=0)
        axis.grid(visible=False)
        bar = mesh.colorbar
        bar.set_label("times slower (left) and faster (right), log scale, the same in all reports")
        bar.ax.xaxis.set_major_locator(FixedLocator([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]))
        bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda power, _: f"{10.0 ** abs(power):g}x"))
    return figure


def speed_up_caption(points: pd.DataFrame, compared: str) -> str:
    """Return what is drawn, and how, in two sentences."""
    total, shown = points["problem"].nunique(), points.loc[points["ratio"].notna(), "problem"].nunique()
    left_out = f"; {total - shown} of {total} problems have no ratio and no row" if shown < total else ""
    bounds = "; >= and <= are bounds, where one of them did not get there" if (points["bound"] != "").any() else ""
    return f"Ratios of the times of the {compared}, which each cell names{bounds}. Purple is faster, orange slower{left_out}."


def _luminance(colour: Sequence[float]) -> float:
    """Return how light a colour of red, green and blue from 0 to 1 is."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# --------------------------------------------------------------------------------------------------------------------------- spread


def spread_points(times: pd.DataFrame, speed_ups: pd.DataFrame, members: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the ratio of every pair of runs of the two solvers that the map of speed-ups compares.

    Runs on one instance are paired in the order of their repetitions, without the first ones where there are others, by which the solvers
    were chosen; a single run of one goes with every run of the other. What did not reach the target has no ratio.

    Parameters
    ----------
    times : of runs, as of `bench_mtl.report.tables.instances.run_times`
    speed_ups : `speed_up_points`
    members : the problem labels of every group of like problems; groups that hold another one are left out

    Returns
    -------
    DataFrame
        group, problem, target, instance, solver, rival, seconds, rival_seconds, ratio; only groups with `FEWEST` ratios to a target.
    """
    import pandas as pd

    of = {
        label: group
        for group, labels in members.items()
        if not any(set(some) < set(labels) for some in members.values())
        for label in labels
    }
    pairs = speed_ups[speed_ups["ratio"].notna() & (speed_ups["bound"] == "") & speed_ups["problem"].isin(list(of))]
    keys = ["problem", "target", "instance"]
    measured = times.sort_values("repetition", kind="stable").assign(
        turn=times.groupby([*keys, "solver"])["repetition"].rank(method="first")
    )
    measured = measured.assign(runs=measured.groupby([*keys, "solver"])["turn"].transform("size"))
    measured = measured[(measured["turn"] > 1) | (measured["runs"] == 1)].assign(seconds=measured["seconds"].clip(lower=RESOLUTION))
    sides = [
        pairs[["problem", "target", "solver", "rival"]].merge(
            measured[[*keys, "solver", "turn", "runs", "seconds"]].rename(columns={"solver": side}), on=["problem", "target", side]
        )
        for side in ("solver", "rival")
    ]
    both = sides[0].merge(sides[1], on=[*keys, "solver", "rival"], suffixes=("", "_rival"))
    alone = (both["runs"] == 1) | (both["runs_rival"] == 1)
    both = both[alone | (both["turn"] == both["turn_rival"])].rename(columns={"seconds_rival": "rival_seconds"})
    both = both.assign(group=both["problem"].map(of), ratio=both["rival_seconds"] / both["seconds"])
    both = both[both.groupby(["group", "target"])["ratio"].transform("size") >= FEWEST]
    order = {group: place for place, group in enumerate(members)}
    both = both.sort_values(["group", "target"], key=lambda of: -of if of.name == "target" else of.map(order), kind="stable")
    columns = ["group", "problem", "target", "instance", "solver", "rival", "seconds", "rival_seconds", "ratio"]
    return pd.DataFrame(both[columns]).reset_index(drop=True)


def spread(points: pd.DataFrame, compared: str) -> Figure:
    """Draw `spread_points`: a row a group and target, a dot a ratio, a box for the middle half."""
    import seaborn

    place = points.groupby(["group", "target"], sort=False).ngroup()
    rows = points.assign(row=place.astype(str), faster=points["ratio"] >= 1.0)[place < MOST_ROWS]
    heads = rows.drop_duplicates("row")
    named = heads["group"].map(lambda group: style.wrapped(str(group), 46) + "   ").mask(heads["group"].duplicated(), "")
    labels = [name + format_target(target) for name, target in zip(named, heads["target"], strict=True)]
    with style.styled():
        height = 1.2 + sum(0.16 + 0.13 * (1 + label.count("\n")) for label in labels)
        figure, (axis,) = style.panels(f"Run by run: {compared}", [7.5], height)
        style.logarithmic(axis, "x", min(float(rows["ratio"].min()), 1.0) / 1.4, max(float(rows["ratio"].max()), 1.0) * 1.4)
        axis.axvline(1.0, color=style.INK, alpha=0.6, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
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


def spread_caption(points: pd.DataFrame, compared: str) -> str:
    """Return what is drawn, and how, in two sentences."""
    rows = points.drop_duplicates(["group", "target"])
    cut = f"; the first {MOST_ROWS} of {len(rows)} rows" if len(rows) > MOST_ROWS else ""
    return (
        f"Ratios of single runs of the {compared}, of like problems together: a dot is two runs on one instance, a box the middle half. "
        f"Rows have {FEWEST} ratios or more; where one of the two did not get there, there is none{cut}."
    )
