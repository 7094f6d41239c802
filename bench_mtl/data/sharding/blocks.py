"""Puts blocks of rows together to shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.table import Table

_FLOAT, _MIB = 8, 2**20
_LARGEST_INT32 = 2**31 - 1
#: A block takes about so many bytes at most, and no more than a shard.
_LARGEST_BLOCK = 32 * _MIB


@dataclass(frozen=True)
class ShardSize:
    """How many rows a shard has, or how many bytes its features, and its targets, may take."""

    rows: int | None
    mebibytes: float = 128.0

    @property
    def block_bytes(self) -> int:
        """How many bytes a block may take."""
        return _LARGEST_BLOCK if self.rows is not None else min(_LARGEST_BLOCK, self._bytes)

    @property
    def _bytes(self) -> int:
        return int(self.mebibytes * _MIB)

    def most_rows(self, row_bytes: int) -> int:
        """Return how many rows of so many bytes are a shard."""
        return max(1, self._bytes // row_bytes) if self.rows is None else self.rows

    def fitting(self, taken: int, row_bytes: NDArray[np.int64]) -> int:
        """Return how many of the next rows, of so many bytes each, fit into a shard of which so many bytes are taken."""
        if self.rows is not None:
            return len(row_bytes)
        return int(np.searchsorted(np.cumsum(row_bytes) + taken, self._bytes, side="right"))


def in_shards(table: Table, size: ShardSize) -> Iterator[tuple[Matrix, Array]]:
    """Yield the features and targets of one shard after the other, in arrays that the next one overwrites."""
    made: _Dense | _Sparse | None = None
    for X, Y in table.blocks():
        if made is None:
            made = (_Sparse if is_sparse(X) else _Dense)(table, size)
        start = 0
        while start < X.shape[0]:
            added = made.add(X, Y, start)
            start += added
            if not added or made.is_full:
                yield made.shard()
                made.clear()
    if made is not None and made.filled:
        yield made.shard()


class _Dense:
    """A shard that is being filled."""

    def __init__(self, table: Table, size: ShardSize) -> None:
        rows = min(table.n_rows, size.most_rows(_FLOAT * max(table.n_features, table.n_targets)))
        self._X, self._Y = np.empty((rows, table.n_features)), np.empty((rows, table.n_targets))
        self.filled = 0

    @property
    def is_full(self) -> bool:
        return self.filled == len(self._X)

    def add(self, X: Matrix, Y: Array, start: int) -> int:
        """Take the rows of a block from `start` for which there is room; return their number."""
        count = min(len(X) - start, len(self._X) - self.filled)
        here = slice(self.filled, self.filled + count)
        self._X[here], self._Y[here] = X[start : start + count], Y[start : start + count]
        self.filled += count
        return count

    def shard(self) -> tuple[Array, Array]:
        return self._X[: self.filled], self._Y[: self.filled]

    def clear(self) -> None:
        self.filled = 0


class _Sparse:
    """A shard of CSR rows that is being filled."""

    def __init__(self, table: Table, size: ShardSize) -> None:
        self._size, self._most, self._n_features = size, min(table.n_rows, size.most_rows(_FLOAT * table.n_targets)), table.n_features
        index = np.int32 if table.n_features <= _LARGEST_INT32 else np.int64
        self._entry_bytes, self._row_bytes = _FLOAT + np.dtype(index).itemsize, np.dtype(index).itemsize
        self._data, self._indices, self._Y = _Growing(np.float64), _Growing(index), _Growing(np.float64, table.n_targets)
        self._lengths = _Growing(np.int64)

    @property
    def filled(self) -> int:
        return self._lengths.filled

    @property
    def is_full(self) -> bool:
        return self.filled == self._most

    def add(self, X: Any, Y: Array, start: int) -> int:
        """Take the rows of a block from `start` for which there is room, at least one if there is none yet; return their number."""
        lengths = np.diff(X.indptr[start:]).astype(np.int64)[: self._most - self.filled]
        taken = self._entry_bytes * self._data.filled + self._row_bytes * self.filled
        count = self._size.fitting(taken, self._entry_bytes * lengths + self._row_bytes)
        count = max(count, 0 if self.filled else 1)
        entries = slice(X.indptr[start], X.indptr[start + count])
        self._data.add(X.data[entries])
        self._indices.add(X.indices[entries])
        self._lengths.add(lengths[:count])
        self._Y.add(Y[start : start + count])
        return count

    def shard(self) -> tuple[sp.csr_array, Array]:
        # SciPy gives both arrays the larger type of the two.
        fits = self._data.filled <= _LARGEST_INT32
        indptr = np.concatenate([[0], np.cumsum(self._lengths.values)]).astype(self._indices.values.dtype if fits else np.int64)
        shape = (self.filled, self._n_features)
        return sp.csr_array((self._data.values, self._indices.values, indptr), shape=shape), self._Y.values

    def clear(self) -> None:
        for part in (self._data, self._indices, self._lengths, self._Y):
            part.filled = 0


class _Growing:
    """An array that grows with what is added to it, and keeps its room when it is emptied."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._room = np.empty((1024,) if width is None else (1024, width), dtype=dtype)
        self.filled = 0

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self.filled]

    def add(self, values: NDArray[Any]) -> None:
        end = self.filled + len(values)
        if end > len(self._room):
            larger = np.empty((max(end, 3 * len(self._room) // 2), *self._room.shape[1:]), dtype=self._room.dtype)
            larger[: self.filled] = self.values
            self._room = larger
        self._room[self.filled : end] = values
        self.filled = end
