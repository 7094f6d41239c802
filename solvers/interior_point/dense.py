"""Cholesky factors and inverses of the symmetric positive definite matrices of `interior_point`.

They are C-contiguous, of which only the upper triangle is read or written: to LAPACK, which counts by columns, the lower one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from bench_mtl.core.types import Array

#: Added to a diagonal, relative to it, where a factorisation fails; every further try adds a hundred times more.
_FIRST_SHIFT, _LAST_SHIFT = 1e-15, 1e-3
#: LAPACK inverts triangles up to this size itself: larger ones are quicker by halves, which are products.
_LARGEST_TRIANGLE = 64


def factor(A: Array, again: Callable[[], None]) -> None:
    """Replace A by its Cholesky factor; where that fails have `again` write it once more, and raise its diagonal.

    Raises FloatingPointError: A is not positive definite, or not finite.
    """
    shift = 0.0
    while True:
        if lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)[1] == 0:
            return
        if shift >= _LAST_SHIFT:
            raise FloatingPointError("the Newton system is not positive definite")
        shift = max(_FIRST_SHIFT, 100.0 * shift)
        again()
        A[np.diag_indices(len(A))] *= 1.0 + shift


def invert(A: Array) -> None:
    """Replace a Cholesky factor by the inverse of what it is the factor of (LAPACK's own dpotri takes twice as long)."""
    lapack.dlauum(_inverse_triangle(A.T), lower=1, overwrite_c=1)


def _inverse_triangle(L: Array) -> Array:
    """Replace a lower triangular matrix, in Fortran order, by its inverse: by halves, [[A, 0], [B, C]]^-1 has -C^-1 B A^-1 below."""
    if len(L) <= _LARGEST_TRIANGLE:
        return lapack.dtrtri(L, lower=1, overwrite_c=1)[0]
    half = len(L) // 2
    A, C = (_inverse_triangle(np.asfortranarray(part)) for part in (L[:half, :half], L[half:, half:]))
    B = blas.dtrmm(-1.0, C, np.asfortranarray(L[half:, :half]), lower=1, overwrite_b=1)
    L[:half, :half], L[half:, half:] = A, C
    L[half:, :half] = blas.dtrmm(1.0, A, B, side=1, lower=1, overwrite_b=1)
    return L
