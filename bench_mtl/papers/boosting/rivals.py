"""Group-sparse boosting beside SAMME, ECOC, AdaBoost.MH and L1-AdaBoost: errors, and the stumps and features in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.boosting.learners import CODE_SIZE, LEARNERS, MOST_STUMPS, SHARES, TOLERANCE
from bench_mtl.papers.boosting.rivals_cell import SETS, compute, files
from bench_mtl.papers.experiment import CellSettings, Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.summaries import Judgement, Mean, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MEASURES = {"test error": "test_error", "stumps": "stumps", "features": "features", "classes a stump": "classes_a_stump"}

#: What the others are compared with.
OURS = "l12"


def read(rows: pd.DataFrame) -> Findings:
    """Return what the appendix says against these rows, tables of errors, differences and sizes, a figure."""
    import pandas as pd

    rows = rows if len(rows) else pd.DataFrame(columns=["data", "model", "seed", *_MEASURES.values()])
    comparisons = [_compared(row, rows) for row in published("paisitkriangkrai2012_appendix")]
    sections = (_errors(rows), _differences(rows), _sizes(rows)) if len(rows) else ()
    return Findings(tuple(comparisons), sections)


# The statements.


def _compared(row: Mapping[str, str], rows: pd.DataFrame) -> PublishedNumber:
    """Return a published statement against the paired differences on every data set."""
    measure = _MEASURES[row["quantity"]]
    what = f"{row['quantity']}, {_name(row['model'])} against {_name(row['against'])}: {row['statement']} ({row['where']})"
    differences = {data: _difference(rows, data, measure, row["model"], row["against"]) for data in _sets(rows)}
    if row["relation"] == "not in our copy":
        shown = judged_order(differences, -1.0).ours
        why = "only the appendix is at hand, without any experiment of the paper; ours are the paired differences"
        return PublishedNumber(what, "not in our copy of the document", shown, Verdict.UNKNOWN, why)
    judgement = judged_by_set(differences, -1.0 if row["relation"] == "below" else 1.0)
    return PublishedNumber(what, f"{row['relation']} {_name(row['against'])}", *judgement)


def judged_by_set(differences: Mapping[str, Mean], sign: float) -> Judgement:
    """Return `judged_order`, but that an order which holds on one data set and is reversed on another depends on the data."""
    judgement = judged_order(differences, sign)
    alone = {judged_order({data: each}, sign).verdict for data, each in differences.items()}
    if {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED} <= alone:
        return judgement._replace(verdict=Verdict.DEPENDS, why=f"{judgement.why} (the appendix names no data)")
    return judgement


def _difference(rows: pd.DataFrame, data: str, measure: str, model: str, rival: str) -> Mean:
    return paired_difference(rows[rows["data"] == data], measure, "model", model, rival)


# Tables and the figure.

_ABOUT_ERRORS = """\
Test errors in per cent, means over the repetitions ± half of the 95 % interval. In the figure a point is a learner: its mean test error
against the mean number of different stumps that it uses, with the intervals of both."""

_ABOUT_DIFFERENCES = f"""\
Test error of {LEARNERS[OURS].title} minus that of each other learner on the same split, in percentage points, with the 95 % interval.
"lower": the interval is below 0, so {LEARNERS[OURS].title} makes fewer errors; "higher": it is above 0; else the repetitions do not
decide."""

_ABOUT_SIZES = """\
Means over the repetitions. A stump is a feature with a threshold, counted once however often it was taken. Classes a stump: in how many
classes' scores a stump has a weight; it says something of the learners that may leave a class out alone."""


def _errors(rows: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for data in _sets(rows):
        cells = {"Data": data}
        for model, learner in LEARNERS.items():
            each = mean(_values(rows, data, model, "test_error"))
            table.append({"data": data, "model": model, "mean": each.value, "half_width": each.half, "repetitions": each.repetitions})
            cells[learner.title] = _percent(each)
        shown.append(cells)
    return Section("Test error", _ABOUT_ERRORS, "errors", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"), partial(_drawn, rows))


def _differences(rows: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for data in _sets(rows):
        cells = {"Data": data}
        for model in LEARNERS:
            if model == OURS:
                continue
            each = _difference(rows, data, "test_error", OURS, model)
            reading = _reading(each)
            table.append(
                {"data": data, "rival": model, "difference": each.value, "half_width": each.half, "repetitions": each.repetitions,
                 "reading": reading}
            )  # fmt: skip
            cells[f"against {_name(model)}"] = f"{_percent(each, sign=True)}: {reading}" if each.repetitions else "-"
        shown.append(cells)
    title = f"Paired differences from {LEARNERS[OURS].title}"
    return Section(title, _ABOUT_DIFFERENCES, "differences", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _reading(difference: Mean) -> str:
    if difference.value + difference.half < 0.0:
        return "lower"
    return "higher" if difference.value - difference.half > 0.0 else "not decided"


def _sizes(rows: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown = [], []
    for data in _sets(rows):
        for model, learner in LEARNERS.items():
            found = {name: mean(_values(rows, data, model, measure)) for name, measure in _MEASURES.items() if measure != "test_error"}
            table.append({"data": data, "model": model} | {_MEASURES[name]: each.value for name, each in found.items()})
            cells = {name.capitalize(): each.text(1) for name, each in found.items()}
            shown.append({"Data": data, "Learner": learner.title, **cells})
    return Section("Stumps and features in use", _ABOUT_SIZES, "sizes", pd.DataFrame(table), pd.DataFrame(shown, dtype="str"))


def _drawn(rows: pd.DataFrame) -> Figure:
    """Draw a panel for each data set: the mean error of every learner against its stumps, with both intervals."""
    import math

    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    looks = style.styles_in_turn(LEARNERS)
    sets = _sets(rows)

    def look(model: str) -> dict[str, Any]:
        return style.line(looks[model], markersize=6, linewidth=1.2) | {"linestyle": "none"}

    with style.styled():
        handles = [Line2D([], [], label=learner.title, **look(model)) for model, learner in LEARNERS.items()]
        title = "Test error against stumps in use"
        figure, axes = style.sheet(title, [2.0] * len(sets), 2.3, handles, headed=1, left=0.7)
        for axis, data in zip(axes, sets, strict=True):
            for model in LEARNERS:
                x, y = (mean(_values(rows, data, model, measure)) for measure in ("stumps", "test_error"))
                if not y.repetitions:
                    continue
                spread: dict[str, Any] = {} if math.isnan(y.half) else {"xerr": x.half, "yerr": 100.0 * y.half}
                axis.errorbar(x.value, 100.0 * y.value, **spread, **look(model), elinewidth=0.8)
            axis.set_title(data)
            axis.set_xlim(0, MOST_STUMPS)
            axis.set_ylim(bottom=0.0)
            axis.set_xlabel("stumps")
        axes[0].set_ylabel("test error, %")
    return figure


def _percent(each: Mean, *, sign: bool = False) -> str:
    return each._replace(value=100.0 * each.value, half=100.0 * each.half).text(1, sign=sign)


def _values(rows: pd.DataFrame, data: str, model: str, measure: str) -> list[float]:
    if measure not in rows:
        return []
    found: list[float] = rows.loc[(rows["data"] == data) & (rows["model"] == model), measure].dropna().tolist()
    return found


def _sets(rows: pd.DataFrame) -> list[str]:
    """Return the data sets that there are rows of, in the order of the experiment."""
    there = set(rows["data"])
    return [data for data in SETS if data in there]


def _name(model: str) -> str:
    return LEARNERS[model].title


def _grid(sets: Sequence[str], seeds: int) -> tuple[CellSettings, ...]:
    return tuple({"data": data, "model": model, "seed": seed} for seed in range(seeds) for data in sets for model in LEARNERS)


EXPERIMENT = Experiment(
    name="boosting-rivals",
    title="Group-sparse boosting beside SAMME, ECOC, AdaBoost.MH and L1-AdaBoost",
    source="Paisitkriangkrai, Shen, van den Hengel, CVPR 2012, appendix",
    about=f"""\
Of the paper the appendix alone is at hand: it has derivations, and neither an experiment nor the name of a data set. So which data,
rivals and numbers the paper has cannot be said here; all data are stand-ins of ours, those of the suite `boosting-table` without MNIST:
`synthetic_multiclass`, digits, Scene (images with one label), Yeast (the ten most frequent sets of labels), ORL faces (40 people). 600
training examples (faces 280), drawn anew in every repetition; all learners have the same split. The weak learner is a decision stump
everywhere, and no learner has more than {MOST_STUMPS} of them. One parameter of each is chosen on a third of the training examples, and
the learner is then fitted to all of them: of ours the penalty, of {", ".join(f"{share:g}" for share in SHARES)} times the smallest that
gives no stumps; of the rivals the number of rounds. Group-sparse boosting and L1-AdaBoost (`GroupSparseBoostingClassifier` with the norms
l12, l1inf and l1, logistic loss) find stumps by column generation and are totally corrective; their gap over all stumps is proven, to
{TOLERANCE:g} unless {MOST_STUMPS} stumps are too few. SAMME is scikit-learn's `AdaBoostClassifier`, ECOC its `OutputCodeClassifier` over
it ({CODE_SIZE} random words a class; up to {MOST_STUMPS} stumps in all words together); AdaBoost.MH (Schapire, Singer 1999) takes a stump
and a vote of -1 or +1 for each class in every round.""",
    scales={
        "small": Scale(_grid(("synthetic", "digits"), 2), "two of the five data sets and 2 repetitions: half a minute."),
        "full": Scale(_grid(tuple(SETS), 5), "all five data sets, 5 repetitions: 5 minutes on two idle cores."),
    },
    compute=compute,
    read=read,
    uses=("group_boosting", "multiboost_group", "multiboost_l1", "smoothed_gradient", "accelerated_gradient"),
    data=files,
)
