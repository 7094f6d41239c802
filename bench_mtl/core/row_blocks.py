"""Blocks of the rows of a matrix that are small enough for a processor's cache, so that what needs a row twice reads memory once."""

from __future__ import annotations

from collections.abc import Iterator

import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Matrix

#: Bytes of a block. Sums over blocks depend on it, and on nothing else of a machine.
_BLOCK_BYTES = 2**22
#: Rows of a block at least and at most, so that neither calls nor temporary arrays of one number a row outweigh the rest.
_FEWEST_ROWS, _MOST_ROWS = 64, 2**15


def row_slices(X: Matrix) -> Iterator[slice]:
    """Yield the rows of each block, in order."""
    rows = X.shape[0]
    stored = 12 * X.nnz if is_sparse(X) else X.nbytes
    step = min(max(_BLOCK_BYTES * rows // max(1, stored), _FEWEST_ROWS), _MOST_ROWS)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def row_blocks(X: Matrix) -> Iterator[Matrix]:
    """Yield the blocks of a dense or CSR matrix, which share its memory."""
    for rows in row_slices(X):
        yield rows_of(X, rows)


def rows_of(X: Matrix, rows: slice) -> Matrix:
    """Return neighbouring rows of a dense or CSR matrix, which share its memory."""
    if not is_sparse(X):
        return X[rows]
    start, end = int(X.indptr[rows.start]), int(X.indptr[rows.stop])
    # Filled afterwards, since the constructor copies arrays that are a small part of others.
    block = sp.csr_array((rows.stop - rows.start, X.shape[1]))
    block.data, block.indices = frozen(X.data[start:end]), frozen(X.indices[start:end])
    block.indptr = frozen(X.indptr[rows.start : rows.stop + 1] - X.indptr[rows.start])
    block.has_sorted_indices = block.has_canonical_format = True
    return block
