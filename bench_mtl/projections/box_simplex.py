"""Projection onto the part of a simplex that lies within a box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench_mtl.core.checks import floating_array, real_number, require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.border import projected, scratch_buffer

_SLACK = 1e-14  # a mass this close to what the bounds allow is what they allow: their sums round too


def project_box_simplex(v: Any, mass: float, lower: Any, upper: Any, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_w 1/2 ||w - v||^2 subject to sum(w) = mass, lower <= w <= upper, by a bracketed Newton search for the threshold.

    The result is exactly within the bounds (float32: within the bounds rounded to it); its sum is the mass to a few units in the last place
    of the largest partial sum. Raises InputError for bounds that cross, and a mass that no w within them has, too. The closing slide of
    Singer's lecture on l1 projections asks for this one.

    Parameters
    ----------
    v : array of shape (n,)
    mass : any finite number between the sums of the bounds
    lower, upper : numbers, or arrays of shape (n,); -inf and inf for none
    """
    v = floating_array("v", v, ndim=(1,))
    mass = real_number("mass", mass, minimum=-math.inf)
    lower, upper = _bound("lower", lower, v), _bound("upper", upper, v)
    if np.any(lower > upper):
        raise InputError("lower must not exceed upper")
    if np.any(lower == np.inf) or np.any(upper == -np.inf):
        raise InputError("lower must be below inf and upper above -inf")
    with np.errstate(over="ignore"):
        low, high = _total(lower, v.size), _total(upper, v.size)
    if low == np.inf or high == -np.inf or mass < low - _slack(lower, v.size) or mass > high + _slack(upper, v.size):
        raise InputError("mass", mass, f"between the sums of lower and upper, {low:g} and {high:g}")

    def compute(source: Array, result: Array) -> None:
        from bench_mtl.projections.kernels import box as kernel

        if v.size == 0:
            return
        bits = v.size.bit_length() + 3  # that sums may take; a larger scale would lose digits of a small mass or small bounds
        huge = max(float(np.abs(source).max()), abs(mass)) > 2.0 ** (1023 - bits)
        scale = 2.0**-bits if huge else 1.0
        scratch = scratch_buffer("box", kernel.ROWS * kernel.LANES).reshape(kernel.ROWS, kernel.LANES)
        if not kernel.project(source * scale if huge else source, mass * scale, lower * scale, upper * scale, result, scratch):
            require_finite("v", source)
        if huge:
            np.clip(result / scale, lower, upper, out=result)  # the bounds may have rounded

    return projected(v, out, compute, toward_zero=False)


def _bound(name: str, value: Any, v: AnyArray) -> Array:
    """A bound as an array of as many entries as `v`, or of one."""
    try:
        bound = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be a number or an array of numbers: {error}") from None
    if bound.shape not in ((), v.shape):
        raise InputError(f"{name} must be a number or have shape {v.shape}, but has shape {bound.shape}")
    if np.isnan(bound).any():
        raise InputError(f"{name} has NaN at index {int(np.isnan(bound).argmax())}: only numbers are allowed")
    return np.atleast_1d(bound)


def _total(bound: Array, n: int) -> float:
    return float(bound[0] * n if bound.size == 1 and n else bound.sum() if n else 0.0)


def _slack(bound: Array, n: int) -> float:
    """How far the sum of a bound may be off by rounding."""
    return _SLACK * _total(np.where(np.isfinite(bound), np.abs(bound), 0.0), n)
