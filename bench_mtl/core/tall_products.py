"""Products of a block of rows with a matrix of a few columns, and of its transpose: what a pass over data in shards consists of."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import frozen, transposed
from bench_mtl.core.types import Array, Matrix

#: With more columns, or with so many numbers in the smaller factor that they leave the cache, BLAS is as fast.
_MOST_COLUMNS, _MOST_NUMBERS = 16, 2**15


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
