"""Convergence figures: proven relative gap against seconds and against passes over the data, in one style."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import style
from bench_mtl.report.figures.chart import (
    LEVELS,
    LIMITS,
    MOST_CURVES,
    MOST_ENCLOSED,
    ZERO_PASSES,
    ZERO_SECONDS,
    Axis,
    Chart,
    Panel,
    Trajectory,
    by_solver,
    enclosed,
    first_of_each_kind,
    logarithmic_grid,
    runs_panel,
    stop_of,
    values_at,
)
from bench_mtl.report.figures.draw import draw
from bench_mtl.report.figures.style import LineStyle
from bench_mtl.results.frames import numbers, status_counts

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bench_mtl.core.types import Array

#: A gap below this share of the tightest target is drawn at it.
LEAST_SHARE = 1e-3
#: A greater gap, such as where there is no bound yet, is drawn as this one.
GREATEST_GAP = 1e6

#: What a figure may be drawn against.
_LABELS = {"seconds": "solve time (s)", "passes": "passes over the data", "iteration": "iterations"}


def curves(runs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Return the data of all figures, a row per point.

    Returns
    -------
    DataFrame
        problem, solver, run_id, seed, repetition, status, limit_seconds, had_seconds (of the runs that have it), asked_tolerance (missing
        for an iterative solver), iteration, seconds, passes, relative_gap: the best so far for an iterative solver, in order of time; at
        this tolerance for a one-shot solver, in order of its seconds.
    """
    about = runs[["id", "problem_label", "solver_label", "seed", "repetition", "status", "limit_seconds"]]
    about = about.assign(had_seconds=_had_seconds(runs))
    about = about.rename(columns={"id": "run_id", "problem_label": "problem", "solver_label": "solver"})
    # Labels that millions of points share are kept once.
    about = about.astype(dict.fromkeys(("problem", "solver", "status"), "category"))
    points = samples[["run_id", "number", "asked_tolerance", "iteration", "seconds", "passes", "relative_gap"]].copy()
    for column in ("asked_tolerance", "seconds", "passes", "relative_gap"):
        points[column] = numbers(points, column)
    iterative = points["asked_tolerance"].isna()
    best_so_far = points["relative_gap"].groupby(points["run_id"]).cummin()
    points["relative_gap"] = points["relative_gap"].where(~iterative, best_so_far)
    points = points.sort_values(["run_id", "seconds", "number"], kind="stable").drop(columns="number")
    return about.merge(points, on="run_id", how="inner", sort=False)


def convergence(
    points: pd.DataFrame,
    runs: pd.DataFrame,
    targets: Iterable[float],
    styles: Mapping[str, LineStyle],
    solvers: Collection[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the figure of one problem: its `chart`, with solvers in the styles of `style.line_styles`, or with some of them alone."""
    whole = chart(points, runs, targets)
    return draw(whole if solvers is None else whole.only(solvers, title), styles)


def leading(points: pd.DataFrame, runs: pd.DataFrame, targets: Iterable[float]) -> list[str]:
    """Return the solvers of one problem that are looked at first, at most `MOST_CURVES` of those that have a point.

    First come the fastest of each kind to each target, from the tightest target to the loosest. Then come those that prove most, soonest:
    by the tightest target that they prove, their time to it, the tightest gap that they prove, and their time to that. A solver with
    several runs proves what half of them do, at the median time. The others belong in a second figure, or behind a choice.

    Parameters
    ----------
    points : the rows of `curves` of that problem
    runs : all runs of that problem, with the column `kind` where kinds are known
    targets : relative gaps
    """
    targets = sorted(targets)
    tried, kinds = runs_tried(runs), kinds_of(runs)
    ranks: dict[str, tuple[float, ...]] = {}
    times: dict[str, list[float]] = {}
    for solver, own in points.groupby("solver", sort=False, observed=True):
        name, total = str(solver), max(tried.get(str(solver), 1), 1)
        times[name] = [_middle(own.loc[own["relative_gap"] <= target].groupby("run_id")["seconds"].min(), total) for target in targets]
        gap = _middle(own.groupby("run_id")["relative_gap"].min(), total)
        soonest = _middle(own.loc[own["relative_gap"] <= gap].groupby("run_id")["seconds"].min(), total)
        place = next((place for place, time in enumerate(times[name]) if time < math.inf), len(targets))
        ranks[name] = (place, times[name][place] if place < len(targets) else math.inf, gap, soonest)
    ranked = sorted(ranks, key=ranks.__getitem__)
    first: list[str] = []
    for place in range(len(targets)):
        soon = {solver: times[solver][place] for solver in ranked if times[solver][place] < math.inf}
        there = sorted(soon, key=soon.__getitem__)
        first += first_of_each_kind(there, kinds)[: len({kinds.get(solver) for solver in there})]
    return list(dict.fromkeys([*first, *ranked]))[:MOST_CURVES]


def _middle(values: pd.Series[float], total: int) -> float:
    """Return what half of `total` runs are at most, of whom some may have no value; infinite where more have none."""
    place = _place(0.5, total)
    return float(values.sort_values().iloc[place]) if place < len(values) else math.inf


def kinds_of(runs: pd.DataFrame) -> dict[str, str]:
    """Return the kind of every solver by its label; nothing where kinds are not known."""
    return dict(zip(runs["solver_label"], runs["kind"], strict=True)) if "kind" in runs else {}


def chart(points: pd.DataFrame, runs: pd.DataFrame, targets: Iterable[float]) -> Chart:
    """Return the chart of one problem.

    A solver with one run has its curve; one with more has the median of them in a band. A long curve is drawn through as many of its
    points as can be told apart. A run that ended short of its target is a cross at the top edge, at the time that it had, or at the right
    edge where that is not known; so is one that proved nothing.

    Parameters
    ----------
    points : the rows of `curves` of that problem, at least one
    runs : all runs of that problem, for the legend
    targets : relative gaps, drawn as thin horizontal lines
    """
    targets = tuple(targets)
    counted = points[counts_passes(points)]
    panels = [_with_failures(panel("seconds", by_solver(drawn_curves(points, "seconds", targets)), runs), failures(runs))]
    if len(counted):
        counting = drawn_curves(counted, "passes", targets)
        short = {run for run, status in zip(counted["run_id"], counted["status"], strict=True) if status != Status.VERIFIED}
        ends = [(curve.solver, float(curve.x[-1])) for run, curve in zip(counted["run_id"].unique(), counting, strict=True) if run in short]
        panels.append(_with_failures(panel("passes", by_solver(counting), runs), ends))
    drawn, nothing = set(points["solver"]), []
    for solver, note in run_notes(runs).items():
        if solver not in drawn and not note.startswith(Status.SKIPPED):
            nothing.append((solver, f"{solver} ({note}): nothing proven"))
    title, y = str(points["problem"].iloc[0]), gap_axis(points, targets)
    return Chart("runs", title, y, tuple(panels), targets=targets, without_line=tuple(nothing))


def failures(runs: pd.DataFrame) -> list[tuple[str, float]]:
    """Return the solver of every run of one problem that ended short of its target, and the seconds that it had; infinite where no time
    is known."""
    short = runs[~runs["status"].isin([Status.VERIFIED, Status.SKIPPED])]
    had = numbers(short, "had_seconds" if "had_seconds" in runs else "limit_seconds")
    had = had.where(had > 0).fillna(math.inf)  # such as where a model was still being compiled: it had no time at all
    return list(zip(short["solver_label"].map(str), had.tolist(), strict=True))


def _had_seconds(runs: pd.DataFrame) -> pd.Series[float]:
    """Return the longest time that the solver of each run had in one go, see `bench_mtl.results.frames.seconds_had`; missing where nobody
    asked."""
    return numbers(runs, "had_seconds") if "had_seconds" in runs else numbers(runs, "limit_seconds") * math.nan


def _with_failures(of_curves: Panel, failed: Sequence[tuple[str, float]]) -> Panel:
    """Return the panel with crosses at its top edge, which are all within its ends."""
    last = max((place for _, place in failed if place < math.inf), default=0.0)
    axis = replace(of_curves.x, high=max(of_curves.x.high, 1.5 * last))
    return replace(of_curves, x=axis, failed=tuple((solver, min(max(place, axis.low), axis.high)) for solver, place in failed))


def panel(axis: str, groups: Mapping[str, Sequence[Trajectory]], runs: pd.DataFrame, columns: int = LEVELS) -> Panel:
    """Return the panel of curves against seconds, passes or iterations, with bands at this many places."""
    start = left_edge([curve for group in groups.values() for curve in group])
    return runs_panel(
        _LABELS[axis],
        groups,
        runs_tried(runs),
        run_notes(runs),
        start,
        band=lambda lines, total: quantiles(lines, total, enclosed(total), start, columns),
        answers=lambda answered, total: answer_quantiles(answered, enclosed(total)),
    )


def run_notes(runs: pd.DataFrame) -> dict[str, str]:
    """Return how the runs of each solver of one problem ended; empty where all are verified."""
    return {
        str(solver): "" if set(statuses) == {str(Status.VERIFIED)} else status_counts(statuses)
        for solver, statuses in runs.groupby("solver_label", sort=False)["status"]
    }


def caption(points: pd.DataFrame, runs: pd.DataFrame, targets: Iterable[float]) -> str:
    """Return how the figure of one problem was made, and what is not in it, in sentences."""
    targets = tuple(targets)
    counts = counts_passes(points)
    parts = ["Proven relative gap against solve time" + (" and passes over the data" if counts.any() else "") + "."]
    one_shot = points["asked_tolerance"].notna()
    if not one_shot.all():
        parts.append("Stepped lines: best gap so far of an iterative solver.")
    if one_shot.any():
        parts.append("Joined markers: a generic solver, one marker for each tolerance asked of it, its time counted from zero.")
    if not counts.any():
        parts.append("No solver here counts passes over the data.")
    totals = runs_tried(runs)
    several = [total for solver, total in totals.items() if total > 1 and (points["solver"] == solver).any()]
    if several:
        band = "from the best to the worst of them" if min(several) <= MOST_ENCLOSED else ""
        if max(several) > MOST_ENCLOSED:
            band += (f", or of more than {MOST_ENCLOSED} " if band else "") + "from a tenth of them to nine tenths"
        answers = " (markers: the same of the answers to each tolerance, with bars)" if one_shot.any() else ""
        parts.append(f"A solver with several seeds or repetitions: the gap that half of its runs have proven, in a band {band}{answers}.")
    parts.append("Dashed, grey: the targets.")
    ended = failures(runs)
    if ended:
        unknown = ", or at the right edge where that is not known" if any(place == math.inf for _, place in ended) else ""
        parts.append(f"A cross at the top edge: a run that ended short of its target, at the time that it had{unknown}.")
    if points["status"].isin(LIMITS).any():
        parts.append("A thin line at the end: it had until there" + (" (the median of such runs)." if several else "."))
    least = least_gap(targets)
    if (points["relative_gap"] < least).any():
        parts.append(f"Gaps below {format_target(least)}, zero among them, are drawn there.")
    if (points["relative_gap"] > GREATEST_GAP).any():
        parts.append(f"Gaps above {format_target(GREATEST_GAP)} are drawn there.")
    in_seconds = drawn_curves(points, "seconds", targets)
    in_passes = drawn_curves(points[counts], "passes", targets)
    if any(curve.x[0] < left_edge(group) for group in (in_seconds, in_passes) for curve in group):
        parts.append("Cut off on the left, where no solver has gained a tenth on its first gap.")
    if (points["seconds"] <= 0).any() and left_edge(in_seconds) <= ZERO_SECONDS:
        parts.append(f"Times of zero are drawn at {format_target(ZERO_SECONDS)} s.")
    if in_passes and (points.loc[counts, "passes"] <= 0).any() and left_edge(in_passes) <= ZERO_PASSES:
        early = ", or at half of a run's first count where that is less" if any(curve.x[0] < ZERO_PASSES for curve in in_passes) else ""
        parts.append(f"Points before the first pass are drawn at {ZERO_PASSES:g}{early}.")
    absent = runs[~runs["id"].isin(points["run_id"])]
    if len(absent):
        names = [f"{solver} ({status_counts(group['status'])})" for solver, group in absent.groupby("solver_label", sort=False)]
        parts.append(f"Without a proven point, so without a curve: {', '.join(names)}.")
    return " ".join(parts)


def least_gap(targets: Iterable[float]) -> float:
    """Return the least gap that is drawn as what it is."""
    return min(targets) * LEAST_SHARE


def counts_passes(points: pd.DataFrame) -> pd.Series[bool]:
    """Return which points belong to a run that counts its passes over the data."""
    counts = points.groupby("run_id")["passes"].transform("max") > 0
    return counts & points["asked_tolerance"].isna()


def drawn_curves(points: pd.DataFrame, column: str, targets: Iterable[float], levels: int = LEVELS) -> list[Trajectory]:
    """Return the runs of one problem, in their order, against seconds, passes or iterations, through what is `visible` at `levels`."""
    import numpy as np

    if points.empty:
        return []
    targets, in_seconds = tuple(targets), column == "seconds"
    ids, limits = points["run_id"].to_numpy(), numbers(points, "had_seconds").fillna(numbers(points, "limit_seconds")).to_numpy()
    x, y, asked = (np.array(points[name], np.float64) for name in (column, "relative_gap", "asked_tolerance"))
    x[~(x > 0)] = ZERO_SECONDS if in_seconds else ZERO_PASSES
    y = np.clip(y, least_gap(targets), GREATEST_GAP)
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    labels = zip(points["solver"].iloc[starts], points["status"].iloc[starts], strict=True)
    curves = []
    for start, end, (solver, status) in zip(starts, [*starts[1:], len(ids)], labels, strict=True):
        run = slice(start, end)
        one_shot = bool((~np.isnan(asked[run])).any())
        if not in_seconds and x[run].min() < ZERO_PASSES:
            x[run] = _spaced(x[run], points[column].to_numpy(np.float64)[run])
        kept = slice(None) if one_shot else visible(y[run], targets, levels)
        # A one-shot solver was at work on its next tolerance, with the best gap that it had proven.
        stop = stop_of(status, limits[start], x[run], y[run].min(), in_seconds=in_seconds)
        curves.append(Trajectory(str(solver), one_shot, x[run][kept], y[run][kept], asked[run][kept], stop))
    return curves


def _spaced(places: Array, counts: Array) -> Array:
    """Return the places of a run that shows points within its first half pass: what is before its first pass stays before all others."""
    import numpy as np

    known = counts > 0
    return np.where(known, places, 0.5 * counts[known].min())


def visible(gaps: Array, targets: Iterable[float], levels: int = LEVELS) -> NDArray[np.bool_]:
    """Return which points of a curve of best gaps so far are drawn: all of one that has no more than `levels`.

    Of a longer one the first point at each of `levels` levels from its first gap to its last, even on a logarithmic axis, the
    first at every target, and the last. The line in steps through them is nowhere below the whole one, and less than a level above.
    """
    import numpy as np

    kept = np.ones(len(gaps), bool)
    if len(gaps) <= levels:
        return kept
    depth = np.log(gaps[0]) - np.log(gaps)
    level = np.floor(depth * (levels / depth[-1] if depth[-1] > 0 else 0.0))
    kept[1:] = level[1:] > level[:-1]
    reached = [int(np.argmax(gaps <= target)) for target in targets if gaps[-1] <= target]
    kept[[*reached, -1]] = True
    return kept


def left_edge(curves: Sequence[Trajectory]) -> float:
    """Return where the first curve sets out, or a one-shot solver has its first answer; where the first one begins if none sets out."""
    starts = [curve.start for curve in curves if curve.start is not None]
    return float(min(starts or [curve.x[0] for curve in curves]))


def quantiles(
    curves: Sequence[Trajectory], total: int, shares: Sequence[float], start: float = 0.0, columns: int = LEVELS
) -> tuple[Array, Array]:
    """Return what shares of `total` iterative runs have proven, as they go on.

    Returns
    -------
    x : Array of length columns
        Even on a logarithmic axis, from the first point of the curves, or from `start` if that is later.
    y : Array of shape (shares, columns)
        The least gap that the share of the runs has proven by x; infinite as long as fewer have any. A run that has ended keeps its
        gap, and one without a curve has none.
    """
    import numpy as np

    last = max(curve.x[-1] for curve in curves)
    x = logarithmic_grid(min(max(start, min(curve.x[0] for curve in curves)), last), last, columns)
    unproven = np.full((total - len(curves), columns), np.inf)
    ordered = np.sort(np.concatenate([values_at(curves, x, np.inf), unproven]), axis=0)
    return x, ordered[[_place(share, total) for share in shares]]


def _place(share: float, total: int) -> int:
    """Return the index of the least of `total` ordered values that at least this share of them do not exceed."""
    return max(0, math.ceil(share * total - 1e-9) - 1)


def runs_tried(runs: pd.DataFrame) -> dict[str, int]:
    """Return how many runs a solver has on a problem, the skipped ones apart."""
    tried = runs.loc[runs["status"] != Status.SKIPPED, "solver_label"].value_counts()
    return {str(solver): int(count) for solver, count in tried.items()}


def answer_quantiles(curves: Sequence[Trajectory], shares: Sequence[float]) -> tuple[Array, Array]:
    """Return the quantiles of the x and of the y of all answers to each tolerance asked, in order of the median x."""
    import numpy as np

    x, y, asked = (np.concatenate([getattr(curve, name) for curve in curves]) for name in ("x", "y", "asked"))
    groups = [asked == tolerance for tolerance in np.unique(asked)]
    found = [[np.quantile(values[group], shares, method="inverted_cdf") for group in groups] for values in (x, y)]
    order = np.argsort([one[1] for one in found[0]], kind="stable")
    return np.array(found[0])[order].T, np.array(found[1])[order].T


def gap_axis(points: pd.DataFrame, targets: Sequence[float]) -> Axis:
    """Return the axis of the gaps of one problem."""
    gaps = points["relative_gap"]
    low, high = min(max(gaps.min(), least_gap(targets)), *targets) / 2.0, min(max(1.0, gaps.max()), GREATEST_GAP) * 2.0
    return Axis("proven relative gap", low, high, most_ticks=9, form=style.gap)
