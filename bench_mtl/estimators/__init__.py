"""Estimators that follow scikit-learn, fitted by a registered solver until their gap is proven."""

from bench_mtl.estimators.alternating_structure import ASOClassifier, ASORegressor
from bench_mtl.estimators.cross_validation import (
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
from bench_mtl.estimators.group_boosting import GroupSparseBoostingClassifier
from bench_mtl.estimators.matrix_normal import MatrixNormalClassifier, MatrixNormalRegressor
from bench_mtl.estimators.models import (
    DirtyClassifier,
    DirtyRegressor,
    L1BallClassifier,
    L1BallRegressor,
    L1InfClassifier,
    L1InfRegressor,
    L2BallClassifier,
    L12Classifier,
    L12Regressor,
    MTRLClassifier,
    MTRLRegressor,
    OneNormClassifier,
    OneNormRegressor,
    SparseLowRankClassifier,
    SparseLowRankRegressor,
    TraceNormClassifier,
    TraceNormRegressor,
)
from bench_mtl.estimators.ridge_and_svm import LinearSVMMultiTaskClassifier, RidgeMultiTaskClassifier, RidgeMultiTaskRegressor

__all__ = [
    "ASOClassifier", "ASORegressor", "DirtyClassifier", "DirtyClassifierCV", "DirtyRegressor", "DirtyRegressorCV",
    "GroupSparseBoostingClassifier", "L1BallClassifier", "L1BallClassifierCV", "L1BallRegressor", "L1BallRegressorCV",
    "L1InfClassifier", "L1InfClassifierCV", "L1InfRegressor", "L1InfRegressorCV", "L2BallClassifier", "L12Classifier", "L12Regressor",
    "LinearSVMMultiTaskClassifier", "MTRLClassifier", "MTRLRegressor", "MatrixNormalClassifier", "MatrixNormalRegressor",
    "OneNormClassifier", "OneNormRegressor", "RidgeMultiTaskClassifier", "RidgeMultiTaskRegressor", "SparseLowRankClassifier",
    "SparseLowRankClassifierCV", "SparseLowRankRegressor", "SparseLowRankRegressorCV", "TraceNormClassifier", "TraceNormClassifierCV",
    "TraceNormRegressor", "TraceNormRegressorCV",
]  # fmt: skip
