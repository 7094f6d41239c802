"""The curves of the page's chart of convergence: those of the printed figures, as plain lists that become JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.figures import convergence
from bench_mtl.report.figures.convergence import LEVELS, Curve
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.page.quantities import examples_of, quantity_charts
from bench_mtl.report.render import format_target
from bench_mtl.results.frames import numbers, status_counts

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array
    from bench_mtl.results.loading import Results

#: Of all curves of a page together: they are drawn at fewer levels until they have about so few.
MOST_POINTS = 60_000

#: Numbers of all bands of a page together.
MOST_OF_BANDS = 250_000

_FEWEST_LEVELS = 10

#: What a curve may be drawn against.
AXES = ("seconds", "passes", "iteration")


def convergence_charts(results: Results, captions: Mapping[str, str], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """What the script of the page draws convergence from: no number in it is infinite or missing.

    Parameters
    ----------
    captions : of the printed figures, by problem; on paper not every problem has one
    places : of the solvers in the page's list of them

    Returns
    -------
    list of dict
        Of each problem: label, caption, gaps (the ends of their axis), axes (the ends of each of `AXES`, or null where nothing counts
        it), and solvers: s (its place), note (how its runs ended, unless all are verified), runs (how many), y, asked (of a generic
        solver), and x, an object for each of `AXES` or null: its x, or of several runs band ([x, low, middle, high], drawn from `from`
        on), answers ([x low, middle, high, gap low, middle, high]); end ([where its runs were stopped, their best gap, their last point]).
        Where a solver takes examples one by one, examples (how many a pass sees); where anything is measured, quantities: what
        `quantities.quantity_charts` has of the problem.
    """
    targets = results.targets
    points = convergence.curves(results.runs, results.samples)
    of_problems = {str(problem): rows for problem, rows in points.groupby("problem", sort=False, observed=True)}
    runs_of = {str(problem): runs for problem, runs in results.runs.groupby("problem_label", sort=False)}
    tried = {problem: convergence.runs_tried(runs_of[problem]) for problem in of_problems}
    levels = _levels([_single(rows, tried[problem]) for problem, rows in of_problems.items()], targets)
    bands = len(AXES) * sum(total > 1 for totals in tried.values() for total in totals.values())
    columns = min(LEVELS, max(_FEWEST_LEVELS, MOST_OF_BANDS // 4 // max(1, bands)))
    problem_of = dict(zip(results.runs["id"], results.runs["problem_label"], strict=True))
    by_axis = [_by_problem(_counting(points, axis), axis, targets, levels, problem_of) for axis in AXES]
    measured = quantity_charts(results, places)
    charts = []
    for problem, rows in of_problems.items():
        runs = runs_of[problem]
        caption = captions.get(problem) or convergence.caption(rows, runs, targets)
        gaps = convergence.gap_limits(rows, targets)
        chart = {"label": problem, "caption": caption, "gaps": _pair(gaps)}
        of_axes = [of_problem.get(problem, {}) for of_problem in by_axis]
        chart |= _problem(of_axes, runs, tried[problem], gaps[1], places, columns)
        more = {"examples": examples_of(runs, rows), "quantities": measured.get(problem)}
        charts.append(chart | {key: value for key, value in more.items() if value})
    return charts


def _list(values: Array) -> list[float]:
    return list(map(rounded, values.tolist()))


def _single(points: pd.DataFrame, tried: Mapping[str, int]) -> pd.DataFrame:
    """The points of the iterative solvers that have one run, which are drawn one by one."""
    several = [solver for solver, total in tried.items() if total > 1]
    return points[~points["solver"].isin(several) & points["asked_tolerance"].isna()]


def _levels(parts: Sequence[pd.DataFrame], targets: Sequence[float]) -> int:
    """How many levels leave all curves together at most `MOST_POINTS` points, or the fewest that curves keep."""
    import numpy as np

    gaps = []
    for points in parts:
        y = np.clip(np.array(numbers(points, "relative_gap"), np.float64), convergence.least_gap(targets), convergence.GREATEST_GAP)
        ids = points["run_id"].to_numpy()
        starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1), len(ids)] if len(ids) else []
        gaps += [y[start:end] for start, end in pairwise(starts)]
    levels = LEVELS
    while levels > _FEWEST_LEVELS and sum(int(convergence.visible(gap, targets, levels).sum()) for gap in gaps) > MOST_POINTS:
        levels = max(_FEWEST_LEVELS, levels * 2 // 3)
    return levels


def _problem(
    by_axis: Sequence[Mapping[str, list[Curve]]],
    runs: pd.DataFrame,
    tried: Mapping[str, int],
    highest: float,
    places: Mapping[str, int],
    columns: int,
) -> dict[str, Any]:
    ends = []
    for of_solvers in by_axis:
        curves = [curve for group in of_solvers.values() for curve in group]
        left = convergence.left_edge(curves) if curves else math.nan
        ends.append([left / 1.3, 1.5 * max(left, *(curve.end[0] for curve in curves))] if curves else None)
    statuses = runs.groupby("solver_label", sort=False)["status"]
    solvers = []
    for solver, of_solver in statuses:
        label = str(solver)
        if label not in by_axis[0]:
            continue
        total = tried.get(label, 1)
        note = "" if set(of_solver) == {str(Status.VERIFIED)} else status_counts(of_solver)
        entry: dict[str, Any] = {"s": places[label], "note": note, "runs": total}
        if total == 1:
            (curve,) = by_axis[0][label]
            entry |= {"y": _list(curve.y)} | ({"asked": list(map(format_target, curve.asked))} if curve.one_shot else {})
        entry["x"] = [
            _on_axis(of_solvers[label], total, ends[i], highest, columns) if label in of_solvers else None
            for i, of_solvers in enumerate(by_axis)
        ]
        solvers.append(entry)
    return {
        "axes": [None if end is None else _pair(end) for end in ends],
        "solvers": solvers,
    }


def _pair(ends: Sequence[float]) -> list[float]:
    return [rounded(end) for end in ends]


def _counting(points: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The points of the runs that count this axis."""
    if axis == "passes":
        return points[convergence.counts_passes(points)]
    if axis == "iteration":
        return points[points.groupby("run_id")["iteration"].transform("max") > 0]
    return points


def _by_problem(
    points: pd.DataFrame, axis: str, targets: tuple[float, ...], levels: int, problem_of: Mapping[int, str]
) -> dict[str, dict[str, list[Curve]]]:
    """The curves of every problem by solver: of all problems at once, which is quicker by far than one after the other."""
    found: dict[str, dict[str, list[Curve]]] = {}
    curves = convergence.drawn_curves(points, axis, targets, levels)
    for run, curve in zip(points["run_id"].unique(), curves, strict=True):
        found.setdefault(problem_of[run], {}).setdefault(curve.solver, []).append(curve)
    return found


def _on_axis(curves: Sequence[Curve], total: int, ends: list[float] | None, highest: float, columns: int) -> dict[str, Any]:
    """The runs of one solver against one axis."""
    import numpy as np

    found: dict[str, Any] = {}
    if total == 1:
        found["x"] = _list(curves[0].x)
    else:
        shares = convergence.enclosed(total)
        answers = [curve for curve in curves if curve.one_shot]
        if answers:
            x, y = convergence.answer_quantiles(answers, shares)
            found["answers"] = [_list(values) for values in (*x, *y)]
        lines = [curve for curve in curves if not curve.one_shot]
        if lines:
            found |= _band(lines, total, ends[0] if ends else 0.0, highest, columns)
    stopped = [(*curve.end, curve.x[-1]) for curve in curves if curve.stopped]
    if stopped:
        found["end"] = _list(np.median(stopped, axis=0))
    return found


def _band(curves: Sequence[Curve], total: int, start: float, highest: float, columns: int) -> dict[str, Any]:
    """The median of several runs and what encloses it, at no more than so many places."""
    import numpy as np

    grid, shares = convergence.quantiles(curves, total, convergence.enclosed(total), start)
    kept = np.unique(np.linspace(0, len(grid) - 1, columns).astype(int))
    kept = kept[np.isfinite(shares[0][kept])]
    # Steps: where nothing has changed since the last place there is nothing to draw.
    changed = (shares[:, kept[1:]] != shares[:, kept[:-1]]).any(axis=0)
    kept = np.r_[kept[:1], kept[1:-1][changed[:-1]], kept[-1:]]
    # until then fewer than half of the runs have proven anything
    first = int((~np.isfinite(shares[1][kept])).sum())
    return {"band": [_list(grid[kept]), *(_list(np.minimum(values[kept], highest)) for values in shares)], "from": first}
