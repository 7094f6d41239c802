"""The projection onto the l1,inf ball in NumPy, twice: as one would write it down, and with its temporary arrays and lost rows spared."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array


def plain(A: Array, radius: float, out: Array) -> Array:
    """Write argmin_B 1/2 ||B - A||_F^2 subject to sum_j max_k |B_jk| <= radius into `out`: sort the rows, sum, Newton on theta.

    The maximum of row j is max(0, max_k (S_jk - theta) / k), S_jk the sum of its k largest entries.
    """
    magnitude = np.abs(A)
    if magnitude.max(axis=1).sum() <= radius:
        out[...] = A
        return out
    sums = np.cumsum(-np.sort(-magnitude, axis=1), axis=1)
    count = np.arange(1.0, A.shape[1] + 1.0)
    theta = 0.0
    while True:
        lines = (sums - theta) / count
        best = lines.argmax(axis=1)
        maxima = np.maximum(np.take_along_axis(lines, best[:, None], axis=1), 0.0)
        step = (maxima.sum() - radius) / (1.0 / count[best[maxima[:, 0] > 0.0]]).sum()
        if step <= 1e-15 * theta:
            return np.copysign(np.minimum(magnitude, maxima), A, out=out)
        theta += step


def tuned(A: Array, radius: float, out: Array) -> Array:
    """The same, in place; rows that have vanished stay so as theta rises, and are dropped once they are the majority."""
    magnitude = np.abs(A)
    if magnitude.max(axis=1).sum() <= radius:
        np.copyto(out, A)
        return out
    sums = np.sort(magnitude, axis=1)[:, ::-1].cumsum(axis=1)
    count = np.arange(1.0, A.shape[1] + 1.0)
    rows, lines, theta = np.arange(len(A)), np.empty_like(sums), 0.0
    while True:
        np.subtract(sums, theta, out=lines)
        lines /= count
        best = lines.argmax(axis=1)
        maxima = lines[np.arange(len(lines)), best]
        active = maxima > 0.0
        step = (maxima[active].sum() - radius) / (1.0 / count[best[active]]).sum()
        if step <= 1e-15 * theta:
            break
        theta += step
        if 2 * np.count_nonzero(active) < len(sums):
            sums, rows = sums[active], rows[active]
            lines = lines[: len(sums)]
    limits = np.zeros((len(A), 1))
    limits[rows, 0] = np.maximum(maxima, 0.0)
    np.minimum(magnitude, limits, out=magnitude)
    return np.copysign(magnitude, A, out=out)
