"""Table V of Chen, Liu, Ye: what the better scores cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench_mtl.papers.chen.about import about_protocol
from bench_mtl.papers.chen.protocol import CELLS_OF, LEARNER_CODE, TUNING_LIMITS, compute, files, grid
from bench_mtl.papers.chen.scores import RESOLUTION, fit_table, score_table
from bench_mtl.papers.chen.sensitivity import Means, judged_number, judged_statement, means_of, readings
from bench_mtl.papers.chen.variants import AUCS, DEFAULT, FEATURES, INTERCEPTS, Variant, variants
from bench_mtl.papers.experiment import Experiment, Findings, PublishedNumber, Scale, Section, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.summaries import Judgement, Mean, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd

#: The ones of the paper.
LEARNERS = ("MixedNorm", "OneNorm", "RidgeReg", "IndSVM")
_SETS = ("scene", "references")


def read(rows: pd.DataFrame) -> Findings:
    """Return the published times and scores beside these rows."""
    means = means_of(rows)
    comparisons = [*_orders(rows), *(each for entry in published("chen2012_table5") for each in _numbers(rows, means, entry))]
    return Findings(tuple(comparisons), (_costs(rows), score_table(rows), fit_table(rows)) if len(rows) else ())


def _orders(rows: pd.DataFrame) -> Iterator[PublishedNumber]:
    """Yield what the text says: MixedNorm takes more time, and has a higher AUC."""
    for name in _SETS:
        here = rows[rows["data"] == name] if len(rows) else rows
        scores = {each: _order(each.rows(here), AUCS[each.auc], 2, 100.0, RESOLUTION) for each in variants("average AUC")}
        seconds = {each: _order(each.rows(here), "fit_seconds", 3, 1.0, 0.0) for each in _FITS}
        for words, judged in (("takes more seconds", seconds), ("has a higher average AUC", scores)):
            what = f"{name}: MixedNorm {words} than the others (section 7.5)"
            yield PublishedNumber(what, "MixedNorm above all", *judged_statement(judged))


#: Protocols that differ in their fits, and so in seconds.
_FITS = tuple(Variant(features, intercept) for features in FEATURES for intercept in INTERCEPTS)


def _order(rows: pd.DataFrame, column: str, digits: int, scale: float, least: float) -> Judgement:
    """Return whether MixedNorm has more than each of the others; a smaller difference than `least` decides nothing."""
    differences = {}
    for rival in LEARNERS[1:] if len(rows) else ():
        each = paired_difference(rows, column, "model", "MixedNorm", rival)
        differences[rival] = Mean(scale * each.value, scale * each.half, each.repetitions)
    return judged_order(differences, 1.0, digits=digits, least=least)


def _numbers(rows: pd.DataFrame, means: Means, entry: dict[str, str]) -> Iterator[PublishedNumber]:
    place = f"{entry['data']}, {entry['model']}"
    here = DEFAULT.rows(rows)
    part = here[(here["data"] == entry["data"]) & (here["model"] == entry["model"])] if len(here) else here
    seconds, what = float(entry["seconds"]), f"{place}, seconds"
    if len(part):
        ours = float(part["fit_seconds"].mean())
        yield PublishedNumber(what, f"{seconds:g} s", f"{ours:.3g} s", *_SECONDS, seconds, ours)
    else:
        yield PublishedNumber(what, f"{seconds:g} s", "-", Verdict.NOT_RUN, "no cell has an outcome", seconds, None)
    theirs = float(entry["average_auc"])
    keys = {"data": entry["data"], "model": entry["model"], "measure": "average AUC"}
    numbers = readings(means, keys | {"mean": entry["average_auc"], "deviation": _deviation(keys)}, entry["data"])
    judged = judged_number(numbers)
    if numbers.readings and (entry["data"], entry["model"]) == ("references", "RidgeReg"):
        judged = judged._replace(verdict=Verdict.UNKNOWN, why=_SLIP)
    yield PublishedNumber(f"{place}, average AUC", f"{theirs:g} %", *judged, theirs, numbers.ours)


_SECONDS = (Verdict.UNKNOWN, "another machine, language and accuracy: only the orders can be compared")

_SLIP = "a slip of the paper: this is the value of Yeast in its table II, where References has 74.781"


def _deviation(keys: dict[str, str]) -> str:
    """Return the deviation of the paper's table II, which has the same scores."""
    return next(row["deviation"] for row in published("chen2012_table2") if keys.items() <= row.items())


_ABOUT_COSTS = """\
Seconds of one fit with the chosen setting on one core (compiling and loading done before), to a proven relative gap of 1e-3, and of the
whole tuning; normalised features without intercept; means ± half of the 95 % interval."""


def _costs(rows: pd.DataFrame) -> Section:
    import pandas as pd

    table, shown, here = [], [], DEFAULT.rows(rows)
    for name in _SETS:
        for model in LEARNERS:
            part = here[(here["data"] == name) & (here["model"] == model)]
            if not len(part):
                continue
            auc, fit, tuning = (mean(part[key].tolist()) for key in ("average_auc", "fit_seconds", "tuning_seconds"))
            table.append(
                {
                    "data": name,
                    "model": model,
                    "average_auc": auc.value,
                    "fit_seconds": fit.value,
                    "tuning_seconds": tuning.value,
                    "repetitions": len(part),
                }
            )
            shown.append([name, model, Mean(100.0 * auc.value, 100.0 * auc.half, auc.repetitions).text(2), fit.text(3), tuning.text(1)])
    heads = ["Data", "Learner", "Average AUC", "s, one fit", "s, tuning"]
    return Section("Cost against score", _ABOUT_COSTS, "costs", pd.DataFrame(table), pd.DataFrame(shown, columns=heads, dtype="str"))


EXPERIMENT = Experiment(
    name="chen-table5",
    title="What the better scores cost",
    source="Chen, Liu, Ye, ACM TKDD 5(4), 2012, section 7.5 and table V",
    about=f"""\
The paper gives "the required computation time", in Matlab but for IndSVM, without saying of what: one fit is taken here.

{about_protocol()}""",
    scales={
        "small": Scale(grid(("scene",), LEARNERS, 1), "Scene alone, one repetition: half a minute."),
        "full": Scale(
            grid(_SETS[:1], LEARNERS, 5) + grid(_SETS[1:], LEARNERS, 2),
            "Scene five times, References twice, with the two main protocols of fits: the cells of table II, a quarter of an hour on two "
            "cores without them.",
        ),
    },
    compute=compute,
    read=read,
    uses=LEARNER_CODE,
    data=files,
    limits=TUNING_LIMITS,
    cells_of=CELLS_OF,
)
