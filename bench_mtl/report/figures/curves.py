"""Courses of runs: a quantity, such as the proven gap, the objective or what a problem measures, against time and passes.

Every run is a line. Of several runs of a solver the one in the middle is drawn strongly, the others faintly, so that one odd run is seen as
one. A one-shot solver has a marker for each tolerance asked of it, never joined; for gaps a thin line in steps says what its attempts of
at most so many seconds prove, and so runs forward in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.figures import style
from bench_mtl.report.render import format_target
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

#: A line goes through at most about this many points: its levels are then less than a line's width apart.
LEVELS = 200

#: Of the runs of a solver, beside the one in the middle, this many are drawn.
MOST_FAINT = 9

#: An axis of values that are this many times apart is logarithmic.
LOGARITHMIC_FROM = 10.0

#: A solver that shows points less than this share of a pass apart, half a pass up to rounding, takes examples one by one, and their
#: number says more than passes.
PART_OF_A_PASS = 0.499

#: A curve has set out where its gap is below this share of the first one.
_SET_OUT = 0.9

#: The columns of runs that their points have too, and how they are called there.
_ABOUT = {
    "problem_label": "problem", "solver_label": "solver", "kind": "kind", "id": "run_id", "seed": "seed", "repetition": "repetition",
    "status": "status", "had_seconds": "longest_attempt_seconds",
}  # fmt: skip

_STRONG: dict[str, Any] = {"linewidth": 1.5, "markersize": 4.5, "zorder": 3}
_FAINT: dict[str, Any] = {"linewidth": 0.6, "markersize": 2.5, "alpha": 0.35, "zorder": 2}
_CROSS: dict[str, Any] = {"marker": "x", "linestyle": "none", "markersize": 6.5, "markeredgewidth": 1.6, "zorder": 4}


def course_points(runs: pd.DataFrame, samples: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return what the figures of courses are drawn from: a row per sample, and one for each run that has none and was not skipped.

    Returns
    -------
    DataFrame
        problem, solver, kind, run_id, seed, repetition, status, longest_attempt_seconds, then as in
        `bench_mtl.report.tables.measures.trajectories` asked_tolerance, number, iteration, seconds, passes, examples, objective and the
        measures, and relative_gap, of the best point so far for an iterative solver. A run's rows are in the order of their seconds.
    """
    import pandas as pd

    about = runs.loc[runs["status"] != Status.SKIPPED, list(_ABOUT)].rename(columns=_ABOUT)
    about["longest_attempt_seconds"] = numbers(about, "longest_attempt_seconds")
    points = trajectories(runs, samples, measures).drop(columns=["problem", "solver", "seed", "repetition", "status", "limit_seconds"])
    gaps = pd.DataFrame({"run_id": samples["run_id"], "number": samples["number"], GAP: numbers(samples, GAP)})
    points = about.merge(points.merge(gaps, on=["run_id", "number"], how="left"), on="run_id", how="left", sort=False)
    best = points.groupby("run_id")[GAP].cummin()
    points[GAP] = points[GAP].where(points["asked_tolerance"].notna(), best)
    return points.sort_values(["run_id", "seconds", "number"], kind="stable", ignore_index=True)


def courses(points: pd.DataFrame, quantity: str = GAP, targets: Sequence[float] = ()) -> Figure:
    """Draw a quantity of the runs of one problem, or of some of its solvers.

    Parameters
    ----------
    points : rows of `course_points`
    quantity : a column of theirs
    targets : relative gaps, thin lines in a figure of gaps
    """
    known = points[points[quantity].notna()]
    against = {column: label for column, label in _axes_of(known).items() if len(_against(known, column))}
    looks = style.solver_looks(dict(zip(points["solver"], points["kind"], strict=True)))
    with style.styled():
        widths = [4.3, 3.2] if len(against) == 2 else [5.6]
        figure, axes = style.panels(str(points["problem"].iloc[0]), widths, 3.4 + 0.1 * min(8, len(looks)), share_y=True)
        _scale(axes[0], known, quantity, targets)
        for axis, (column, label) in zip(axes, against.items(), strict=True):
            draw_courses(axis, points, quantity, column, looks, targets)
            axis.set_xlabel(label)
        if len(axes) > 1:
            axes[1].set_title("solvers that count them")
        style.legend(figure)
    return figure


def draw_courses(
    axis: Axes, points: pd.DataFrame, quantity: str, column: str, looks: Mapping[str, dict[str, Any]], targets: Sequence[float]
) -> None:
    """Draw the runs of several solvers against seconds, passes or examples; the y axis has its ends."""
    drawn = _against(points[points[quantity].notna()], column)
    low, high = _ends(drawn, quantity, column)
    style.logarithmic(axis, "x", low, high)
    notes, middle = notes_of(points), middle_runs(points, targets)
    nothing = 0
    for solver, of_solver in points.groupby("solver", sort=False):
        look, label = looks[str(solver)], " ".join(filter(None, [str(solver), notes[str(solver)]]))
        own = drawn[drawn["solver"] == solver]
        shown = [middle.get(str(solver)), *(run for run in own["run_id"].unique() if run != middle.get(str(solver)))][: MOST_FAINT + 1]
        for place, run in enumerate(run for run in shown if run is not None):
            rows = own[own["run_id"] == run]
            if len(rows):
                _draw_run(axis, rows, quantity, column, look, targets, label=None if place else label)
        if own.empty and column == "seconds":  # proved nothing: at the top, below each other
            had = of_solver["longest_attempt_seconds"].fillna(high).clip(low, high).median()
            at = {"transform": axis.get_xaxis_transform(), "clip_on": False, "color": look["color"], "gid": look["gid"]}
            axis.plot([had], [1.0 - 0.04 * nothing], label=f"{label}: no point", **_CROSS | at)
            nothing += 1
    if quantity == GAP:
        for target in targets:
            axis.axhline(target, color=style.INK, alpha=0.45, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)


def _draw_run(
    axis: Axes,
    rows: pd.DataFrame,
    quantity: str,
    column: str,
    look: Mapping[str, Any],
    targets: Sequence[float],
    *,
    label: str | None,
) -> None:
    """Draw one run, strongly if it has a label; one that ended short goes on to the time that it had, and ends there in a cross."""
    import numpy as np

    bottom, top = axis.get_ylim()
    logarithmic = axis.get_yscale() == "log"
    x, values = rows[column].to_numpy(np.float64), rows[quantity].to_numpy(np.float64)
    y = np.clip(values, bottom / 10.0, top * 10.0) if logarithmic else values  # what is beyond leaves the panel
    looks = dict(look) | (_FAINT if label is None else _STRONG)
    status, had = str(rows["status"].iloc[0]), float(rows["longest_attempt_seconds"].iloc[0])
    last = max(float(x[-1]), had) if column == "seconds" and status != Status.VERIFIED and had == had else float(x[-1])
    if rows["asked_tolerance"].notna().any():
        axis.plot(x, np.maximum(y, bottom), **looks | {"linestyle": "none", "clip_on": False, "label": label})
        if quantity == GAP:
            y = np.minimum.accumulate(y)
            thin = {"marker": "none", "drawstyle": "steps-post", "linewidth": 0.8, "alpha": 0.25 if label is None else 0.8}
            axis.plot(np.append(x, last), np.append(y, y[-1]), **looks | thin)
    else:
        kept = thinned(y, targets if quantity == GAP else None)
        every = {"markevery": (0.07, 0.15)} if label else {"marker": "none"}
        axis.plot(x[kept], y[kept], drawstyle="steps-post", **looks | every | {"label": label})
        if last > x[-1]:
            axis.plot([x[-1], last], [y[-1]] * 2, **looks | {"marker": "none", "linewidth": 0.6})
    if label and status != Status.VERIFIED:
        axis.plot([last], [max(y[-1], bottom)], **_CROSS, color=look["color"], gid=look["gid"], clip_on=False)


def middle_runs(points: pd.DataFrame, targets: Sequence[float]) -> dict[str, int]:
    """Return the run of each solver that is drawn strongly: half of its runs are as soon at the tightest target, then at the least gap."""
    ranked = ranks(points, targets)
    found = {}
    for solver, own in ranked.groupby("solver", sort=False):
        in_order = own.sort_values(["missed", "at", "gap"], kind="stable")
        found[str(solver)] = int(in_order["run_id"].iloc[(len(own) - 1) // 2])
    return found


def ranks(points: pd.DataFrame, targets: Sequence[float]) -> pd.DataFrame:
    """Return for every run with a point: solver, kind, run_id, missed (targets), at (seconds to the tightest one that it proves), gap."""
    import pandas as pd

    rows = []
    for (solver, kind, run), own in points[points[GAP].notna()].groupby(["solver", "kind", "run_id"], sort=False):
        gaps, seconds = own[GAP].to_numpy(), own["seconds"].to_numpy()
        proven = [target for target in targets if gaps.min() <= target] or [gaps.min()]
        missed = sum(target < min(proven) for target in targets)
        rows.append((solver, kind, run, missed, seconds[gaps <= min(proven)].min(), gaps.min()))
    return pd.DataFrame(rows, columns=["solver", "kind", "run_id", "missed", "at", "gap"])


def shown_first(points: pd.DataFrame, targets: Sequence[float], names: Mapping[str, str], most: int) -> list[str]:
    """Return the solvers of one problem that a figure has if it has not all.

    They are `auto`, the best of each kind, the best of each solver whatever its options, and then those that prove most, soonest.

    Parameters
    ----------
    names : of the solver that each label is of
    """
    middle = middle_runs(points, targets)
    best = ranks(points, targets).set_index("run_id").loc[list(middle.values())].sort_values(["missed", "at", "gap"], kind="stable")
    of = best["solver"].map(lambda label: names.get(label, label))
    chosen = [*best.loc[best["solver"] == "auto", "solver"], *best.drop_duplicates("kind")["solver"], *best.loc[~of.duplicated(), "solver"]]
    return list(dict.fromkeys(map(str, [*chosen, *best["solver"]])))[:most]


def notes_of(points: pd.DataFrame) -> dict[str, str]:
    """Return how the runs of each solver ended, in brackets; empty where all are verified."""
    ended = points.drop_duplicates("run_id").groupby("solver", sort=False)["status"]
    return {str(solver): "" if set(of) == {str(Status.VERIFIED)} else f"({status_counts(of)})" for solver, of in ended}


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
    if ((apart > 0) & (apart < PART_OF_A_PASS)).any() and iterative["examples"].notna().any():
        return {"seconds": "solve time (s)", "examples": "examples seen"}
    return {"seconds": "solve time (s)", "passes": "passes over the data"}


def _against(points: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows of the runs that count this, each from its last point at zero on, which is drawn at the first place that is not."""
    if column != "seconds":
        points = points[points["asked_tolerance"].isna() & (points.groupby("run_id")[column].transform("max") > 0)]
    if points.empty:
        return points
    zero = ~(points[column] > 0)
    first = points[column].where(~zero).groupby(points["run_id"]).transform("min").fillna(points[column].where(~zero).min())
    return points.assign(**{column: points[column].mask(zero, first.fillna(1e-6))})


def _ends(points: pd.DataFrame, quantity: str, column: str) -> tuple[float, float]:
    """Return the ends of an x axis: gaps begin where the first run has set out, or a one-shot solver has its first answer."""
    start = points[column]
    if quantity == GAP:
        set_out = points[GAP] < _SET_OUT * points.groupby("run_id")[GAP].transform("first")
        start = start[set_out | points["asked_tolerance"].notna()] if set_out.any() else start
    short = points.loc[points["status"] != Status.VERIFIED, "longest_attempt_seconds"] if column == "seconds" else points[column]
    return float(start.min()) / 1.3, 1.4 * max(float(points[column].max()), float(short.max()) if short.notna().any() else 0.0)


def _scale(axis: Axes, points: pd.DataFrame, quantity: str, targets: Sequence[float]) -> None:
    """Scale the y axis; one of gaps ends below the tightest target, and lines that go on leave it there."""
    import numpy as np

    values = points[quantity].to_numpy(np.float64)
    if quantity == GAP:
        axis.set_ylabel("proven relative gap")
        least = max(float(values.min()), min(targets, default=1e-12) / 30.0)
        style.logarithmic(axis, "y", least / 1.5, min(max(1.0, float(values.max())), 1e3) * 1.5, format_target)
        return
    axis.set_ylabel(quantity)
    value_axis(axis, "y", values)


def value_axis(axis: Axes, which: Any, values: Array) -> None:
    """Scale an axis of a quantity: logarithmic where its values are far apart; then zeros leave it at its lower end."""
    positive = values[values > 0]
    if len(positive) and (values >= 0).all() and positive.max() >= LOGARITHMIC_FROM * positive.min():
        style.logarithmic(axis, which, float(positive.min()) / 1.4, float(positive.max()) * 1.4)
        return
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    axis.set(**{f"{which}lim": (0.0 if 0.0 <= low <= 0.5 * high else low - margin, high + margin)})


def caption(points: pd.DataFrame, quantity: str) -> str:
    """Return what is drawn, and how, in two sentences."""
    one_shot = points["asked_tolerance"].notna()
    several = points.groupby("solver")["run_id"].nunique().max() > 1
    what = "Proven relative gap, of the best point so far" if quantity == GAP else quantity[:1].upper() + quantity[1:]
    how = [
        "lines in steps are iterative solvers" if not one_shot.all() else "",
        "markers are the tolerances asked of one-shot solvers, each from zero seconds on" if one_shot.any() else "",
        "of several runs the one in the middle is strong" if several else "",
        "a cross ends what did not reach the tightest target" if (points["status"] != Status.VERIFIED).any() else "",
    ]
    sentence = "; ".join(filter(None, how))
    return f"{what}, against time{' and what a solver counts' if not one_shot.all() else ''}. {sentence[:1].upper()}{sentence[1:]}."
