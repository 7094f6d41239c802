"""Scores of the learners beside the published ones: numbers, statements, tables, a figure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.papers.chen.about import about_protocol
from bench_mtl.papers.chen.learners import MODELS
from bench_mtl.papers.chen.protocol import CELLS_OF, LEARNER_CODE, TUNING_LIMITS, compute, files
from bench_mtl.papers.chen.sensitivity import (
    CLOSE,
    Numbers,
    count_table,
    headline,
    judged_number,
    judged_statement,
    means_of,
    number_table,
    readings,
    statement_table,
)  # fmt: skip
from bench_mtl.papers.chen.variants import AUCS, DECISIONS, DEFAULT, FEATURES, INTERCEPTS, MEASURES, Variant, short, variants
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.summaries import NO_PAIR, Judgement, Mean, judged_not_below, judged_order, mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_NOT_HAD = "the data could not be had: other data are in their place, and the difference says little"

MULTI_TASK = ("MixedNorm", "MTRL", "MTL(Omega,Sigma)", "TraceNorm", "ASO")
SINGLE_TASK = ("OneNorm", "IndSVM", "RidgeReg")

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
    stand_ins : for data sets of the paper that could not be had, which of ours is in their place
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
        cells_of=CELLS_OF,
    )


def _read(numbers: str, claims: str, stand_ins: Mapping[str, str], rows: pd.DataFrame) -> Findings:
    """Return the published table beside these rows."""
    table = published(numbers)
    learners = [name for name in MODELS if any(entry["model"] == name for entry in table)]
    said = compared_statements(rows, claims, stand_ins, learners)
    means = means_of(rows)
    found = [readings(means, entry, stand_ins.get(entry["data"], entry["data"])) for entry in table]
    comparisons = [*(each.number for each in said), *compared_numbers(found, table, stand_ins)]
    if not len(rows):
        return Findings(tuple(comparisons), ())
    bound = bound_table(rows, table)
    sections = [
        count_table(found, bool(stand_ins)),
        statement_table([(each.short, each.judged) for each in said]),
        number_table(found),
        score_table(rows),
        *bound,
        *beside_published(rows, table, stand_ins),
        fit_table(rows),
    ]
    own = [each for each in found if each.data not in stand_ins]  # on other data a near number is chance
    return Findings(tuple(comparisons), tuple(sections), " ".join([*([headline(own)] if own else []), *map(_of_bound, bound)]))


def compared_numbers(
    found: Sequence[Numbers], table: Sequence[Mapping[str, str]], stand_ins: Mapping[str, str]
) -> Iterator[PublishedNumber]:
    """Yield every published number beside ours under all protocols; the difference is that of the default one.

    Parameters
    ----------
    found : our readings of the published rows
    table : these: data, measure, model, mean, deviation (of repetitions), in per cent
    stand_ins : for data sets of the paper that could not be had, which of ours is in their place
    """
    for numbers, entry in zip(found, table, strict=True):
        where, theirs = entry["data"], float(entry["mean"])
        what = f"{_named(where, stand_ins)}, {short(entry['measure'])}, {entry['model']}"
        said = f"{theirs:.1f} ± {float(entry['deviation']):.1f}"
        judged = judged_number(numbers)
        if numbers.readings and where in stand_ins:
            judged = judged._replace(verdict=Verdict.UNKNOWN, why=_NOT_HAD)
        yield PublishedNumber(what, said, *judged, theirs, numbers.ours, where in stand_ins)


_ABOUT_NUMBERS = f"""\
A published number counts as reproduced under a protocol where ours is within {CLOSE:g} point of it, and as not reproduced where it is
further away than that and than twice the deviation of the difference of two repetitions, one there and one here; between these it cannot
be known. Where all protocols agree that is the verdict; where some say yes and others no, the number depends on the protocol. The
difference shown is that of the default protocol ({DEFAULT.words()}). Differences of two learners below {RESOLUTION:g} points decide
nothing, which is a choice of ours: two solvers' fits of one problem, each proven to the gap stated, do not score quite the same."""


class Said(NamedTuple):
    """A statement of the text."""

    number: PublishedNumber
    short: str
    judged: Mapping[Variant, Judgement]
    """By protocol."""


def compared_statements(rows: pd.DataFrame, table: str, stand_ins: Mapping[str, str], learners: Sequence[str]) -> list[Said]:
    """Return what the text says of a table with these learners, judged by paired differences; also on data in the place of others.

    What it says of the multi-task learners is judged with and without ASO, which is far behind the others here and would speak for all.
    """
    found = []
    for entry, measure in statements(table):
        own = stand_ins.get(entry["data"], entry["data"])
        here = rows[rows["data"] == own] if len(rows) else rows
        for family, words in families_of(entry):
            judged = {each: statement(each.rows(here), entry, each.column(measure), learners, family) for each in variants(measure)}
            what = f"{_named(entry['data'], stand_ins)}, {measure}: {entry['statement']}{words} ({entry['place']})"
            number = PublishedNumber(what, expected(entry), *judged_statement(judged), on_other_data=entry["data"] in stand_ins)
            found.append(Said(number, f"{entry['data']} {short(measure)}: {expected(entry)}{words}", judged))
    return found


def families_of(entry: Mapping[str, str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the multi-task learners that a statement is judged for, all and all but ASO, with words; for others one entry."""
    if entry["models"] != "multi-task":
        return [(MULTI_TASK, "")]
    return [(MULTI_TASK, ""), (tuple(name for name in MULTI_TASK if name != "ASO"), ", without ASO")]


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
    return f"{entry['models']} {entry['relation']} {entry['against'].replace(';', ' and ')}".strip()


def statement(
    rows: pd.DataFrame, entry: Mapping[str, str], measure: str, learners: Sequence[str], family: Sequence[str] = MULTI_TASK
) -> Judgement:
    """Return a statement of an order of these learners on the rows of one data set."""
    if not len(rows):
        return NO_PAIR
    if entry["models"] == "multi-task":
        return judged_not_below({"multi-task - single-task": families(rows, measure, SINGLE_TASK, family)}, CLOSE, digits=2)
    rivals = [name for name in learners if name != entry["models"]] if entry["against"] == "all" else entry["against"].split(";")
    both = rows.pivot_table(index="seed", columns="model", values=measure).reindex(columns=[entry["models"], *rivals])
    differences = {rival: mean((both[entry["models"]] - both[rival]).dropna().tolist()) for rival in rivals}
    return judged_order({rival: in_points(each) for rival, each in differences.items()}, 1.0, digits=2, least=RESOLUTION)


def families(rows: pd.DataFrame, measure: str, others: Sequence[str], family: Sequence[str] = MULTI_TASK) -> Mean:
    """The mean of the multi-task learners minus that of these others, by repetition and in points; of nothing where one is missing."""
    both = rows.pivot_table(index="seed", columns="model", values=measure).reindex(columns=[*family, *others]).dropna()
    return in_points(mean((both[list(family)].mean(axis=1) - both[list(others)].mean(axis=1)).tolist()))


def in_points(each: Mean) -> Mean:
    """Return a share in per cent."""
    return each._replace(value=100.0 * each.value, half=100.0 * each.half)


_ABOUT_SCORES = """\
Per cent, by the features (+ b: with a free intercept); means ± standard deviation over the repetitions of the AUC of labels, means of the
pooled AUC and of macro/micro F1 by the rule of decision: scores above 0; for each label as many positives as its share of the training part
asks for; for each example one label, that with the highest score; a threshold for each label, chosen for the highest F1 on the training
folds. The pooled AUC is of all labels and examples together as if of
one task, which rewards knowing which labels are frequent. Labels without a positive or a negative training example are left out, and of
the AUC those without a positive or a negative test example; macro F1 needs a positive one."""

#: In a figure, at most.
_PANELS = 5


def score_table(rows: pd.DataFrame) -> Section:
    """Return all scores of all learners."""
    import pandas as pd

    table, shown = [], []
    for place, fits, model, part in _parts(rows):
        known = {"data": place, "fits": fits, "model": model, "repetitions": len(part), "labels_counted": part["labels_counted"].median()}
        means = {}
        for column in [*AUCS.values(), *(form.format(kind) for form in DECISIONS.values() for kind in ("macro", "micro"))]:
            means[column] = _mean_and_deviation((100.0 * part[column].dropna()).tolist())
            table.append({**known, "measure": column, "mean": means[column][0], "deviation": means[column][1]})
        area, spread = means[AUCS["per label"]]
        areas = [f"{area:.1f}" + ("" if math.isnan(spread) else f" ± {spread:.1f}"), f"{means[AUCS['pooled']][0]:.1f}"]
        pairs = [f"{means[form.format('macro')][0]:.1f}/{means[form.format('micro')][0]:.1f}" for form in DECISIONS.values()]
        shown.append([place, fits, model, *areas, *pairs])
    heads = ["Data", "Fits", "Learner", "AUC", "Pooled", "F1 at 0", "By share", "One label", "Tuned"]
    assert len(heads) == len(shown[0])
    return Section("Scores", _ABOUT_SCORES, "scores", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


_ABOUT_BOUND = """\
Could better tuning bring the published margin of MixedNorm over TraceNorm? For these sets every setting of both grids was also fitted to
the whole training part, to the accuracy of the tuning, and judged on the test part. The margin is shown with settings tuned in training as
everywhere else, with the best setting of each learner on the test part, and with that of MixedNorm alone against TraceNorm as tuned, which
favours MixedNorm. A margin reaches the published one where the upper end of its 95 % interval does; few repetitions have wide ones."""

#: Ways to choose the settings of MixedNorm and of TraceNorm, by the columns of their scores.
_CHOICES: Mapping[str, tuple[str, str]] = {
    "tuned": ("average_auc", "average_auc"),
    "both_on_test": ("best_on_test", "best_on_test"),
    "one_on_test": ("best_on_test", "average_auc"),
}


def bound_table(rows: pd.DataFrame, table: Sequence[Mapping[str, str]]) -> list[Section]:
    """Return the margin of MixedNorm over TraceNorm with settings chosen on the test part; nothing where no cell has looked there."""
    import pandas as pd

    if "best_on_test" not in rows or rows["best_on_test"].isna().all():
        return []
    found, shown = [], []
    for place, fits, _, part in _parts(rows[(rows["model"] == "MixedNorm") & rows["best_on_test"].notna()]):
        is_rival = (rows["data"] == place) & (rows["model"] == "TraceNorm")
        for key in ("features", "intercept"):
            is_rival &= rows[key] == part[key].iloc[0]
        margins = {name: _margin(part, rows[is_rival], *columns) for name, columns in _CHOICES.items()}
        if not margins["both_on_test"].repetitions:
            continue
        theirs = _published(table, {}, place, "MixedNorm") - _published(table, {}, place, "TraceNorm")
        reached = {name: each.value + (0.0 if math.isnan(each.half) else each.half) >= theirs for name, each in margins.items()}
        entry: dict[str, Any] = {"data": place, "fits": fits, "published": theirs, "repetitions": margins["both_on_test"].repetitions}
        for name, each in margins.items():
            entry |= {name: each.value, f"{name}_half_width": each.half, f"{name}_reaches": reached[name]}
        found.append(entry)
        marks = [each.text(2, sign=True) + (" *" if reached[name] else "") for name, each in margins.items()]
        shown.append([place, fits, f"{theirs:.2f}", *marks])
    heads = ["Data", "Fits", "Published margin", "Tuned in training", "Both on test", "MixedNorm on test"]
    display = pd.DataFrame(shown, columns=heads, dtype="str")
    text = f"{_ABOUT_BOUND} *: reaches it."
    return [Section("MixedNorm over TraceNorm, chosen on the test set", text, "bound", pd.DataFrame(found), display)] if found else []


def _margin(ours: pd.DataFrame, rivals: pd.DataFrame, own: str, theirs: str) -> Mean:
    """Return one column of a learner's rows minus another one of a rival's, by repetition and in points."""
    difference = ours.set_index("seed")[own] - rivals.set_index("seed")[theirs]
    return in_points(mean(difference.dropna().tolist()))


def _of_bound(section: Section) -> str:
    """Return what the margins with settings chosen on the test part say, in a sentence."""
    assert section.table is not None
    both, one = (int(section.table[f"{name}_reaches"].sum()) for name in ("both_on_test", "one_on_test"))
    return (
        f"With the settings of both learners chosen on the test set, the margin of MixedNorm over TraceNorm reaches the published one in "
        f"{both} of {len(section.table)} pairs of data set and fits; with those of MixedNorm alone, in {one} (by the upper end of the 95 % "
        f"interval)."
    )


_ABOUT_FITS = """\
What tuning chose (the settings of most repetitions; the rest in cells.csv), how often at an edge of a grid of three values or more, where a
wider grid might have had better, and the final fits: the largest proven relative gap, and as parts of MixedNorm the share of non-zeros of
the sparse one and the rank of the other. Where the gap is near 1 the training examples can be fitted exactly: the optimum is 0, it has many
points, and the scores are those of the point that was reached. Seconds are medians of the repetitions on one core: of all fits of the
tuning, and of one final fit."""


def fit_table(rows: pd.DataFrame) -> Section:
    """Return what was chosen, what it took."""
    import pandas as pd

    table, shown = [], []
    for place, fits, model, part in _parts(rows):
        chosen, times = Counter(_short(setting) for setting in part["setting"]).most_common(1)[0]
        gap = part["relative_gap"].astype(float).max()
        at_edge = sum(_is_at_edge(model, setting) for setting in part["setting"])
        parts = part["share_of_non_zeros"].median() if "share_of_non_zeros" in part else math.nan
        entry = {
            "data": place, "fits": fits, "model": model, "setting": chosen, "times": times, "at_edge": at_edge, "largest_gap": gap,
            "share_of_non_zeros": parts, "rank": part["rank"].median() if "rank" in part else math.nan,
            "tuning_fits": int(part["tuning_fits"].median()), "tuning_seconds": part["tuning_seconds"].median(),
            "fit_seconds": part["fit_seconds"].median(), "features": int(part["features_given"].max()),
        }  # fmt: skip
        table.append(entry)
        structure = "-" if math.isnan(parts) else f"{parts:.1%}, {entry['rank']:.0f}"
        shown.append(
            [
                place, fits, model, f"{chosen} ({times}/{len(part)})", f"{entry['at_edge']}/{len(part)}",
                "none" if math.isnan(gap) else f"{gap:.0e}", structure, f"{entry['tuning_seconds']:.1f}, {entry['fit_seconds']:.2f}",
            ]
        )  # fmt: skip
    heads = ["Data", "Fits", "Learner", "Setting", "Edge", "Gap", "Parts", "Seconds"]
    return Section("Settings and fits", _ABOUT_FITS, "fits", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


def beside_published(rows: pd.DataFrame, table: Sequence[Mapping[str, str]], stand_ins: Mapping[str, str]) -> list[Section]:
    """Figures of the published average AUC and ours, for every learner and data set."""
    import pandas as pd

    frame = pd.DataFrame(
        [
            {"data": place, "model": model, "ours": ours, "deviation": spread, "published": _published(table, stand_ins, place, model)}
            for place, _, model, part in _parts(DEFAULT.rows(rows))
            for ours, spread in [_mean_and_deviation((100.0 * part["average_auc"].dropna()).tolist())]
        ]
    )
    if not len(frame):
        return []
    places = list(dict.fromkeys(frame["data"]))
    sections = []
    for start in range(0, len(places), _PANELS):
        some = frame[frame["data"].isin(places[start : start + _PANELS])]
        name, title = ("auc", "Average AUC") if start == 0 else (f"auc-{start // _PANELS + 1}", "Average AUC, continued")
        sections.append(
            Section(
                title,
                f"Published and ours, per cent, with {DEFAULT.words('average AUC')}; bars are standard deviations.",
                name,
                some,
                None,
                partial(_drawn, some),
            )
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


def _parts(rows: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Yield data set, features (with + b where an intercept is free), learner and rows, in the order of these."""
    for place in dict.fromkeys(rows["data"]):
        for features, intercept in itertools.product(FEATURES, INTERCEPTS):
            for model in MODELS:
                is_here = (rows["data"] == place) & (rows["features"] == features) & (rows["intercept"] == intercept)
                part = rows[is_here & (rows["model"] == model)]
                if len(part):
                    yield place, features if intercept == "without" else f"{features} + b", model, part


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
