"""The papers' statements on image annotation against rows of cells. The images are others: numbers are compared as statements only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.experiment import PublishedNumber, Verdict
from bench_mtl.papers.published import published
from bench_mtl.papers.quattoni.annotation_models import MODELS
from bench_mtl.papers.summaries import Judgement, Mean, judged_order, mean, paired_difference

if TYPE_CHECKING:
    import pandas as pd

DATA = {"corel5k": "Corel5k", "corel16k001": "Corel16k"}
NAMES = {"l1inf": "l1,inf", "l1": "l1", "l2": "l2", "all": "all models"}
COMPARED, PATH, CONVERGENCE = "models", "path", "convergence"

#: A p-value from which on a difference is not significant.
LEVEL = 0.05
#: A difference in AUC up to which models perform similarly.
SIMILAR = 0.01
#: The share of the words that "all but a few" is at least.
MOST = 0.8
#: Two AUC no further apart are taken for the same performance, in figure 4.
ALIKE = 0.005

_MEASURES = {"AUC": "auc", "EER": "eer", "fill": "fill"}
_OTHER_IMAGES = "the images are others, and so numbers are no reproduction of numbers"
_LOST = "the figure is not in our copy of the document, whose text has no number of it: only what it says of the curves is compared"
_ONE = "one repetition decides nothing"
_NOTHING = Judgement("-", Verdict.NOT_RUN, "no cell of it has an outcome")


def long(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each model of each comparing cell."""
    import pandas as pd

    columns = ["data", "examples", "seed", "samples", "short", "model"]
    found = [
        {**{name: row[name] for name in columns[:-1]}, "model": model}
        | {str(name).removeprefix(f"{model}_"): value for name, value in row.items() if str(name).startswith(f"{model}_")}
        for row in part(rows, COMPARED).to_dict("records")
        for model in MODELS
    ]
    return pd.DataFrame(found) if found else pd.DataFrame(columns=[*columns, "auc", "eer", "share", "fill", "eers", "words"])


def part(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of one kind of cells."""
    return rows[rows["part"] == name] if len(rows) else rows


def comparisons(rows: pd.DataFrame) -> Iterator[PublishedNumber]:
    """Yield every published number and statement, on every collection that was run (on none: once)."""
    models = long(rows)
    for row in published("quattoni2009_annotation"):
        subject = f"{row['quantity']}, {NAMES[row['model']]}" + (f" against {NAMES[row['against']]}" if row["against"] else "")
        what = f"{row['statement']} ({row['where']})"
        if row["relation"] == "lost":
            yield PublishedNumber(f"{subject}: {what}", "in the figure alone", "see below", Verdict.UNKNOWN, _LOST)
            continue
        judge = _JUDGES[row["relation"]]
        for name in _collections(rows) or [""]:
            of = f", {DATA[name]}" if name else ""
            own = [frame[frame["data"] == name] if name else frame for frame in (models, rows)]
            judgement, value = judge(row, *own)
            number = float(row["published"]) if row["published"] else None
            shown = row["published"] if row["published"] else _expected(row)
            yield PublishedNumber(f"{subject}{of}: {what}", shown, *judgement, number, value if number is not None else None)


def _collections(rows: pd.DataFrame) -> list[str]:
    return [name for name in DATA if len(rows) and (rows["data"] == name).any()]


def _expected(row: Mapping[str, str]) -> str:
    against = f" {NAMES[row['against']]}" if row["against"] else ""
    return {"above": f"above{against}", "below": f"below{against}", "similar": f"as{against}", "fewer": f"fewer than{against}"}.get(
        row["relation"], row["relation"]
    )


_Judged = tuple[Judgement, float | None]


def _samples(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    found = models.loc[models["examples"] == int(row["examples"]), "samples"]
    if not len(found):
        return _NOTHING, None
    count = float(found.iloc[0])
    return Judgement(f"{count:,.0f}", Verdict.UNKNOWN, "how frequent words are is a matter of the images, which are others"), count


def _significant(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    """Return whether a p-value is on the published one's side of `LEVEL`, in every one of two or more repetitions."""
    found = part(rows, COMPARED)
    values = found.loc[found["examples"] == int(row["examples"]), f"{row['against']}_p"].tolist() if len(found) else []
    if not values:
        return _NOTHING, None
    below = sum(value < LEVEL for value in values)
    is_published = float(row["published"]) < LEVEL
    middle = float(median(values))
    ours = f"{middle:.2g} ({min(values):.2g} to {max(values):.2g})" if len(values) > 1 else f"{middle:.2g}"
    side = "below" if is_published else "above"
    rule = f"{below} of {len(values)} repetitions have p < {LEVEL:g}, the published one is {side}; {_OTHER_IMAGES}"
    if len(values) < 2:
        return Judgement(ours, Verdict.UNKNOWN, f"{_ONE}; {rule}"), middle
    if below == (len(values) if is_published else 0):
        if not is_published and not _finds_a_difference(found, f"{row['against']}_p"):
            blind = "at no size do all repetitions have one below, so the test cannot show that a difference is gone"
            return Judgement(ours, Verdict.UNKNOWN, f"{blind}; {rule}"), middle
        return Judgement(ours, Verdict.REPRODUCED, rule), middle
    if below == (0 if is_published else len(values)):
        return Judgement(ours, Verdict.NOT_REPRODUCED, rule), middle
    return Judgement(ours, Verdict.UNKNOWN, rule), middle


def _finds_a_difference(compared: pd.DataFrame, column: str) -> bool:
    """Return whether the test is significant in all repetitions at some size: without that, "not significant" says nothing."""
    return bool((compared.groupby("examples")[column].max() < LEVEL).any())


def _differences(row: Mapping[str, str], models: pd.DataFrame, measure: str) -> dict[int, Mean]:
    sizes = [int(size) for size in row["examples"].split()]
    return {
        size: paired_difference(models[models["examples"] == size], measure, "model", row["model"], row["against"])
        for size in sizes
        if (models["examples"] == size).any()
    }


def _at_all_sizes(judgement: Judgement, row: Mapping[str, str], found: Mapping[int, Mean]) -> Judgement:
    """What holds at some of the sizes of a statement is not known to hold at all of them."""
    missing = [size for size in map(int, row["examples"].split()) if size not in found or not found[size].repetitions]
    if judgement.verdict is not Verdict.REPRODUCED or not missing:
        return judgement
    why = f"{judgement.why}; not run with {', '.join(map(str, missing))} positive examples a word"
    return judgement._replace(verdict=Verdict.UNKNOWN, why=why)


def _order(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    sign = -1.0 if row["relation"] == "below" else 1.0
    found = _differences(row, models, _MEASURES[row["quantity"]])
    return _at_all_sizes(judged_order(found, sign, "positive examples a word"), row, found), None


def _similar(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    """Return whether differences are at most `SIMILAR`, by their intervals."""
    found = {size: each for size, each in _differences(row, models, _MEASURES[row["quantity"]]).items() if each.repetitions}
    if not found:
        return _NOTHING, None
    ours = "; ".join(f"{size}: {each.text(sign=True)}" for size, each in found.items())
    rule = f"similar is taken for a difference of at most {SIMILAR:g}, over all of its 95 % interval; the paper names no number"
    if all(abs(each.value) + each.half <= SIMILAR for each in found.values()):
        return _at_all_sizes(Judgement(ours, Verdict.REPRODUCED, rule), row, found), None
    different = [size for size, each in found.items() if abs(each.value) - each.half > SIMILAR]
    if different:
        return Judgement(ours, Verdict.NOT_REPRODUCED, f"not similar at {', '.join(map(str, different))} positive examples ({rule})"), None
    return Judgement(ours, Verdict.UNKNOWN, f"our repetitions do not decide ({rule})"), None


def _paths(rows: pd.DataFrame, model: str) -> dict[int, tuple[Sequence[float], Sequence[float]]]:
    """Shares of features and AUC by C, of each repetition."""
    found = part(rows, PATH)
    return {row["seed"]: (row["shares"], row["aucs"]) for row in found.to_dict("records") if row["model"] == model}


def needed_shares(paths: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[float]:
    """Return the smallest share of features with which each model is within `ALIKE` of the AUC that the weakest of them has at its best."""
    level = min(max(aucs) for _, aucs in paths) - ALIKE
    return [min(share for share, auc in zip(shares, aucs, strict=True) if auc >= level) for shares, aucs in paths]


def _fewer(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    of = [_paths(rows, model) for model in (row["model"], row["against"])]
    needed = [needed_shares([paths[seed] for paths in of]) for seed in sorted(set(of[0]) & set(of[1]))]
    if not needed:
        return _NOTHING, None
    judgement = judged_order({"the same AUC": mean([ours - theirs for ours, theirs in needed])}, -1.0, digits=3)
    shares = " against ".join(f"{mean(list(each)).value:.0%}" for each in zip(*needed, strict=True))
    rule = f"the same AUC is one within {ALIKE:g} of the lower of both models' best"
    return judgement._replace(ours=f"{shares} of the features", why=f"{judgement.why}; {rule}"), None


def _auc_at_share(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    share = float(row["quantity"].split()[2]) / 100.0
    found = [auc_at(share, *path) for path in _paths(rows, row["model"]).values()]
    if not found:
        return _NOTHING, None
    known = [value for value in found if not math.isnan(value)]
    if not known:
        return Judgement("no C gives such a share", Verdict.UNKNOWN, _OTHER_IMAGES), None
    return Judgement(f"{mean(known).value:.3f}", Verdict.UNKNOWN, _OTHER_IMAGES), mean(known).value


def auc_at(share: float, shares: Sequence[float], aucs: Sequence[float]) -> float:
    """Return the AUC at a share of the features, on the straight line between neighbouring shares; NaN outside of them."""
    import numpy as np

    order = np.argsort(shares, kind="stable")
    return float(np.interp(share, np.asarray(shares)[order], np.asarray(aucs)[order], left=math.nan, right=math.nan))


def by_word(models: pd.DataFrame, examples: int) -> pd.DataFrame:
    """Return the EER of each word (a row, the most frequent first) and model (a column), the mean over repetitions."""
    import pandas as pd

    own = models[models["examples"] == examples].to_dict("records")
    entries = [
        {"word": word, "model": row["model"], "eer": eer} for row in own for word, eer in zip(row["words"], row["eers"], strict=True)
    ]
    if not entries:
        return pd.DataFrame()
    return pd.DataFrame(entries).pivot_table(index="word", columns="model", values="eer", sort=False)


def _most_words(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    return judged_most_words(models, int(row["examples"]), row["model"], row["against"]), None


def judged_most_words(models: pd.DataFrame, examples: int, model: str, rival: str) -> Judgement:
    """Return whether a model has the lower EER for all but a few words; `models` has a row for each model, size and seed."""
    words = by_word(models, examples)
    if not len(words):
        return _NOTHING
    better = int((words[model] < words[rival]).sum())
    rule = f"all but a few is taken for at least {MOST:.0%} of the words, by their mean EER over the repetitions; the paper names no number"
    ours = f"better for {better} of {len(words)} words"
    if models.loc[models["examples"] == examples, "seed"].nunique() < 2:
        return Judgement(ours, Verdict.UNKNOWN, f"{_ONE}; {rule}")
    return Judgement(ours, Verdict.REPRODUCED if better >= MOST * len(words) else Verdict.NOT_REPRODUCED, rule)


def _joint(row: Mapping[str, str], models: pd.DataFrame, rows: pd.DataFrame) -> _Judged:
    found = _differences(row, models, "fill")
    judgement = _at_all_sizes(judged_order(found, 1.0, "positive examples a word"), row, found)
    rule = "fill is the mean share of the words that use a feature that any uses"
    own = models[(models["model"] == row["model"]) & models["examples"].isin(found)]
    if judgement.verdict is Verdict.REPRODUCED and not (own["share"] < 1.0).all():
        judgement = judgement._replace(verdict=Verdict.NOT_REPRODUCED, why="no feature is left out, which is no sparsity pattern")
    return judgement._replace(why=f"{judgement.why}; {rule}"), None


_JUDGES: Mapping[str, Callable[[Mapping[str, str], Any, Any], _Judged]] = {
    "samples": _samples,
    "significant": _significant,
    "above": _order,
    "below": _order,
    "similar": _similar,
    "fewer": _fewer,
    "AUC at share": _auc_at_share,
    "most words": _most_words,
    "joint": _joint,
}
