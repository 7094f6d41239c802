"""Projection onto Euclidean balls: the whole, or every row or column, and the shared way of a matrix through the compiled norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench_mtl.checks import floating_array, real_number, require_finite, result_array
from bench_mtl.errors import InputError
from bench_mtl.projections.scratch import own_scratch
from bench_mtl.types import AnyArray, Array

#: By how much a projection may exceed its radius: 4 u for the norm and the scaling, as much for the norm of the test, so that
#: projecting twice changes nothing.
TOLERANCE = 8 * 2.0**-53


def project_l2_ball(A: Any, radius: float, *, axis: int | None = None, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_F <= radius; for `axis` 0 of every column, for 1 of every row by itself.

    Parameters
    ----------
    A : array of shape (n,) or (d, m), float32 or float64 (others become float64)
    radius : at least 0
    axis : None for one ball, 0 for a ball a column (a task), 1 for a ball a row
    out : where to write the result, may be `A` itself

    Returns
    -------
    B : array of the shape and type of `A`; its norm, not rounded, is at most radius (1 + 8 u) with u = 2^-53 (4 u for the norm of
        `kernels/norms.py` and the scaling), for float32 too, which is rounded towards zero. Where the computed norm satisfies
        that, B is `A`: projecting twice changes nothing.

    Raises
    ------
    InputError : NaN or inf, not one or two dimensions, a negative radius, an axis that is none, an `out` that does not fit.
    """
    A = floating_array("A", A, ndim=(1, 2))
    radius = real_number("radius", radius)
    if axis not in ((None, 0, 1) if A.ndim == 2 else (None, 0)):
        raise InputError(f"axis must be None, 0 (columns) or 1 (rows of a matrix), not {axis!r}")

    def goals(norms: Array, scale: float) -> Array:
        return np.where(norms <= _product(radius * (1 + TOLERANCE), scale), norms, _product(radius, scale))

    return scale_lines("A", A, None if A.ndim == 1 else axis, goals, out)


def scale_lines(name: str, A: AnyArray, axis: int | None, goals: Callable[[Array, float], Array], out: AnyArray | None) -> AnyArray:
    """Every line of `A` scaled from its norm to a goal.

    Parameters
    ----------
    axis : 1 for rows, 0 for columns, None for the whole
    goals : (norms, scale) -> new norms, where the norms are those of scale * A
    """
    target = result_array(out, A)
    same = False
    if out is not None and np.may_share_memory(A, out):
        same = A is out or (A.ctypes.data == out.ctypes.data and A.strides == out.strides)
        A = A if same else A.copy()
    if A.size == 0:
        return target
    work = target
    if not _dense(target):
        work = np.empty(A.shape, A.dtype)
    if work is not target or not (same or (A.flags.writeable and A.flags.aligned and A.strides == work.strides)):
        np.copyto(work, A)  # one memory order and one compiled variant are enough
        A, same = work, True
    scale, norms = line_norms(name, A, axis)
    if scale != 1.0:
        A, same = A * scale, False
    lines, results, rows = _as_rows(A, axis), _as_rows(work, axis), True
    if not lines.flags.c_contiguous:
        lines, results, rows = lines.T, results.T, False
    shrink = 1.0 - 2.0**-24 if A.dtype == np.float32 else 1.0  # float32 is rounded downwards

    from bench_mtl.kernels import norms as kernel

    new = goals(norms, scale)
    if rows:
        kernel.scale_rows(lines, results, same, norms, new, shrink)
    else:
        kernel.scale_columns(lines, results, norms, new, shrink)
    if scale != 1.0:
        work /= scale
    tiny = float(np.finfo(A.dtype).tiny)
    low = (new < norms) & (new / scale < A.size * tiny)
    if low.any():  # results below the normal range round by absolute amounts, which add up
        where = low[:, None] if axis == 1 else low
        np.nextafter(work, 0.0, out=work, where=where & (np.abs(work) < tiny), dtype=work.dtype)
    if work is not target:
        np.copyto(target, work)
    return target


def line_norms(name: str, A: AnyArray, axis: int | None) -> tuple[float, Array]:
    """A power of two `scale` and the norms of the lines of scale * A: 1, unless squares overflow, or underflow in every line.

    `A` is dense, in C or Fortran order.

    Raises
    ------
    InputError : NaN or inf.
    """
    norms = _norms(A, axis)
    largest = float(norms.max(initial=0.0))
    if 1e-120 < largest < np.inf:
        return 1.0, norms
    require_finite(name, A)
    size = float(np.abs(A).max(initial=0.0))
    if size == 0.0:
        return 1.0, norms
    scale = 2.0 ** float(np.clip(-np.frexp(size)[1], -1000, 1000))
    return scale, _norms(A * scale, axis)


def _norms(A: AnyArray, axis: int | None) -> Array:
    from bench_mtl.kernels import norms as kernel

    lines = _as_rows(A, axis)
    norms = np.empty(lines.shape[0])
    scratch = own_scratch("norms", 2 * kernel.LANES).reshape(2, kernel.LANES)
    if lines.flags.c_contiguous:
        kernel.row_norms(lines, norms, scratch)
    else:
        kernel.column_norms(lines.T, norms, scratch)
    return norms


def _as_rows(A: AnyArray, axis: int | None) -> AnyArray:
    """The lines of a dense array as the rows of a matrix, without a copy."""
    if axis is None or A.ndim == 1:
        return A.reshape(1, -1) if A.flags.c_contiguous else A.T.reshape(1, -1)
    return A.T if axis == 0 else A


def _dense(a: AnyArray) -> bool:
    return bool(a.flags.aligned and (a.flags.c_contiguous or a.flags.f_contiguous))


def _product(radius: float, scale: float) -> float:
    """radius * scale without overflow."""
    return min(radius * scale, np.finfo(float).max)
