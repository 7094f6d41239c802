"""Scores of the learners along a condition, the training ratio or the number of labels: curves, and what the text says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.scores import CLOSE, MEASURES, RESOLUTION, expected, families, in_points, statements
from bench_mtl.papers.experiment import Findings, PublishedNumber, Section
from bench_mtl.papers.summaries import NO_PAIR, Judgement, Mean, judged_not_below, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Learners are said to compare where the best and the worst mean are no further apart, in points; the paper names no number.
COMPARABLE = 2.0


@dataclass(frozen=True)
class Condition:
    """What changes from one point of a curve to the next."""

    title: str
    axis: str
    of: Callable[[pd.DataFrame], pd.Series[Any]]
    """Its value in each row."""
    small_below: float = math.inf
    """What the text calls small."""
    large_from: float = math.inf
    """What is taken for large."""
    on_other_data: bool = False
    """Whether the data are in the place of the paper's."""


def read_curves(table: str, condition: Condition, rows: pd.DataFrame) -> Findings:
    """Return the statements of the text on the curves of these rows."""
    comparisons = []
    rows = rows.assign(at=condition.of(rows)) if len(rows) else rows
    for entry, measure in statements(table):
        judged = _judged(entry["models"], entry["relation"], entry["against"], MEASURES[measure], condition, rows) if len(rows) else NO_PAIR
        what = f"{measure}: {entry['statement']} ({entry['place']})"
        comparisons.append(PublishedNumber(what, expected(entry), *judged, on_other_data=condition.on_other_data))
    return Findings(tuple(comparisons), tuple(_sections(rows, condition)) if len(rows) else ())


def _judged(models: str, relation: str, against: str, measure: str, condition: Condition, rows: pd.DataFrame) -> Judgement:
    places = sorted(rows["at"].unique())
    if relation in ("rises", "falls"):
        ends = {name: _along(rows[rows["model"] == name], measure, places) for name in MODELS}
        return judged_order(ends, 1.0 if relation == "rises" else -1.0, f"(from {places[0]:g} to {places[-1]:g})", 2, RESOLUTION)
    if relation == "close at large ratios":
        large = [place for place in places if place >= condition.large_from]
        return _close(rows[rows["at"] == large[-1]], measure, large[-1]) if large else NO_PAIR
    if models == "multi-task":
        small = [place for place in places if relation != "above at small ratios" or place < condition.small_below]
        apart = {f"{at:g}": families(rows[rows["at"] == at], measure, against.split(";")) for at in small}
        return judged_order(apart, 1.0, digits=2, least=RESOLUTION)
    differences = dict(_to_the_best(rows, measure, models, places))
    if relation == "not below":
        return judged_not_below(differences, CLOSE, digits=2)
    return judged_order(differences, 1.0, digits=2, least=RESOLUTION)


def _along(rows: pd.DataFrame, measure: str, places: Sequence[float]) -> Mean:
    """Return the last point of a curve minus the first, in points, repetition by repetition."""
    if len(places) < 2:
        return mean([])
    return in_points(paired_difference(rows, measure, "at", places[-1], places[0]))


def _to_the_best(rows: pd.DataFrame, measure: str, model: str, places: Sequence[float]) -> Iterator[tuple[str, Mean]]:
    """At every point the learner minus the best other one; nothing where a learner is missing, which might be the best."""
    for at in places:
        here = rows[rows["at"] == at]
        missing = [name for name in MODELS if not (here["model"] == name).any()]
        if missing:
            yield f"{at:g} ({', '.join(missing)})", mean([])
            continue
        best = str(here[here["model"] != model].groupby("model")[measure].mean().idxmax())
        yield f"{at:g} ({best})", in_points(paired_difference(here, measure, "model", model, best))


def _close(rows: pd.DataFrame, measure: str, at: float) -> Judgement:
    """Return whether the best and the worst learner are close, by the interval of their difference."""
    means = rows.groupby("model")[measure].mean().reindex(list(MODELS))
    if means.isna().any():
        return NO_PAIR
    best, worst = str(means.idxmax()), str(means.idxmin())
    apart = {f"{at:g}: {worst} - {best}": in_points(paired_difference(rows, measure, "model", worst, best))}
    judged = judged_not_below(apart, COMPARABLE, digits=2)
    return judged._replace(why=f"of the worst and the best learner, {judged.why}")


def _sections(rows: pd.DataFrame, condition: Condition) -> Iterator[Section]:
    import pandas as pd

    table, shown = [], []
    for at in sorted(rows["at"].unique()):
        for name in MODELS:
            part = rows[(rows["at"] == at) & (rows["model"] == name)]
            if not len(part):
                continue
            means = {measure: in_points(mean(part[key].dropna().tolist())) for measure, key in MEASURES.items()}
            table += [
                {"at": at, "model": name, "measure": measure, "mean": each.value, "half_width": each.half, "repetitions": each.repetitions}
                for measure, each in means.items()
            ]
            seconds = f"{part['tuning_seconds'].median():.1f}"
            shown.append([f"{at:g}", name, *(each.text(2) for each in means.values()), f"{part['labels_counted'].median():.0f}", seconds])
    frame = pd.DataFrame(table)
    heads = [condition.axis.capitalize(), "Learner", *MEASURES, "Labels counted", "s, tuning"]
    text = "Per cent, means over the repetitions ± half of the 95 % interval."
    draw = partial(_drawn, rows, condition.title, condition.axis)
    yield Section(condition.title, text, "curves", frame, pd.DataFrame(shown, columns=heads, dtype="str"), draw)


def _drawn(rows: pd.DataFrame, title: str, axis_name: str) -> Figure:
    from matplotlib.lines import Line2D

    from bench_mtl.papers.bands import draw_means
    from bench_mtl.report.figures import style

    names = [name for name in MODELS if name in set(rows["model"])]
    looks = style.styles_in_turn(names)
    with style.styled():
        handles = [Line2D([], [], label=name, **style.line(looks[name], markersize=4.0, linewidth=1.2)) for name in names]
        figure, axes = style.sheet(title, [2.7] * len(MEASURES), 2.6, handles)
        for axis, (measure, key) in zip(axes, MEASURES.items(), strict=True):
            for name in names:
                values = rows[rows["model"] == name].assign(percent=100.0 * rows[key].astype("float64"))
                draw_means(axis, values, "at", "percent", style.line(looks[name], markersize=4.0, linewidth=1.2))
            axis.set_xlabel(axis_name)
            axis.set_ylabel(f"{measure}, per cent")
            axis.set_xticks(sorted(rows["at"].unique()))
    return figure
