"""An estimator of every kind, and examples that their parameters suit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import bench_mtl.estimators as public

ESTIMATORS = [getattr(public, name) for name in public.__all__]

MODELS: dict[str, Any] = {
    repr(model): model
    for model in (
        public.ASOClassifier(n_components=1), public.ASOClassifier(n_components=1, loss="modified_huber"),
        public.ASORegressor(n_components=1),
        public.DirtyClassifier(), public.DirtyClassifier(0.05, 0.05, loss="logistic"), public.DirtyRegressor(),
        public.L12Classifier(3.0), public.L12Classifier(penalty="0.1 max", loss="logistic"),
        public.L12Regressor(5.0), public.L12Regressor(penalty="0.05 max", reduction="sum"),
        public.L1BallClassifier(2.0), public.L1BallClassifier(2.0, loss="logistic"), public.L1BallClassifier(1.0, loss="squared"),
        public.L1BallRegressor(4.0), public.L1InfClassifier(3.0), public.L1InfClassifier(penalty=0.05),
        public.L1InfClassifier(penalty="0.1 max", loss="logistic"), public.L1InfRegressor(5.0),
        public.L1InfRegressor(penalty="0.05 max", reduction="sum"), public.L2BallClassifier(2.0),
        public.LinearSVMMultiTaskClassifier(random_state=0), public.MTRLClassifier(), public.MTRLRegressor(),
        public.MatrixNormalClassifier(), public.MatrixNormalRegressor(), public.OneNormClassifier(),
        public.OneNormClassifier(0.02, loss="logistic"), public.OneNormRegressor(), public.RidgeMultiTaskClassifier(),
        public.RidgeMultiTaskRegressor(), public.SparseLowRankClassifier(), public.SparseLowRankClassifier(0.5, loss="logistic"),
        public.SparseLowRankRegressor(0.5, 3.0), public.TraceNormClassifier(), public.TraceNormClassifier(2.0, loss="logistic"),
        public.TraceNormRegressor(4.0), public.TraceNormRegressor(penalty=1.0),
    )
}  # fmt: skip

#: A choice of each kind. Labels have losses whose optimum has only one set of predictions.
CHOICES: dict[str, Any] = {
    type(model).__name__: model
    for model in (
        public.DirtyClassifierCV([0.05, 0.2], [0.02], loss="logistic"),
        public.DirtyRegressorCV([0.2, 0.02], [0.01, 0.1]),
        public.L1BallClassifierCV([4.0, 1.0], loss="logistic"),
        public.L1BallRegressorCV([0.5, 2.0, 3.0]),
        public.L1InfClassifierCV([1.0, 3.0], loss="logistic"),
        public.L1InfRegressorCV(penalty_grid=[0.01, 0.1]),
        public.SparseLowRankClassifierCV([1.0], [1.0, 3.0], loss="logistic"),
        public.SparseLowRankRegressorCV([1.0, 5.0], [3.0, 1.0]),
        public.TraceNormClassifierCV([1.0, 3.0], loss="logistic"),
        public.TraceNormRegressorCV(penalty_grid=[1.0, 10.0]),
    )
}

#: Those for which what all inherit is tested: of either base class fits by a solver, with parts and without, one by scikit-learn, and one
#: that is not convex. The others' tests of it are in the soak.
REPRESENTATIVES = (
    "ASORegressor(n_components=1)", "DirtyClassifier()", "L1BallClassifier(radius=2.0)", "L1InfRegressor(radius=5.0)",
    "RidgeMultiTaskRegressor()",
)  # fmt: skip

RNG = np.random.default_rng(0)
TRUE = RNG.standard_normal((6, 3)) * (np.arange(6) < 4)[:, None]
X = RNG.standard_normal((60, 6)) * (RNG.random((60, 6)) < 0.7)
Y = X @ TRUE + 0.1 * RNG.standard_normal((60, 3)) + np.array([0.5, 0.0, -0.5])
LABELS = (Y > 0.0).astype(int)
CLASSES = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
SPANS = (slice(0, 10), slice(10, 50), slice(30, 60))


def representatives(of: Callable[[Any], bool] = lambda model: True) -> Any:
    """Parametrise by the names of models; all but the representatives are slow."""
    names = [name for name in sorted(MODELS) if of(MODELS[name])]
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in REPRESENTATIVES else pytest.mark.slow) for name in names]
    )


every_model = pytest.mark.parametrize("name", sorted(MODELS))


def model_of(name: str, **parameters: Any) -> Any:
    return clone(MODELS[name]).set_params(**parameters)


def targets_of(name: str) -> np.ndarray:
    return LABELS if is_classifier(MODELS[name]) else Y


def own_rows(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [X[span] for span in SPANS], [targets_of(name)[span, k] for k, span in enumerate(SPANS)]


def is_convex(model: Any) -> bool:
    return not type(model).__name__.startswith(("ASO", "MatrixNormal"))
