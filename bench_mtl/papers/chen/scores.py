"""Scores of the learners beside the published ones: numbers, statements, tables, a figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.chen.about import about_protocol
from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.protocol import LEARNER_CODE, TUNING_LIMITS, compute, files
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.summaries import NO_PAIR, Judgement, Mean, judged_not_below, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The published measures, and the columns of ours; all are shown in per cent.
MEASURES: Mapping[str, str] = {"average AUC": "average_auc", "macro F1": "macro_f1", "micro F1": "micro_f1"}

_LOST = "the data are lost: other data are in their place, and the difference says little"

MULTI_TASK = ("MixedNorm", "MTRL", "MTL(Omega,Sigma)", "TraceNorm", "ASO")
SINGLE_TASK = ("OneNorm", "IndSVM", "RidgeReg")

#: A number counts as reproduced within this many points.
CLOSE = 1.0

#: In points: a smaller difference of two learners decides nothing. Two solvers' fits of one problem to a relative gap of 1e-3 score
#: differently: MixedNorm at tau 0 is OneNorm, and on SUN 09 they are up to 0.26 apart, on average of two repetitions.
RESOLUTION = 0.3


def table_experiment(
    *,
    name: str,
    title: str,
    place: str,
    about: str,
    numbers: str,
    claims: str,
    scales: Mapping[str, Scale],
    stand_ins: Mapping[str, str] | None = None,
) -> Experiment:
    """Return a table of scores, made again.

    Parameters
    ----------
    numbers : name of the published numbers
    claims : what the table is called among the published statements
    stand_ins : for data sets of the paper that are lost, which of ours is in their place
    """
    return Experiment(
        name=name,
        title=title,
        source=f"Chen, Liu, Ye, ACM TKDD 5(4), 2012, {place}",
        about="\n\n".join(part for part in (about, about_protocol(), _ABOUT_NUMBERS) if part),
        scales=scales,
        compute=compute,
        read=partial(_read, numbers, claims, stand_ins or {}),
        uses=LEARNER_CODE,
        data=files,
        limits=TUNING_LIMITS,
    )


def _read(numbers: str, claims: str, stand_ins: Mapping[str, str], rows: pd.DataFrame) -> Findings:
    """Return the published table beside these rows."""
    table = published(numbers)
    learners = [name for name in MODELS if any(entry["model"] == name for entry in table)]
    comparisons = [*compared_statements(rows, claims, stand_ins, learners), *compared_numbers(rows, table, stand_ins)]
    sections = (score_table(rows), *beside_published(rows, table, stand_ins), fit_table(rows)) if len(rows) else ()
    return Findings(tuple(comparisons), sections)


def compared_numbers(rows: pd.DataFrame, table: Sequence[Mapping[str, str]], stand_ins: Mapping[str, str]) -> Iterator[PublishedNumber]:
    """Yield every published number beside ours.

    Parameters
    ----------
    rows : of the cells, with the scores as shares
    table : published rows: data, measure, model, mean, deviation (of repetitions), in per cent
    stand_ins : for data sets of the paper that are lost, which of ours is in their place
    """
    for entry in table:
        place, measure, model = entry["data"], entry["measure"], entry["model"]
        own = stand_ins.get(place, place)
        values = _percent(rows[(rows["data"] == own) & (rows["model"] == model)], measure) if len(rows) else []
        spread, theirs = float(entry["deviation"]), float(entry["mean"])
        what, said = f"{_named(place, stand_ins)}, {measure}, {model}", f"{theirs:g} ± {spread:g}"
        if not values:
            yield PublishedNumber(what, said, "-", Verdict.NOT_RUN, "no cell has an outcome", theirs, None, place in stand_ins)
            continue
        ours, own_spread = _mean_and_deviation(values)
        shown = f"{ours:.2f}" + ("" if math.isnan(own_spread) else f" ± {own_spread:.2f}")
        if place in stand_ins:
            yield PublishedNumber(what, said, shown, Verdict.UNKNOWN, _LOST, theirs, ours, True)
            continue
        yield PublishedNumber(what, said, shown, *closeness(ours - theirs, math.hypot(spread, own_spread)), theirs, ours)


def closeness(difference: float, deviation: float) -> tuple[Verdict, str]:
    """Return what a difference in points says, whose deviation is that of one repetition there against one here."""
    if abs(difference) <= CLOSE:
        return Verdict.REPRODUCED, f"within {CLOSE:g} point"
    if math.isnan(deviation):
        return Verdict.UNKNOWN, f"more than {CLOSE:g} point, and one repetition has no deviation"
    if abs(difference) <= 2.0 * deviation:
        return Verdict.UNKNOWN, f"more than {CLOSE:g} point, but within two deviations ({2.0 * deviation:.1f})"
    return Verdict.NOT_REPRODUCED, f"more than {CLOSE:g} point, and more than two deviations"


_ABOUT_NUMBERS = f"""\
A published number counts as reproduced where ours is within {CLOSE:g} point of it, and as not reproduced where it is further away than that
and than twice the deviation of the difference of two repetitions, one there and one here; between these it cannot be known. Means ±
standard deviation over the repetitions, in per cent. Differences of two learners below {RESOLUTION:g} points decide nothing, since fits of
one and the same problem, proven to the gap stated, differ by up to 0.26."""


def compared_statements(rows: pd.DataFrame, table: str, stand_ins: Mapping[str, str], learners: Sequence[str]) -> Iterator[PublishedNumber]:
    """Yield what the text says of a table with these learners, judged by paired differences; also on data in the place of others."""
    for entry, measure in statements(table):
        own = stand_ins.get(entry["data"], entry["data"])
        judged = statement(rows[rows["data"] == own] if len(rows) else rows, entry, MEASURES[measure], learners)
        what = f"{_named(entry['data'], stand_ins)}, {measure}: {entry['statement']} ({entry['place']})"
        yield PublishedNumber(what, expected(entry), *judged, on_other_data=entry["data"] in stand_ins)


def statements(table: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield what the text says of a table, once for each measure."""
    for entry in published("chen2012_statements"):
        if entry["table"] == table:
            for measure in MEASURES if entry["measure"] == "all" else [entry["measure"]]:
                yield entry, measure


def _named(place: str, stand_ins: Mapping[str, str]) -> str:
    return f"{place} (here {stand_ins[place]})" if place in stand_ins else place


def expected(entry: Mapping[str, str]) -> str:
    """Return what a statement says, in short."""
    return f"{entry['models']} {entry['relation']} {entry['against']}".strip()


def statement(rows: pd.DataFrame, entry: Mapping[str, str], measure: str, learners: Sequence[str]) -> Judgement:
    """Return a statement of an order of these learners on the rows of one data set."""
    if not len(rows):
        return NO_PAIR
    if entry["models"] == "multi-task":
        return judged_not_below({"mean of the five - mean of the three": families(rows, measure, SINGLE_TASK)}, CLOSE, digits=2)
    rivals = [name for name in learners if name != entry["models"]] if entry["against"] == "all" else entry["against"].split(";")
    differences = {rival: paired_difference(rows, measure, "model", entry["models"], rival) for rival in rivals}
    return judged_order({rival: in_points(each) for rival, each in differences.items()}, 1.0, digits=2, least=RESOLUTION)


def families(rows: pd.DataFrame, measure: str, others: Sequence[str]) -> Mean:
    """The mean of the multi-task learners minus that of these others, by repetition and in points; of nothing where one is missing."""
    both = rows.pivot_table(index="seed", columns="model", values=measure).reindex(columns=[*MULTI_TASK, *others]).dropna()
    return in_points(mean((both[list(MULTI_TASK)].mean(axis=1) - both[list(others)].mean(axis=1)).tolist()))


def in_points(each: Mean) -> Mean:
    """Return a share in per cent."""
    return each._replace(value=100.0 * each.value, half=100.0 * each.half)


_ABOUT_SCORES = """\
Per cent; means ± standard deviation over the repetitions. F1 is of decisions at 0 of scores fitted to labels -1 and +1. The last columns
are ours: F1 with a threshold for each label, chosen for the highest F1 on the training folds, and the pooled AUC, of all labels and
examples together as if of one task, which rewards knowing which labels are frequent. Labels without a positive or a negative training
example are left out, and of the AUC, whose labels are counted, those without a positive or a negative test example; macro F1 needs a
positive one."""

#: In a figure, at most.
_PANELS = 5

_COLUMNS = {
    **MEASURES,
    "macro F1, own thresholds": "macro_f1_thresholds",
    "micro F1, own thresholds": "micro_f1_thresholds",
    "pooled AUC": "pooled_auc",
}


def score_table(rows: pd.DataFrame) -> Section:
    """Return all scores of all learners."""
    import pandas as pd

    table, shown = [], []
    for place, model, part in _parts(rows):
        line = [place, model]
        for name in _COLUMNS:
            ours, spread = _mean_and_deviation(_percent(part, name))
            table.append({"data": place, "model": model, "measure": name, "mean": ours, "deviation": spread, "repetitions": len(part)})
            line.append(f"{ours:.2f}" + ("" if math.isnan(spread) else f" ± {spread:.2f}"))
        counted = part["labels_counted"]
        shown.append([*line, f"{counted.min()}" if counted.min() == counted.max() else f"{counted.min()} to {counted.max()}"])
    heads = ["Data", "Learner", *_COLUMNS, "Labels counted"]
    return Section("Scores", _ABOUT_SCORES, "scores", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


_ABOUT_FITS = """\
What tuning chose (the settings of most repetitions; the rest in cells.csv), how often at an edge of a grid of three values or more, where a
wider grid might have had better, and the final fits: the largest proven relative gap, and of MixedNorm the share of non-zeros of the sparse
part and the rank of the other. Where the gap is near 1 the training examples can be fitted exactly: the optimum is 0, it has many points,
and the scores are those of the point that was reached. Seconds are medians of the repetitions on one core: of all fits of the tuning, and
of one final fit."""


def fit_table(rows: pd.DataFrame) -> Section:
    """Return what was chosen, what it took."""
    import pandas as pd

    table, shown = [], []
    for place, model, part in _parts(rows):
        chosen, times = Counter(_short(setting) for setting in part["setting"]).most_common(1)[0]
        gap = part["relative_gap"].astype(float).max()
        at_edge = sum(_is_at_edge(model, setting) for setting in part["setting"])
        parts = part["share_of_non_zeros"].median() if "share_of_non_zeros" in part else math.nan
        entry = {
            "data": place, "model": model, "setting": chosen, "times": times, "at_edge": at_edge, "largest_gap": gap,
            "share_of_non_zeros": parts, "rank": part["rank"].median() if "rank" in part else math.nan,
            "tuning_fits": int(part["tuning_fits"].median()), "tuning_seconds": part["tuning_seconds"].median(),
            "fit_seconds": part["fit_seconds"].median(), "features": int(part["features"].max()),
        }  # fmt: skip
        table.append(entry)
        structure = "-" if math.isnan(parts) else f"{parts:.1%} non-zero, rank {entry['rank']:.0f}"
        shown.append(
            [
                place, model, f"{chosen} ({times} of {len(part)})", f"{entry['at_edge']} of {len(part)}",
                "no bound" if math.isnan(gap) else f"{gap:.1e}", structure, f"{entry['features']}",
                f"{entry['tuning_seconds']:.1f} ({entry['tuning_fits']} fits)", f"{entry['fit_seconds']:.2f}",
            ]
        )  # fmt: skip
    heads = ["Data", "Learner", "Setting", "At an edge", "Largest gap", "Parts", "Features", "s, tuning", "s, fit"]
    return Section("Settings and fits", _ABOUT_FITS, "fits", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


def beside_published(rows: pd.DataFrame, table: Sequence[Mapping[str, str]], stand_ins: Mapping[str, str]) -> list[Section]:
    """Figures of the published average AUC and ours, for every learner and data set."""
    import pandas as pd

    frame = pd.DataFrame(
        [
            {"data": place, "model": model, "ours": ours, "deviation": spread, "published": _published(table, stand_ins, place, model)}
            for place, model, part in _parts(rows)
            for ours, spread in [_mean_and_deviation(_percent(part, "average AUC"))]
        ]
    )
    places = list(dict.fromkeys(frame["data"]))
    sections = []
    for start in range(0, len(places), _PANELS):
        some = frame[frame["data"].isin(places[start : start + _PANELS])]
        name, title = ("auc", "Average AUC") if start == 0 else (f"auc-{start // _PANELS + 1}", "Average AUC, continued")
        sections.append(
            Section(title, "Published and ours, per cent; bars are standard deviations.", name, some, None, partial(_drawn, some))
        )
    return sections


def _drawn(frame: pd.DataFrame) -> Figure:
    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    ours: dict[str, Any] = {"marker": "o", "color": "#0072B2"}
    theirs: dict[str, Any] = {"marker": "x", "color": "#D55E00"}
    places = list(dict.fromkeys(frame["data"]))
    names = [name for name in MODELS if name in set(frame["model"])]
    with style.styled():
        handles = [Line2D([], [], linestyle="", label=label, **look) for label, look in (("ours", ours), ("published", theirs))]
        figure, axes = style.sheet("Average AUC", [2.2] * len(places), 0.28 * len(names) + 0.4, handles, left=1.5, headed=1, share_y=True)
        for axis, place in zip(axes, places, strict=True):
            part = frame[frame["data"] == place].set_index("model")
            for height, name in enumerate(reversed(names)):
                if name not in part.index:
                    continue
                row = part.loc[name]
                axis.errorbar(row["ours"], height, xerr=None if math.isnan(row["deviation"]) else row["deviation"], markersize=5, **ours)
                axis.plot(row["published"], height, linestyle="", markersize=5, **theirs)
            axis.set_yticks(range(len(names)), list(reversed(names)))
            axis.set_title(place)
            axis.set_xlabel("per cent")
    return figure


def _parts(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield rows of each data set and learner, in the order of the rows and of the learners."""
    for place in dict.fromkeys(rows["data"]):
        for model in MODELS:
            part = rows[(rows["data"] == place) & (rows["model"] == model)]
            if len(part):
                yield place, model, part


def _percent(rows: pd.DataFrame, measure: str) -> list[float]:
    values: list[float] = (100.0 * rows[_COLUMNS[measure]].dropna()).tolist()
    return values


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    import numpy as np

    if not len(values):
        return math.nan, math.nan
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _published(table: Sequence[Mapping[str, str]], stand_ins: Mapping[str, str], own: str, model: str) -> float:
    found = (
        float(row["mean"])
        for row in table
        if stand_ins.get(row["data"], row["data"]) == own and row["model"] == model and row["measure"] == "average AUC"
    )
    return next(found, math.nan)


def _is_at_edge(name: str, setting: Mapping[str, float]) -> bool:
    """Return whether a parameter of three values or more has the first or the last of them, and could have one beyond."""
    model = MODELS[name]
    return any(
        len(values) > 2 and setting[parameter] in (values[0], values[-1]) and not _is_limit(model.units.get(parameter), setting[parameter])
        for parameter, values in model.grid.items()
    )


def _is_limit(unit: str | None, value: float) -> bool:
    """Nothing lies beyond 0, and next to nothing changes beyond the penalty that leaves no coefficient where there is no other part."""
    return value == 0.0 or (unit == "correlation" and value >= 1.0)


def _short(setting: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in setting.items())
