"""Decision stumps, one feature against one threshold: drawn, or found by an exact oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import real_array, real_matrix, whole_number
from bench_mtl.core.designs import dense, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.weak_learners.base import Oracle, WeakLearners, chosen, violations

ZEROS = -1
"""In `SortedColumns.rows`: all rows that have a zero here, as one entry."""

#: Columns, and rows, that are taken at a time.
_COLUMNS, _ROWS = 64, 1024


class SortedColumns(NamedTuple):
    """Non-zero entries of X feature by feature, each feature's in ascending order (equal ones by row), its zeros as one entry."""

    rows: NDArray[np.int32]
    """Row of each entry, or `ZEROS`."""
    values: Array
    starts: NDArray[np.int64]
    """d + 1 numbers: the entries of feature j begin at ``starts[j]`` and end before ``starts[j + 1]``."""
    zeros: NDArray[np.int64]
    """Where the entry of feature j's zeros is, or -1."""
    n_rows: int

    def cuts(self) -> NDArray[np.int64]:
        """Return the entries, ascending, after which a larger value of the same feature comes."""
        rises = self.values[1:] > self.values[:-1]
        rises[self.starts[1:-1] - 1] = False
        return np.flatnonzero(rises)

    def features(self, cuts: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the feature of each of these entries."""
        return np.searchsorted(self.starts, cuts, side="right") - 1

    def thresholds(self, cuts: NDArray[np.int64]) -> Array:
        """A t with a <= t < b for the neighbouring values a and b at each cut: their midpoint, as far as there are numbers between."""
        a, b = self.values[cuts], self.values[cuts + 1]
        middle = 0.5 * a + 0.5 * b
        return np.where((a <= middle) & (middle < b), middle, a)

    def sides(self, cut: int) -> Array:
        """-1 for the rows up to the cut, +1 for those above it."""
        j = int(np.searchsorted(self.starts, cut, side="right")) - 1
        start, stop = int(self.starts[j]), int(self.starts[j + 1])
        side = np.where(np.arange(start, stop) <= cut, -1.0, 1.0)
        zero = int(self.zeros[j])
        result = np.full(self.n_rows, side[zero - start] if zero >= 0 else 0.0)
        listed = self.rows[start:stop] != ZEROS
        result[self.rows[start:stop][listed]] = side[listed]
        return result


def sorted_columns(X: Any) -> SortedColumns:
    """Return the columns of X (n x d, dense or sparse), sorted; where no feature has two different values it is an InputError."""
    X = real_matrix("X", X)
    n, d = X.shape
    if isinstance(X, sp.csr_array):
        X = sp.csc_array(X)  # a copy
        X.eliminate_zeros()
        X.sort_indices()
    counts = np.diff(X.indptr) if isinstance(X, sp.csc_array) else np.count_nonzero(X, axis=0)
    starts = np.concatenate([[0], np.cumsum(counts + (counts < n))]).astype(np.int64)
    rows, values = np.full(int(starts[-1]), ZEROS, dtype=np.int32), np.zeros(int(starts[-1]))
    zeros = np.full(d, -1, dtype=np.int64)
    for j, (where, entries) in enumerate(_columns(X)):
        order = np.argsort(entries, kind="stable")
        start, negative = int(starts[j]), int(np.count_nonzero(entries < 0.0))
        skipped = int(len(entries) < n)
        if skipped:
            zeros[j] = start + negative
        for part, at in ((order[:negative], start), (order[negative:], start + negative + skipped)):
            rows[at : at + len(part)] = where[part]
            values[at : at + len(part)] = entries[part]
    columns = SortedColumns(frozen(rows), frozen(values), frozen(starts), frozen(zeros), n)
    if n == 0 or not len(columns.cuts()):
        raise InputError(f"X has no usable feature: each of its {d} features has one value in all of its {n} row(s)")
    return columns


def _columns(X: Any) -> Iterator[tuple[NDArray[Any], Array]]:
    """Yield row numbers and values of the non-zero entries, column by column."""
    if isinstance(X, sp.csc_array):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield X.indices[start:stop], X.data[start:stop]
        return
    for first in range(0, X.shape[1], _COLUMNS):
        for column in np.ascontiguousarray(X[:, first : first + _COLUMNS].T):
            listed = np.flatnonzero(column)
            yield listed, column[listed]


@dataclass(frozen=True, eq=False)
class Stumps(WeakLearners):
    """h_j(x) = polarity_j if x[feature_j] > threshold_j, else -polarity_j.

    Raises InputError: vectors of different lengths, a feature that is no whole number of at least 0, NaN or inf, a polarity not -1 or +1.
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
            raise InputError(f"X has {d} features, but a stump examines feature {self.features.max()}, numbered from 0")
        used, places = np.unique(self.features, return_inverse=True)
        H = np.empty((n, len(self)))
        for start in range(0, n, _ROWS):
            block = dense(matrix[start : start + _ROWS, used])
            H[start : start + _ROWS] = np.where(block[:, places] > self.thresholds, self.polarities, -self.polarities)
        return H

    def take(self, indices: Any) -> Stumps:
        numbers = chosen(indices, len(self))
        return Stumps(self.features[numbers], self.thresholds[numbers], self.polarities[numbers])

    def joined(self, other: WeakLearners) -> Stumps:
        if not isinstance(other, Stumps):
            raise InputError(f"stumps can be joined with stumps only, not with {type(other).__name__}")
        return Stumps(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("features", "thresholds", "polarities")))

    def describe(self, j: int) -> str:
        return f"x[{self.features[j]}] {'>' if self.polarities[j] > 0.0 else '<='} {self.thresholds[j]:g}"

    def features_of(self, j: int) -> tuple[int, ...]:
        return (int(self.features[j]),)


def draw_stumps(X: Any, count: int, seed: int = 0) -> Stumps:
    """Return `count` different stumps, drawn with equal chances among all of them on X; all, where there are fewer.

    These are every feature, every threshold halfway between two neighbouring values of the feature in X, and both polarities. None is
    constant on X, so a feature with one value has none. No two are the same stump, though two may have the same outputs on X, as with equal
    features. They come in ascending order of feature and threshold, the polarity +1 first. Raises InputError: a count below 1, a negative
    seed, NaN or inf, no feature with two different values.
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


@final
class StumpOracle(Oracle):
    """Every stump on X (n x d, dense or sparse): every feature, every threshold between two neighbouring values of it, both polarities.

    Features are sorted once. With T = sum_i R_i and the prefix sum L of the rows R_i in the order of a feature, the stump of polarity +1
    with its threshold after them has G = T - 2 L, that of polarity -1 the negative. So one search adds each row of R once a feature (its
    zeros count as one row) and examines each of the stumps: time O(n d K), memory O(n d).

    Equal violations: the lower feature first, then the lower threshold, then polarity +1 (as far as sums in floating point are equal). With
    `one_per_feature` at most one stump of each feature is found, the most violating: several are mostly neighbouring thresholds of few
    features. Raises InputError: NaN or inf, no feature with two different values.
    """

    is_exact: ClassVar[bool] = True

    def __init__(self, X: Any, *, one_per_feature: bool = False) -> None:
        self._columns = sorted_columns(X)
        self.n_stumps, self.n_rows = 2 * len(self._columns.cuts()), self._columns.n_rows
        self._one_per_feature = one_per_feature

    def _search(self, R: Array, norm: str, count: int) -> tuple[Stumps, Array]:
        from bench_mtl.weak_learners.kernels import CODES, most_violating

        count = min(count, self.n_stumps)
        places = most_violating(R, R.sum(axis=0), *self._columns[:4], CODES[norm], count, self._one_per_feature)
        stumps = stumps_at(self._columns, places)
        # Prefix sums round; what is handed out is summed from the outputs themselves, one by one and so the same for equal outputs.
        pairs = zip(places // 2, stumps.polarities, strict=True)
        sizes = violations(np.array([(polarity * self._columns.sides(int(cut))) @ R for cut, polarity in pairs]), norm)
        order = np.lexsort((places, -sizes))
        return stumps.take(order), sizes[order]

    @staticmethod
    def warm_up() -> None:
        """Compile the search, or load it."""
        X: Array = np.array([[0.0], [1.0]])
        StumpOracle(X).highest(X, "l12")
