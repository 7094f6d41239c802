"""How far the ratios of two times spread: specialised against generic, run by run, over like problems, instances and repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import style
from bench_mtl.report.tables.contests import FIELD, contests, measured

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A box of fewer ratios says nothing.
FEWEST = 4

#: Rows on paper; the data have them all.
MOST_ROWS = 40

_WIDTH, _ROW_HEIGHT, _LEFT = 3.9, 0.23, 0.72

#: Begins the keys of names of groups, which no row's does.
_HEAD = "group "

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

    field = measured(contests(times))
    found = {key: dict(list(rows.groupby("solver")["repetitions"])) for key, rows in field.groupby(FIELD)}
    known = winners[winners["ratio"].notna() & ~winners["at_least"].astype(bool) & winners["other"].notna()]
    rows = []
    groups = {group: labels for group, labels in members.items() if not any(set(other) < set(labels) for other in members.values())}
    for group, labels in groups.items():
        for row in known[known["problem"].isin(labels)].to_dict("records"):
            columns = found[row["problem"], row["target"]]
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
    return drawn.assign(row=place.astype(str))[place < MOST_ROWS]


def spread(points: pd.DataFrame, baseline: str | None = None) -> Figure:
    """Return the figure of `spread_points`, of which some are drawn: a row per group and target, a dot per ratio."""
    import seaborn  # noqa: F401 - before the style, of which it would keep a copy

    rows = drawn_rows(points)
    low, high = min(float(rows["ratio"].min()), 1.0) / 1.4, max(float(rows["ratio"].max()), 1.0) * 1.4
    with style.styled():
        slots = _slots(rows)
        title = "Specialised against generic solvers, run by run" if baseline is None else f"All solvers against {baseline}, run by run"
        figure, (axis,) = style.sheet(title, [_WIDTH], max(_ROW_HEIGHT * len(slots), 0.5), left=_LEFT, below=0.66)
        style.logarithmic(axis, "x", low, high)
        axis.axvline(1.0, color="0.4", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        _boxes_and_dots(axis, rows, [key for key, _ in slots])
        ratio = "generic solver's time / specialised one's" if baseline is None else f"time of {baseline} / the other's"
        axis.set(ylim=(len(slots) - 0.5, -0.5), xlim=(low, high), ylabel="", xlabel=style.broken(ratio, _WIDTH))
        heads = [(place, label) for place, (key, label) in enumerate(slots) if key.startswith(_HEAD)]
        for place, label in heads:
            # From the left edge of the sheet on: a name is longer than there is space beside the axes.
            where: dict[str, Any] = {
                "transform": axis.get_yaxis_transform(),
                "va": "center",
                "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            }
            axis.text(-_LEFT / _WIDTH + 0.02, place, label, fontsize=style.LEGEND_SIZE, **where)
        named = [(place, label) for place, (key, label) in enumerate(slots) if not key.startswith(_HEAD)]
        axis.set_yticks([place for place, _ in named], [label for _, label in named])
        axis.tick_params(axis="y", length=0)
        axis.grid(visible=False, axis="y")
        axis.spines["left"].set_visible(False)
        for place, _ in heads[1:]:
            if not slots[place - 1][0].startswith(_HEAD):
                axis.axhline(place - 0.5, color="0.85", linewidth=0.6, zorder=0)
    return figure


def _slots(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return what is below each other, a key and a text: the name of a group in as many lines as it needs where there are several groups,
    and a row for each of its targets."""
    found = []
    for group, own in rows.groupby("group", sort=False):
        if rows["group"].nunique() > 1:
            lines = style.broken(str(group), _LEFT + _WIDTH, style.LEGEND_SIZE).split("\n")
            found += [(f"{_HEAD}{group} {number}", line) for number, line in enumerate(lines)]
        targets = own.drop_duplicates("row")
        found += [(key, format_target(target)) for key, target in zip(targets["row"], targets["target"], strict=True)]
    return found


def _boxes_and_dots(axis: Axes, rows: pd.DataFrame, order: Sequence[str]) -> None:
    """A box from the first to the third quartile with the median, and every ratio as a dot.

    The boxes are seaborn's boxen of a depth of one: its box plots go through a part of matplotlib that reads all its settings, which looks
    for a screen.
    """
    import seaborn

    shared: dict[str, Any] = {"data": rows.assign(faster=rows["ratio"] >= 1.0), "x": "ratio", "y": "row", "order": order, "orient": "h"}
    seaborn.boxenplot(
        **shared, ax=axis, legend=False, k_depth=1, showfliers=False, width=0.62, color="0.88", saturation=1.0, linewidth=0.7,
        linecolor="0.25", line_kws={"linewidth": 1.4, "color": "0.15"},
    )  # fmt: skip
    seaborn.stripplot(
        **shared, ax=axis, legend=False, hue="faster", hue_order=[True, False], palette=[FASTER, SLOWER], jitter=False, size=4.0, alpha=0.7,
        linewidth=0.0,
    )  # fmt: skip


def caption(points: pd.DataFrame, baseline: str | None = None) -> str:
    """Return how the figure was made, and what is not in it, in sentences."""
    rows = drawn_rows(points)
    who = "the specialised and the generic solver" if baseline is None else f"{baseline} and the other solver"
    whose = "the generic one's over the specialised one's" if baseline is None else "the baseline's over the other's"
    parts = [
        f"Ratios of the times to each proven relative gap of {who} that the table of winners compares, {whose}: right of the dashed line "
        "(purple) the latter is faster. A dot: two runs on one instance, of the same repetition, a single run with each of the "
        "other's; the box: the middle half of them and the median.",
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
