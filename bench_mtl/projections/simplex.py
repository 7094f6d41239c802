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
    return on_simplex(v, mass)


def on_simplex(v: Array, mass: float) -> Array:
    """`project_simplex` of checked input with a positive mass."""
    # Shifting v by a constant moves the threshold alone; with the maximum at 0 nothing cancels against a large offset.
    shifted = v - v.max(axis=-1, keepdims=True)
    descending = -np.sort(-shifted, axis=-1)
    thresholds = (np.cumsum(descending, axis=-1) - mass) / np.arange(1, v.shape[-1] + 1)
    # descending - threshold changes sign once, after the last entry that stays positive.
    last = np.sum(descending > thresholds, axis=-1, keepdims=True) - 1
    w = np.maximum(shifted - np.take_along_axis(thresholds, last, axis=-1), 0.0)
    return np.asarray(w * (mass / w.sum(axis=-1, keepdims=True)))  # so that rounding leaves the mass itself alone
