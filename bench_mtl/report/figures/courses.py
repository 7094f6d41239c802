"""Courses of runs: the objective, the non-zeros or an error on held-out examples against seconds, passes and examples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.figures import convergence, style
from bench_mtl.report.figures.convergence import JOINED, LEVELS, LIMITS, MOST_ENCLOSED, STEPPED, ZERO_PASSES, ZERO_SECONDS
from bench_mtl.report.figures.style import LineStyle
from bench_mtl.report.tables.measures import NONZEROS, OBJECTIVE
from bench_mtl.results.frames import status_counts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench_mtl.core.types import Array

#: An axis of values that are this many times apart is logarithmic.
LOGARITHMIC_FROM = 10.0

#: A solver that shows points less than this share of a pass apart, which is half a pass up to rounding, is stochastic or online: it takes
#: examples one by one, and how many says more than passes. One product with the whole data is half a pass.
PART_OF_A_PASS = 0.499


@dataclass(frozen=True)
class Course:
    """One run as it is drawn against one axis."""

    solver: str
    one_shot: bool
    x: Array
    """More than zero, not decreasing for an iterative solver."""
    y: Array
    asked: Array
    stopped_at: float | None
    """Where a limit ended it, if one did."""


def takes_examples(points: pd.DataFrame) -> bool:
    """Whether a solver shows points so little of a pass apart that the examples it has seen say more than passes."""
    apart = points["passes"].groupby(points["run_id"]).diff().fillna(points["passes"])
    return bool(((apart > 0) & (apart < PART_OF_A_PASS) & points["asked_tolerance"].isna()).any())


def axes_of(points: pd.DataFrame) -> dict[str, str]:
    """What a figure of these rows of `courses` has panels against, with their labels."""
    panels = {"seconds": "solve time (s)"}
    if takes_examples(points) and points["examples"].notna().any():
        sizes = (points["examples"] / points["passes"])[points["passes"] > 0].round().dropna().unique()
        return panels | {"examples": f"examples seen ({sizes[0]:.0f} are a pass)" if len(sizes) == 1 else "examples seen"}
    return panels | ({"passes": "passes over the data"} if convergence.counts_passes(points).any() else {})


def drawn_courses(points: pd.DataFrame, quantity: str, column: str, levels: int = LEVELS) -> list[Course]:
    """The runs of one problem that have this quantity, against seconds, passes, examples or iterations where they count them.

    A long run keeps so many points, even in their number, its first and its last one among them.
    """
    import numpy as np

    made: list[tuple[Course, Array]] = []
    for _, run in points[points[quantity].notna()].groupby("run_id", sort=False):
        one_shot = bool(run["asked_tolerance"].notna().any())
        rows = run.sort_values(["seconds", "number"], kind="stable") if one_shot else run
        x = rows[column].to_numpy(np.float64)
        if column != "seconds" and ((one_shot and column != "iteration") or not np.isfinite(x).all() or x.max() <= 0):
            continue
        kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), levels)).astype(int)) if not one_shot else np.arange(len(x))
        status, limit = str(rows["status"].iloc[0]), rows["limit_seconds"].iloc[0]
        at_limit = column == "seconds" and status == Status.TIMEOUT and limit is not None and limit == limit
        stopped = (max(float(x[-1]), float(limit)) if at_limit else float(x[-1])) if status in LIMITS else None
        y, asked = (rows[name].to_numpy(np.float64)[kept] for name in (quantity, "asked_tolerance"))
        made.append((Course(str(rows["solver"].iloc[0]), one_shot, x[kept], y, asked, stopped), x))
    least = min((float(x[x > 0].min()) for _, x in made if (x > 0).any()), default=_zero(column))
    return [
        Course(one.solver, one.one_shot, np.maximum(one.x, least), one.y, one.asked, one.stopped_at and max(one.stopped_at, least))
        for one, _ in made
    ]


def _zero(column: str) -> float:
    return ZERO_SECONDS if column == "seconds" else ZERO_PASSES


def held(curves: Sequence[Course], grid: Array) -> Array:
    """The value of every run at every place, runs x places: the last known one, also of a run that is over; before it, none."""
    import numpy as np

    values = np.full((len(curves), len(grid)), np.nan)
    for row, curve in zip(values, curves, strict=True):
        known = np.searchsorted(curve.x, grid, side="right")
        row[known > 0] = curve.y[known[known > 0] - 1]
    return values


def spread(curves: Sequence[Course], columns: int = LEVELS) -> tuple[Array, Array]:
    """The middle of several iterative runs and what encloses it, as they go on.

    Returns
    -------
    x : Array
        Even on a logarithmic axis, from where all runs have a value: a middle of other runs at other places would jump without meaning.
    y : Array of shape (3, x)
        Lower end, median and upper end: of no more than `MOST_ENCLOSED` runs all, of more from a tenth to nine tenths.
    """
    import numpy as np

    x = shared_grid(curves, columns)
    return x, np.quantile(held(curves, x), convergence.enclosed(len(curves)), axis=0, method="inverted_cdf")


def shared_grid(curves: Sequence[Course], columns: int = LEVELS) -> Array:
    """Places even on a logarithmic axis, from where all runs have a value to the end of the last one."""
    return convergence.logarithmic_grid(max(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves), columns)


def answers_of(curves: Sequence[Course]) -> tuple[Array, Array]:
    """The quantiles of the x and of the y of the answers of several one-shot runs: to each tolerance that all of them answered, and of the
    last answer of each where they went on to unlike tolerances. Arrays of shape (3, answers)."""
    import numpy as np

    shares = convergence.enclosed(len(curves))
    shared = [tolerance for tolerance in np.unique(curves[0].asked)[::-1] if all(tolerance in curve.asked for curve in curves)]
    chosen = [[int(np.argmax(curve.asked == tolerance)) for curve in curves] for tolerance in shared]
    last = [int(np.argmin(curve.asked)) for curve in curves]
    if last not in chosen:
        chosen.append(last)
    of = [[(curve.x[place], curve.y[place]) for curve, place in zip(curves, places, strict=True)] for places in chosen]
    x, y = np.array([np.quantile(points, shares, axis=0, method="inverted_cdf") for points in of]).transpose(2, 1, 0)
    return x, y


def value_limits(values: Array) -> tuple[float, float, bool]:
    """The ends of the axis of a quantity, and whether it is logarithmic: then zeros are drawn at the lower end."""
    positive = values[values > 0]
    if len(positive) and (values >= 0).all() and positive.max() >= LOGARITHMIC_FROM * positive.min():
        return float(positive.min()) / (3.0 if len(positive) < len(values) else 1.3), float(positive.max()) * 1.3, True
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return (0.0 if low >= 0.0 and low <= 0.5 * high else low - margin), high + margin, False


def course(points: pd.DataFrame, quantity: str, styles: Mapping[str, LineStyle]) -> Figure:
    """The figure of one quantity of one problem.

    Parameters
    ----------
    points : the rows of `bench_mtl.report.tables.measures.courses` of that problem, at least one with the quantity
    styles : by solver, from `style.line_styles`
    """
    import numpy as np
    from matplotlib.lines import Line2D

    panels = {label: drawn_courses(points, quantity, column) for column, label in axes_of(points).items()}
    panels = {label: curves for label, curves in panels.items() if curves}
    values = np.concatenate([curve.y for curves in panels.values() for curve in curves])
    low, high, logarithmic = value_limits(values)
    shown = dict.fromkeys(curve.solver for curves in panels.values() for curve in curves)
    with style.styled():
        handles = [Line2D([], [], **style.line(styles[solver], markersize=5.0, linewidth=1.2, label=solver)) for solver in shown]
        if any(curve.stopped_at for curves in panels.values() for curve in curves):
            handles.append(Line2D([], [], color="0.3", **style.mark(label="stopped by a limit")))
        figure, axes = style.sheet(str(points["problem"].iloc[0]), [3.75] * len(panels), 2.9, handles, share_y=True)
        axes[0].set_ylabel(quantity)
        if logarithmic:
            style.logarithmic(axes[0], "y", low, high, most=9)
        else:
            axes[0].set_ylim(low, high)
        for axis, (label, curves) in zip(axes, panels.items(), strict=True):
            left, right = min(curve.x.min() for curve in curves), max(max(curve.x.max(), curve.stopped_at or 0.0) for curve in curves)
            style.logarithmic(axis, "x", left / 1.3, 1.5 * right)
            axis.set_xlabel(label)
            _panel(axis, curves, styles, low)
    return figure


def _panel(axis: Axes, curves: Sequence[Course], styles: Mapping[str, LineStyle], low: float) -> None:
    for solver in dict.fromkeys(curve.solver for curve in curves):
        group = [curve for curve in curves if curve.solver == solver]
        _draw(axis, group, styles[solver], low)


def _draw(axis: Axes, curves: Sequence[Course], look: LineStyle, low: float) -> None:
    """The runs of one solver: its curve, or the median of them in a band; its answers, or their medians with bars."""
    import numpy as np
    from matplotlib.patches import Polygon

    lines = [curve for curve in curves if not curve.one_shot]
    answers = [curve for curve in curves if curve.one_shot]
    if answers:
        x, y = answers_of(answers)
        axis.plot(x[1], np.maximum(y[1], low), **JOINED, **style.line(look))
        if len(answers) > 1:
            bars: dict[str, Any] = {"color": look.colour, "linewidth": 0.8, "alpha": 0.5, "zorder": 2}
            axis.hlines(np.maximum(y[1], low), x[0], x[2], **bars)
            axis.vlines(x[1], np.maximum(y[0], low), y[2], **bars)
    if len(lines) == 1:
        axis.plot(lines[0].x, np.maximum(lines[0].y, low), **STEPPED, **style.line(look))
    elif lines:
        grid, (least, middle, most) = spread(lines)
        corners = convergence.outline(grid, np.maximum(least, low), np.maximum(most, low))
        axis.add_artist(Polygon(corners, facecolor=look.colour, alpha=0.2, linewidth=0.0, zorder=1.5))
        axis.plot(grid, np.maximum(middle, low), **STEPPED, **style.line(look))
    stopped = [(curve.stopped_at, max(curve.y[-1], low)) for curve in curves if curve.stopped_at is not None]
    if stopped:
        where, value = np.median(stopped, axis=0)
        axis.plot([where], [value], color=look.colour, **style.mark())


def caption(points: pd.DataFrame, runs: pd.DataFrame, quantity: str) -> str:
    """How the figure of one quantity was made, and what is not in it, in sentences."""
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
        parts.append("A cross: runs met their time or memory limit there.")
    absent = runs[~runs["id"].isin(own["run_id"])]
    if len(absent):
        names = [f"{solver} ({status_counts(group['status'])})" for solver, group in absent.groupby("solver_label", sort=False)]
        parts.append(f"Without a value, so not drawn: {', '.join(names)}.")
    return " ".join(parts)
