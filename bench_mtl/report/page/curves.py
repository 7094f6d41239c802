"""The page's charts of runs: the proven gap, the objective and what problems measure, against seconds, passes and iterations."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from bench_mtl.core.text import one_line
from bench_mtl.core.types import Status
from bench_mtl.report.figures import convergence, trajectories
from bench_mtl.report.figures.chart import LEVELS, Panel, Trajectory
from bench_mtl.report.page.charts import MOST_AT_FIRST, runs_chart
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.tables import measures
from bench_mtl.results.frames import ONE_SHOT, numbers, status_counts

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
        what (the quantity), caption, and log (whether its y axis is logarithmic; zeros are then drawn at its lower end). Where solvers ran
        and proved nothing, nothing: s (its place), note (how its runs ended), at (the seconds that they took), why. Where there are more
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
    by_axis = {axis: _by_problem(_counting(points, axis), axis, targets, levels, problem_of) for axis in AXES}
    measured = _quantity_charts(results, places)
    charts = []
    for problem, rows in of_problems.items():
        runs = runs_of[problem]
        panels = [
            convergence.panel(axis, groups[problem], runs, columns) if problem in groups else None for axis, groups in by_axis.items()
        ]
        chart = {"label": problem, "caption": captions.get(problem) or convergence.caption(rows, runs, targets)}
        chart |= runs_chart(panels, convergence.gap_axis(rows, targets), places)
        nothing = _without_points(runs, set(rows["solver"]), places)
        if nothing:
            chart["axes"][0][1] = max(chart["axes"][0][1], *(1.5 * one["at"] for one in nothing))
        lead = _leading(rows, runs, results.targets, places, [one["s"] for one in nothing])
        quantities = [{**one, "lead": lead} if lead else one for one in measured.get(problem, [])]
        more = {"examples": _examples_in_a_pass(runs, rows), "quantities": quantities, "nothing": nothing, "lead": lead}
        charts.append(chart | {key: value for key, value in more.items() if value})
    return charts


def _without_points(runs: pd.DataFrame, drawn: Collection[str], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the solvers that ran on one problem without a proven point: how their runs ended, and when."""
    found = []
    for solver, of_solver in runs[runs["status"] != Status.SKIPPED].groupby("solver_label", sort=False):
        if str(solver) in drawn:
            continue
        had = numbers(of_solver, "had_seconds").median()
        entry = {"s": places[str(solver)], "note": status_counts(of_solver["status"]), "at": rounded(max(0.0, had)) if had == had else 0}
        why = one_line(str(of_solver["reason"].iloc[0]), _LONGEST_REASON)
        found.append(entry | ({"why": why} if why else {}))
    return found


def _leading(
    points: pd.DataFrame, runs: pd.DataFrame, targets: Sequence[float], places: Mapping[str, int], nothing: Sequence[int]
) -> list[int] | None:
    """Return the places of the solvers that a chart shows at first, those that proved nothing beside the leading ones; None for all."""
    if points["solver"].nunique() + len(nothing) <= MOST_AT_FIRST:
        return None
    lead = [places[solver] for solver in _leading_solvers(points, runs, targets)][:MOST_AT_FIRST]
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
) -> dict[str, dict[str, list[Trajectory]]]:
    """Return the curves of every problem by solver: of all problems at once, which is quicker by far than one after the other."""
    found: dict[str, dict[str, list[Trajectory]]] = {}
    curves = convergence.drawn_curves(points, axis, targets, levels)
    for run, curve in zip(points["run_id"].unique(), curves, strict=True):
        found.setdefault(problem_of[run], {}).setdefault(curve.solver, []).append(curve)
    return found


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


def _leading_solvers(points: pd.DataFrame, runs: pd.DataFrame, targets: Sequence[float]) -> list[str]:
    """Return the solvers of a problem by the tightest target that they reach, the quickest first, those of either side in turn."""
    kinds = dict(zip(runs["solver_label"], runs["kind"], strict=True))
    ranks: dict[str, tuple[float, float]] = {}
    for solver, of_solver in points.groupby("solver", sort=False, observed=True):
        reached = [target for target in targets if (of_solver["relative_gap"] <= target).any()]
        within = of_solver[of_solver["relative_gap"] <= (reached[-1] if reached else of_solver["relative_gap"].min())]
        ranks[str(solver)] = (-len(reached), float(within["seconds"].min()))
    ordered = sorted(ranks, key=ranks.__getitem__)
    sides = [[solver for solver in ordered if (kinds[solver] in ONE_SHOT) is one_shot] for one_shot in (False, True)]
    in_turn = [solver for pair in zip_longest(*sides) for solver in pair if solver is not None]
    return in_turn
