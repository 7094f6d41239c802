"""Slow twins of the projections and proximal operators: long double, from the optimality conditions, nothing shared with the kernels.

Each takes an array and a parameter as its fast counterpart does, and returns long double. Input is trusted. `bench-mtl validate` and the
tests of projections compare with these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import AnyArray

Long: TypeAlias = NDArray[np.longdouble]


#: Halvings of a bracket after which a search ends: 64 settle a root of its size, the others one that is smaller.
_MOST_HALVINGS = 400


def simplex(v: AnyArray, mass: float, *, axis: int = -1) -> Long:
    """max(v - theta, 0) with theta such that the sum along `axis` is `mass`."""
    largest = np.max(v, axis=axis, keepdims=True)
    shifted = np.asarray(v, np.longdouble) - largest  # theta less the largest entry is between -mass and 0, however large the entries
    zero = np.zeros(largest.shape, np.longdouble)
    theta = _bisect(lambda theta: np.maximum(shifted - theta, 0.0).sum(axis=axis, keepdims=True) - mass, np.full_like(zero, -mass), zero)
    return np.asarray(np.maximum(shifted - theta, 0.0))


def box_simplex(v: AnyArray, mass: float, lower: AnyArray | float, upper: AnyArray | float) -> Long:
    """clip(v - theta, lower, upper) of a vector, with theta such that the sum is `mass`; bounds may be infinite."""
    v = np.asarray(v, np.longdouble)
    bounds = np.concatenate([np.atleast_1d(lower), np.atleast_1d(upper)])
    reach = 1.0 + 2.0 * np.abs(v).max() + abs(mass) + np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)
    bracket = np.full(1, v.size * reach, dtype=np.longdouble)
    theta = _bisect(lambda theta: np.clip(v - theta, lower, upper).sum(keepdims=True) - mass, -bracket, bracket)
    return np.asarray(np.clip(v - theta, lower, upper))


def l1_ball(v: AnyArray, radius: float, *, axis: int = -1, nonneg: bool = False) -> Long:
    """v where its absolute sum along `axis` is within `radius`, else the simplex projection of |v| with the signs of v."""
    v = _signed_part(v, nonneg)
    inside = np.abs(v).sum(axis=axis, keepdims=True) <= radius
    return np.asarray(np.where(inside, v, np.copysign(simplex(np.abs(v), radius, axis=axis), v)))


def l2_ball(A: AnyArray, radius: float, *, axis: int | None = None) -> Long:
    """A scaled down to a norm of `radius`, whole or along `axis`."""
    A = np.asarray(A, np.longdouble)
    norm = np.sqrt((A * A).sum(axis=axis, keepdims=True))
    return np.asarray(A * radius / np.maximum(norm, radius)) if radius else np.zeros_like(A)


def l12_ball(A: AnyArray, radius: float) -> Long:
    """Rows keep their direction; their norms are projected onto the l1 ball."""
    norms, directions = _polar(A)
    return np.asarray(l1_ball(norms[:, 0], radius)[:, None] * directions)


def prox_l12(A: AnyArray, weight: float) -> Long:
    """Rows keep their direction; their norms shrink by `weight`."""
    norms, directions = _polar(A)
    return np.asarray(np.maximum(norms - weight, 0.0) * directions)


def soft_threshold(A: AnyArray, threshold: float) -> Long:
    """Magnitudes shrink by `threshold`."""
    A = np.asarray(A, np.longdouble)
    return np.asarray(np.copysign(np.maximum(np.abs(A) - threshold, 0.0), A))


def l1inf_ball(A: AnyArray, radius: float, *, nonneg: bool = False) -> Long:
    """Magnitudes clipped at row maxima mu_j(theta) that sum to `radius`, each the largest of the lines (S_jk - theta) / k."""
    A = _signed_part(A, nonneg)
    magnitude = np.abs(A)
    if magnitude.max(axis=1, initial=0.0).sum() <= radius:
        return A
    sums = np.cumsum(-np.sort(-magnitude, axis=1), axis=1)
    count = np.arange(1, A.shape[1] + 1, dtype=np.longdouble)

    def maxima(theta: Long) -> Long:
        return np.asarray(np.maximum(((sums - theta) / count).max(axis=1), 0.0))

    theta = _bisect(lambda theta: maxima(theta).sum(keepdims=True) - radius, np.zeros(1, np.longdouble), sums[:, -1].max(keepdims=True))
    return np.asarray(np.copysign(np.minimum(magnitude, maxima(theta)[:, None]), A))


def prox_l1inf(A: AnyArray, weight: float, *, nonneg: bool = False) -> Long:
    """Magnitudes clipped at the mu_j for which each row loses `weight` in all; none is left of a row with less."""
    A = _signed_part(A, nonneg)
    magnitude = np.abs(A)
    small = magnitude.sum(axis=1, keepdims=True) <= weight
    high = np.where(small, 0.0, magnitude.max(axis=1, keepdims=True))
    mu = _bisect(lambda mu: np.maximum(magnitude - mu, 0.0).sum(axis=1, keepdims=True) - weight, np.zeros_like(high), high)
    return np.asarray(np.copysign(np.minimum(magnitude, mu), A))


def trace_ball(A: AnyArray, radius: float) -> Long:
    """LAPACK's singular vectors; the singular values are projected onto the l1 ball."""
    return _spectral(A, lambda values: l1_ball(values, radius))


def prox_trace(A: AnyArray, weight: float) -> Long:
    """LAPACK's singular vectors; the singular values shrink by `weight`."""
    return _spectral(A, lambda values: soft_threshold(values, weight))


def prox_squared_trace(A: AnyArray, weight: float) -> Long:
    """LAPACK's singular vectors; the singular values shrink by the theta that is `weight` times what is left of their sum."""

    def shrunk(values: AnyArray) -> Long:
        s = np.asarray(values, np.longdouble)
        theta = _bisect(
            lambda theta: weight * np.maximum(s - theta, 0.0).sum(keepdims=True) - theta, np.zeros(1, np.longdouble), s.max(keepdims=True)
        )
        return np.asarray(np.maximum(s - theta, 0.0))

    return _spectral(A, shrunk)


def _bisect(decreasing: Callable[[Long], Long], low: Long, high: Long) -> Long:
    """Return the roots of independent decreasing functions, between `low` and `high`, as exactly as long doubles hold them."""
    for _ in range(_MOST_HALVINGS):
        middle: Long = np.asarray((low + high) / 2, dtype=np.longdouble)
        if not np.any((low < middle) & (middle < high)):
            break
        above = decreasing(middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _signed_part(A: AnyArray, nonneg: bool) -> Long:
    return np.asarray(np.maximum(A, 0.0) if nonneg else A, dtype=np.longdouble)


def _polar(A: AnyArray) -> tuple[Long, Long]:
    """Row norms, as a column, and rows of norm one (of zeros where the norm is 0)."""
    A = np.asarray(A, np.longdouble)
    norms = np.sqrt((A * A).sum(axis=1, keepdims=True))
    return norms, np.asarray(A / np.where(norms > 0.0, norms, 1.0))


def _spectral(A: AnyArray, change: Callable[[Any], Long]) -> Long:
    U, values, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray((U * change(values)) @ Vt, dtype=np.longdouble)
