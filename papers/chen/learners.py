"""The eight learners of Chen, Liu, Ye (TKDD 2012, section 7.2), and the grids that their parameters are tuned over."""

from __future__ import annotations

import copy
import itertools
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers import Array, Mask, Matrix

#: The relative gap that every fit of a convex problem is to prove: the estimators' own.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Model:
    """A learner of the tables."""

    estimator: str  # its name in `bench_mtl.estimators`
    grid: Mapping[str, tuple[float, ...]]  # values of the parameters that are tuned
    units: Mapping[str, str] = field(default_factory=dict)
    """The quantity of the training data, by its name in `UNITS`, that a parameter is a multiple of."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the paper calls otherwise than the estimator: its letter to the estimator's name."""
    tied: Mapping[str, str] = field(default_factory=dict)  # parameters that have the value of another one
    fixed: Mapping[str, Any] = field(default_factory=dict)
    is_convex: bool = True  # otherwise where the fit ends decides what it finds, and a looser tolerance would be another learner
    has_path: bool = False  # whether fits along the last parameter of the grid start from one another, each with a proof of its own
    most_features: int | None = None
    """Above it the learner is given that many singular directions of the training examples instead of the features."""

    def settings(self) -> Iterator[dict[str, float]]:
        """Yield all combinations of the grid, the last parameter moving fastest."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


#: Of sparse coefficients, from a strong penalty to hardly any.
_PENALTIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)

#: Of the trace norm, from a small one to one that hardly restricts.
_RADII = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

#: Our copy of the paper has of its grids only what some are multiples of ("where k is the label number"). On rows of unit length and labels
#: -1 and +1 these reach from hardly any restriction to a strong one. MixedNorm's holds those of its special cases: OneNorm's at tau = 0,
#: and TraceNorm's at gamma = 1, where next to nothing is left of the sparse part.
MODELS: Mapping[str, Model] = {
    "MixedNorm": Model(
        "SparseLowRankClassifier",
        {"gamma": (1.0, *_PENALTIES), "tau": (0.0, *_RADII)},
        {"tau": "labels", "gamma": "correlation"},
        {"tau": "radius", "gamma": "penalty"},
        has_path=True,
    ),
    "MTRL": Model("MTRLClassifier", {"ridge": (1e-5, 1e-3, 1e-1), "coupling": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}),
    "MTL(Omega,Sigma)": Model(
        "MatrixNormalClassifier",
        {"penalty": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), "alpha_features": (0.01, 0.1)},
        tied={"alpha_tasks": "alpha_features"},
        is_convex=False,
        most_features=100,
    ),
    "TraceNorm": Model("TraceNormClassifier", {"tau": _RADII}, {"tau": "labels"}, {"tau": "radius"}, has_path=True),
    "ASO": Model(
        "ASOClassifier",
        {"penalty": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), "n_components": (0.2, 0.8)},
        {"n_components": "labels, whole"},
        fixed={"tol": 1e-4},
        is_convex=False,
    ),
    "OneNorm": Model("OneNormClassifier", {"penalty": _PENALTIES}, {"penalty": "correlation"}, has_path=True),
    "IndSVM": Model("LinearSVMMultiTaskClassifier", {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}, fixed={"random_state": 0}),
    "RidgeReg": Model("RidgeMultiTaskClassifier", {"alpha": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)}),
}

#: What parameters are multiples of, in words.
UNITS: Mapping[str, str] = {
    "labels": "the number of labels",
    "labels, whole": "the number of labels, rounded to a whole number",
    "correlation": "max abs X^T Y of the training examples, above which the sparse coefficients alone are all zero",
}


#: Of a fit that only ranks settings, at most: where examples can be fitted exactly a proof takes thousands of steps more.
TUNING_STEPS = 200


class Fit(NamedTuple):
    """A fitted learner, with remarks on the fit."""

    estimator: Any
    seconds: float  # seconds of the fit alone
    gap: float | None  # proven, relative; None where the learner has no bound
    message: str  # why it did not end by itself, if it did not

    def scores(self, X: Matrix) -> Array:
        """Examples x labels."""
        scores: Array = np.asarray(self.estimator.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores


def fitted(
    model: Model, setting: Mapping[str, float], X: Matrix, Y: Mask, *, has_intercept: bool = False, tolerance: float | None = None
) -> Fit:
    """Fit a learner to examples X and labels Y, both of them in every column.

    A tolerance is that of a fit for tuning, of convex learners; without one it is the learner's own. Those that have paths then take
    `TUNING_STEPS` at most.
    """
    from sklearn.exceptions import ConvergenceWarning

    estimator = _estimator(model, setting, X, Y, has_intercept, tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap and the message are kept
        started = time.perf_counter()
        estimator.fit(X, _labels(Y))
        seconds = time.perf_counter() - started
    return _fit(estimator, seconds)


def fitted_grid(
    model: Model, X: Matrix, Y: Mask, *, has_intercept: bool = False, tolerance: float
) -> Iterator[tuple[dict[str, float], Fit]]:
    """Yield all settings of the grid with their fits, as `fitted` does; fits of a path share its seconds equally."""
    if not model.has_path:
        for setting in model.settings():
            yield setting, fitted(model, setting, X, Y, has_intercept=has_intercept, tolerance=tolerance)
        return
    along = list(model.grid)[-1]
    length = len(model.grid[along])
    settings = list(model.settings())
    for start in range(0, len(settings), length):
        path = settings[start : start + length]
        first = _estimator(model, path[0], X, Y, has_intercept, tolerance)
        values = [_in_units(model.units.get(along), setting[along], X, Y) for setting in path]
        started = time.perf_counter()
        examples = first._read(X, _labels(Y), None)
        fits = first._fit_path(examples.data, model.names.get(along, along), values)
        seconds = (time.perf_counter() - started) / length
        for setting, value in zip(path, values, strict=True):
            estimator = copy.copy(first).set_params(**{model.names.get(along, along): value})
            estimator._keep(fits[value], examples)
            yield setting, _fit(estimator, seconds)


def _estimator(model: Model, setting: Mapping[str, float], X: Matrix, Y: Mask, has_intercept: bool, tolerance: float | None) -> Any:
    from bench_mtl import estimators

    parameters = {model.names.get(name, name): _in_units(model.units.get(name), value, X, Y) for name, value in setting.items()}
    parameters |= {name: parameters[other] for name, other in model.tied.items()}
    rule: dict[str, Any] = {} if tolerance is None or not model.is_convex else {"tol": tolerance}
    if rule and model.has_path:
        rule["max_iter"] = TUNING_STEPS
    return getattr(estimators, model.estimator)(fit_intercept=has_intercept, **parameters, **model.fixed, **rule)


def _labels(Y: Mask) -> NDArray[np.int64]:
    labels = Y.astype(np.int64)
    return labels if labels.shape[1] > 1 else labels[:, 0]


def _fit(estimator: Any, seconds: float) -> Fit:
    return Fit(estimator, seconds, getattr(estimator, "gap_", None), "" if estimator.converged_ else estimator.message_)


def _in_units(unit: str | None, value: float, X: Matrix, Y: Mask) -> float | int:
    match unit:
        case "labels":
            return value * Y.shape[1]
        case "labels, whole":
            return max(1, round(value * Y.shape[1]))
        case "correlation":
            return value * float(np.abs(np.asarray(X.T @ np.where(Y, 1.0, -1.0))).max())
        case _:
            return value
