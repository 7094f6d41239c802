"""What the report of 2008 says against rows of cells. The images are others: numbers are compared as statements only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import PublishedNumber, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.quattoni.annotation_models import MODELS
from bench_mtl.papers.quattoni.annotation_verdicts import NAMES, by_word, judged_most_words
from bench_mtl.papers.quattoni.report2008_cell import METHODS, PUBLISHED
from bench_mtl.papers.quattoni.report2008_data import SVD
from bench_mtl.papers.summaries import NO_PAIR, Judgement, Mean, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd

#: Models in the order in which the report has them, from the best: each with the one that it outperforms.
PAIRS = (("l1inf", "l1"), ("l1inf", "l2"), ("l1", "l2"))
#: The columns of what the statements are about.
_MEASURES: Mapping[str, str] = {"mean EER": "eer", "features in use": "share", "fill": "fill"}
_SETTINGS = ("method", "examples", "features", "grid", "seed")
_OF_CELL = (*_SETTINGS, "samples", "short", "words", "feature_count", "rarest")

_OTHER_IMAGES = "the images are others; the curves themselves are not in our copy of the document"
_OTHER_COUNT = "a matter of the images, which are others"
_RULES: Mapping[str, str] = {
    "features in use": "features in use are the share that any topic uses",
    "fill": "fill is the mean share of the topics that use a feature that any uses",
}


def long(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each model of each cell."""
    import pandas as pd

    found = [
        {name: row[name] for name in _OF_CELL}
        | {"model": model}
        | {str(name).removeprefix(f"{model}_"): value for name, value in row.items() if str(name).startswith(f"{model}_")}
        for row in rows.to_dict("records")
        for model in MODELS
    ]
    return pd.DataFrame(found) if found else pd.DataFrame(columns=[*_OF_CELL, "model", *_MEASURES.values(), "eers"])


def as_published(models: pd.DataFrame, method: str | None = None) -> pd.DataFrame:
    """Return the rows of the report's features and values of C, of one method or of both."""
    own = models[(models["features"] == SVD) & (models["grid"] == PUBLISHED)]
    return own if method is None else own[own["method"] == method]


def differences(models: pd.DataFrame, measure: str, model: str, rival: str, sizes: Sequence[int]) -> dict[int, Mean]:
    """Return the paired differences of two models by the number of positive examples; of no repetition where one was not run."""
    found = {}
    for size in sizes:
        own = models[models["examples"] == size]
        found[size] = paired_difference(own, measure, "model", model, rival) if len(own) else mean([])
    return found


def comparisons(models: pd.DataFrame) -> Iterator[PublishedNumber]:
    """Yield every published statement, once for each method, and every published number."""
    for row in published("quattoni2008_report"):
        if not row["against"]:
            yield _number(row, f"{row['statement']} ({row['where']})", as_published(models))
            continue
        expected = f"{'better than' if row['relation'] == 'most topics' else row['relation']} {NAMES[row['against']]}"
        for method in METHODS:
            what = f"{row['statement']}, {method} ({row['where']})"
            yield PublishedNumber(what, expected, *_judged(row, as_published(models, method)), on_other_data=True)


def _judged(row: Mapping[str, str], models: pd.DataFrame) -> Judgement:
    if not len(models):
        return NO_PAIR
    if row["relation"] == "most topics":
        judged = judged_most_words(models, int(row["examples"]), row["model"], row["against"])
        return judged._replace(ours=judged.ours.replace("words", "topics"), why=judged.why.replace("words", "topics"))
    sign = -1.0 if row["relation"] == "below" else 1.0
    found = differences(models, _MEASURES[row["quantity"]], row["model"], row["against"], _sizes(row))
    judged = judged_order(found, sign, "positive examples a topic")
    rule = _RULES.get(row["quantity"])
    return judged._replace(why=f"{judged.why}; {rule}") if rule else judged


def _sizes(row: Mapping[str, str]) -> list[int]:
    return [int(size) for size in row["examples"].split()]


def _number(row: Mapping[str, str], what: str, models: pd.DataFrame) -> PublishedNumber:
    """Return a published number, or the two ends of a range, beside ours."""
    number = float(row["published"]) if row["published"].isdigit() else None
    if not len(models):
        return PublishedNumber(what, row["published"], "-", Verdict.NOT_RUN, "no cell has an outcome", number, None, on_other_data=True)
    values = _VALUES[row["relation"]](models, _sizes(row))
    if not values:
        why = "no cell of this size has an outcome"
        return PublishedNumber(what, row["published"], "-", Verdict.NOT_RUN, why, number, None, on_other_data=True)
    if number is None:
        ours = f"{min(values):.2f} to {max(values):.2f}"
        return PublishedNumber(what, row["published"], ours, Verdict.UNKNOWN, _OTHER_IMAGES, on_other_data=True)
    return PublishedNumber(what, row["published"], f"{values[0]:.0f}", Verdict.UNKNOWN, _OTHER_COUNT, number, values[0], on_other_data=True)


def _means(models: pd.DataFrame, sizes: Sequence[int]) -> list[float]:
    found: list[float] = models[models["examples"].isin(sizes)].groupby(["method", "examples", "model"])["eer"].mean().tolist()
    return found


def _topics(models: pd.DataFrame, sizes: Sequence[int]) -> list[float]:
    return [
        float(value)
        for method in METHODS
        for size in sizes
        for value in by_word(models[models["method"] == method], size).to_numpy().ravel()
    ]


_VALUES: Mapping[str, Any] = {
    "means": _means,
    "topics": _topics,
    "count": lambda models, sizes: [float(models["feature_count"].iloc[0])],
    "rarest": lambda models, sizes: [float(models["rarest"].iloc[0])],
}
