"""The eight learners of Chen, Liu, Ye (TKDD 2012, section 7.2), and the grids that their parameters are tuned over."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array, Matrix

Mask = NDArray[np.bool_]

#: The relative gap that every fit of a convex problem is to prove: the estimators' own.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Model:
    """A learner of the tables."""

    estimator: str
    """Its name in `bench_mtl.estimators`."""
    grid: Mapping[str, tuple[float, ...]]
    """Values of the parameters that are tuned."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The quantity of the training data, by its name in `UNITS`, that a parameter is a multiple of."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the paper calls otherwise than the estimator: its letter to the estimator's name."""
    tied: Mapping[str, str] = field(default_factory=dict)
    """Parameters that have the value of another one."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    is_convex: bool = True
    """Otherwise where the fit ends decides what it finds, and a looser tolerance would be another learner."""
    most_features: int | None = None
    """Above it the learner is given that many singular directions of the training examples instead of the features."""

    def settings(self) -> Iterator[dict[str, float]]:
        """Yield all combinations of the grid, the last parameter moving fastest."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


#: Of sparse coefficients, from a strong penalty to hardly any.
_PENALTIES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)

#: Of the trace norm, from a small one to one that hardly restricts.
_RADII = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

#: The paper's grids are lost but for what some are multiples of ("where k is the label number"). On rows of unit length and labels -1 and
#: +1 these reach from hardly any restriction to a strong one. MixedNorm's holds those of its special cases: OneNorm's at tau = 0, and
#: TraceNorm's at gamma = 1, where next to nothing is left of the sparse part.
MODELS: Mapping[str, Model] = {
    "MixedNorm": Model(
        "SparseLowRankClassifier",
        {"tau": (0.0, *_RADII), "gamma": (1.0, *_PENALTIES)},
        {"tau": "labels", "gamma": "correlation"},
        {"tau": "radius", "gamma": "penalty"},
    ),
    "MTRL": Model("MTRLClassifier", {"ridge": (1e-5, 1e-3, 1e-1), "coupling": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}),
    "MTL(Omega,Sigma)": Model(
        "MatrixNormalClassifier",
        {"penalty": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), "alpha_features": (0.01, 0.1)},
        tied={"alpha_tasks": "alpha_features"},
        is_convex=False,
        most_features=100,
    ),
    "TraceNorm": Model("TraceNormClassifier", {"tau": _RADII}, {"tau": "labels"}, {"tau": "radius"}),
    "ASO": Model(
        "ASOClassifier",
        {"penalty": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), "n_components": (0.2, 0.8)},
        {"n_components": "labels, whole"},
        fixed={"tol": 1e-4},
        is_convex=False,
    ),
    "OneNorm": Model("OneNormClassifier", {"penalty": _PENALTIES}, {"penalty": "correlation"}),
    "IndSVM": Model("LinearSVMMultiTaskClassifier", {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}, fixed={"random_state": 0}),
    "RidgeReg": Model("RidgeMultiTaskClassifier", {"alpha": (0.01, 0.1, 1.0, 10.0, 100.0)}),
}

#: What parameters are multiples of, in words.
UNITS: Mapping[str, str] = {
    "labels": "the number of labels",
    "labels, whole": "the number of labels, rounded to a whole number",
    "correlation": "max abs X^T Y of the training examples, above which the sparse coefficients alone are all zero",
}


class Fit(NamedTuple):
    """A fitted learner, with what is said of the fit."""

    estimator: Any
    seconds: float
    """Seconds of the fit alone."""
    gap: float | None
    """Proven, relative; None where the learner has no bound."""
    message: str
    """Why it did not end by itself, if it did not."""

    def scores(self, X: Matrix) -> Array:
        """Examples x labels."""
        scores: Array = np.asarray(self.estimator.decision_function(X))
        return scores[:, None] if scores.ndim == 1 else scores


def fitted(model: Model, setting: Mapping[str, float], X: Matrix, Y: Mask, *, tolerance: float | None = None) -> Fit:
    """Fit a learner to examples X and labels Y, both of them in every column, to its own tolerance, or if it is convex to this one."""
    from sklearn.exceptions import ConvergenceWarning

    from bench_mtl import estimators

    parameters = {model.names.get(name, name): _in_units(model.units.get(name), value, X, Y) for name, value in setting.items()}
    parameters |= {name: parameters[other] for name, other in model.tied.items()}
    rule = {} if tolerance is None or not model.is_convex else {"tol": tolerance}
    estimator = getattr(estimators, model.estimator)(fit_intercept=False, **parameters, **model.fixed, **rule)
    labels = Y.astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap and the message are kept
        started = time.perf_counter()
        estimator.fit(X, labels if labels.shape[1] > 1 else labels[:, 0])
        seconds = time.perf_counter() - started
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
