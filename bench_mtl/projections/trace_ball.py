"""The trace (nuclear) norm and the projection onto its ball."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from bench_mtl.checks import real_array, real_number
from bench_mtl.projections.l1_ball import project_l1_ball
from bench_mtl.types import Array


def norm_trace(A: Array) -> float:
    """||A||_*: the sum of the singular values."""
    return float(np.linalg.svd(A, compute_uv=False).sum()) if A.size else 0.0


def project_trace_ball(A: Any, radius: float) -> Array:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_* <= radius.

    Parameters
    ----------
    A : array of shape (d, m)
    radius : at least 0

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative radius.

    Notes
    -----
    The singular values are projected onto the l1 ball (Chen, Liu, Ye 2012, section 4.2).
    """
    A = real_array("A", A, ndim=2)
    radius = real_number("radius", radius)
    if radius == 0.0 or A.size == 0:
        return np.zeros_like(A)
    U, values, Vt = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    if values.sum() <= radius:
        return A.copy()
    kept = project_l1_ball(values, radius)
    rank = int(np.count_nonzero(kept))
    return np.asarray((U[:, :rank] * kept[:rank]) @ Vt[:rank])
