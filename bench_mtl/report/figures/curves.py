"""Courses of runs: a quantity, such as the proven gap, the objective or what a problem measures, against time and passes.

Every run is a line. Of several runs of a solver the one in the middle is drawn strongly, the others faintly, so that one odd run is seen as
one. A one-shot solver has a marker for each tolerance asked of it, never joined; for gaps a thin line in steps says what its attempts of
at most so many seconds prove, and so runs forward in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.core.types import Status
from bench_mtl.report.figures import style
from bench_mtl.report.tables.measures import trajectories
from bench_mtl.results.frames import numbers, status_counts

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bench_mtl.core.types import Array

GAP = "relative_gap"

#: A line goes through at most about this many points: its levels are then less than a line's width apart. Runs of a solver that are drawn.
LEVELS, MOST_RUNS = 200, 10

#: An axis of values that are this many times apart is logarithmic.
LOGARITHMIC_FROM = 10.0

#: Where points are less than this share of a pass apart, half a pass up to rounding, the number of examples seen says more than passes.
PART_OF_A_PASS = 0.499

#: A curve has set out where its gap is below this share of the first one. A run that takes no time is drawn at these seconds.
_SET_OUT, ZERO_SECONDS = 0.9, 1e-6

#: The columns of runs that their points have too, and how they are called there.
_ABOUT = {
    "problem_label": "problem", "solver_label": "solver", "kind": "kind", "id": "run_id", "seed": "seed", "repetition": "repetition",
    "status": "status", "longest_attempt_seconds": "longest_attempt_seconds",
}  # fmt: skip

_STRONG: dict[str, Any] = {"linewidth": 1.5, "markersize": 4.5, "zorder": 3}
_FAINT: dict[str, Any] = {"linewidth": 0.6, "markersize": 2.5, "alpha": 0.35, "zorder": 2}


def course_points(runs: pd.DataFrame, samples: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return what the figures of courses are drawn from: a row per sample, and one for each run that has none and was not skipped.

    Its columns: problem, solver, kind, seed, repetition, status and longest_attempt_seconds of the run, those of `trajectories`, and
    relative_gap, of the best point so far for an iterative solver. A run's rows are in the order of their seconds.
    """
    import pandas as pd

    about = runs.loc[runs["status"] != Status.SKIPPED, list(_ABOUT)].rename(columns=_ABOUT)
    about["longest_attempt_seconds"] = numbers(about, "longest_attempt_seconds")
    points = trajectories(runs, samples, measures)
    gaps = pd.DataFrame({"run_id": samples["run_id"], "number": samples["number"], GAP: numbers(samples, GAP)})
    points = about.merge(points.merge(gaps, on=["run_id", "number"], how="left"), on="run_id", how="left", sort=False)
    best = points.groupby("run_id")[GAP].cummin()
    points[GAP] = points[GAP].where(points["asked_tolerance"].notna(), best)
    return points.sort_values(["run_id", "seconds", "number"], kind="stable", ignore_index=True)


class Run(NamedTuple):
    """One run as it is drawn against one axis."""

    solver: str
    kind: str
    status: str
    is_one_shot: bool
    longest_attempt_seconds: float
    x: Array  # above zero: what is at zero stands at the first place that is not
    y: Array
    rank: tuple[int, float, float]  # targets missed, seconds to the tightest one that it proves, and its least gap
    start: float  # where it sets out, or has its first answer

    def end(self, *, in_seconds: bool) -> float:
        """Return where it ends: of one that ended short, on an axis of seconds, at the time that it had."""
        longest = self.longest_attempt_seconds if in_seconds and self.status != Status.VERIFIED else 0.0
        return max(float(self.x[-1]), longest if longest > 0 else 0.0)


def runs_of(points: pd.DataFrame, quantity: str, column: str, targets: Sequence[float]) -> dict[str, list[Run]]:
    """Return the runs of each solver that have a quantity and count what it is drawn against, first the one of the middle rank."""
    import numpy as np

    known = points[points[quantity].notna()]
    names = ["solver", "kind", "status", "run_id", "longest_attempt_seconds", "asked_tolerance", column, quantity, GAP, "seconds"]
    of = {name: known[name].to_numpy() for name in names}
    edges = [*np.flatnonzero(np.r_[True, of["run_id"][1:] != of["run_id"][:-1]]), len(known)] if len(known) else []
    found: dict[str, list[Run]] = {}
    for start, end in pairwise(edges):
        x, y, gaps, seconds = (of[name][start:end].astype(np.float64) for name in (column, quantity, GAP, "seconds"))
        is_one_shot, counted = bool(of["asked_tolerance"][start:end].max() > 0), x > 0
        if column != "seconds" and (is_one_shot or not counted.any()):
            continue
        x = np.where(counted, x, x[counted].min() if counted.any() else ZERO_SECONDS)
        proven = [target for target in targets if gaps.min() <= target] or [gaps.min()]
        rank = sum(target < min(proven) for target in targets), seconds[gaps <= min(proven)].min(), gaps.min()
        below = gaps < _SET_OUT * gaps[0] if quantity == GAP and not is_one_shot else np.ones(len(x), bool)
        solver, kind, status, had = (of[name][start] for name in ("solver", "kind", "status", "longest_attempt_seconds"))
        run = Run(solver, kind, status, is_one_shot, had, x, y, rank, x[below.argmax()] if below.any() else x.max())
        found.setdefault(str(run.solver), []).append(run)
    for solver, runs in found.items():
        middle = sorted(runs, key=lambda run: run.rank)[(len(runs) - 1) // 2]
        found[solver] = [middle, *(run for run in runs if run is not middle)]
    return found


def courses(points: pd.DataFrame, quantity: str = GAP, targets: Sequence[float] = ()) -> Figure:
    """Draw a quantity, a column of `course_points`, of the runs of one problem, or of some of its solvers; thin lines are target gaps."""
    against = {label: runs_of(points, quantity, column, targets) for column, label in _axes_of(points).items()}
    against = {label: runs for label, runs in against.items() if runs}
    with style.styled():
        widths = [4.3, 3.2] if len(against) == 2 else [5.6]
        figure, axes = style.panels(str(points["problem"].iloc[0]), widths, 3.1, share_y=True)
        scale(axes[0], points[quantity].dropna().to_numpy(), quantity, targets)
        for axis, (label, runs) in zip(axes, against.items(), strict=True):
            draw_courses(axis, runs, quantity, targets, notes_of(points), in_seconds=axis is axes[0])
            axis.set_xlabel(label)
        draw_pointless(axes[0], points[~points["solver"].isin(list(next(iter(against.values()))))])
        if len(axes) > 1:
            axes[1].set_title("solvers that count them")
        style.legend(figure)
    return figure


def draw_courses(
    axis: Axes, runs: Mapping[str, Sequence[Run]], quantity: str, targets: Sequence[float], notes: Mapping[str, str], *, in_seconds: bool
) -> None:
    """Draw the `runs_of` several solvers against one axis, which it scales; the other one has its ends.

    `notes` is what the legend says of a solver beside its name. On an axis of seconds a run that ended short goes on to the time it had.
    """
    every = [run for of_solver in runs.values() for run in of_solver]
    style.logarithmic(axis, "x", min(run.start for run in every) / 1.3, 1.4 * max(run.end(in_seconds=in_seconds) for run in every))
    looks = style.solver_looks({run.solver: run.kind for run in every})
    for solver, of_solver in runs.items():
        labels = [f"{solver}{notes[solver]}", *[None] * MOST_RUNS]
        for label, run in zip(labels, of_solver[:MOST_RUNS], strict=False):
            _draw_run(axis, run, looks[solver], quantity, targets, label, in_seconds=in_seconds)
    for target in targets if quantity == GAP else ():
        axis.axhline(target, **style.GUIDE)


def _draw_run(
    axis: Axes, run: Run, look: Mapping[str, Any], quantity: str, targets: Sequence[float], label: str | None, *, in_seconds: bool
) -> None:
    """Draw one run, strongly if it has a label; one that ended short goes on to the time that it had, and ends there in a cross."""
    import numpy as np

    bottom, top = axis.get_ylim()
    x, y = run.x, np.clip(run.y, bottom / 10.0, top * 10.0) if axis.get_yscale() == "log" else run.y  # what is beyond leaves the panel
    looks = dict(look) | (_FAINT if label is None else _STRONG)
    last = run.end(in_seconds=in_seconds)
    if run.is_one_shot:
        axis.plot(x, np.maximum(y, bottom), **looks | {"linestyle": "none", "clip_on": False, "label": label})
        if quantity == GAP:
            y = np.minimum.accumulate(y)
            thin = {"marker": "none", "drawstyle": "steps-post", "linewidth": 0.8, "alpha": 0.25 if label is None else 0.8}
            axis.plot(np.append(x, last), np.append(y, y[-1]), **looks | thin)
    else:
        shown = thinned(y, targets if quantity == GAP else None)
        markers = {"marker": "none"} if label is None else {"markevery": (0.07, 0.15)}
        axis.plot(x[shown], y[shown], drawstyle="steps-post", **looks | markers | {"label": label})
        if last > x[-1]:
            axis.plot([x[-1], last], [y[-1]] * 2, **looks | {"marker": "none", "linewidth": 0.6})
    if label and run.status != Status.VERIFIED:
        axis.plot([last], [max(y[-1], bottom)], **style.CROSS, color=look["color"], gid=look["gid"], clip_on=False)


def draw_pointless(axis: Axes, points: pd.DataFrame) -> None:
    """Draw crosses of the solvers that have no point, below each other at the top edge, at the time that they had."""
    had = points.groupby("solver", sort=False)["longest_attempt_seconds"].median()
    axis.set_xlim(right=max(axis.get_xlim()[1], 1.4 * had.max()) if had.notna().any() else None)
    notes, looks = notes_of(points), style.solver_looks(dict(zip(points["solver"], points["kind"], strict=True)))
    at: dict[str, Any] = {"transform": axis.get_xaxis_transform(), "clip_on": False}
    for place, (solver, seconds) in enumerate(had.fillna(axis.get_xlim()[1]).clip(lower=axis.get_xlim()[0]).items()):
        look = {name: looks[str(solver)][name] for name in ("color", "gid")}
        axis.plot([seconds], [1.0 - 0.04 * place], label=f"{solver}{notes[str(solver)]}: no point", **style.CROSS | at | look)


def shown_first(points: pd.DataFrame, targets: Sequence[float], names: Mapping[str, str], most: int) -> list[str]:
    """Return the solvers of one problem that a figure has if it has not all.

    They are `auto`, the best of each kind, the best of each solver whatever its options (`names` has the solver of each label), and then
    those that prove most, soonest.
    """
    best = sorted((runs[0] for runs in runs_of(points, GAP, "seconds", targets).values()), key=lambda run: run.rank)
    kinds = {run.kind: run.solver for run in reversed(best)}
    solvers = {names.get(run.solver, run.solver): run.solver for run in reversed(best)}
    first = [
        "auto",
        *(run.solver for run in best if run.solver in kinds.values()),
        *(run.solver for run in best if run.solver in solvers.values()),
    ]
    ranked = [run.solver for run in best]
    return [solver for solver in dict.fromkeys([*first, *ranked]) if solver in ranked][:most]


def notes_of(points: pd.DataFrame) -> dict[str, str]:
    """Return how the runs of each solver ended, in brackets, empty where all are verified."""
    ended = points.drop_duplicates("run_id").groupby("solver", sort=False)["status"]
    return {str(solver): "" if set(of) == {str(Status.VERIFIED)} else f" ({status_counts(of)})" for solver, of in ended}


def thinned(values: Array, targets: Iterable[float] | None) -> NDArray[np.intp]:
    """Return the places of the points that a line is drawn through: all of one that has no more than `LEVELS`.

    Of a longer one they are even in their number; of best gaps so far, where there are targets, the first at each of `LEVELS` levels, even
    on a logarithmic axis, and at every target, so that the line reaches it when the run did. The last one is there.
    """
    import numpy as np

    if len(values) <= LEVELS:
        return np.arange(len(values))
    if targets is None:
        return np.unique(np.linspace(0, len(values) - 1, LEVELS).astype(int))
    depth = np.log(values[0] / values)
    level = np.floor(depth * (LEVELS / depth[-1] if depth[-1] > 0 else 0.0))
    firsts = np.flatnonzero(np.r_[True, level[1:] > level[:-1]])
    return np.unique([*firsts, *(int(np.argmax(values <= target)) for target in targets if values[-1] <= target), len(values) - 1])


def _axes_of(points: pd.DataFrame) -> dict[str, str]:
    """Return what a figure has panels against, with their labels: seconds, and what iterative solvers count."""
    iterative = points[points["asked_tolerance"].isna()]
    apart = iterative["passes"].groupby(iterative["run_id"]).diff().fillna(iterative["passes"])
    takes_examples = ((apart > 0) & (apart < PART_OF_A_PASS)).any() and iterative["examples"].notna().any()
    return {"seconds": "solve time (s)"} | ({"examples": "examples seen"} if takes_examples else {"passes": "passes over the data"})


def scale(axis: Axes, values: Array, quantity: str, targets: Sequence[float]) -> None:
    """Scale the y axis; one of gaps ends below the tightest target, and lines that go on leave it there."""
    axis.set_ylabel("proven relative gap" if quantity == GAP else quantity)
    if quantity == GAP:
        low = max(float(values.min()), min(targets, default=1e-12) / 30.0) / 1.5
        style.logarithmic(axis, "y", low, min(max(1.0, float(values.max())), 1e3) * 1.5)
    else:
        value_axis(axis, values)


def value_axis(axis: Axes, values: Array) -> None:
    """Scale a y axis of a quantity: logarithmic where its values are far apart; then zeros leave it at its lower end."""
    positive, low, high = values[values > 0], float(values.min()), float(values.max())
    if len(positive) and low >= 0 and high >= LOGARITHMIC_FROM * positive.min():
        style.logarithmic(axis, "y", float(positive.min()) / 1.4, high * 1.4)
        return
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    axis.set(yscale="linear", ylim=(0.0 if 0.0 <= low <= 0.5 * high else low - margin, high + margin))
