"""Matrices as the compiled kernels take them: flat data, and how its rows lie in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import floating_array, is_sparse, require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Matrix

#: Rows of at most this length are searched side by side; so are the rows of a matrix in Fortran order, up to the second length.
_SHORT_ROW, _LONGEST_STRIDED_ROW = 32, 256


#: By the bytes of a float: an integer type as wide, and all its bits but the sign.
_INTEGERS: dict[int, tuple[Any, Any]] = {
    8: (np.dtype(np.int64), np.int64(np.iinfo(np.int64).max)),
    4: (np.dtype(np.int32), np.int32(np.iinfo(np.int32).max)),
}


@dataclass(frozen=True)
class MatrixRows:
    """Flat data with its rows, in the form that `kernels/l1inf_passes.py` describes; without a copy."""

    data: AnyArray
    indptr: AnyArray | None
    lanes: tuple[int, int] | None
    d: int
    m: int

    @classmethod
    def of(cls, A: Matrix) -> MatrixRows:
        """The rows of an array for which `is_plain` holds, or of a canonical CSR matrix."""
        d, m = A.shape
        if is_sparse(A):
            indptr = A.indptr.astype(np.int32, copy=False) if len(A.data) <= np.iinfo(np.int32).max else A.indptr  # one type, compiled once
            data, indptr = (part if _usable(part) else part.copy() for part in (A.data, indptr))
            return cls(data, indptr, None, d, m)
        if A.flags.c_contiguous:
            return cls(A.reshape(-1), None, (m, 1) if m <= _SHORT_ROW else None, d, m)
        return cls(A.T.reshape(-1), None, (1, d), d, m)

    @cached_property
    def matrix(self) -> tuple[Any, ...]:
        """data, bits, mask, indptr, m: the matrix as kernels take it."""
        integer, mask = _INTEGERS[self.data.itemsize]
        return self.data, self.data.view(integer), mask, self.indptr, self.m


def is_plain(A: AnyArray) -> bool:
    """Return whether kernels can work on the array as it lies in memory. (A read-only one would need a compiled variant of its own.)"""
    flags = A.flags
    return _usable(A) and (flags.c_contiguous or (flags.f_contiguous and A.shape[1] <= _LONGEST_STRIDED_ROW))


def _usable(A: AnyArray) -> bool:
    return bool(A.flags.aligned and A.flags.writeable)


def checked_matrix(name: str, A: Any) -> Matrix:
    """A matrix of float32 or float64: an array as it is, or CSR, with sorted columns and no duplicates, if it is sparse.

    Raises
    ------
    InputError : not a matrix of real numbers. (NaN and inf are for the kernels to find.)
    """
    if not is_sparse(A):
        return floating_array(name, A, ndim=(2,))
    if A.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, but has shape {A.shape}")
    data = floating_array(name, A.data if A.format == "csr" else A.dtype.type(0))
    matrix = sp.csr_array(A, dtype=data.dtype)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def require_finite_matrix(name: str, A: Matrix) -> None:
    """Raise InputError naming row and column of the first NaN or inf."""
    if not is_sparse(A):
        require_finite(name, A)
        return
    bad = np.flatnonzero(~np.isfinite(A.data))
    if len(bad):
        row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
        kind = "NaN" if np.isnan(A.data[bad[0]]) else "inf"
        raise InputError(f"{name} has {kind} at index ({row}, {int(A.indices[bad[0]])}): only finite numbers are allowed")
