"""Projection onto the simplex, and the shared way of a vector or a matrix through the compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.checks import floating_array, one_of, real_number, require_finite, result_array
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray
from bench_mtl.projections.aliasing import separated
from bench_mtl.projections.scratch import scratch_buffer

METHODS = ("newton", "filter", "pivot", "sort")

_SMALL = 1 << 17  # doubles that a thread keeps for lines that are not contiguous
_TOGETHER = 8  # strided lines copied at a time: they share their cache lines
_HUGE = 2.0**200  # by which a line is scaled down whose radius is so large that sums may overflow


def project_simplex(v: Any, mass: float = 1.0, *, method: str = "newton", axis: int = -1, out: AnyArray | None = None) -> AnyArray:
    """argmin_w 1/2 ||w - v||^2 subject to w >= 0, sum(w) = mass; of every row (or column) when `v` is a matrix.

    Parameters
    ----------
    v : array of shape (n,) or (rows, n), n >= 1, float32 or float64 (others become float64)
    mass : the sum of the result (of each row), at least 0
    method : "newton", "filter" (Condat, Math. Prog. 2016), "pivot" (Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, figure 2) or "sort"
        (their figure 1). They differ in time alone; the last three take memory in proportion to `v`.
    axis : -1 to project every row of a matrix, 0 every column
    out : where to write the result, may be `v` itself

    Returns
    -------
    w : array of the shape and type of `v`; its sum, not rounded, is the mass up to a factor of 1 +- 4 u, with u = 2^-53 for float64
        and 2^-24 for float32 (`kernels/simplex.py` proves it)

    Raises
    ------
    InputError : NaN or inf, no entry, more than two dimensions, a negative mass, an `out` that does not fit.
    """
    v = floating_array("v", v, ndim=(1, 2))
    mass = real_number("mass", mass)
    _require_axis(v, axis)
    if v.size == 0 and (v.ndim == 1 or v.shape[axis] == 0):
        raise InputError(f"v must have at least one entry in what is projected, but has shape {v.shape}")
    return project_lines(v, mass, method=method, axis=axis, out=out, absolute=False, ball=False)


def project_lines(
    v: AnyArray,
    radius: float,
    *,
    method: str = "newton",
    axis: int = -1,
    out: AnyArray | None = None,
    absolute: bool,
    ball: bool,
    tolerance: float = 4 * 2.0**-53,
) -> AnyArray:
    """The projections of this module and of `l1_ball`, of checked `v` and `radius`.

    Keys are |v| if `absolute`, else v. In the `ball` (sum of positive keys at most radius (1 + tolerance): what the projection
    itself may leave) nothing changes but negative keys.
    """
    one_of("method", method, METHODS)
    _require_axis(v, axis)
    target = result_array(out, v)
    v, same = separated(v, out)
    if same and v.ndim == 2:
        require_finite("v", v)  # before the first row is overwritten
    if v.size == 0:
        return target
    if radius == 0.0:
        require_finite("v", v)
        target.fill(0.0)
        return target
    tiny = float(np.finfo(v.dtype).tiny)
    if ball and radius < v.size * tiny:  # results below the normal range round by absolute amounts, which add up
        keys = (np.abs(v) if absolute else np.maximum(v, 0)).astype(np.float64)
        outside = keys.sum(axis=axis, keepdims=True) > radius * (1 + tolerance)
        _through(v, target, same, radius, method, axis, absolute, ball, tolerance)
        return np.nextafter(target, 0.0, out=target, where=outside & (np.abs(target) < tiny), dtype=v.dtype)
    _through(v, target, same, radius, method, axis, absolute, ball, tolerance)
    return target


def _require_axis(v: AnyArray, axis: Any) -> None:
    if not isinstance(axis, (int, np.integer)) or axis not in (-1, 0, v.ndim - 1):
        raise InputError(f"axis must be -1 or 0, not {axis!r}")


def _through(
    v: AnyArray, target: AnyArray, same: bool, radius: float, method: str, axis: int, absolute: bool, ball: bool, tolerance: float
) -> None:
    """Write the projection of `v` to `target`."""
    if not _project(_rows(v, axis), _rows(target, axis), same, radius, method, absolute, ball, tolerance):
        require_finite("v", v)


def _rows(a: AnyArray, axis: int) -> AnyArray:
    """What is projected as the rows of a matrix, without a copy."""
    return a[None, :] if a.ndim == 1 else (a.T if axis == 0 else a)


def _project(
    lines: AnyArray, results: AnyArray, same: bool, radius: float, method: str, absolute: bool, ball: bool, tolerance: float
) -> bool:
    """Every row of `lines` into `results`; contiguous ones at once, others by way of a contiguous copy of a few at a time."""
    if _plain(results):
        if not same and not (_plain(lines) and lines.flags.writeable):  # one compiled variant is enough
            np.copyto(results, lines)
            lines, same = results, True
        return _compiled(lines, results, same, radius, method, absolute, ball, tolerance)
    count, length = lines.shape
    together = min(count, max(_TOGETHER, _SMALL // length))
    block = scratch_buffer("simplex lines", _SMALL) if together * length <= _SMALL else np.empty(together * length)
    block = block.view(lines.dtype)[: together * length].reshape(together, length)
    for start in range(0, count, together):
        part = block[: min(together, count - start)]
        np.copyto(part, lines[start : start + together])
        if not _compiled(part, part, True, radius, method, absolute, ball, tolerance):
            return False
        np.copyto(results[start : start + together], part)
    return True


def _plain(a: AnyArray) -> bool:
    return bool(a.flags.c_contiguous and a.flags.aligned)


def _compiled(
    lines: AnyArray, results: AnyArray, same: bool, radius: float, method: str, absolute: bool, ball: bool, tolerance: float
) -> bool:
    """Every row of contiguous `lines`; False at the first that is not finite."""
    from bench_mtl.projections.kernels import simplex as kernel

    scratch = scratch_buffer("simplex", kernel.SCRATCH)
    keys = scratch[None, :0]
    if method == "sort":
        keys = np.sort((np.abs(lines) if absolute else lines).astype(np.float64), axis=-1)
    elif method in ("pivot", "filter"):
        keys = np.empty((1, lines.shape[1]))
    # Results of float32 are rounded downwards in a ball, so that they stay inside it to the rounding of a double.
    shrink = 1.0 - 2.0**-24 if ball and lines.dtype == np.float32 else 1.0
    code = {"newton": kernel.NEWTON, "sort": kernel.SORT, "pivot": kernel.PIVOT, "filter": kernel.FILTER}[method]
    start = 0
    while True:
        some = keys[start:] if method == "sort" else keys
        refused = kernel.project_lines(lines[start:], some, results[start:], same, radius, absolute, ball, tolerance, code, shrink, scratch)
        if refused < 0:
            return True
        row = slice(start + refused, start + refused + 1)
        start += refused + 1
        if not np.isfinite(lines[row]).all():
            return False
        if radius <= kernel.LARGEST_RADIUS:  # a sum overflows, so the radius is small against the largest key
            one, far = scratch[None, :0], kernel.FAR
            kernel.project_lines(lines[row], one, results[row], same, radius, absolute, ball, tolerance, far, shrink, scratch)
        else:
            _scaled(lines[row], results[row], radius, method, absolute, ball, tolerance)
        if start == len(lines):
            return True


def _scaled(line: AnyArray, result: AnyArray, radius: float, method: str, absolute: bool, ball: bool, tolerance: float) -> None:
    """The projection of one row onto a ball or simplex so large that sums of terms might overflow."""
    small = line.astype(np.float64) * (1 / _HUGE)  # a power of two, which rounds only what is too small to matter
    before = small.copy() if absolute else np.maximum(small, 0)
    _compiled(small, small, True, radius / _HUGE, method, absolute, ball, tolerance)
    if ball and np.array_equal(small, before):  # inside: what is small stays
        np.copyto(result, line if absolute else np.maximum(line, 0))
    else:
        with np.errstate(over="ignore"):
            np.multiply(small, _HUGE, out=result, casting="same_kind")
