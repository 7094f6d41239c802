"""Projections onto the simplex and the l1 ball, the shared way of vectors and matrices through their kernel, and soft thresholding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.checks import floating_array, one_of, real_number, require_finite, true_or_false
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.border import projected, scratch_buffer

METHODS = ("newton", "pivot", "sort")

_HUGE = 2.0**200  # by which a line is scaled down whose radius is so large that sums may overflow


class Keys(NamedTuple):
    """What is projected onto, in terms of the keys of entries: |v| if `absolute`, else v.

    In the `ball` (sum of positive keys at most radius (1 + tolerance): what the projection itself may leave) nothing changes but negative
    keys.
    """

    absolute: bool
    ball: bool
    tolerance: float = 4 * 2.0**-53


SIMPLEX, POSITIVE_BALL, L1_BALL = Keys(False, False), Keys(False, True), Keys(True, True)


def project_simplex(v: Any, mass: float = 1.0, *, method: str = "newton", axis: int = -1, out: AnyArray | None = None) -> AnyArray:
    """argmin_w 1/2 ||w - v||^2 subject to w >= 0, sum(w) = mass; of every row (or column) when `v` is a matrix.

    The sum of w, not rounded, is the mass up to a factor of 1 +- 4 u, with u = 2^-53 for float64 and 2^-24 for float32
    (`kernels/simplex.py` proves it); entries below the normal range are multiples of the smallest number, and the sum is off by n of it.

    Parameters
    ----------
    v : array of shape (n,) or (rows, n), n >= 1
    mass : the sum of the result (of each row)
    method : "newton", or "pivot" or "sort", the algorithms of figures 2 and 1 of Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008. They
        differ in time alone; the last two take memory in proportion to `v`.
    axis : -1 to project every row of a matrix, 0 every column
    """
    v = floating_array("v", v, ndim=(1, 2))
    mass = real_number("mass", mass)
    _require_axis(v, axis)
    if v.size == 0 and (v.ndim == 1 or v.shape[axis] == 0):
        raise InputError("v", v.shape, "have at least one entry in what is projected")
    return project_lines(v, mass, SIMPLEX, method=method, axis=axis, out=out)


def project_l1_ball(
    v: Any, radius: float, *, method: str = "newton", nonneg: bool = False, axis: int = -1, out: AnyArray | None = None
) -> AnyArray:
    """argmin_w 1/2 ||w - v||^2 subject to ||w||_1 <= radius (and w >= 0 if `nonneg`); of every row (or column) when `v` is a matrix.

    The norm of w, not rounded, is at most radius (1 + 4 u) with u = 2^-53 (`kernels/simplex.py` proves it), for float32 too, which is
    rounded towards zero. Where that holds for `v`, w is `v`: projecting twice changes nothing. It is the simplex projection of |v| with the
    signs put back (Duchi et al., ICML 2008, section 4).

    Parameters
    ----------
    v : array of shape (n,) or (rows, n)
    method : as in `project_simplex`
    nonneg : keep w non-negative as well: the projection of max(v, 0)
    axis : -1 to project every row of a matrix, 0 every column (one ball a task)
    """
    v = floating_array("v", v, ndim=(1, 2))
    radius, nonneg = real_number("radius", radius), true_or_false("nonneg", nonneg)
    return project_lines(v, radius, POSITIVE_BALL if nonneg else L1_BALL, method=method, axis=axis, out=out)


def soft_threshold(A: Any, threshold: float, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 + threshold * sum |B|, entry by entry: sign(A) max(|A| - threshold, 0), of an array of any shape."""
    A = floating_array("A", A)
    threshold = real_number("threshold", threshold)

    from bench_mtl.projections.kernels import norms as kernel

    def compute(source: Array, result: Array) -> None:
        if source is result:
            require_finite("A", source)  # before the first entry is overwritten
        if not kernel.soften(source.reshape(-1), result.reshape(-1), source is result, threshold):
            require_finite("A", source)

    return projected(A, out, compute, toward_zero=False)


def project_lines(
    v: AnyArray, radius: float, keys: Keys, *, method: str = "newton", axis: int = -1, out: AnyArray | None = None
) -> AnyArray:
    """The projections of this module, of checked `v` and `radius`."""
    one_of("method", method, METHODS)
    _require_axis(v, axis)
    if not keys.ball and radius > float(np.finfo(v.dtype).max):
        raise InputError("mass", radius, f"at most the largest number of {v.dtype}")

    def compute(source: Array, result: Array) -> None:
        if radius == 0.0 or (source is result and v.ndim == 2):  # before the first row is overwritten
            require_finite("v", source)
        if radius == 0.0 or v.size == 0:
            result.fill(0.0)
        elif axis == 0 and v.ndim == 2:
            lines = np.array(source.T, order="C")
            if not _project(lines, lines, radius, keys, method):
                require_finite("v", source)
            np.copyto(result, lines.T)
        elif not _project(*((source, result) if v.ndim == 2 else (source[None], result[None])), radius, keys, method):
            require_finite("v", source)

    return projected(v, out, compute, toward_zero=keys.ball)


def _require_axis(v: AnyArray, axis: Any) -> None:
    if not isinstance(axis, (int, np.integer)) or axis not in (-1, 0, v.ndim - 1):
        raise InputError("axis", axis, "-1, 0 or 1" if v.ndim == 2 else "-1 or 0")


def _project(lines: Array, results: Array, radius: float, keys: Keys, method: str) -> bool:
    """Every row of `lines` into `results`, which may be the same memory; False at the first that is not finite."""
    from bench_mtl.projections.kernels import simplex as kernel

    if radius > kernel.LARGEST_RADIUS:
        return _project_scaled(lines, results, radius, keys, method)
    scratch = scratch_buffer("simplex", kernel.SCRATCH)
    own = scratch[None, :0]
    if method != "newton":
        own = np.abs(lines) if keys.absolute else lines.copy()
    if method == "sort":
        own.sort(axis=-1)
    same = lines.ctypes.data == results.ctypes.data
    rule = (radius, *keys, {"newton": kernel.NEWTON, "sort": kernel.SORT, "pivot": kernel.PIVOT}[method])
    return bool(kernel.project_lines(lines, own, results, same, rule, scratch))


def _project_scaled(lines: Array, results: Array, radius: float, keys: Keys, method: str) -> bool:
    """`_project` where sums might overflow: of multiples by a power of two, which rounds only what is too small to matter."""
    whole = lines if keys.absolute else np.maximum(lines, 0.0)
    small = lines / _HUGE
    before = small.copy() if keys.absolute else np.maximum(small, 0.0)
    if not _project(small, small, radius / _HUGE, keys, method):
        return False
    inside = keys.ball & np.all(small == before, axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        np.copyto(results, np.where(inside, whole, small * _HUGE))
    return True
