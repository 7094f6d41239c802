"""The entries of every feature in ascending order, and the places where a threshold can stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import real_matrix
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array

ZEROS = -1
"""In `SortedColumns.rows`: all rows that have a zero here, as one entry."""
_BLOCK = 64


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
    """Return the columns of X (n x d, dense or sparse), sorted.

    Raises
    ------
    InputError : NaN or inf, not a matrix, no feature with two different values.
    """
    matrix = real_matrix("X", X)
    n, d = matrix.shape
    columns = _sorted(matrix)
    if n == 0 or not len(columns.cuts()):
        raise InputError(f"X has no usable feature: each of its {d} features has one value in all of its {n} row(s)")
    return columns


def _sorted(X: Any) -> SortedColumns:
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
    return SortedColumns(frozen(rows), frozen(values), frozen(starts), frozen(zeros), n)


def _columns(X: Any) -> Iterator[tuple[NDArray[Any], Array]]:
    """Yield row numbers and values of the non-zero entries, column by column."""
    if isinstance(X, sp.csc_array):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield X.indices[start:stop], X.data[start:stop]
        return
    for first in range(0, X.shape[1], _BLOCK):
        for column in np.ascontiguousarray(X[:, first : first + _BLOCK].T):
            listed = np.flatnonzero(column)
            yield listed, column[listed]
