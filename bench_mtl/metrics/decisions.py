"""How right decisions are: error rates and F1. A score above the threshold decides for positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.metrics.tasks import NO_POSITIVE, Mask, TaskMetric, averaged, checked_tasks


def error_rate(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of the share of examples decided wrongly; every task counts.

    Parameters
    ----------
    labels, scores : of the same tasks and examples, see `bench_mtl.metrics`
    threshold : of the scores; a score equal to it decides for negative, as scikit-learn has it
    names : of the tasks, their numbers by default

    Raises
    ------
    InputError : NaN or inf, labels other than -1/+1 or 0/1, sizes or names that do not match.
    """
    limit = _threshold(threshold)
    return averaged(
        checked_tasks(labels, scores, names), lambda task: float(np.mean((task.scores > limit) != task.positive)), lambda task: None
    )


def macro_f1(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of F1 = 2 TP / (2 TP + FP + FN), scikit-learn's.

    A task without positive examples is skipped: its F1 is 0 / 0 or, whatever the model, 0. (`f1_score(average="macro")` counts it as 0.)
    One without negative examples has an F1, and counts.

    Parameters and errors as `error_rate`.

    Notes
    -----
    Chen, Liu and Ye (TKDD 2012, section 7.2) describe Macro F1 as "the global calculation of F1 regardless of the tasks" and Micro F1 as
    "the averaged F1 scores of all tasks": the two names exchanged against their own source (Yang and Pedersen 1997), this module and
    scikit-learn. Their numbers follow the common use: on MediaMill with 80 labels, most of them rare, the lower one, 9.7 %, is under
    Macro F1 and the higher one, 61.4 %, under Micro F1 (table III); a mean over rare labels is the low one. So Macro F1 is compared with
    this function, and Micro F1 with `micro_f1`. No threshold is stated.

    Source: Yang and Pedersen, "A comparative study on feature selection in text categorization", ICML 1997.
    """
    limit = _threshold(threshold)
    return averaged(
        checked_tasks(labels, scores, names),
        lambda task: _f1(task.positive, task.scores > limit),
        lambda task: None if task.positive.any() else NO_POSITIVE,
    )


def micro_f1(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """F1 of the decisions of all tasks pooled, 2 sum TP / (2 sum TP + sum FP + sum FN): every task counts, also without positive examples.

    `per_task` has the F1 of each task alone, NaN where that is 0 / 0. Without a positive example or decision at all the value is NaN.

    Parameters and errors as `error_rate`; for the name in Chen, Liu and Ye see `macro_f1`.
    """
    limit = _threshold(threshold)
    tasks = checked_tasks(labels, scores, names)
    positive, decided = ([task.positive for task in tasks], [task.scores > limit for task in tasks])
    return TaskMetric(
        _f1(np.concatenate(positive), np.concatenate(decided)),
        tuple(_f1(*pair) for pair in zip(positive, decided, strict=True)),
        tuple(task.name for task in tasks),
    )


def _f1(positive: Mask, decided: Mask) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(positive, decided, zero_division=np.nan))


def _threshold(value: float) -> float:
    return real_number("threshold", value, minimum=-np.inf)
