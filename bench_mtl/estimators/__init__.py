"""Estimators of scikit-learn, fitted by a registered solver until their gap is proven."""

from bench_mtl.estimators.group_boosting import GroupSparseBoostingClassifier
from bench_mtl.estimators.l1inf import L1InfClassifier
from bench_mtl.estimators.sparse_low_rank import SparseLowRankRegressor

__all__ = ["GroupSparseBoostingClassifier", "L1InfClassifier", "SparseLowRankRegressor"]
