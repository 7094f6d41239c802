"""The curves of objectives and measures of the page's chart, in the form of those of convergence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.figures import courses
from bench_mtl.report.figures.convergence import LEVELS
from bench_mtl.report.figures.courses import Course
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.render import format_target
from bench_mtl.report.tables.measures import courses as course_points
from bench_mtl.report.tables.measures import quantities
from bench_mtl.results.frames import status_counts

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.results.loading import Results

#: Numbers of all curves of this kind on a page together: they keep fewer points until they have about so few.
MOST_NUMBERS = 300_000

_FEWEST_POINTS = 10

#: What a curve may be drawn against, as in `curves`.
_AXES = ("seconds", "passes", "iteration")


def quantity_charts(results: Results, places: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """What the script draws objectives and measures from, by problem; of results without measures nothing.

    Each has the form of a problem in `curves.convergence_charts`, without `label`, with `what` (the quantity), `log` (whether its axis
    is logarithmic; zeros are then drawn at its lower end), and `gaps` for the ends of that axis.
    """
    if results.measures.empty:
        return {}
    points = course_points(results.runs, results.samples, results.measures)
    runs_of = dict(list(results.runs.groupby("problem_label", sort=False)))
    known = {problem: quantities(rows, results.measures) for problem, rows in points.groupby("problem", sort=False)}
    curves = sum(points.loc[points["problem"] == problem, "run_id"].nunique() * len(names) for problem, names in known.items())
    levels = min(LEVELS, max(_FEWEST_POINTS, MOST_NUMBERS // (4 * max(1, curves))))
    return {
        str(problem): [_chart(rows, runs_of[problem], quantity, places, levels) for quantity in known[problem]]
        for problem, rows in points.groupby("problem", sort=False)
    }


def examples_of(runs: pd.DataFrame, points: pd.DataFrame) -> float | None:
    """How many examples a pass over one problem sees, where a solver takes them one by one; None where passes say as much."""
    sizes = {json.loads(text).get("n") for text in runs["dimensions"].unique()}
    size = sizes.pop() if len(sizes) == 1 else None
    return size if size and courses.takes_examples(points) else None


def _chart(points: pd.DataFrame, runs: pd.DataFrame, quantity: str, places: Mapping[str, int], levels: int) -> dict[str, Any]:
    import numpy as np

    by_axis = [courses.drawn_courses(points, quantity, axis, levels) for axis in _AXES]
    low, high, logarithmic = courses.value_limits(np.concatenate([curve.y for curve in by_axis[0]]))
    ends = []
    for curves in by_axis:
        places_x = [place for curve in curves for place in (*curve.x, curve.stopped_at) if place is not None]
        ends.append([rounded(min(places_x) / 1.3), rounded(max(places_x) * 1.5)] if places_x else None)
    statuses = runs.groupby("solver_label", sort=False)["status"]
    solvers = []
    for label, of_solver in statuses:
        drawn = [[curve for curve in curves if curve.solver == label] for curves in by_axis]
        if not drawn[0]:
            continue
        note = "" if set(of_solver) == {str(Status.VERIFIED)} else status_counts(of_solver)
        entry: dict[str, Any] = {"s": places[str(label)], "note": note, "runs": len(drawn[0])}
        if len(drawn[0]) == 1:
            (curve,) = drawn[0]
            entry |= {"y": list(map(rounded, curve.y))} | ({"asked": list(map(format_target, curve.asked))} if curve.one_shot else {})
        entry["x"] = [_on_axis(curves, len(drawn[0]), levels) if curves else None for curves in drawn]
        solvers.append(entry)
    return {
        "what": quantity, "caption": courses.caption(points, runs, quantity), "log": logarithmic, "gaps": [rounded(low), rounded(high)],
        "axes": ends, "solvers": solvers,
    }  # fmt: skip


def _on_axis(curves: Sequence[Course], total: int, columns: int) -> dict[str, Any]:
    """The runs of one solver against one axis."""
    import numpy as np

    def short(values: Any) -> list[float]:
        return list(map(rounded, values.tolist()))

    found: dict[str, Any] = {}
    answers = [curve for curve in curves if curve.one_shot]
    lines = [curve for curve in curves if not curve.one_shot]
    if total == 1:
        found["x"] = short(curves[0].x)
    else:
        if answers:
            x, y = courses.answers_of(answers)
            found["answers"] = [short(values) for values in (*x, *y)]
        if lines:
            grid, shares = courses.spread(lines, columns)
            # Steps: where nothing has changed since the last place there is nothing to draw.
            kept = np.r_[True, (shares[:, 1:] != shares[:, :-1]).any(axis=0)]
            kept[-1] = True
            found |= {"band": [short(grid[kept]), *(short(values[kept]) for values in shares)], "from": 0}
    stopped = [(curve.stopped_at, curve.y[-1], curve.x[-1]) for curve in curves if curve.stopped_at is not None]
    if stopped:
        found["end"] = short(np.median(stopped, axis=0))
    return found
