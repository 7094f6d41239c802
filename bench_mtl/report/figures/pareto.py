"""Time against precision: how soon each solver proves every power of ten of the gap, and which of them none is ahead of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import style
from bench_mtl.report.figures.chart import ZERO_SECONDS as LEAST_SECONDS
from bench_mtl.report.figures.chart import Axis, Chart, Panel, Series

if TYPE_CHECKING:
    import pandas as pd

#: Of one instance the convergence figure says it all, and of two there is no middle.
FEWEST = 3


def levels(targets: tuple[float, ...]) -> tuple[float, ...]:
    """Return the powers of ten from a tenth to the tightest target, and this one."""
    last = min(targets)
    powers = [10.0**power for power in range(-1, math.floor(math.log10(last) + 1e-9) - 1, -1)]
    return tuple(dict.fromkeys([level for level in powers if level > last * (1 + 1e-9)] + [last]))


def pareto_points(instances: pd.DataFrame) -> pd.DataFrame:
    """Return the data of the figure of one group of problems.

    Parameters
    ----------
    instances : rows of `instance_times` of the group at `levels`, of solvers that were run on every instance

    Returns
    -------
    DataFrame
        solver, gap, instances, reached (how many of them the solver proved the gap on), seconds (within which it did on half of all the
        instances; missing if it never did), front (whether no solver proves this gap or a smaller one in as little time).
    """
    import numpy as np
    import pandas as pd

    count = len(instances[["problem", "instance"]].drop_duplicates())
    middle = math.ceil(count / 2) - 1
    rows = []
    for (solver, target), group in instances.groupby(["solver", "target"], sort=False):
        seconds = np.sort(group["seconds"].dropna().to_numpy(dtype=np.float64))
        half = float(seconds[middle]) if len(seconds) > middle else math.nan
        rows.append({"solver": solver, "gap": target, "instances": count, "reached": len(seconds), "seconds": half})
    table = pd.DataFrame(rows, columns=["solver", "gap", "instances", "reached", "seconds"])
    return table.assign(front=_front(table))


def ranked(points: pd.DataFrame) -> list[str]:
    """Return the solvers of `pareto_points` that have a point by how small a gap they prove, and then by their time to that."""
    known = points[points["seconds"].notna()].sort_values(["gap", "seconds"], kind="stable")
    return [str(solver) for solver in known["solver"].unique()]


def _front(table: pd.DataFrame) -> list[bool]:
    """Return which points no other one is at least as good as in both, and better in one."""
    points = list(zip(table["seconds"], table["gap"], strict=True))
    known = [point for point in points if point[0] == point[0]]
    return [own in known and not any(x <= own[0] and y <= own[1] and (x, y) != own for x, y in known) for own in points]


def chart(points: pd.DataFrame, group: str) -> Chart:
    """Return the chart of one group, from its `pareto_points`, of which at least one has seconds."""
    known = points[points["seconds"].notna()].assign(seconds=points["seconds"].clip(lower=LEAST_SECONDS))
    front = known[known["front"]].sort_values(["seconds", "gap"], ascending=[True, False])
    series = [Series(str(solver), own["seconds"].to_numpy(), own["gap"].to_numpy()) for solver, own in known.groupby("solver", sort=False)]
    x = Axis("solve time (s)", known["seconds"].min() / 1.5, known["seconds"].max() * 1.5)
    y = Axis("proven relative gap", points["gap"].min() / 2.0, points["gap"].max() * 2.0, most_ticks=9, form=style.gap)
    return Chart("points", group, y, (Panel(x, tuple(series)),), front=(front["seconds"].to_numpy(), front["gap"].to_numpy()))


def caption(points: pd.DataFrame) -> str:
    """Return how the figure of one group was made, and what is not in it, in sentences."""
    count = int(points["instances"].iloc[0])
    first, last = (format_target(gap) for gap in (points["gap"].max(), points["gap"].min()))
    parts = [
        f"Seconds of solving within which a solver proves each gap from {first} to {last} on half of the {count} instances; of repetitions "
        "the median, where all of them got there."
    ]
    parts.append("The grey front: no solver proves a smaller gap in as little time.")
    if (points["seconds"] < LEAST_SECONDS).any():
        parts.append(f"Times below {LEAST_SECONDS:.0e} s are drawn there.")
    absent = [str(solver) for solver, group in points.groupby("solver", sort=False) if group["seconds"].isna().all()]
    if absent:
        parts.append(f"Half of the instances never brought there: {', '.join(absent)}.")
    return " ".join(parts)
