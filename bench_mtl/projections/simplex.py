"""Projection onto the simplex, one vector or every row of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.checks import real_array, real_number
from bench_mtl.errors import InputError
from bench_mtl.types import Array


def project_simplex(v: Any, mass: float = 1.0) -> Array:
    """argmin_w 1/2 ||w - v||^2 subject to w >= 0, sum(w) = mass; row by row when `v` is a matrix.

    Parameters
    ----------
    v : array of shape (n,) or (rows, n), n >= 1
    mass : the sum of the result (of each row), at least 0

    Raises
    ------
    InputError : NaN or inf, no entry, more than two dimensions, a negative mass.

    Notes
    -----
    Sort-based, O(n log n): Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, figure 1.
    """
    v = real_array("v", v)
    mass = real_number("mass", mass)
    if v.ndim not in (1, 2) or v.shape[-1] == 0:
        raise InputError(f"v must be a vector or a matrix with at least one column, but has shape {v.shape}")
    if mass == 0.0:
        return np.zeros_like(v)
    # Shifting v by a constant moves the threshold alone; with the maximum at 0 nothing cancels against a large offset.
    shifted = v - v.max(axis=-1, keepdims=True)
    return np.asarray(np.maximum(shifted - simplex_threshold(shifted, mass), 0.0))


def simplex_threshold(v: Array, mass: float) -> Array:
    """The theta with sum(max(v - theta, 0)) = mass along the last axis, kept as an axis of length 1; mass > 0."""
    descending = -np.sort(-v, axis=-1)
    count = np.arange(1, v.shape[-1] + 1)
    candidates = (np.cumsum(descending, axis=-1) - mass) / count
    # descending - candidate changes sign once, after the last entry that stays positive.
    last = np.sum(descending > candidates, axis=-1, keepdims=True) - 1
    return np.asarray(np.take_along_axis(candidates, np.maximum(last, 0), axis=-1))
