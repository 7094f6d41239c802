"""Estimators of scikit-learn, fitted by a registered solver until their gap is proven."""

from bench_mtl.estimators.group_boosting import GroupSparseBoostingClassifier

__all__ = ["GroupSparseBoostingClassifier"]
