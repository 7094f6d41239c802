"""Decision stumps: one feature against one threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import real_array, real_matrix, whole_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.weak_learners.base import WeakLearners, chosen
from bench_mtl.weak_learners.columns import SortedColumns, sorted_columns

_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Stumps(WeakLearners):
    """h_j(x) = polarity_j if x[feature_j] > threshold_j, else -polarity_j.

    Raises
    ------
    InputError : vectors of different lengths, a feature that is no whole number of at least 0, NaN or inf, a polarity not -1 or +1.
    """

    features: NDArray[np.intp]
    thresholds: Array
    polarities: Array

    def __post_init__(self) -> None:
        features = np.asarray(self.features)
        if features.ndim != 1 or (features.size and (features.dtype.kind not in "iu" or features.min() < 0)):
            raise InputError("features must be a vector of whole numbers of at least 0")
        object.__setattr__(self, "features", frozen(features.astype(np.intp)))
        for name in ("thresholds", "polarities"):
            values = real_array(name, getattr(self, name), ndim=1)
            if len(values) != len(features):
                raise InputError(f"{name} have length {len(values)}, but there are {len(features)} features")
            object.__setattr__(self, name, frozen(values.copy()))
        if not np.all(np.abs(self.polarities) == 1.0):
            raise InputError("polarities must be -1 or +1")

    def __len__(self) -> int:
        return len(self.features)

    def outputs(self, X: Any) -> Array:
        matrix = real_matrix("X", X)
        n, d = matrix.shape
        if len(self) and self.features.max() >= d:
            raise InputError(f"X has {d} features, but a stump looks at feature {self.features.max()}, numbered from 0")
        used, places = np.unique(self.features, return_inverse=True)
        H = np.empty((n, len(self)))
        for start in range(0, n, _BLOCK):
            block = _dense(matrix[start : start + _BLOCK], used)
            H[start : start + _BLOCK] = np.where(block[:, places] > self.thresholds, self.polarities, -self.polarities)
        return H

    def take(self, indices: Any) -> Stumps:
        numbers = chosen(indices, len(self))
        return Stumps(self.features[numbers], self.thresholds[numbers], self.polarities[numbers])

    def joined(self, other: WeakLearners) -> Stumps:
        if not isinstance(other, Stumps):
            raise InputError(f"stumps can be joined with stumps only, not with {type(other).__name__}")
        return Stumps(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.thresholds, other.thresholds]),
            np.concatenate([self.polarities, other.polarities]),
        )

    def describe(self, j: int) -> str:
        return f"x[{self.features[j]}] {'>' if self.polarities[j] > 0.0 else '<='} {self.thresholds[j]:g}"

    def features_of(self, j: int) -> tuple[int, ...]:
        return (int(self.features[j]),)


def draw_stumps(X: Any, count: int, seed: int = 0) -> Stumps:
    """Return `count` different stumps, drawn with equal chances among all of them on X.

    These are every feature, every threshold halfway between two neighbouring values of the feature in X, and both polarities. None is
    constant on X, so a feature with one value has none. No two are the same stump, though two may have the same outputs on X, as
    with equal features. They come in ascending order of feature and threshold, the polarity +1 first.

    Returns
    -------
    Stumps : all that there are, where these are fewer than `count`.

    Raises
    ------
    InputError : a count below 1, a negative seed, NaN or inf, no feature with two different values.
    """
    wanted, seed = whole_number("count", count, minimum=1), whole_number("seed", seed)
    columns = sorted_columns(X)
    cuts = columns.cuts()
    numbers = np.arange(2 * len(cuts))
    if wanted < len(numbers):
        numbers = np.sort(np.random.default_rng(seed).choice(len(numbers), size=wanted, replace=False))
    return stumps_at(columns, 2 * cuts[numbers // 2] + numbers % 2)


def stumps_at(columns: SortedColumns, places: NDArray[np.int64]) -> Stumps:
    """Return the stumps of twice a cut (polarity +1), or one more (polarity -1)."""
    cuts = places // 2
    return Stumps(columns.features(cuts), columns.thresholds(cuts), np.where(places % 2 == 0, 1.0, -1.0))


def _dense(rows: Matrix, columns: NDArray[np.intp]) -> Array:
    """Return these columns of a few rows."""
    return rows[:, columns].toarray() if isinstance(rows, sp.csr_array) else rows[:, columns]
