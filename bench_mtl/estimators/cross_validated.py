"""Linear models of many tasks whose regularisation is chosen by cross-validation: each is `PathCV` for one of the plain models."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from bench_mtl.data import TaskData
from bench_mtl.estimators import models
from bench_mtl.estimators.cross_validation import VALUES, PathCV
from bench_mtl.estimators.linear import HingeClassifier, LinearTaskRegressor, SquaresClassifier, linear_model
from bench_mtl.estimators.solved import SolvedTasks
from bench_mtl.model.norms import L1, L1Inf, Trace

#: Values of each of two parameters that are chosen together.
_OF_TWO = 5


@linear_model
class _NormedCV(PathCV):
    """Models with a radius or a penalty.

    Parameters
    ----------
    radius_grid, penalty_grid : int or list
        At most one of the two; 10 radii where there is none.
    """

    radius_grid: Any = None
    penalty_grid: Any = None

    tuned, are_alternatives = ("radius", "penalty"), True


@linear_model
class _L1InfCV(_NormedCV):
    _: KW_ONLY
    reduction: str = "mean"

    norm = L1Inf()


@linear_model
class L1InfRegressorCV(_L1InfCV, LinearTaskRegressor):
    """`L1InfRegressor` with a radius, or a penalty, chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from sklearn.preprocessing import scale
    >>> from bench_mtl.estimators import L1InfRegressorCV
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = L1InfRegressorCV(radius_grid=4, cv=3).fit(scale(X), scale(Y))
    >>> model.cv_scores_.shape, bool(model.cv_gaps_.max() <= 1e-3), bool(model.radius_ == model.radius_grid_[model.best_index_])
    ((4, 3), True, True)
    """

    plain = models.L1InfRegressor


@linear_model
class L1InfClassifierCV(_L1InfCV, HingeClassifier):
    plain = models.L1InfClassifier


@linear_model
class _L1BallCV(PathCV):
    """Models of every task in an l1 ball.

    The norm is the largest one of a task; for the hinge it is that of least squares of the labels.
    """

    radius_grid: Any = VALUES

    tuned, norm = ("radius",), L1("task")

    def _penalised(self, penalty: str) -> SolvedTasks:
        """Hinges have no penalised problem of their own: squares of the same labels tell how long coefficients are."""
        return models.OneNormClassifier(penalty, loss="squared" if self.loss == "hinge" else self.loss)


@linear_model
class L1BallRegressorCV(_L1BallCV, LinearTaskRegressor):
    plain = models.L1BallRegressor


@linear_model
class L1BallClassifierCV(_L1BallCV, HingeClassifier):
    plain = models.L1BallClassifier


@linear_model
class TraceNormRegressorCV(_NormedCV, LinearTaskRegressor):
    plain, norm = models.TraceNormRegressor, Trace()


@linear_model
class TraceNormClassifierCV(_NormedCV, SquaresClassifier):
    plain, norm = models.TraceNormClassifier, Trace()


@linear_model
class _SparseLowRankCV(PathCV):
    """Models with a sparse and a low-rank part.

    Each pair of values is a setting. Radii go up to the trace norm of the coefficients of `TraceNormRegressor`. A path goes along the
    radii, for every penalty.
    """

    penalty_grid: Any = _OF_TWO
    radius_grid: Any = _OF_TWO

    tuned, norm = ("penalty", "radius"), Trace()

    def _penalised(self, penalty: str) -> SolvedTasks:
        """Return the low-rank part alone."""
        return models.TraceNormClassifier(penalty=penalty, loss=self.loss)

    def _largest(self, name: str, data: TaskData) -> float:
        """Of penalties the largest entry of the gradient at 0: the plain model takes no shares."""
        if name == "radius":
            return super()._largest(name, data)
        return float(np.abs(self._model({})._specification_for(data).on(data).gradient_at_zero()).max())


@linear_model
class SparseLowRankRegressorCV(_SparseLowRankCV, LinearTaskRegressor):
    plain = models.SparseLowRankRegressor


@linear_model
class SparseLowRankClassifierCV(_SparseLowRankCV, SquaresClassifier):
    plain = models.SparseLowRankClassifier


@linear_model
class _DirtyCV(PathCV):
    """Models with shared rows and a sparse part.

    Each pair of values is a setting. A path goes along the penalties of entries, for every one of rows. In part of the settings one of the
    two parts is 0: see `DirtyRegressor`.
    """

    row_penalty_grid: Any = _OF_TWO
    entry_penalty_grid: Any = _OF_TWO
    _: KW_ONLY
    reduction: str = "mean"

    tuned = ("row_penalty", "entry_penalty")


@linear_model
class DirtyRegressorCV(_DirtyCV, LinearTaskRegressor):
    plain = models.DirtyRegressor


@linear_model
class DirtyClassifierCV(_DirtyCV, SquaresClassifier):
    plain = models.DirtyClassifier
