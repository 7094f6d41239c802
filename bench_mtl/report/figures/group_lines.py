"""Figures with a line a solver over a group of problems: profiles, fronts of time and precision, scaling, sparsity against accuracy.

Each has a tidy frame with the columns solver, kind, x and y, and is drawn by `lines`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.core.types import Status
from bench_mtl.report.figures import style
from bench_mtl.report.figures.curves import LEVELS, thinned, value_axis
from bench_mtl.report.render import format_count, format_target
from bench_mtl.report.tables.measures import OBJECTIVE, SIZES
from bench_mtl.report.tables.scaling import scaling_points
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PERFORMANCE, PAIRWISE = "performance profile", "pairwise profiles"

#: The exponent of fewer points says nothing.
FEWEST_FITTED = 5

#: A logarithmic axis has no zero: times of zero are drawn here.
LEAST_SECONDS = 1e-6

_STEPS: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.5, "marker": "none"}
_JOINED: dict[str, Any] = {"linewidth": 1.2, "markersize": 5.0}
_END: dict[str, Any] = {"linestyle": "none", "markersize": 8.0, "markerfacecolor": "none", "markeredgewidth": 1.5}
_CROSS: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 7.0, "markeredgewidth": 1.6}
_GUIDE: dict[str, Any] = {"color": style.INK, "alpha": 0.5, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1}


def lines(axis: Axes, points: pd.DataFrame, how: dict[str, Any], label: Callable[[str], str] = str) -> None:
    """Draw a line a solver, through x and y of its rows in their order."""
    looks = style.solver_looks(dict(zip(points["solver"], points["kind"], strict=True)))
    for solver, own in points[points["y"].notna()].groupby("solver", sort=False):
        axis.plot(own["x"], own["y"], **looks[str(solver)] | how | {"label": label(str(solver))})


# ------------------------------------------------------------------------------------------------------------------------ profiles


def profile_points(instances: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of the profiles of a group of problems, of the solvers that were run on every instance.

    Parameters
    ----------
    instances : rows of `bench_mtl.report.tables.instances.instance_times` of the group at one target

    Returns
    -------
    DataFrame
        panel, solver, kind, x (a factor over the fastest solver's time, or over that of `best` alone; 0 where that one failed), y (the
        share of instances that are solved within it), best (who solved most, most often fastest), instances, target.
    """
    import numpy as np
    import pandas as pd

    from bench_mtl.stats import performance_profile

    ran = instances[instances["solver"].isin(run_everywhere(instances))]
    kinds = dict(zip(ran["solver"], ran["kind"], strict=True))
    times = ran.pivot(index=["problem", "instance"], columns="solver", values="seconds")[list(kinds)].clip(lower=LEAST_SECONDS)
    best = str(max(times.columns, key=lambda name: (times[name].notna().sum(), times[name].eq(times.min(axis=1)).sum())))
    profile, count = performance_profile(times.to_numpy()), len(times)
    parts = [_steps(PERFORMANCE, solver, profile.at, shares) for solver, shares in zip(times, profile.shares, strict=True)]
    for solver in times.columns.drop(best):
        ratios = (times[solver] / times[best]).mask(times[best].isna() & times[solver].notna(), 0.0).dropna()
        at = np.unique(np.append(0.0, ratios))
        parts.append(_steps(PAIRWISE, solver, at, [(ratios <= place).sum() / count for place in at]))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(kind=table["solver"].map(kinds), best=best, instances=count, target=ran["target"].iloc[0])


def _steps(panel: str, solver: str, x: Any, y: Any) -> pd.DataFrame:
    """Return where the share of a solver steps up."""
    import numpy as np
    import pandas as pd

    steps = np.r_[True, np.diff(np.asarray(y, np.float64)) > 0]
    return pd.DataFrame({"panel": panel, "solver": solver, "x": np.asarray(x, np.float64)[steps], "y": np.asarray(y, np.float64)[steps]})


def profiles(points: pd.DataFrame, group: str) -> Figure:
    """Draw `profile_points`."""
    import pandas as pd

    best, names = points["best"].iloc[0], list(points["panel"].unique())
    labels = {PERFORMANCE: "factor over the fastest solver's time", PAIRWISE: f"factor over the time of {best}"}
    with style.styled():
        figure, axes = style.panels(group, [3.9] * len(names), 3.8, share_y=True)
        axes[0].set(ylim=(-0.02, 1.02), ylabel=f"share of {points['instances'].iloc[0]} instances")
        for axis, name in zip(axes, names, strict=True):
            own = points[points["panel"] == name]
            at = own.loc[own["x"] > 0, "x"]
            low, high = (1.0 if name == PERFORMANCE else min(0.5, at.min() / 1.5)), max(2.0, at.max() * 1.5)
            style.logarithmic(axis, "x", low, high)
            ends = own.groupby("solver", sort=False).tail(1).assign(x=high)
            lines(axis, pd.concat([own.assign(x=own["x"].clip(lower=low)), ends]), _STEPS)
            axis.set(xlabel=labels[name], title=name)
        if len(axes) > 1:
            axes[1].axvline(1.0, label=f"as fast as {best}", **_GUIDE)
        style.legend(figure)
    return figure


def profile_caption(points: pd.DataFrame) -> str:
    """Return what is drawn, and how, in two sentences."""
    target, best = format_target(points["target"].iloc[0]), points["best"].iloc[0]
    pairs = f", and within a factor of the time of {best}, which solves most: left of the dashed line was faster"
    return (
        f"Share of the instances on which a solver proves a gap of {target} within a factor of the fastest solver's time"
        f"{pairs if PAIRWISE in set(points['panel']) else ''}. Solvers that were run on every instance; the median of the repetitions, where "
        "all of them get there."
    )


def run_everywhere(instances: pd.DataFrame) -> list[str]:
    """Return the solvers that were run, and not skipped, on every instance of a group."""
    ran = instances[~instances["status"].str.fullmatch(rf"{Status.SKIPPED}(?: (\d+)/\1)?")]
    counts = ran.drop_duplicates(["problem", "instance", "solver"]).groupby("solver", sort=False).size()
    return [str(solver) for solver in counts.index[counts == len(instances[["problem", "instance"]].drop_duplicates())]]


# --------------------------------------------------------------------------------------------------------------------------- fronts


def levels(targets: Sequence[float]) -> tuple[float, ...]:
    """Return the powers of ten from a tenth to the tightest target, and this one."""
    last = min(targets)
    powers = [10.0**power for power in range(-1, math.floor(math.log10(last) + 1e-9) - 1, -1)]
    return tuple(dict.fromkeys([level for level in powers if level > last * (1 + 1e-9)] + [last]))


def front_points(instances: pd.DataFrame) -> pd.DataFrame:
    """Return how soon each solver proves each gap on half of the instances of a group.

    A gap that a solver proves in the time of a smaller one is left out: nobody asked for it, such as where a ladder of tolerances begins.

    Parameters
    ----------
    instances : rows of `instance_times` of the group at `levels`

    Returns
    -------
    DataFrame
        solver, kind, x (seconds), y (the gap), reached (on how many instances), instances, front (whether no solver proves this gap or a
        smaller one in as little time).
    """
    import numpy as np
    import pandas as pd

    instances = instances[instances["solver"].isin(run_everywhere(instances))]
    count, rows = len(instances[["problem", "instance"]].drop_duplicates()), []
    middle = math.ceil(count / 2) - 1
    for (solver, kind, target), group in instances.groupby(["solver", "kind", "target"], sort=False):
        seconds = np.sort(group["seconds"].dropna().to_numpy(dtype=np.float64))
        if len(seconds) > middle:
            rows.append((solver, kind, max(float(seconds[middle]), LEAST_SECONDS), target, len(seconds)))
    table = pd.DataFrame(rows, columns=["solver", "kind", "x", "y", "reached"]).sort_values("y", kind="stable")
    table["x"] = table.groupby("solver")["x"].cummin()  # who proves a smaller gap sooner has proven this one
    table = table[~table.duplicated(["solver", "x"])].iloc[::-1].sort_values("solver", kind="stable").assign(instances=count)
    return table.assign(front=_front(list(zip(table["x"], table["y"], strict=True))))


def _front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return which points no other one is at least as good as in both, and better in one."""
    return [not any(x <= own[0] and y <= own[1] and (x, y) != own for x, y in points) for own in points]


def fronts(points: pd.DataFrame, group: str) -> Figure:
    """Draw `front_points`."""
    with style.styled():
        figure, (axis,) = style.panels(group, [6.0], 4.2)
        style.logarithmic(axis, "x", points["x"].min() / 1.5, points["x"].max() * 1.5)
        style.logarithmic(axis, "y", points["y"].min() / 2.0, points["y"].max() * 2.0, style.gap)
        axis.set(xlabel="solve time (s)", ylabel="proven relative gap")
        front = points[points["front"]].sort_values(["x", "y"], ascending=[True, False])
        wide = {"color": style.INK, "alpha": 0.18, "linewidth": 5.0, "solid_capstyle": "round", "zorder": 1}
        axis.plot(front["x"], front["y"], drawstyle="steps-post", label="front: no solver is ahead", **wide)
        lines(axis, points, _JOINED)
        style.legend(figure)
    return figure


def front_caption(points: pd.DataFrame) -> str:
    """Return what is drawn, and how, in two sentences."""
    return (
        f"Seconds within which a solver proves a gap on half of the {points['instances'].iloc[0]} instances, of those that were run on all. "
        "A gap that it proves in the time of a smaller one has no marker."
    )


# -------------------------------------------------------------------------------------------------------------------------- scaling


def sweep_points(runs: pd.DataFrame, samples: pd.DataFrame, fits: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return the times of all sweeps over a size of the data.

    Parameters
    ----------
    fits : as of `bench_mtl.report.tables.scaling.scaling_fits`

    Returns
    -------
    DataFrame
        sweep, key (the size), solver, kind, x (size), y (seconds to the target, the median; missing where not all runs got there), failed
        (the longest that a run had that did not), target, exponent (missing where fewer than `FEWEST_FITTED` sizes were reached).
    """
    # The table's limits are the longest of the runs of a size; so are, of times in one go, the longest of these.
    points = scaling_points(runs.assign(limit_seconds=runs["had_seconds"]), samples, target)
    fitted = fits[fits["points"] >= FEWEST_FITTED].drop_duplicates(["sweep", "solver"])[["sweep", "solver", "exponent"]]
    points = points.merge(fitted, on=["sweep", "solver"], how="left", sort=False)
    kinds = dict(zip(runs["solver_label"], runs["kind"], strict=True))
    points = points.assign(kind=points["solver"].map(kinds), failed=numbers(points, "limit_seconds").where(points["seconds"].isna()))
    points = points.rename(columns={"size": "x", "seconds": "y"}).sort_values("x", kind="stable")
    return points[["sweep", "key", "solver", "kind", "x", "y", "failed", "target", "exponent"]]


def scaling(points: pd.DataFrame) -> Figure:
    """Draw `sweep_points` of one sweep: crosses stand where a size was not reached, at the time that was not enough."""
    from matplotlib.ticker import FixedLocator

    exponents = points.dropna(subset="exponent").set_index("solver")["exponent"].to_dict()
    points = points.assign(y=points["y"].clip(lower=LEAST_SECONDS))
    times, sizes = [*points["y"].dropna(), *points["failed"].dropna()], sorted(points["x"].unique())
    with style.styled():
        figure, (axis,) = style.panels(str(points["sweep"].iloc[0]), [6.0], 4.2)
        style.logarithmic(axis, "x", sizes[0] / 1.3, sizes[-1] * 1.3, format_count)
        axis.xaxis.set_major_locator(FixedLocator(sizes))
        style.logarithmic(axis, "y", min(times) / 1.6, max(times) * 1.6)
        axis.set(xlabel=points["key"].iloc[0], ylabel=f"seconds to a proven gap of {format_target(points['target'].iloc[0])}")
        lines(axis, points, _JOINED, lambda solver: f"{solver} (~ size^{exponents[solver]:.1f})" if solver in exponents else solver)
        crosses = points[points["failed"].notna()].assign(y=points["failed"])
        reached = set(points.loc[points["y"].notna(), "solver"])
        lines(axis, crosses, _CROSS, lambda solver: f"_{solver}" if solver in reached else f"{solver}: not reached")
        style.legend(figure)
    return figure


def scaling_caption(points: pd.DataFrame) -> str:
    """Return what is drawn, and how, in two sentences."""
    target = format_target(points["target"].iloc[0])
    return (
        f"Median seconds to a proven gap of {target} by the size of the data, where all runs of a size get there. "
        "A cross: not all did, and the longest of them had so long."
    )


# ----------------------------------------------------------------------------------------------------------- sparsity and accuracy


class TradeOff(NamedTuple):
    """What is drawn against what: two columns of `bench_mtl.report.figures.curves.course_points`."""

    size: str
    accuracy: str


def trade_off_of(quantities: Sequence[str]) -> TradeOff | None:
    """Return the features used, or else the non-zeros, and an error on held-out examples, or another, or the objective; None if no size."""
    size = next((name for name in SIZES if name in quantities), None)
    if size is None:
        return None
    others = [name for name in quantities if name not in SIZES]
    return TradeOff(size, next((name for word in ("held-out error", "held-out", "error") for name in others if word in name), OBJECTIVE))


def trade_off_points(points: pd.DataFrame, axes: TradeOff) -> pd.DataFrame:
    """Return where solvers go: the rows of `course_points` that have both, as x and y, but those of zeros alone; of several runs the first."""
    known = points[points[list(axes)].notna().all(axis=1)].assign(x=points[axes.size], y=points[axes.accuracy])
    known = known[(known["x"] > 0) & (known["run_id"] == known.groupby("solver")["run_id"].transform("first"))]
    return known[["problem", "solver", "kind", "run_id", "asked_tolerance", "seconds", "x", "y"]]


def trade_off(points: pd.DataFrame, axes: TradeOff) -> Figure:
    """Draw `trade_off_points`; a marker is where a run ends."""
    import pandas as pd

    parts = [own.iloc[thinned(own["y"].to_numpy(), None)] for _, own in points.groupby("solver", sort=False)]
    ends = points.groupby("solver", sort=False).tail(1)
    with style.styled():
        figure, (axis,) = style.panels(str(points["problem"].iloc[0]), [6.0], 4.2)
        style.logarithmic(axis, "x", float(points["x"].min()) / 1.3, float(points["x"].max()) * 1.3)
        value_axis(axis, "y", points["y"].to_numpy(float))
        axis.set(xlabel=axes.size, ylabel=axes.accuracy)
        lines(axis, pd.concat(parts), {"marker": "none", "linewidth": 1.0, "alpha": 0.8}, lambda solver: f"_{solver}")
        lines(axis, ends, _END)
        style.legend(figure)
    return figure


def trade_off_caption(axes: TradeOff) -> str:
    """Return what is drawn, and how, in two sentences."""
    return (
        f"{axes.size.capitalize()} and {axes.accuracy} of the points that a solver goes through; the marker is where it ends. "
        f"Of several runs the first, at most {LEVELS} of its points; points of zeros alone are left out."
    )
