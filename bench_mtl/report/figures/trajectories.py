"""Trajectories of runs: the objective, the non-zeros or an error on held-out examples against seconds, passes and examples seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench_mtl.report.figures import convergence
from bench_mtl.report.figures.chart import (
    LEVELS,
    LIMITS,
    MOST_ENCLOSED,
    ZERO_PASSES,
    ZERO_SECONDS,
    Axis,
    Chart,
    Panel,
    Trajectory,
    by_solver,
    enclosed,
    logarithmic_grid,
    runs_panel,
    stop_of,
    values_at,
)
from bench_mtl.report.figures.draw import draw
from bench_mtl.report.figures.sheets import LineStyle
from bench_mtl.report.tables.measures import NONZEROS, OBJECTIVE
from bench_mtl.results.frames import status_counts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bench_mtl.core.types import Array

#: An axis of values that are this many times apart is logarithmic.
LOGARITHMIC_FROM = 10.0

#: A solver that shows points less than this share of a pass apart, which is half a pass up to rounding, is stochastic or online: it takes
#: examples one by one, and their number says more than passes. One product with the whole data is half a pass.
PART_OF_A_PASS = 0.499


def takes_examples(points: pd.DataFrame) -> bool:
    """Return whether a solver shows points such a small part of a pass apart that the examples it has seen say more than passes."""
    apart = points["passes"].groupby(points["run_id"]).diff().fillna(points["passes"])
    return bool(((apart > 0) & (apart < PART_OF_A_PASS) & points["asked_tolerance"].isna()).any())


def axes_of(points: pd.DataFrame) -> dict[str, str]:
    """Return what a figure of these rows of `trajectories` has panels against, with their labels."""
    panels = {"seconds": "solve time (s)"}
    if takes_examples(points) and points["examples"].notna().any():
        sizes = (points["examples"] / points["passes"])[points["passes"] > 0].round().dropna().unique()
        return panels | {"examples": f"examples seen ({sizes[0]:.0f} are a pass)" if len(sizes) == 1 else "examples seen"}
    return panels | ({"passes": "passes over the data"} if convergence.counts_passes(points).any() else {})


def drawn_trajectories(points: pd.DataFrame, quantity: str, column: str, levels: int = LEVELS) -> list[Trajectory]:
    """Return the runs of one problem that have this quantity, against seconds, passes, examples or iterations where they count them.

    A long run keeps `levels` points, even in their number, its first and its last one among them.
    """
    import numpy as np

    made: list[tuple[Trajectory, Array]] = []
    for _, run in points[points[quantity].notna()].groupby("run_id", sort=False):
        one_shot = bool(run["asked_tolerance"].notna().any())
        rows = run.sort_values(["seconds", "number"], kind="stable") if one_shot else run
        x, y, asked = (rows[name].to_numpy(np.float64) for name in (column, quantity, "asked_tolerance"))
        if column != "seconds" and ((one_shot and column != "iteration") or not np.isfinite(x).all() or x.max() <= 0):
            continue
        kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), levels)).astype(int)) if not one_shot else np.arange(len(x))
        first = rows.iloc[0]
        stop = stop_of(str(first["status"]), first["limit_seconds"], x, y[-1], in_seconds=column == "seconds")
        made.append((Trajectory(str(first["solver"]), one_shot, x[kept], y[kept], asked[kept], stop), x))
    zero = ZERO_SECONDS if column == "seconds" else ZERO_PASSES
    least = min((float(x[x > 0].min()) for _, x in made if (x > 0).any()), default=zero)
    return [
        replace(one, x=np.maximum(one.x, least), stop=one.stop and (max(one.stop[0], least), one.stop[1], max(one.stop[2], least)))
        for one, _ in made
    ]


def spread(curves: Sequence[Trajectory], columns: int = LEVELS) -> tuple[Array, Array]:
    """Return the middle of several iterative runs and what encloses it, as they go on.

    Returns
    -------
    x : Array
        Even on a logarithmic axis, from where all runs have a value to the end of the last one: a middle of other runs at other places
        would jump without meaning.
    y : Array of shape (3, x)
        Lower end, median and upper end: of no more than `MOST_ENCLOSED` runs all, of more from a tenth to nine tenths. A run that is over
        keeps its value.
    """
    import numpy as np

    x = logarithmic_grid(max(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), columns)
    return x, np.quantile(values_at(curves, x, np.nan), enclosed(len(curves)), axis=0, method="inverted_cdf")


def answers_of(curves: Sequence[Trajectory]) -> tuple[Array, Array]:
    """Return the quantiles of the x and of the y of the answers of several one-shot runs, arrays of shape (3, answers).

    They are of the answers to each tolerance that all runs answered, and of the last answers where runs went on to unlike tolerances.
    """
    import numpy as np

    shares = enclosed(len(curves))
    shared = [tolerance for tolerance in np.unique(curves[0].asked)[::-1] if all(tolerance in curve.asked for curve in curves)]
    chosen = [[int(np.argmax(curve.asked == tolerance)) for curve in curves] for tolerance in shared]
    last = [int(np.argmin(curve.asked)) for curve in curves]
    if last not in chosen:
        chosen.append(last)
    of = [[(curve.x[place], curve.y[place]) for curve, place in zip(curves, places, strict=True)] for places in chosen]
    x, y = np.array([np.quantile(points, shares, axis=0, method="inverted_cdf") for points in of]).transpose(2, 1, 0)
    return x, y


def value_limits(values: Array) -> tuple[float, float, bool]:
    """Return the ends of the axis of a quantity, and whether it is logarithmic: then zeros are drawn at the lower end."""
    positive = values[values > 0]
    if len(positive) and (values >= 0).all() and positive.max() >= LOGARITHMIC_FROM * positive.min():
        return float(positive.min()) / (3.0 if len(positive) < len(values) else 1.3), float(positive.max()) * 1.3, True
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return (0.0 if low >= 0.0 and low <= 0.5 * high else low - margin), high + margin, False


def trajectory(
    points: pd.DataFrame,
    quantity: str,
    styles: Mapping[str, LineStyle],
    solvers: Collection[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the figure of one quantity of one problem: its `chart`, with solvers in the styles of `style.line_styles`, or with some of them
    alone."""
    whole = chart(points, quantity)
    return draw(whole if solvers is None else whole.only(solvers, title), styles)


def chart(points: pd.DataFrame, quantity: str) -> Chart:
    """Return the chart of one quantity.

    Parameters
    ----------
    points : the rows of `bench_mtl.report.tables.measures.trajectories` of one problem, at least one with the quantity
    """
    import numpy as np

    drawn = {label: drawn_trajectories(points, quantity, column) for column, label in axes_of(points).items()}
    panels = tuple(panel(label, curves) for label, curves in drawn.items() if curves)
    values = np.concatenate([curve.y for curves in drawn.values() for curve in curves])
    return Chart("runs", str(points["problem"].iloc[0]), value_axis(quantity, values), panels)


def panel(label: str, curves: Sequence[Trajectory], notes: Mapping[str, str] | None = None, columns: int = LEVELS) -> Panel:
    """Return the panel of curves against one axis, with bands at this many places."""
    start = min(float(curve.x.min()) for curve in curves)
    return runs_panel(
        label, by_solver(curves), {}, notes or {}, start,
        band=lambda lines, _: spread(lines, columns), answers=lambda answered, _: answers_of(answered),
    )  # fmt: skip


def value_axis(label: str, values: Array) -> Axis:
    """Return the axis of a quantity with these values."""
    return Axis(label, *value_limits(values), most_ticks=9)


def caption(points: pd.DataFrame, runs: pd.DataFrame, quantity: str) -> str:
    """Return how the figure of one quantity was made, and what is not in it, in sentences."""
    import numpy as np

    panels = axes_of(points)
    against = {"seconds": "solve time", "passes": "passes over the data", "examples": "examples seen (passes times examples)"}
    own = points[points[quantity].notna()]
    what = quantity[:1].upper() + quantity[1:]
    parts = [f"{what} against {' and '.join(against[column] for column in panels)}."]
    one_shot = own["asked_tolerance"].notna()
    if not one_shot.all():
        of = "of the best point so far" if quantity == OBJECTIVE else "of the point that it has then, which may not be its best"
        parts.append(f"Stepped lines: an iterative solver, {of}.")
    if one_shot.any():
        parts.append("Joined markers: a generic solver, one marker for each tolerance asked of it, its time counted from zero.")
    parts.append("Of every point after its repair.")
    if quantity == NONZEROS and one_shot.any():
        parts.append("Tiny values count, which generic solvers return in place of zeros.")
    several = own.groupby("solver", sort=False)["run_id"].nunique()
    if several.max() > 1:
        band = "from the least to the greatest" if several[several > 1].min() <= MOST_ENCLOSED else "from a tenth of them to nine tenths"
        if several[several > 1].min() <= MOST_ENCLOSED < several.max():
            band += f", or of more than {MOST_ENCLOSED} from a tenth of them to nine tenths"
        parts.append(f"A solver with several seeds or repetitions: the median, in a band {band}; a run that is over keeps its value.")
        answered = "; markers: the tolerances that all of them answered, and their last answers" if one_shot.any() else ""
        parts.append(f"It begins where all of them have a point{answered}.")
    values = np.asarray(own[quantity], np.float64)
    if value_limits(values)[2] and (values == 0).any():
        parts.append("Zeros are drawn at the lower end.")
    if own["status"].isin(LIMITS).any():
        parts.append("A cross at the end of a thin line: runs met their time or memory limit there.")
    absent = runs[~runs["id"].isin(own["run_id"])]
    if len(absent):
        names = [f"{solver} ({status_counts(group['status'])})" for solver, group in absent.groupby("solver_label", sort=False)]
        parts.append(f"Without a value, so not drawn: {', '.join(names)}.")
    return " ".join(parts)
