"""Systems of a positive definite matrix, by its Cholesky factor."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bench_mtl.core.types import Array


def solved(H: Array, b: Array, shift: float | Array) -> Array | None:
    """Return (H + diag(shift))^-1 b; None where H + diag(shift) cannot be factorised. H changes, and only its upper half is read."""
    if not len(H):
        return b
    H[np.diag_indices_from(H)] += shift
    try:
        return np.asarray(cho_solve(cho_factor(H, overwrite_a=True, check_finite=False), b, check_finite=False))
    except LinAlgError:
        return None
