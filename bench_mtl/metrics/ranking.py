"""How well scores rank positive examples above negative ones: area under the ROC curve, equal error rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.metrics.tasks import Task, TaskMetric, averaged, checked_tasks

TIES = ("half", "lost")


def average_auc(labels: Any, scores: Any, *, names: Sequence[str] | None = None, ties: str = "half") -> TaskMetric:
    """Return the mean over tasks of the area under the ROC curve: the share of pairs of a positive and a negative example ranked rightly.

        AUC_k = 1 / (n+_k n-_k)  sum over positive i, negative j of task k of  I[f_k(x_i) > f_k(x_j)] + c I[f_k(x_i) = f_k(x_j)]

    Tasks without a positive or without a negative example are skipped.

    Parameters
    ----------
    labels, scores : of the same tasks and examples, see `bench_mtl.metrics`
    names : of the tasks, their numbers by default
    ties : ``"half"`` (c = 1/2): equal scores are ranked at random, as scikit-learn's `roc_auc_score` and the area have it. ``"lost"``
        (c = 0): the strict inequality that the l1,inf paper writes, under which a model with constant scores has AUC 0 and not 1/2.

    Raises
    ------
    InputError : NaN or inf, labels other than -1/+1 or 0/1, sizes or names that do not match, an unknown rule for ties.

    Source: Quattoni et al., ICML 2009, equation 20 (one task); Chen, Liu, Ye, TKDD 2012, section 7.2 (the mean).
    """
    return averaged(checked_tasks(labels, scores, names), _auc(ties))


def multitask_auc(labels: Any, scores: Any, *, names: Sequence[str] | None = None, ties: str = "half") -> TaskMetric:
    """Return the multi-task AUC of the l1,inf paper: the mean of the tasks' AUC, each weighted by its number of positive examples.

        1 / n+  sum_k  sum over positive i, negative j of task k of  I[f_k(x_i) > f_k(x_j)] / n-_k     =  sum_k (n+_k / n+) AUC_k

    with n+ the positive examples of all tasks. Scores are compared within tasks only: pairs of different tasks do not enter. A task
    without negative examples, on which this divides by zero, is skipped with its positive ones; so is one without positive examples,
    which has no weight.

    Parameters and errors as `average_auc`.

    Source: Quattoni et al., ICML 2009, section 6.1.
    """
    return averaged(checked_tasks(labels, scores, names), _auc(ties), weight=lambda task: float(task.positive.sum()))


def average_equal_error_rate(labels: Any, scores: Any, *, names: Sequence[str] | None = None) -> TaskMetric:
    """Return the mean over tasks of the equal error rate: the error where as large a share of positives as of negatives is taken wrongly.

    On the ROC curve with straight lines between its points (equal scores: a slope, as for the AUC) it is the false positive rate where
    that equals 1 - the true positive rate: 0 for a perfect ranking, 1/2 for constant scores. Tasks without a positive or without a
    negative example are skipped.

    Parameters and errors as `average_auc`.

    Source: the technical report of 2008 of Quattoni et al., figure 3 and section 5.2, which names the rate and does not define it.
    """
    return averaged(checked_tasks(labels, scores, names), _equal_error_rate)


def _auc(ties: str) -> Callable[[Task], float]:
    return _auc_half if one_of("ties", ties, TIES) == "half" else _auc_lost


def _auc_half(task: Task) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(task.positive, task.scores))


def _auc_lost(task: Task) -> float:
    positive, negative = task.scores[task.positive], np.sort(task.scores[~task.positive])
    won = int(np.searchsorted(negative, positive, side="left").sum())
    return won / (len(positive) * len(negative))


def _equal_error_rate(task: Task) -> float:
    from sklearn.metrics import roc_curve

    false_positive, true_positive, _ = roc_curve(task.positive, task.scores, drop_intermediate=False)
    excess = false_positive + true_positive - 1.0  # from -1 at the strictest threshold to 1 at the loosest, never falling
    after = int(np.argmax(excess >= 0.0))
    share = -excess[after - 1] / (excess[after] - excess[after - 1])
    return float(false_positive[after - 1] + share * (false_positive[after] - false_positive[after - 1]))
