"""Figures with a line a solver over a group of problems: profiles, fronts of time and precision, scaling, sparsity against accuracy.

Each has a tidy frame with the columns solver, kind, x and y, and is drawn by `lines`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import shortened
from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import style
from bench_mtl.report.figures.curves import ZERO_SECONDS, thinned, value_axis
from bench_mtl.report.tables.measures import OBJECTIVE, SIZES
from bench_mtl.report.tables.scaling import scaling_points
from bench_mtl.results.frames import all_skipped, numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PERFORMANCE, PAIRWISE = "performance profile", "pairwise profiles"

_STEPS: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.5, "markersize": 4.0, "markevery": (0.08, 0.2)}
_JOINED: dict[str, Any] = {"linewidth": 1.2, "markersize": 5.0}
_TRACK: dict[str, Any] = {"marker": "none", "linewidth": 1.0, "alpha": 0.8}
_END: dict[str, Any] = {"linestyle": "none", "markersize": 8.0, "markerfacecolor": "none", "markeredgewidth": 1.5}


def lines(axis: Axes, points: pd.DataFrame, how: dict[str, Any], label: Callable[[str], str] = str) -> None:
    """Draw a line a solver, through x and y of its rows in their order."""
    looks = style.solver_looks(dict(zip(points["solver"], points["kind"], strict=True)))
    for solver, own in points[points["y"].notna()].groupby("solver", sort=False):
        axis.plot(own["x"], own["y"], **looks[str(solver)] | how | {"label": label(str(solver))})


def run_everywhere(instances: pd.DataFrame) -> list[str]:
    """Return the solvers that were run, and not skipped, on every instance of a group of `instance_times`."""
    ran = instances[~all_skipped(instances["status"])]
    counts = ran.drop_duplicates(["problem", "instance", "solver"]).groupby("solver", sort=False).size()
    return [str(solver) for solver in counts.index[counts == len(instances[["problem", "instance"]].drop_duplicates())]]


def profile_points(instances: pd.DataFrame) -> pd.DataFrame:
    """Return where the profiles of a group step up, from its `instance_times` at one target, of solvers that were run on every instance.

    Columns: panel, solver, kind, x (a factor over the fastest solver's time, or over that of `best` alone; 0 where that one failed), y (the
    share of instances that are solved within it), best (who solved most, most often fastest), instances, target.
    """
    import numpy as np
    import pandas as pd

    from bench_mtl.stats import performance_profile

    kinds = dict(zip(instances["solver"], instances["kind"], strict=True))
    times = instances.pivot(index=["problem", "instance"], columns="solver", values="seconds")[list(kinds)].clip(lower=ZERO_SECONDS)
    best = str(max(times.columns, key=lambda name: (times[name].notna().sum(), times[name].eq(times.min(axis=1)).sum())))
    profile, steps = performance_profile(times.to_numpy()), []
    for solver, shares in zip(times, profile.shares, strict=True):
        steps += [(PERFORMANCE, solver, at, share) for at, share in zip(profile.at, shares, strict=True)]
    for solver in times.columns.drop(best):
        ratios = (times[solver] / times[best]).mask(times[best].isna() & times[solver].notna(), 0.0).dropna().to_numpy()
        steps += [(PAIRWISE, solver, at, (ratios <= at).sum() / len(times)) for at in np.unique([0.0, *ratios])]
    table = pd.DataFrame(steps, columns=["panel", "solver", "x", "y"]).drop_duplicates(["panel", "solver", "y"])
    return table.assign(kind=table["solver"].map(kinds), best=best, instances=len(times), target=instances["target"].iloc[0])


def profiles(points: pd.DataFrame, group: str) -> Figure:
    """Draw `profile_points`."""
    import pandas as pd

    best, names = points["best"].iloc[0], list(points["panel"].unique())
    labels = {PERFORMANCE: "factor over the fastest solver's time", PAIRWISE: f"factor over the time of {shortened(best, 28)}"}
    with style.styled():
        figure, axes = style.panels(group, [3.9] * len(names), 3.1, share_y=True)
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
            axes[1].axvline(1.0, label=f"as fast as {best}", **style.GUIDE)
        style.legend(figure)
    return figure


def levels(targets: Sequence[float]) -> tuple[float, ...]:
    """Return the powers of ten from a tenth to the tightest target, and this one."""
    last = min(targets)
    powers = [10.0**power for power in range(-1, math.floor(math.log10(last) + 1e-9) - 1, -1)]
    return tuple(dict.fromkeys([level for level in powers if level > last * (1 + 1e-9)] + [last]))


def front_points(instances: pd.DataFrame) -> pd.DataFrame:
    """Return how soon each solver proves each gap on half of the instances of a group, from its `instance_times` at `levels`.

    Columns: solver, kind, x (seconds), y (the gap), reached (on how many instances), instances, front (whether no solver proves this gap or
    a smaller one in as little time). A gap that a solver proves in the time of a smaller one is left out: nobody asked for it, such as
    where a ladder of tolerances begins.
    """
    import pandas as pd

    count, rows = len(instances[["problem", "instance"]].drop_duplicates()), []
    for (solver, kind, target), group in instances.groupby(["solver", "kind", "target"], sort=False):
        seconds = sorted(group["seconds"].dropna())
        if len(seconds) >= count / 2:
            rows.append((solver, kind, max(seconds[math.ceil(count / 2) - 1], ZERO_SECONDS), target, len(seconds), count))
    table = pd.DataFrame(rows, columns=["solver", "kind", "x", "y", "reached", "instances"])
    table = table.astype({"x": "float64", "y": "float64"}).sort_values("y", kind="stable")
    table["x"] = table.groupby("solver")["x"].cummin()  # who proves a smaller gap sooner has proven this one
    table = table[~table.duplicated(["solver", "x"])].iloc[::-1].sort_values("solver", kind="stable")
    points = list(zip(table["x"], table["y"], strict=True))
    return table.assign(front=[not any(x <= own[0] and y <= own[1] and (x, y) != own for x, y in points) for own in points])


def fronts(points: pd.DataFrame, group: str) -> Figure:
    """Draw `front_points`."""
    with style.styled():
        figure, axis = style.log_panel(group, points["x"], points["y"])
        axis.set(xlabel="solve time (s)", ylabel="proven relative gap")
        front = points[points["front"]].sort_values(["x", "y"], ascending=[True, False])
        wide: dict[str, Any] = {"color": style.INK, "alpha": 0.18, "linewidth": 5.0, "solid_capstyle": "round", "zorder": 1}
        axis.plot(front["x"], front["y"], drawstyle="steps-post", label="front: no solver is ahead", **wide)
        lines(axis, points, _JOINED)
        style.legend(figure)
    return figure


def sweep_points(runs: pd.DataFrame, samples: pd.DataFrame, target: float) -> pd.DataFrame:
    """Return the times of all sweeps over a size of the data.

    Columns: sweep, key (the size), solver, kind, x (size), y (seconds to the target, the median; missing where not all runs reached it),
    failed (the longest attempt of all these runs, where not all reached the target), target.
    """
    points = scaling_points(runs, samples, target).sort_values("size", kind="stable")
    kind = points["solver"].map(dict(zip(runs["solver_label"], runs["kind"], strict=True)))
    points = points.assign(kind=kind, failed=numbers(points, "longest_attempt_seconds").where(points["seconds"].isna()))
    columns = ["sweep", "key", "solver", "kind", "size", "seconds", "failed", "target"]
    return points[columns].rename(columns={"size": "x", "seconds": "y"})


def scaling(points: pd.DataFrame) -> Figure:
    """Draw `sweep_points` of one sweep: crosses are where a size was not reached, at the time that was not enough."""
    from matplotlib.ticker import FixedLocator

    points = points.assign(y=points["y"].clip(lower=ZERO_SECONDS))
    times, sizes = [*points["y"].dropna(), *points["failed"].dropna()] or [1.0], sorted(points["x"].unique())
    reached = set(points.loc[points["y"].notna(), "solver"])
    with style.styled():
        figure, axis = style.log_panel(str(points["sweep"].iloc[0]), sizes, times)
        axis.xaxis.set_major_locator(FixedLocator(sizes))
        axis.set(xlabel=points["key"].iloc[0], ylabel=f"seconds to a proven gap of {format_target(points['target'].iloc[0])}")
        lines(axis, points, _JOINED)
        lines(
            axis, points.assign(y=points["failed"]), style.CROSS, lambda solver: f"{'_' if solver in reached else ''}{solver}: not reached"
        )
        style.legend(figure)
    return figure


def trade_off_of(quantities: Sequence[str]) -> tuple[str, str] | None:
    """Return the features used, or else the non-zeros, and a held-out error, another one, or the objective; None without a size."""
    size = next((name for name in SIZES if name in quantities), None)
    if size is None:
        return None
    others = [name for name in quantities if name not in SIZES]
    return size, next((name for word in ("held-out error", "held-out", "error") for name in others if word in name), OBJECTIVE)


def trade_off_points(points: pd.DataFrame, axes: tuple[str, str]) -> pd.DataFrame:
    """Return the rows of `course_points` that have both, as x and y, but those of zeros alone; of several runs of a solver the first."""
    known = points[points[list(axes)].notna().all(axis=1)].assign(x=points[axes[0]], y=points[axes[1]])
    known = known[(known["x"] > 0) & (known["run_id"] == known.groupby("solver")["run_id"].transform("first"))]
    return known[["problem", "solver", "kind", "run_id", "asked_tolerance", "seconds", "x", "y"]]


def trade_off(points: pd.DataFrame, axes: tuple[str, str]) -> Figure:
    """Draw `trade_off_points`; a marker is where a run ends."""
    import pandas as pd

    parts = [own.iloc[thinned(own["y"].to_numpy(), None)] for _, own in points.groupby("solver", sort=False)]
    with style.styled():
        figure, axis = style.log_panel(str(points["problem"].iloc[0]), points["x"], [1.0, 10.0])
        value_axis(axis, points["y"].to_numpy(float))
        axis.set(xlabel=axes[0], ylabel=axes[1])
        lines(axis, pd.concat(parts), _TRACK, lambda solver: f"_{solver}")
        lines(axis, points.groupby("solver", sort=False).tail(1), _END)
        style.legend(figure)
    return figure
