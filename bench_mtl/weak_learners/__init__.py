"""Weak learners of group-sparse boosting: decision stumps and shallow trees, drawn, grown, or found by an oracle."""

from bench_mtl.weak_learners.base import WeakLearners
from bench_mtl.weak_learners.oracles import Oracle
from bench_mtl.weak_learners.stump_oracle import StumpOracle
from bench_mtl.weak_learners.stumps import Stumps, draw_stumps
from bench_mtl.weak_learners.tree_oracle import TreeOracle
from bench_mtl.weak_learners.trees import Trees, grow_trees
from bench_mtl.weak_learners.violation import residuals, violations

__all__ = [
    "Oracle",
    "StumpOracle",
    "Stumps",
    "TreeOracle",
    "Trees",
    "WeakLearners",
    "draw_stumps",
    "grow_trees",
    "residuals",
    "violations",
]
