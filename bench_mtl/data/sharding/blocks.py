"""Puts blocks of rows together to shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.table import Table, concatenated

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
    def bytes(self) -> int:
        """Of features, and of targets; without effect where the number of rows is given."""
        return int(self.mebibytes * _MIB)

    @property
    def block_bytes(self) -> int:
        """How many bytes a block may take."""
        return _LARGEST_BLOCK if self.rows is not None else min(_LARGEST_BLOCK, self.bytes)


def in_shards(table: Table, size: ShardSize) -> Iterator[tuple[Matrix, Array]]:
    """Yield the features and targets of one shard after the other: as many rows as fit, at least one."""
    most = max(1, size.bytes // (_FLOAT * max(1, table.n_targets))) if size.rows is None else size.rows
    index = 4 if table.n_features <= _LARGEST_INT32 else 8
    pieces: list[tuple[Matrix, Array]] = []
    filled, taken = 0, 0
    for X, Y in table.blocks():
        row_bytes = np.diff(X.indptr).astype(np.int64) * (_FLOAT + index) + index if is_sparse(X) else np.full(len(Y), _FLOAT * X.shape[1])
        start = 0
        while start < len(Y):
            ends = taken + np.cumsum(row_bytes[start : start + most - filled])
            count = len(ends) if size.rows is not None else int(np.searchsorted(ends, size.bytes, side="right"))
            count = max(count, 0 if filled else 1)
            if count:
                pieces.append((X[start : start + count], Y[start : start + count]))
                start, filled, taken = start + count, filled + count, int(ends[count - 1])
            if not count or filled == most:
                yield concatenated(pieces)
                pieces, filled, taken = [], 0, 0
    if pieces:
        yield concatenated(pieces)
