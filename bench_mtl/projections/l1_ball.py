"""Projection onto the l1 ball and its penalised twin, soft thresholding."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.checks import real_array, real_number
from bench_mtl.errors import InputError
from bench_mtl.projections.simplex import on_simplex
from bench_mtl.types import Array


def project_l1_ball(v: Any, radius: float) -> Array:
    """argmin_w 1/2 ||w - v||^2 subject to ||w||_1 <= radius; row by row when `v` is a matrix.

    Parameters
    ----------
    v : array of shape (n,) or (rows, n)
    radius : at least 0

    Raises
    ------
    InputError : NaN or inf, more than two dimensions, a negative radius.

    Notes
    -----
    The simplex projection of |v| with the signs put back (Duchi et al., ICML 2008, section 4).
    """
    v = real_array("v", v)
    radius = real_number("radius", radius)
    if v.ndim not in (1, 2):
        raise InputError(f"v must be a vector or a matrix, but has shape {v.shape}")
    if radius == 0.0 or v.size == 0:
        return np.zeros_like(v)
    magnitude = np.abs(v)
    outside = magnitude.sum(axis=-1, keepdims=True) > radius
    if not outside.any():
        return v.copy()
    return np.asarray(np.where(outside, np.copysign(on_simplex(magnitude, radius), v), v))


def soft_threshold(A: Any, threshold: float) -> Array:
    """argmin_B 1/2 ||B - A||_F^2 + threshold * sum |B|, entry by entry: sign(A) max(|A| - threshold, 0).

    Raises
    ------
    InputError : NaN or inf, a negative threshold.
    """
    A = real_array("A", A)
    threshold = real_number("threshold", threshold)
    return np.asarray(np.copysign(np.maximum(np.abs(A) - threshold, 0.0), A))
