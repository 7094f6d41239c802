"""Euclidean norms of the lines of a matrix, and the scaling of these lines; entrywise soft thresholding.

A norm is the root of a sum of squares that is compensated in every step, so its relative error is at most 2 u (u = 2^-53): half of u for
the squares, half for their sum, one for the root. A scaled entry x * (goal / norm) carries two more roundings.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined, reordered
from bench_mtl.projections.kernels.sums import two_sum

LANES = 512  # columns, or entries of a long row, that are summed side by side
_SHORT = 64  # a row summed entry by entry
_BLOCK = 2048
_TINIEST = 5e-324


@exact
def _add_squares(x: Any, total: Any, error: Any) -> None:
    """total[i] + error[i] += x[i]^2 (in every lane)."""
    for i in range(x.size):
        total[i], lost = two_sum(total[i], x[i] * x[i])
        error[i] += lost


@exact
def _square_sum(x: Any, total: Any, error: Any) -> float:
    """The sum of squares of one row; `total` and `error` are scratch of `LANES` entries."""
    whole = 0.0
    rest = 0.0
    if x.size <= _SHORT:
        for i in range(x.size):
            whole, lost = two_sum(whole, x[i] * x[i])
            rest += lost
        return whole + rest
    width = min(LANES, x.size)
    total[:width] = 0.0
    error[:width] = 0.0
    for start in range(0, x.size, LANES):
        _add_squares(x[start : min(start + LANES, x.size)], total, error)
    for i in range(width):
        whole, lost = two_sum(whole, total[i])
        rest += lost + error[i]
    return whole + rest


@exact
def _vanished(x: Any) -> float:
    """Return a stand-in for the norm of a line whose squares all vanish: 0 only where every entry is 0."""
    for i in range(x.size):
        if x[i] != 0.0:
            return _TINIEST
    return 0.0


@exact
def row_norms(A: Any, norms: Any, scratch: Any) -> None:
    """||A_j||_2 of every row of a C-contiguous matrix; 0 only of rows of zeros (`_vanished`)."""
    for j in range(A.shape[0]):
        norms[j] = math.sqrt(_square_sum(A[j], scratch[0], scratch[1]))
        if norms[j] == 0.0:
            norms[j] = _vanished(A[j])


@exact
def column_norms(A: Any, norms: Any, scratch: Any) -> None:
    """||A_.k||_2 of every column of a C-contiguous matrix, some columns at a time; 0 only of columns of zeros."""
    columns = A.shape[1]
    for start in range(0, columns, LANES):
        stop = min(start + LANES, columns)
        total = scratch[0, : stop - start]
        error = scratch[1, : stop - start]
        total[:] = 0.0
        error[:] = 0.0
        for j in range(A.shape[0]):
            _add_squares(A[j, start:stop], total, error)
        for k in range(stop - start):
            norms[start + k] = math.sqrt(total[k] + error[k])
            if norms[start + k] == 0.0:
                norms[start + k] = _vanished(A[:, start + k])


@exact
def scale_rows(A: Any, out: Any, factors: Any) -> None:
    """out_j = A_j factor_j; `out` may be A."""
    for j in range(A.shape[0]):
        _scale(A[j], out[j], factors[j])


@exact
def _scale(x: Any, out: Any, factor: float) -> None:
    for i in range(x.size):
        out[i] = x[i] * factor


@exact
def scale_columns(A: Any, out: Any, factors: Any) -> None:
    """`scale_rows` for columns."""
    for j in range(A.shape[0]):
        for k in range(A.shape[1]):
            out[j, k] = A[j, k] * factors[k]


@reordered
def _size(x: Any) -> float:
    total = 0.0
    for i in range(x.size):
        total += abs(x[i])
    return total


@exact
def finite(x: Any) -> bool:
    """Whether every entry is finite."""
    all_finite = True
    for i in range(x.size):
        all_finite = bool(all_finite and abs(x[i]) < np.inf)
    return all_finite


@inlined
def _soften(x: Any, out: Any, threshold: float) -> None:
    for i in range(x.size):
        t = abs(x[i]) - threshold
        out[i] = math.copysign(t if t > 0.0 else 0.0, x[i])


@exact
def soften(x: Any, out: Any, same: bool, threshold: float) -> bool:
    """Soft thresholding of a contiguous vector in one pass (`same` where out is x); False as soon as a block is not finite."""
    for start in range(0, x.size, _BLOCK):
        stop = min(start + _BLOCK, x.size)
        block, result = x[start:stop], out[start:stop]
        if not _size(block) < np.inf and not finite(block):  # finite entries may have no finite sum
            return False
        if same:  # the compiler must know to vectorise
            _soften(result, result, threshold)
        else:
            _soften(block, result, threshold)
    return True
