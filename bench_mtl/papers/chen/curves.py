"""Scores of the learners along a condition, the training ratio or the number of labels: curves, and what the text says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.scores import MULTI_TASK, RESOLUTION, expected, families, families_of, in_points, statements
from bench_mtl.papers.chen.sensitivity import CLOSE, judged_statement, statement_table
from bench_mtl.papers.chen.variants import DEFAULT, MAIN, MEASURES, Variant, short, variants
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
    comparisons, by_variant = [], []
    rows = rows.assign(at=condition.of(rows)) if len(rows) else rows
    for entry, measure in statements(table):
        for family, words in families_of(entry):
            judged = {each: _judged(entry, each.column(measure), condition, each.rows(rows), family) for each in variants(measure)}
            what = f"{measure}: {entry['statement']}{words} ({entry['place']})"
            found = judged_statement(judged)
            comparisons.append(PublishedNumber(what, expected(entry), *found, on_other_data=condition.on_other_data))
            by_variant.append((f"{short(measure)}: {expected(entry)}{words}", judged))
    sections = (statement_table(by_variant), *_sections(rows, condition)) if len(rows) else ()
    return Findings(tuple(comparisons), sections)


def _judged(
    entry: Mapping[str, str], measure: str, condition: Condition, rows: pd.DataFrame, family: Sequence[str] = MULTI_TASK
) -> Judgement:
    if not len(rows):
        return NO_PAIR
    models, relation, against = entry["models"], entry["relation"], entry["against"]
    places = sorted(rows["at"].unique())
    if relation in ("rises", "falls"):
        ends = {name: _along(rows[rows["model"] == name], measure, places) for name in MODELS}
        return judged_order(ends, 1.0 if relation == "rises" else -1.0, f"(from {places[0]:g} to {places[-1]:g})", 2, RESOLUTION)
    if relation == "close at large ratios":
        large = [place for place in places if place >= condition.large_from]
        return _close(rows[rows["at"] == large[-1]], measure, large[-1]) if large else NO_PAIR
    if models == "multi-task":
        small = [place for place in places if relation != "above at small ratios" or place < condition.small_below]
        apart = {f"{at:g}": families(rows[rows["at"] == at], measure, against.split(";"), family) for at in small}
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
    """Yield the curves of each of the main protocols."""
    for features, intercept in MAIN:
        variant = Variant(features, intercept)
        here = variant.rows(rows)
        if len(here):
            yield _curves(here, condition, variant)


def _curves(rows: pd.DataFrame, condition: Condition, variant: Variant) -> Section:
    import pandas as pd

    columns = {measure: variant.column(measure) for measure in MEASURES}
    table, shown = [], []
    for at in sorted(rows["at"].unique()):
        for name in MODELS:
            part = rows[(rows["at"] == at) & (rows["model"] == name)]
            if not len(part):
                continue
            means = {measure: in_points(mean(part[key].dropna().tolist())) for measure, key in columns.items()}
            table += [
                {"at": at, "model": name, "measure": measure, "mean": each.value, "half_width": each.half, "repetitions": each.repetitions}
                for measure, each in means.items()
            ]
            seconds = f"{part['tuning_seconds'].median():.1f}"
            shown.append([f"{at:g}", name, *(each.text(2) for each in means.values()), f"{part['labels_counted'].median():.0f}", seconds])
    frame = pd.DataFrame(table)
    heads = [condition.axis.capitalize(), "Learner", *MEASURES, "Labels counted", "s, tuning"]
    text = f"Per cent, means over the repetitions ± half of the 95 % interval; {variant.words()}."
    draw = partial(_drawn, rows, columns, condition.title, condition.axis)
    name = "curves" if variant == DEFAULT else f"curves-{variant.features}-{variant.intercept}"
    title = condition.title if variant == DEFAULT else f"{condition.title}: {variant.features}, {variant.intercept} intercept"
    return Section(title, text, name, frame, pd.DataFrame(shown, columns=heads, dtype="str"), draw)


def _drawn(rows: pd.DataFrame, columns: Mapping[str, str], title: str, axis_name: str) -> Figure:
    from matplotlib.lines import Line2D

    from bench_mtl.papers.bands import draw_means
    from bench_mtl.report.figures import style

    names = [name for name in MODELS if name in set(rows["model"])]
    looks = style.styles_in_turn(names)
    with style.styled():
        handles = [Line2D([], [], label=name, **style.line(looks[name], markersize=4.0, linewidth=1.2)) for name in names]
        figure, axes = style.sheet(title, [2.7] * len(MEASURES), 2.6, handles)
        for axis, (measure, key) in zip(axes, columns.items(), strict=True):
            for name in names:
                values = rows[rows["model"] == name].assign(percent=100.0 * rows[key].astype("float64"))
                draw_means(axis, values, "at", "percent", style.line(looks[name], markersize=4.0, linewidth=1.2))
            axis.set_xlabel(axis_name)
            axis.set_ylabel(f"{measure}, per cent")
            axis.set_xticks(sorted(rows["at"].unique()))
    return figure
