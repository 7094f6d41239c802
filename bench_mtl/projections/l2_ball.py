"""Projection onto Euclidean balls: the whole, or every row or column, and the shared way of a matrix through the compiled norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import floating_array, real_array, real_number, require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.border import projected, scratch_buffer

#: The powers of two by which every line is scaled, an array where they are not all 0.
Exponents: TypeAlias = Any
#: New norms, the powers of two by which these are scaled, and which lines stay as they are.
Goals: TypeAlias = tuple[Any, Exponents, NDArray[np.bool_]]

_SMALLEST, _LARGEST = 1e-120, 1e150  # the norms whose squares neither overflow nor lose what matters
_SMALLEST_FACTOR, _SMALLEST_NORMAL = 1e-150, 2.0**-1022
#: By how much a projection may exceed its radius: 4 u for the norm and the scaling, as much for the norm of the test, so that
#: projecting twice changes nothing.
TOLERANCE = 8 * 2.0**-53


def project_l2_ball(A: Any, radius: float | Array, *, axis: int | None = None, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_F <= radius; for `axis` 0 of every column, for 1 of every row by itself.

    The norm of B, not rounded, is at most radius (1 + 8 u) with u = 2^-53 (4 u for the norm of `kernels/norms.py` and the scaling), for
    float32 too, which is rounded towards zero. Where the computed norm satisfies that, B is `A`: projecting twice changes nothing.

    Parameters
    ----------
    A : array of shape (n,) or (d, m)
    radius : a number; with an axis also one for each ball
    axis : None for one ball, 0 for a ball a column (a task), 1 for a ball a row
    """
    A = floating_array("A", A, ndim=(1, 2))
    if not (axis is None or (isinstance(axis, (int, np.integer)) and axis in range(A.ndim))):
        raise InputError(f"axis must be None, 0 (columns) or 1 (rows of a matrix), not {axis!r}")
    radii = _radii(radius, None if axis is None or A.ndim == 1 else A.shape[1 - axis])

    def goals(norms: Array, exponents: Exponents) -> Goals:
        with np.errstate(over="ignore", under="ignore"):
            return radii, 0, norms <= np.ldexp(radii, exponents) * (1 + TOLERANCE)

    return scale_lines("A", A, None if A.ndim == 1 else axis, goals, out)


def _radii(radius: Any, balls: int | None) -> Any:
    """One number, or one for each of the balls."""
    if balls is None or np.ndim(radius) == 0:
        return real_number("radius", radius)
    radii = real_array("radius", radius, ndim=1)
    if len(radii) != balls or not (radii >= 0.0).all():
        raise InputError(f"radius must be one number of at least 0, or one for each of the {balls} balls")
    return radii


def scale_lines(name: str, A: AnyArray, axis: int | None, goals: Callable[[Array, Exponents], Goals], out: AnyArray | None) -> AnyArray:
    """Every line of `A` (`axis` 1 for rows, 0 for columns, None for the whole) scaled down from its norm to a goal.

    `goals` makes these of the norms and exponents of `line_norms`.
    """

    def compute(source: Array, result: Array) -> None:
        if source.size == 0:
            return
        norms, exponents = line_norms(name, source, axis)
        goal, shift, stay = goals(norms, exponents)
        with np.errstate(over="ignore", under="ignore"):
            factors = np.divide(np.ldexp(goal, exponents - shift), norms, out=np.ones_like(norms), where=~stay & (norms > 0.0))
            subnormal = ~stay & (np.ldexp(goal, -shift) < source.size * _SMALLEST_NORMAL)
        lines, results = _as_rows(source, axis), _as_rows(result, axis)
        far = np.flatnonzero(~stay & (factors < _SMALLEST_FACTOR) & (norms > 0.0))  # factors underflow where results may not
        if far.size:
            goal, shift, exponents = (np.broadcast_to(a, norms.shape)[far, None] for a in (goal, shift, exponents))
            scaled = np.ldexp(lines[far], exponents) / norms[far, None] * goal
        _scale(lines, results, factors)
        if far.size:
            with np.errstate(under="ignore"):
                results[far] = np.ldexp(scaled, -shift)
        if subnormal.any():  # results below the normal range round by absolute amounts, which add up
            smaller = results[subnormal]
            results[subnormal] = np.where(np.abs(smaller) < _SMALLEST_NORMAL, np.nextafter(smaller, 0.0), smaller)

    return projected(A, out, compute)


def _scale(lines: Array, results: Array, factors: Array) -> None:
    from bench_mtl.projections.kernels import norms as kernel

    if lines.flags.c_contiguous:
        kernel.scale_rows(lines, results, factors)
    else:
        kernel.scale_columns(lines.T, results.T, factors)


def line_norms(name: str, A: Array, axis: int | None) -> tuple[Array, Exponents]:
    """Norms and exponents: 2^exponent * line has the norm. The exponents are 0, or an array where squares of some line over- or underflow.

    `A` is in C order. Raises InputError: NaN or inf.
    """
    norms = _norms(A, axis)
    extreme = np.flatnonzero(((norms < _SMALLEST) & (norms > 0.0)) | ~(norms <= _LARGEST))
    if not len(extreme):
        return norms, 0
    if not np.isfinite(norms).all():
        require_finite(name, A)
    lines = np.ascontiguousarray(_as_rows(A, axis)[extreme])
    exponents = np.zeros(norms.shape, np.int32)
    exponents[extreme] = -np.frexp(np.abs(lines).max(axis=1))[1]
    norms[extreme] = _norms(np.ldexp(lines, exponents[extreme, None]), 1)
    return norms, exponents


def _norms(A: Array, axis: int | None) -> Array:
    from bench_mtl.projections.kernels import norms as kernel

    lines = _as_rows(A, axis)
    norms = np.empty(lines.shape[0])
    scratch = scratch_buffer("norms", 2 * kernel.LANES).reshape(2, kernel.LANES)
    if lines.flags.c_contiguous:
        kernel.row_norms(lines, norms, scratch)
    else:
        kernel.column_norms(lines.T, norms, scratch)
    return norms


def _as_rows(A: Array, axis: int | None) -> Array:
    """The lines of an array as the rows of a matrix, without a copy."""
    if axis is None or A.ndim == 1:
        return A.reshape(1, -1)
    return A.T if axis == 0 else A
