"""Projections onto Euclidean balls, of the whole or of lines, and onto the ball of the l1,2 norm (group lasso, sum of row norms)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import floating_array, real_array, real_number, require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.border import projected, scratch_buffer
from bench_mtl.projections.simplex import L1_BALL, project_lines

#: The powers of two by which every line is scaled, an array where they are not all 0.
Exponents: TypeAlias = Any
#: New norms, the powers of two by which these are scaled, and which lines stay as they are.
Goals: TypeAlias = tuple[Any, Exponents, NDArray[np.bool_]]

_SMALLEST, _LARGEST = 1e-120, 1e150  # the norms whose squares neither overflow nor lose what matters
_SMALLEST_FACTOR, _SMALLEST_NORMAL = 1e-150, 2.0**-1022
#: By how much a projection may exceed its radius: 4 u for the norm and the scaling, as much for the norm of the test, so that
#: projecting twice changes nothing.
_TOLERANCE = 8 * 2.0**-53
_HIGH, _LOW = 1000, -900  # exponents of norms that are close to overflow and underflow
_DOWN = 40  # the norm of 2^64 doubles, scaled by 2^-40, does not overflow


def project_l2_ball(A: Any, radius: float | Array, *, axis: int | None = None, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_F <= radius; for `axis` 0 of every column, for 1 of every row by itself.

    The norm of B, not rounded, is at most radius (1 + 8 u) with u = 2^-53 (4 u for the norm of `kernels/norms.py` and the scaling), for
    float32 too, which is rounded towards zero. Where the computed norm satisfies that, B is `A`: projecting twice changes nothing.

    Parameters
    ----------
    A : array of shape (n,) or (d, m)
    radius : a number; with an axis also one for each ball
    axis : None for one ball, 0 for a ball a column (a task), 1 or -1 for a ball a row
    """
    A = floating_array("A", A, ndim=(1, 2))
    if isinstance(axis, (int, np.integer)) and axis == -1:
        axis = A.ndim - 1
    if not (axis is None or (isinstance(axis, (int, np.integer)) and axis in range(A.ndim))):
        raise InputError("axis", axis, "None, 0 (columns), 1 or -1 (rows of a matrix)")
    radii = _radii(radius, None if axis is None or A.ndim == 1 else A.shape[1 - axis])

    def goals(norms: Array, exponents: Exponents) -> Goals:
        with np.errstate(over="ignore", under="ignore"):
            return radii, 0, norms <= np.ldexp(radii, exponents) * (1 + _TOLERANCE)

    return scale_lines("A", A, None if A.ndim == 1 else axis, goals, out)


def _radii(radius: Any, balls: int | None) -> Any:
    """One number, or one for each of the balls."""
    if balls is None or radius is None or np.isscalar(radius) or getattr(radius, "ndim", 1) == 0:
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


def norm_l12(A: Any) -> float:
    """||A||_{1,2} = sum_j ||A_j||_2 over the rows of a d x m matrix."""
    A = floating_array("A", A, ndim=(2,))
    if A.size == 0:
        return 0.0
    norms, exponents = line_norms("A", np.array(A, np.float64, order="C", copy=None), 1)
    shift = _common(norms, exponents)
    with np.errstate(over="ignore"):
        return float(np.ldexp(np.ldexp(norms, shift - exponents).sum(), -shift))


def _common(norms: Array, exponents: Exponents) -> int:
    """A power of two by which the norms of all lines can be scaled: 0, unless the largest over- or underflows."""
    if not np.ndim(exponents):
        return 0
    top = int((np.frexp(norms)[1] - exponents)[norms > 0.0].max())
    return -_DOWN if top > _HIGH else -top if top < _LOW else 0


def project_l12_ball(A: Any, radius: float, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to sum_j ||B_j||_2 <= radius over the rows of a d x m matrix.

    The row norms are projected onto the l1 ball, and the rows scaled to them. The norm of B, not rounded, is at most radius (1 + 16 u) with
    u = 2^-53 (4 u for the projection of the norms, 4 u for the norms and the scaling, as much for the test), for float32 too, which is
    rounded towards zero. Where that holds for the computed norm, B is `A`: projecting twice changes nothing.
    """
    A = floating_array("A", A, ndim=(2,))
    radius = real_number("radius", radius)

    def goals(norms: Array, exponents: Exponents) -> Goals:
        shift = _common(norms, exponents)
        with np.errstate(over="ignore", under="ignore"):
            keys = np.ldexp(norms, shift - exponents)
            scaled = min(float(np.ldexp(radius, shift)), float(np.finfo(float).max))
        if shift < 0 and radius < 2.0**_LOW:  # only those equal to the largest survive, scaled or not, and the radius is theirs
            scaled, shift = radius, 0
        new = project_lines(keys, scaled, L1_BALL._replace(tolerance=1.5 * _TOLERANCE))
        return new, shift, (new >= keys) & ((keys > 0.0) | np.array_equal(new, keys))

    return scale_lines("A", A, 1, goals, out)


def prox_l12(A: Any, weight: float, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j ||B_j||_2 over the rows of a d x m matrix: A_j max(0, 1 - weight / ||A_j||_2).

    By Moreau's identity, A less the projection of each of its rows onto the Euclidean ball of radius `weight`.
    """
    A = floating_array("A", A, ndim=(2,))
    weight = real_number("weight", weight)

    def goals(norms: Array, exponents: Exponents) -> Goals:
        with np.errstate(over="ignore", under="ignore"):
            new = np.maximum(norms - np.ldexp(weight, exponents), 0.0)
        return new, exponents, new >= norms

    return scale_lines("A", A, 1, goals, out)
