"""How well many tasks were learned: ranking, decisions, tests between two models, features found. scikit-learn's where it has them.

Labels and scores of m tasks come as matrices (n x m, shared examples), as lists of m vectors (each task its own examples), or as vectors
(one task). Labels are -1/+1 or 0/1. A task that a metric is not defined on is skipped, and the result names it.
"""

from bench_mtl.metrics.features import FeatureSelection, feature_selection
from bench_mtl.metrics.measures import average_auc, average_equal_error_rate, error_rate, macro_f1, micro_f1, multitask_auc
from bench_mtl.metrics.pairs import PairCounts, PairTest, pair_sign_test
from bench_mtl.metrics.tasks import Skipped, TaskMetric

__all__ = [
    "FeatureSelection", "PairCounts", "PairTest", "Skipped", "TaskMetric", "average_auc", "average_equal_error_rate", "error_rate",
    "feature_selection", "macro_f1", "micro_f1", "multitask_auc", "pair_sign_test",
]  # fmt: skip
