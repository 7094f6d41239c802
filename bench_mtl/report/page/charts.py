"""Charts of the page beside convergence, from the data of the printed figures: all of one form, drawn without knowing what they are of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.report.figures import trade_offs
from bench_mtl.report.figures.courses import value_limits
from bench_mtl.report.figures.drawing import Drawing
from bench_mtl.report.figures.profiles import BUDGET, PAIRWISE, PERFORMANCE
from bench_mtl.report.page.markup import rounded
from bench_mtl.report.render import format_target

if TYPE_CHECKING:
    import pandas as pd

#: A logarithmic axis has no zero: shorter times are drawn here, as on paper.
_LEAST_SECONDS = 1e-6

_PANELS = {
    PERFORMANCE: ("Performance profile", "factor over the fastest"),
    PAIRWISE: ("Pairwise profiles", "time over that of {}"),
    BUDGET: ("Data profile", "passes over the data"),
}


def charts(drawn: Sequence[Drawing], fits: pd.DataFrame, places: Mapping[str, int]) -> list[dict[str, Any]]:
    """The charts of profiles, of time against precision, of scaling, and of sparsity against accuracy.

    Parameters
    ----------
    drawn : figures; those of these kinds are taken
    fits : the table ``scaling``
    places : of the solvers in the page's list of them

    Returns
    -------
    list of dict
        label, caption, x and y (label, log, ends), step (whether lines are drawn in steps), lines (s: the place of a solver, note, x, y,
        crosses; of a track also end: where its marker is), and where there is one a limit across the chart (label, value), an x at which
        two solvers are equal, a front (x, y), and whether the lines are tracks, without markers along them.
    """
    made: dict[str, Callable[[Drawing], Iterable[dict[str, Any]]]] = {
        "profiles": lambda drawing: _profiles(drawing, places),
        "pareto": lambda drawing: _pareto(drawing, places),
        "scaling": lambda drawing: _scaling(drawing, fits, places),
        "trade_offs": lambda drawing: _trade_off(drawing, places),
    }
    return [{**chart, "caption": drawing.caption} for drawing in drawn if drawing.kind in made for chart in made[drawing.kind](drawing)]


def _profiles(drawing: Drawing, places: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    count, leader = int(drawing.data["instances"].iloc[0]), str(drawing.data["leader"].iloc[0])
    for panel, (title, label) in _PANELS.items():
        rows = drawing.data[drawing.data["panel"] == panel]
        if rows.empty:
            continue
        known = rows.loc[rows["at"] > 0, "at"]
        least, most = (known.min(), known.max()) if len(known) else (1.0, 1.0)
        low = {PERFORMANCE: 1.0, PAIRWISE: min(0.5, least / 1.5), BUDGET: least / 1.5}[panel]
        high = max(2.0 * low, 2.0 if panel != BUDGET else 0.0, most * 1.5)
        lines = []
        for solver, steps in rows.groupby("solver", sort=False):
            run_on = int(steps["run_on"].iloc[0])
            note = "" if run_on == count else f"run on {run_on} of {count}"
            line = _line(places, solver, [*steps["at"].clip(lower=low), high], [*steps["share"], steps["share"].iloc[-1]], note)
            lines.append(line)
        x = {"label": label.format(leader), "log": True, "ends": [rounded(low), rounded(high)]}
        y = {"label": "share of instances", "log": False, "ends": [-0.02, 1.02]}
        chart = {"label": f"{title} of {drawing.about}", "x": x, "y": y, "step": True, "lines": lines}
        yield {**chart, "equal": 1} if panel == PAIRWISE else chart


def _pareto(drawing: Drawing, places: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    known = drawing.data[drawing.data["seconds"].notna()]
    known = known.assign(seconds=known["seconds"].clip(lower=_LEAST_SECONDS))
    front = known[known["front"]].sort_values(["seconds", "gap"], ascending=[True, False])
    yield {
        "label": drawing.title,
        "x": {"label": "solve time (s)", "log": True, "ends": _ends(known["seconds"])},
        "y": {"label": "proven relative gap", "log": True, "ends": _ends(drawing.data["gap"])},
        "step": False,
        "lines": [_line(places, solver, own["seconds"], own["gap"]) for solver, own in known.groupby("solver", sort=False)],
        "front": [list(map(rounded, front["seconds"])), list(map(rounded, front["gap"]))],
    }


def _scaling(drawing: Drawing, fits: pd.DataFrame, places: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    points = drawing.data.assign(seconds=drawing.data["seconds"].clip(lower=_LEAST_SECONDS))
    limit = points["limit_seconds"].max()
    limited = limit == limit
    of_sweep = fits[fits["sweep"] == drawing.about]
    exponents = dict(zip(of_sweep["solver"], of_sweep["exponent"], strict=True))
    lines = []
    for solver, group in points.groupby("solver", sort=False):
        ordered = group.sort_values("size")
        known, failed = ordered[ordered["seconds"].notna()], ordered[ordered["seconds"].isna()]
        exponent = exponents.get(solver, float("nan"))
        line = _line(places, solver, known["size"], known["seconds"], f"exponent {exponent:.2f}" if exponent == exponent else "")
        lines.append({**line, "crosses": [[rounded(size), rounded(limit)] for size in failed["size"]] if limited else []})
    chart = {
        "label": drawing.title,
        "x": {"label": str(points["key"].iloc[0]), "log": True, "ends": _ends(points["size"])},
        "y": {
            "label": f"seconds to a proven gap of {format_target(points['target'].iloc[0])}",
            "log": True,
            "ends": _ends([*points["seconds"].dropna(), *([limit] if limited else [])]),
        },
        "step": False,
        "lines": lines,
    }
    yield {**chart, "limit": {"label": f"limit {limit:g} s", "value": rounded(limit)}} if limited else chart


def _trade_off(drawing: Drawing, places: Mapping[str, int]) -> Iterable[dict[str, Any]]:
    axes = trade_offs.Axes(*map(str, drawing.data.columns[-2:]))
    tracks = trade_offs.tracks(drawing.data, axes)
    import numpy as np

    low, high, logarithmic = value_limits(np.concatenate([track.y for track in tracks]))
    lines = [
        {**_line(places, track.solver, track.x, track.y.clip(low)), "end": [rounded(track.x[-1]), rounded(max(track.y[-1], low))]}
        for track in tracks
    ]
    yield {
        "label": drawing.title,
        "x": {"label": axes.size, "log": True, "ends": _ends([place for track in tracks for place in track.x])},
        "y": {"label": axes.accuracy, "log": logarithmic, "ends": [rounded(low), rounded(high)]},
        "step": False,
        "track": True,
        "lines": lines,
    }


def _line(places: Mapping[str, int], solver: Hashable, x: Iterable[float], y: Iterable[float], note: str = "") -> dict[str, Any]:
    return {"s": places[str(solver)], "note": note, "x": list(map(rounded, x)), "y": list(map(rounded, y)), "crosses": []}


def _ends(values: Iterable[float]) -> list[float]:
    """Of a logarithmic axis, with space around what is drawn."""
    positive = [value for value in values if value > 0] or [1.0]
    return [rounded(min(positive) / 1.5), rounded(max(positive) * 1.5)]
