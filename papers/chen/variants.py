"""The protocols that the words of Chen, Liu, Ye (TKDD 2012) allow: features, intercept, and how scores are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: What the learners are given; `papers.chen.sets` has the steps.
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

#: Their cells have the most repetitions.
MAIN = (("normalised", "without"), ("raw", "free"))

#: Centred features, no intercept, decisions at 0, the mean of the labels' AUC stand first: the paper's f(x) = w.x read to the letter.
PROTOCOLS: Mapping[str, Sequence[str]] = {
    "features": FEATURES,
    "intercept": INTERCEPTS,
    "decision": tuple(DECISIONS),
    "auc": tuple(AUCS),
}
