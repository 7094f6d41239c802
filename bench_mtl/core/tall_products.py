"""Blocks of rows that are small enough for a cache, so that what needs a row twice reads memory once, and products with a few columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import frozen, transposed
from bench_mtl.core.types import Array, Matrix

#: With more columns, or with so many numbers in the smaller factor that they leave the cache, BLAS is as fast.
_MOST_COLUMNS, _MOST_NUMBERS = 16, 2**15
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


def tall_product(X: Matrix, W: Array) -> Array:
    """Return X W, X n x d dense or CSR, W d x m or d numbers, with sums in any order."""
    if not _has_kernel(X, W):
        return np.asarray(X @ W)
    from bench_mtl.core.kernels import tall

    columns = W if W.ndim == 2 else W[:, None]
    out = np.empty((X.shape[0], columns.shape[1]))
    tall.tall_product(frozen(X), frozen(np.ascontiguousarray(columns.T)), out)
    return out.reshape(X.shape[0], *W.shape[1:])


def tall_adjoint(X: Matrix, R: Array) -> Array:
    """Return X^T R, X n x d dense or CSR, R n x m or n numbers, with sums in any order."""
    if not _has_kernel(X, R):
        return np.asarray(transposed(X) @ R)
    from bench_mtl.core.kernels import tall

    columns = np.ascontiguousarray(R if R.ndim == 2 else R[:, None])
    out = np.zeros((columns.shape[1], X.shape[1]))
    tall.add_tall_adjoint(frozen(X), frozen(columns), out)
    return np.ascontiguousarray(out.T).reshape(X.shape[1], *R.shape[1:])


def _has_kernel(X: Matrix, W: Array) -> bool:
    columns = 1 if W.ndim == 1 else W.shape[1]
    is_small = columns <= _MOST_COLUMNS and columns * X.shape[1] <= _MOST_NUMBERS
    return is_small and not is_sparse(X) and X.flags.c_contiguous and X.dtype == W.dtype == np.float64
