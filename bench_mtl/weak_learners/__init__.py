"""Weak learners of group-sparse boosting: decision stumps and shallow trees, drawn, grown, or found by an oracle."""

from bench_mtl.weak_learners.base import Oracle, WeakLearners, violations
from bench_mtl.weak_learners.stumps import StumpOracle, Stumps, draw_stumps
from bench_mtl.weak_learners.trees import TreeOracle, Trees, grow_trees

__all__ = ["Oracle", "StumpOracle", "Stumps", "TreeOracle", "Trees", "WeakLearners", "draw_stumps", "grow_trees", "violations"]
