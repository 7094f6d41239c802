"""Estimators of scikit-learn, fitted by a registered solver until their gap is proven."""

from bench_mtl.estimators.alternating_structure import ASOClassifier, ASORegressor
from bench_mtl.estimators.cross_validated import (
    DirtyClassifierCV,
    DirtyRegressorCV,
    L1BallClassifierCV,
    L1BallRegressorCV,
    L1InfClassifierCV,
    L1InfRegressorCV,
    SparseLowRankClassifierCV,
    SparseLowRankRegressorCV,
    TraceNormClassifierCV,
    TraceNormRegressorCV,
)
from bench_mtl.estimators.dirty import DirtyClassifier, DirtyRegressor
from bench_mtl.estimators.group_boosting import GroupSparseBoostingClassifier
from bench_mtl.estimators.independent import L1BallClassifier, L1BallRegressor, L2BallClassifier, OneNormClassifier, OneNormRegressor
from bench_mtl.estimators.l1inf import L1InfClassifier, L1InfRegressor
from bench_mtl.estimators.l12 import L12Classifier, L12Regressor
from bench_mtl.estimators.matrix_normal import MatrixNormalClassifier, MatrixNormalRegressor
from bench_mtl.estimators.ridge_and_svm import LinearSVMMultiTaskClassifier, RidgeMultiTaskClassifier, RidgeMultiTaskRegressor
from bench_mtl.estimators.sparse_low_rank import SparseLowRankClassifier, SparseLowRankRegressor
from bench_mtl.estimators.task_relationships import MTRLClassifier, MTRLRegressor
from bench_mtl.estimators.trace_norm import TraceNormClassifier, TraceNormRegressor

__all__ = [
    "ASOClassifier",
    "ASORegressor",
    "DirtyClassifier",
    "DirtyClassifierCV",
    "DirtyRegressor",
    "DirtyRegressorCV",
    "GroupSparseBoostingClassifier",
    "L1BallClassifier",
    "L1BallClassifierCV",
    "L1BallRegressor",
    "L1BallRegressorCV",
    "L1InfClassifier",
    "L1InfClassifierCV",
    "L1InfRegressor",
    "L1InfRegressorCV",
    "L2BallClassifier",
    "L12Classifier",
    "L12Regressor",
    "LinearSVMMultiTaskClassifier",
    "MTRLClassifier",
    "MTRLRegressor",
    "MatrixNormalClassifier",
    "MatrixNormalRegressor",
    "OneNormClassifier",
    "OneNormRegressor",
    "RidgeMultiTaskClassifier",
    "RidgeMultiTaskRegressor",
    "SparseLowRankClassifier",
    "SparseLowRankClassifierCV",
    "SparseLowRankRegressor",
    "SparseLowRankRegressorCV",
    "TraceNormClassifier",
    "TraceNormClassifierCV",
    "TraceNormRegressor",
    "TraceNormRegressorCV",
]
