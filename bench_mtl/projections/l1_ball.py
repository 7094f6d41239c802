"""Projection onto the l1 ball and its penalised twin, soft thresholding."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.checks import floating_array, real_number, require_finite, true_or_false
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.border import projected
from bench_mtl.projections.simplex import L1_BALL, POSITIVE_BALL, project_lines


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
