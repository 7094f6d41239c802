"""The protocols that the words of Chen, Liu, Ye (TKDD 2012) allow: features, intercept, and how scores are read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: What the learners are given; `bench_mtl.papers.chen.sets` has the steps.
FEATURES = ("normalised", "raw")

#: Of scores x.w + b: b is 0, or free (IndSVM's is penalised, as in scikit-learn).
INTERCEPTS = ("without", "free")

#: Columns of F1 by the rule of decision; macro or micro is to be filled in.
DECISIONS: Mapping[str, str] = {
    "at 0": "{}_f1",
    "prevalence": "{}_f1_prevalence",
    "one label": "{}_f1_one_label",
    "own thresholds": "{}_f1_thresholds",
}

#: Columns of the area under the curve by its kind.
AUCS: Mapping[str, str] = {"per label": "average_auc", "pooled": "pooled_auc"}

#: The published measures; all are shown in per cent.
MEASURES = ("average AUC", "macro F1", "micro F1")


@dataclass(frozen=True)
class Variant:
    """One protocol. Features and intercept change the fits; the rule of decision and the kind of AUC are read off their scores."""

    features: str = "normalised"
    intercept: str = "without"
    decision: str = "at 0"
    auc: str = "per label"

    def column(self, measure: str) -> str:
        """Return the column of the cells that holds a published measure."""
        return AUCS[self.auc] if measure == "average AUC" else DECISIONS[self.decision].format(measure.split()[0])

    def rows(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of its fits."""
        return rows[(rows["features"] == self.features) & (rows["intercept"] == self.intercept)] if len(rows) else rows

    def words(self, measure: str = "") -> str:
        """Return what it is, in short; with a measure without what does not matter to it."""
        parts = [self.features, f"{self.intercept} intercept" if self.intercept == "free" else "no intercept"]
        parts += [] if measure == "average AUC" else [self.decision]
        return ", ".join([*parts, *([f"AUC {self.auc}"] if measure in ("", "average AUC") else [])])

    def label(self, measure: str) -> str:
        """Return what it is, as briefly as a column of a table asks for."""
        return ", ".join([self.features, self.intercept, self.auc if measure == "average AUC" else self.decision])


def short(measure: str) -> str:
    """Return a measure in a few letters, for tables."""
    return measure.removeprefix("average ")


#: Centred features, no intercept, decisions at 0, the mean of the labels' AUC: the paper's f(x) = w.x read to the letter.
DEFAULT = Variant()

#: Their cells have the most repetitions.
MAIN = (("normalised", "without"), ("raw", "free"))


def variants(measure: str = "") -> tuple[Variant, ...]:
    """Return all of them, the default first; of a measure those that differ in what matters to it."""
    decisions = ("at 0",) if measure == "average AUC" else tuple(DECISIONS)
    aucs = tuple(AUCS) if measure in ("", "average AUC") else ("per label",)
    return tuple(itertools.starmap(Variant, itertools.product(FEATURES, INTERCEPTS, decisions, aucs)))


#: What a variant settles, in words.
_NAMES: Mapping[str, str] = {"features": "features", "intercept": "intercept", "decision": "decision rule", "auc": "kind of AUC"}


def depends_on(found: Mapping[Variant, object]) -> list[str]:
    """Return what alone changes a finding, in words: there are two variants that differ in nothing else and whose findings differ."""
    names = []
    for each in fields(Variant):
        others = [name for name in _NAMES if name != each.name]
        pairs = itertools.combinations(found.items(), 2)
        if any(one != two and all(getattr(a, name) == getattr(b, name) for name in others) for (a, one), (b, two) in pairs):
            names.append(_NAMES[each.name])
    return names
