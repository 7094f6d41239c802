"""How far the ratios of two times spread: specialised against generic, run by run, over like problems, instances and repetitions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import style
from bench_mtl.report.render import format_target
from bench_mtl.report.tables.grid import grids

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A box of fewer ratios says nothing.
FEWEST = 4

#: Rows on paper; the data have them all.
MOST_ROWS = 40

_WIDTH, _ROW_HEIGHT, _LABEL_WIDTH = 3.6, 0.26, 3.0

#: Those of the map of speed-ups: where the specialised, or other, solver is faster, and where the generic one is, or the baseline.
FASTER, SLOWER = "#5C3A93", "#B45F06"

_COLUMNS = ["group", "problem", "target", "instance", "pair", "solver", "reference", "seconds", "reference_seconds", "ratio", "drawn"]


def spread_points(times: pd.DataFrame, winners: pd.DataFrame, members: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the data of the figure: a row per pair of runs of the two solvers that the table of winners compares.

    The two are those of each problem and target. Their runs on one instance are paired in the order of their repetitions, without the
    first ones where there are others, by which the solvers were chosen; a single run of one goes with every run of the other. What did not
    reach the target has no ratio, so bounds are not in it.

    Parameters
    ----------
    times : of runs, as of `bench_mtl.report.tables.instances.run_times`
    winners : the table of winners
    members : the problem labels of every group of like problems; groups that hold another one are left out

    Returns
    -------
    DataFrame
        group, problem, target, instance and pair (numbers from 1 on), solver (the specialised one, or who is not the baseline), reference
        (the generic one, a peer, or the baseline), seconds, reference_seconds, ratio (reference_seconds / seconds: above 1 where the solver
        is faster), drawn (whether the group has `FEWEST` ratios to the target). Groups are in their order, targets from loose to tight.
    """
    import pandas as pd

    found = {(grid.group, grid.target): grid for grid in grids(times, {label: (label,) for label in times["problem"].unique()})}
    known = winners[winners["ratio"].notna() & ~winners["at_least"].astype(bool) & winners["other"].notna()]
    rows = []
    groups = {group: labels for group, labels in members.items() if not any(set(other) < set(labels) for other in members.values())}
    for group, labels in groups.items():
        for row in known[known["problem"].isin(labels)].to_dict("records"):
            columns = {column.name: column.measured.repetitions for column in found[row["problem"], row["target"]].columns}
            names = (row["other"], row["winner"]) if row["reference_wins"] else (row["winner"], row["other"])
            about = (group, row["problem"], row["target"])
            for instance, both in enumerate(zip(*(columns[name] for name in names), strict=True), start=1):
                pairs = enumerate(_pairs(*both), start=1)
                rows += [(*about, instance, pair, *names, own, its, its / own, False) for pair, (own, its) in pairs]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    order = {group: place for place, group in enumerate(groups)}
    table = table.assign(place=table["group"].map(order)).sort_values(["place", "target"], ascending=[True, False], kind="stable")
    counts = table.groupby(["group", "target"], sort=False)["ratio"].transform("size")
    return table.assign(drawn=counts >= FEWEST).drop(columns="place").reset_index(drop=True)


def _pairs(own: Sequence[float], its: Sequence[float]) -> list[tuple[float, float]]:
    """Return the runs of two solvers on one instance side by side; a single one goes with all of the other's."""
    if len(own) == 1 or len(its) == 1:
        return [(one, other) for one in own for other in its]
    return list(zip(own, its, strict=False))


def drawn_rows(points: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `spread_points` that are on paper: those of the first `MOST_ROWS` groups and targets that have enough."""
    drawn = points[points["drawn"].astype(bool)]
    place = drawn.groupby(["group", "target"], sort=False).ngroup()
    return drawn.assign(row=place)[place < MOST_ROWS]


def spread(points: pd.DataFrame, baseline: str | None = None) -> Figure:
    """Return the figure of `spread_points`, of which some are drawn: a row per group and target, a dot per ratio."""
    import numpy as np

    rows = drawn_rows(points)
    heads = rows.drop_duplicates("row")[["group", "target"]].to_dict("records")
    low, high = min(float(rows["ratio"].min()), 1.0) / 1.4, max(float(rows["ratio"].max()), 1.0) * 1.4
    several = rows["group"].nunique() > 1
    with style.styled():
        labels = [_label(heads, place, several) for place in range(len(heads))]
        height = _ROW_HEIGHT * len(heads) * (1.0 + 0.5 * any("\n" in label for label in labels))
        left = 0.18 + max(style.text_width(label) for label in labels)
        title = "Specialised against generic solvers, run by run" if baseline is None else f"All solvers against {baseline}, run by run"
        figure, (axis,) = style.sheet(title, [_WIDTH], max(height, 0.5), left=left, below=0.66)
        style.logarithmic(axis, "x", low, high)
        axis.axvline(1.0, color="0.4", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        _boxes_and_dots(axis, rows)
        axis.set(ylim=(len(heads) - 0.5, -0.5), xlim=(low, high), ylabel="")
        ratio = "generic solver's time / specialised one's" if baseline is None else f"time of {baseline} / the other's"
        axis.set_xlabel(style.broken(ratio, _WIDTH))
        axis.set_yticks(np.arange(len(heads)), labels)
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
        axis.spines["left"].set_visible(False)
        for place in range(1, len(heads)):
            if heads[place]["group"] != heads[place - 1]["group"]:
                axis.axhline(place - 0.5, color="0.85", linewidth=0.6, zorder=0)
    return figure


def _boxes_and_dots(axis: Axes, rows: pd.DataFrame) -> None:
    """A box from the first to the third quartile with the median, and every ratio as a dot.

    The boxes are seaborn's boxen of a depth of one: its box plots go through a part of matplotlib that reads all its settings, which looks
    for a screen.
    """
    import seaborn

    order = sorted(rows["row"].unique())
    shared: dict[str, Any] = {"data": rows, "x": "ratio", "y": "row", "order": order, "orient": "h", "ax": axis, "legend": False}
    seaborn.boxenplot(
        **shared, k_depth=1, showfliers=False, width=0.62, color="0.88", saturation=1.0, linewidth=0.7, linecolor="0.25",
        line_kws={"linewidth": 1.4, "color": "0.15"},
    )  # fmt: skip
    looks = rows.assign(faster=rows["ratio"] >= 1.0)
    shared["data"] = looks
    seaborn.stripplot(
        **shared, hue="faster", hue_order=[True, False], palette=[FASTER, SLOWER], jitter=False, size=4.0, alpha=0.7, linewidth=0.0
    )


def _label(heads: Sequence[Mapping[Hashable, Any]], place: int, several: bool) -> str:
    """Return what a row is of: its target, and its group where another one begins."""
    group, target = str(heads[place]["group"]), format_target(float(str(heads[place]["target"])))
    first = place == 0 or heads[place - 1]["group"] != heads[place]["group"]
    return style.broken(f"{group}  {target}", _LABEL_WIDTH) if several and first else target


def caption(points: pd.DataFrame, baseline: str | None = None) -> str:
    """Return how the figure was made, and what is not in it, in sentences."""
    rows = drawn_rows(points)
    who = "the specialised and the generic solver" if baseline is None else f"{baseline} and the other solver"
    whose = "the generic one's over the specialised one's" if baseline is None else "the baseline's over the other's"
    parts = [
        f"Ratios of the times to each proven relative gap of {who} that the table of winners compares, {whose}: right of the dashed line "
        "(purple) the latter is faster. A dot: two runs on one instance, of the same repetition; the box: the middle half of them and the "
        "median.",
        f"A row is of {'a group of like problems and ' if rows['group'].nunique() > 1 else ''}a target, "
        f"of {FEWEST} ratios or more; where a rival never got there, there is none.",
    ]
    few = points[~points["drawn"].astype(bool)].drop_duplicates(["group", "target"])
    if len(few):
        parts.append(f"Rows of fewer, not drawn: {len(few)}; they are in the data.")
    total = points[points["drawn"].astype(bool)].drop_duplicates(["group", "target"])
    if len(total) > MOST_ROWS:
        parts.append(f"The first {MOST_ROWS} of {len(total)} rows; the data have them all.")
    return " ".join(parts)
