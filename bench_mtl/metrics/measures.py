"""How well scores rank positive examples above negative ones, and how right decisions are, scikit-learn's numbers where it has them.

All take labels and scores of the same tasks and examples, see `bench_mtl.metrics`, and the names of the tasks (their numbers by default).
They raise InputError for NaN or inf, labels other than -1/+1 or 0/1, sizes or names that do not match, and an option that is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.metrics.tasks import NO_POSITIVE, Mask, Task, TaskMetric, averaged, checked_tasks


def average_auc(labels: Any, scores: Any, *, names: Sequence[str] | None = None, ties: str = "half") -> TaskMetric:
    """Return the mean over tasks of the area under the ROC curve: the share of pairs of a positive and a negative example ranked rightly.

        AUC_k = 1 / (n+_k n-_k)  sum over positive i, negative j of task k of  I[f_k(x_i) > f_k(x_j)] + c I[f_k(x_i) = f_k(x_j)]

    Tasks without a positive or without a negative example are skipped.

    Parameters
    ----------
    ties : ``"half"`` (c = 1/2): equal scores are ranked at random, as scikit-learn's `roc_auc_score` and the area have it. ``"lost"``
        (c = 0): the strict inequality that the l1,inf paper writes, under which a model with constant scores has AUC 0 and not 1/2.

    Source: Quattoni et al., ICML 2009, equation 20 (one task); Chen, Liu, Ye, TKDD 2012, section 7.2 (the mean).
    """
    return averaged(checked_tasks(labels, scores, names), _auc(ties))


def multitask_auc(labels: Any, scores: Any, *, names: Sequence[str] | None = None, ties: str = "half") -> TaskMetric:
    """Return the multi-task AUC of the l1,inf paper: the mean of the tasks' AUC, each weighted by its number of positive examples.

        1 / n+  sum_k  sum over positive i, negative j of task k of  I[f_k(x_i) > f_k(x_j)] / n-_k     =  sum_k (n+_k / n+) AUC_k

    with n+ the positive examples of all tasks. Scores are compared within tasks only. A task without negative examples, on which this
    divides by zero, is skipped with its positive ones; so is one without positive examples, which has no weight. `ties` is that of
    `average_auc`.

    Source: Quattoni et al., ICML 2009, section 6.1.
    """
    return averaged(checked_tasks(labels, scores, names), _auc(ties), weight=lambda task: float(task.positive.sum()))


def average_equal_error_rate(labels: Any, scores: Any, *, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of the equal error rate: the error where as large a share of positives as of negatives is taken wrongly.

    On the ROC curve with straight lines between its points (equal scores: a slope, as for the AUC) it is the false positive rate where
    that equals 1 - the true positive rate: 0 for a perfect ranking, 1/2 for constant scores. Tasks without a positive or without a
    negative example are skipped.

    Source: the technical report of 2008 of Quattoni et al., figure 3 and section 5.2, which names the rate and does not define it.
    """
    return averaged(checked_tasks(labels, scores, names), _equal_error_rate)


def error_rate(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of the share of examples decided wrongly; every task counts.

    Scores above `threshold` decide for positive; one equal to it decides for negative, as scikit-learn has it.
    """
    return averaged(_decided(labels, scores, threshold, names), lambda task: float(np.mean((task.scores > 0.0) != task.positive)), ())


def macro_f1(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of F1 = 2 TP / (2 TP + FP + FN), scikit-learn's, of the decisions of `error_rate`.

    A task without positive examples is skipped: its F1 is 0 / 0 or, whatever the model, 0. (`f1_score(average="macro")` counts it as 0.)
    One without negative examples has an F1, and counts.

    Chen, Liu and Ye (TKDD 2012, section 7.2) describe Macro and Micro F1 with the names exchanged, but their numbers follow the common use
    (on MediaMill, with many rare labels, Macro F1 is the lower one): so Macro F1 is compared with this function. No threshold is stated.

    Source: Yang and Pedersen, "A comparative study on feature selection in text categorization", ICML 1997.
    """
    return averaged(_decided(labels, scores, threshold, names), lambda task: _f1(task.positive, task.scores > 0.0), (NO_POSITIVE,))


def micro_f1(labels: Any, scores: Any, *, threshold: float = 0.0, names: Sequence[str] | None = None) -> TaskMetric:
    """F1 of the decisions of all tasks pooled, 2 sum TP / (2 sum TP + sum FP + sum FN): every task counts, also without positive examples.

    `per_task` has the F1 of each task alone, NaN where that is 0 / 0. Without a positive example or decision at all the value is NaN.
    """
    tasks = _decided(labels, scores, threshold, names)
    pooled = _f1(np.concatenate([task.positive for task in tasks]), np.concatenate([task.scores > 0.0 for task in tasks]))
    return TaskMetric(pooled, tuple(_f1(task.positive, task.scores > 0.0) for task in tasks), tuple(task.name for task in tasks))


def _auc(ties: str) -> Callable[[Task], float]:
    from sklearn.metrics import roc_auc_score

    is_half = one_of("ties", ties, ("half", "lost")) == "half"

    def lost(task: Task) -> float:
        positive, negative = task.scores[task.positive], np.sort(task.scores[~task.positive])
        return int(np.searchsorted(negative, positive, side="left").sum()) / (len(positive) * len(negative))

    return (lambda task: float(roc_auc_score(task.positive, task.scores))) if is_half else lost


def _equal_error_rate(task: Task) -> float:
    from sklearn.metrics import roc_curve

    false_positive, true_positive, _ = roc_curve(task.positive, task.scores, drop_intermediate=False)
    return float(np.interp(0.0, false_positive + true_positive - 1.0, false_positive))  # rises from -1 at the strictest threshold to 1


def _decided(labels: Any, scores: Any, threshold: float, names: Sequence[str] | None) -> list[Task]:
    """Return the tasks, whose scores are 1 where they decide for positive, else 0."""
    limit = real_number("threshold", threshold, minimum=-np.inf)
    return [task._replace(scores=(task.scores > limit).astype(np.float64)) for task in checked_tasks(labels, scores, names)]


def _f1(positive: Mask, decided: Mask) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(positive, decided, zero_division=np.nan))
