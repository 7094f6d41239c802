"""The page's charts of runs: the proven gap, the objective and what problems measure, against seconds, passes and iterations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import one_line
from bench_mtl.core.types import Status
from bench_mtl.report.figures import convergence, trajectories
from bench_mtl.report.figures.chart import LEVELS, Panel, Trajectory
from bench_mtl.report.page.charts import MOST_AT_FIRST, runs_chart
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.tables import measures
from bench_mtl.results.frames import numbers

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.results.loading import Results

#: Of all curves of convergence of a page together: they are drawn at fewer levels until they have about as few.
MOST_POINTS = 60_000

#: Numbers of all bands of a page together.
MOST_OF_BANDS = 250_000

#: Numbers of all curves of objectives and measures of a page together: they keep fewer points until they have about as few.
MOST_NUMBERS = 300_000

_FEWEST_LEVELS = 10

#: Characters of a reason that is told of a cross.
_LONGEST_REASON = 100

#: What a curve may be drawn against.
AXES = ("seconds", "passes", "iteration")


def convergence_charts(results: Results, captions: Mapping[str, str], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return what the script of the page draws convergence from.

    Parameters
    ----------
    captions : of the printed figures, by problem; on paper not every problem has one
    places : of the solvers in the page's list of them

    Returns
    -------
    list of dict
        Of each problem: label, caption, and what `runs_chart` has of its gaps against `AXES`. Where a solver takes examples one by one,
        examples (the number of them in a pass); where anything is measured, quantities: the same of the objective and each measure, with
        what (the quantity), caption, and log (whether its y axis is logarithmic; zeros are then drawn at its lower end). Where runs ended
        short of their targets, failed: for each axis, of runs that ended alike at one place, s (the place of their solver), status, why,
        runs (their number), x (null where it is not known). Where solvers proved nothing, nothing: s and note. Where there are more
        solvers than a chart shows at first, lead: those that it shows.
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
    found = {axis: _by_problem(_counting(points, axis), axis, targets, levels, problem_of) for axis in AXES}
    by_axis = {axis: groups for axis, (groups, _) in found.items()}
    ends = [last for _, last in found.values()]
    measured = _quantity_charts(results, places)
    charts = []
    for problem, rows in of_problems.items():
        runs = runs_of[problem]
        panels = [
            convergence.panel(axis, groups[problem], runs, columns) if problem in groups else None for axis, groups in by_axis.items()
        ]
        chart: dict[str, Any] = {"label": problem, "caption": captions.get(problem) or convergence.caption(rows, runs, targets)}
        chart |= runs_chart(panels, convergence.gap_axis(rows, targets), places)
        crosses = _crosses(runs, ends, places)
        chart["axes"][0][1] = max([chart["axes"][0][1], *(1.5 * cross["x"] for cross in crosses[0] if cross["x"] is not None)])
        nothing: list[dict[str, Any]] = [
            {"s": places[solver], "note": note}
            for solver, note in convergence.run_notes(runs[runs["status"] != Status.SKIPPED]).items()
            if solver not in set(rows["solver"])
        ]
        lead = _leading(rows, runs, results.targets, places, [one["s"] for one in nothing])
        quantities = [{**one, "lead": lead} if lead else one for one in measured.get(problem, [])]
        failed = crosses if any(crosses) else None
        more = {"examples": _examples_in_a_pass(runs, rows), "quantities": quantities, "nothing": nothing, "lead": lead, "failed": failed}
        charts.append(chart | {key: value for key, value in more.items() if value})
    return charts


def _crosses(runs: pd.DataFrame, ends: Sequence[Mapping[int, float]], places: Mapping[str, int]) -> list[list[dict[str, Any]]]:
    """Return, for each axis, the runs of one problem that ended short of their targets, those that ended alike at one place together.

    Parameters
    ----------
    ends : for each axis, where the curves of runs end; the first axis is of seconds, in which the time counts that a run had
    """
    short = runs[~runs["status"].isin([Status.VERIFIED, Status.SKIPPED])]
    had = {run: seconds for run, (_, seconds) in zip(short["id"], convergence.failures(runs), strict=True)}
    crosses = []
    for at in (had, *ends[1:]):
        alike: dict[tuple[str, str, str], dict[str, Any]] = {}
        for run, solver, status, reason in zip(*(short[name] for name in ("id", "solver_label", "status", "reason")), strict=True):
            if run not in at:
                continue
            x = rounded(at[run]) if math.isfinite(at[run]) else None
            cross = {"s": places[solver], "status": status, "why": one_line(reason, _LONGEST_REASON), "runs": 0, "x": x}
            alike.setdefault((solver, status, f"{at[run]:.1e}"), cross)["runs"] += 1
        crosses.append(list(alike.values()))
    return crosses


def _leading(
    points: pd.DataFrame, runs: pd.DataFrame, targets: Sequence[float], places: Mapping[str, int], nothing: Sequence[int]
) -> list[int] | None:
    """Return the places of the solvers that a chart shows at first, those that proved nothing beside the leading ones; None for all."""
    if points["solver"].nunique() + len(nothing) <= MOST_AT_FIRST:
        return None
    lead = [places[solver] for solver in convergence.leading(points, runs, targets)][:MOST_AT_FIRST]
    return [*lead, *nothing[:MOST_AT_FIRST]]


def _single(points: pd.DataFrame, tried: Mapping[str, int]) -> pd.DataFrame:
    """Return the points of the iterative solvers that have one run, which are drawn one by one."""
    several = [solver for solver, total in tried.items() if total > 1]
    return points[~points["solver"].isin(several) & points["asked_tolerance"].isna()]


def _levels(parts: Sequence[pd.DataFrame], targets: Sequence[float]) -> int:
    """Return how many levels leave all curves together at most `MOST_POINTS` points, or the fewest that curves keep."""
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


def _counting(points: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return the points of the runs that count this axis."""
    if axis == "passes":
        return points[convergence.counts_passes(points)]
    if axis == "iteration":
        return points[points.groupby("run_id")["iteration"].transform("max") > 0]
    return points


def _by_problem(
    points: pd.DataFrame, axis: str, targets: tuple[float, ...], levels: int, problem_of: Mapping[int, str]
) -> tuple[dict[str, dict[str, list[Trajectory]]], dict[int, float]]:
    """Return the curves of every problem by solver, and the x of the last point of every run: of all problems at once, which is quicker by
    far than one after the other."""
    found: dict[str, dict[str, list[Trajectory]]] = {}
    ends: dict[int, float] = {}
    curves = convergence.drawn_curves(points, axis, targets, levels)
    for run, curve in zip(points["run_id"].unique(), curves, strict=True):
        found.setdefault(problem_of[run], {}).setdefault(curve.solver, []).append(curve)
        ends[run] = float(curve.x[-1])
    return found, ends


def _examples_in_a_pass(runs: pd.DataFrame, points: pd.DataFrame) -> float | None:
    """Return how many examples a pass over one problem sees, where a solver takes them one by one; None where passes say as much."""
    sizes = {json.loads(text).get("n") for text in runs["dimensions"].unique()}
    size = sizes.pop() if len(sizes) == 1 else None
    return size if size and trajectories.takes_examples(points) else None


def _quantity_charts(results: Results, places: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Return the charts of objectives and measures by problem; nothing of results without measures."""
    if results.measures.empty:
        return {}
    points = measures.trajectories(results.runs, results.samples, results.measures)
    by_problem = {str(problem): rows for problem, rows in points.groupby("problem", sort=False)}
    runs_of = {str(problem): runs for problem, runs in results.runs.groupby("problem_label", sort=False)}
    known = {problem: measures.quantities(rows, results.measures) for problem, rows in by_problem.items()}
    curves = sum(rows["run_id"].nunique() * len(known[problem]) for problem, rows in by_problem.items())
    levels = min(LEVELS, max(_FEWEST_LEVELS, MOST_NUMBERS // (4 * max(1, curves))))
    return {
        problem: [_quantity_chart(rows, runs_of[problem], quantity, places, levels) for quantity in known[problem]]
        for problem, rows in by_problem.items()
    }


def _quantity_chart(points: pd.DataFrame, runs: pd.DataFrame, quantity: str, places: Mapping[str, int], levels: int) -> dict[str, Any]:
    import numpy as np

    by_axis = [trajectories.drawn_trajectories(points, quantity, axis, levels) for axis in AXES]
    y = trajectories.value_axis(quantity, np.concatenate([curve.y for curve in by_axis[0]]))
    notes = convergence.run_notes(runs)
    panels: list[Panel | None] = [trajectories.panel(quantity, curves, notes, levels) if curves else None for curves in by_axis]
    words = {"what": quantity, "caption": trajectories.caption(points, runs, quantity), "log": y.logarithmic}
    return words | runs_chart(panels, y, places)
