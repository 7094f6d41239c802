"""Profiles of a group of like problems: how many of its instances each solver has solved within a factor or a budget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.report.columns import format_target
from bench_mtl.report.figures.chart import Axis, Chart, Panel, Series

if TYPE_CHECKING:
    import pandas as pd

#: A profile of fewer instances is a table.
FEWEST = 3

PERFORMANCE, PAIRWISE, BUDGET = "performance", "pairwise", "budget"

#: Titles of the panels and labels of their x axes.
_PANELS = {
    PERFORMANCE: ("performance profile", "factor over the fastest"),
    PAIRWISE: ("pairwise profiles", "time over that of {}"),
    BUDGET: ("data profile", "passes over the data"),
}


def leader(times: pd.DataFrame) -> str:
    """Return the solver that solved most instances; of several the one that was fastest most often; of these the first.

    Parameters
    ----------
    times : instances x solvers, seconds to the target, missing where it was not reached
    """
    solved, fastest = times.notna().sum(), times.eq(times.min(axis=1), axis=0).sum()
    return str(max(times.columns, key=lambda solver: (solved[solver], fastest[solver])))


def profile_points(instances: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return the data of the figure of one group of problems.

    The pairwise profile of a solver is the distribution of its time over that of `leader`: what it is at 1 and below is the share of
    instances on which the solver is as fast or faster. A ratio is zero where the leader alone failed.

    Parameters
    ----------
    instances : rows of `instance_times` of the group at `target`

    Returns
    -------
    DataFrame
        panel (``performance``, ``pairwise``, ``budget``), solver, at (where the share steps up), share (of all instances, from there
        on), instances, leader, left_out (solvers that were not run on every instance, and are not there), target. Only solvers that count
        their passes are in ``budget``.
    """
    import numpy as np
    import pandas as pd

    from bench_mtl.stats.profiles import data_profile, performance_profile

    keys = ["problem", "instance"]
    every = instances[keys].drop_duplicates()
    order, left_out = common_solvers(instances)
    ran = instances[instances["solver"].isin(order)]
    times, passes = (
        every.merge(ran.pivot(index=keys, columns="solver", values=name)[order].reset_index(), on=keys, how="left")[order]
        for name in ("seconds", "passes")
    )
    first, parts = leader(times), []
    profile = performance_profile(times.to_numpy())
    parts += [_steps(PERFORMANCE, solver, profile.at, shares) for solver, shares in zip(order, profile.shares, strict=True)]
    for solver in order:
        if solver != first:
            own, its = times[solver].to_numpy(), np.maximum(times[first].to_numpy(), 1e-6)
            ratios = np.where(np.isnan(its), np.where(np.isnan(own), np.nan, 0.0), np.maximum(own, 1e-6) / its)
            at = np.unique(np.append(0.0, ratios[~np.isnan(ratios)]))
            parts.append(_steps(PAIRWISE, solver, at, [float((ratios <= place).sum() / len(ratios)) for place in at]))
    counting = [solver for solver in order if passes[solver].max() > 0]
    if counting:
        budget = data_profile(passes[counting].to_numpy())
        parts += [_steps(BUDGET, solver, budget.at, shares) for solver, shares in zip(counting, budget.shares, strict=True)]
    table = pd.concat(parts, ignore_index=True)
    return table.assign(instances=len(times), leader=first, left_out="; ".join(left_out), target=target)


def ranked(points: pd.DataFrame) -> list[str]:
    """Return the solvers of `profile_points` by the share of the instances that they solved, then by that on which they were fastest."""
    rows = points[points["panel"] == PERFORMANCE]
    solved = rows.groupby("solver", sort=False)["share"].max()
    fastest = rows[rows["at"] <= 1.0].groupby("solver", sort=False)["share"].max().reindex(solved.index, fill_value=0.0)
    return sorted(map(str, solved.index), key=lambda solver: (-solved[solver], -fastest[solver]))


def common_solvers(instances: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the solvers that were run on every instance of a group, and those that were run on some; skipped is not run."""
    ran = instances[~instances["status"].str.fullmatch(rf"{Status.SKIPPED}(?: (\d+)/\1)?")]
    run_on = ran.drop_duplicates(["problem", "instance", "solver"]).groupby("solver", sort=False).size()
    every = len(instances[["problem", "instance"]].drop_duplicates())
    return [str(name) for name in run_on.index[run_on == every]], [str(name) for name in run_on.index[run_on < every]]


def chart(points: pd.DataFrame, group: str) -> Chart:
    """Return the chart of one group, from its `profile_points`."""
    import numpy as np

    first = str(points["leader"].iloc[0])
    panels = []
    for name, (title, label) in _PANELS.items():
        rows = points[points["panel"] == name]
        if rows.empty:
            continue
        low, high = _limits(rows, name)
        series = []
        for solver, steps in rows.groupby("solver", sort=False):
            # From edge to edge; what steps up before the left edge starts there.
            x = np.append(steps["at"].clip(lower=low).to_numpy(np.float64), high)
            y = np.append(steps["share"], steps["share"].iloc[-1])
            series.append(Series(str(solver), x, y))
        axis = Axis(label.format(_short(first)), low, high, most_ticks=4)
        panels.append(Panel(axis, tuple(series), title, equal=1.0 if name == PAIRWISE else None))
    shares = Axis("share of instances", -0.03, 1.03, logarithmic=False, ticks=(0.0, 0.25, 0.5, 0.75, 1.0), form=_share)
    return Chart("shares", group, shares, tuple(panels))


def caption(points: pd.DataFrame) -> str:
    """Return how the figure of one group was made, and what is not in it, in sentences."""
    count, first = int(points["instances"].iloc[0]), points["leader"].iloc[0]
    panels = set(points["panel"])
    parts = [
        f"Share of the {count} instances solved to a proven relative gap of {format_target(points['target'].iloc[0])}, by the median of "
        "all repetitions where all of them got there."
    ]
    parts.append("First, within a factor of the fastest solver's time (performance profile); it tells who is best, not who is second.")
    if PAIRWISE in panels:
        parts.append(
            f"Then, within a factor of the time of {first} alone, which solved most and was most often the fastest: "
            "what is left of the dashed line was faster."
        )
    if ((points["panel"] == PAIRWISE) & (points["at"] == 0) & (points["share"] > 0)).any():
        parts.append(f"A line that is above zero at the left edge: instances that {first} has not solved.")
    if BUDGET in panels:
        parts.append("Last, within a number of passes over the data (data profile), of the solvers that count them.")
    if left_out := str(points["left_out"].iloc[0]):
        parts.append(f"Not run on every instance, and left out: {left_out}.")
    return " ".join(parts)


def _steps(panel: str, solver: str, at: Iterable[float], shares: Iterable[float]) -> pd.DataFrame:
    """Return a solver's steps, without those of others."""
    import numpy as np
    import pandas as pd

    places, values = np.asarray(at, float), np.asarray(shares, float)
    own = np.r_[True, np.diff(values) > 0]
    return pd.DataFrame({"panel": panel, "solver": solver, "at": places[own], "share": values[own]})


def _limits(rows: pd.DataFrame, panel: str) -> tuple[float, float]:
    """Return the ends of the x axis: it holds all steps, with space to see the first and the last."""
    at = rows.loc[rows["at"] > 0, "at"]
    least, most = (at.min(), at.max()) if len(at) else (1.0, 1.0)
    if panel == PERFORMANCE:
        return 1.0, max(2.0, most * 1.5)
    if panel == PAIRWISE:
        return min(0.5, least / 1.5), max(2.0, most * 1.5)
    return least / 1.5, max(least * 2.0, most * 1.5)


def _share(value: float) -> str:
    return f"{value:g}"


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:20] + "..."
