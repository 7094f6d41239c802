"""The primal half of a step as in `saddle`, with a ball of its own for every column of W."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered, selecting
from bench_mtl.core.kernels.vectors import dot, squared_distance
from bench_mtl.solvers.pdhg.kernels.saddle import ANCHOR, EXTRAPOLATED, GRADIENT, POINT, STEPPED
from bench_mtl.solvers.pdhg.kernels.saddle_passes import combine

#: Newton's method rises to the threshold from its left, in fewer steps than this (`kernels/simplex.py`).
_MAX_STEPS = 200


@exact
def ball_step(primal: Any, tau: float, one_norm: bool, radii: Any, thresholds: Any, mix: Any) -> float:
    """W+ and 2 W+ - W, and the point where it goes on to; returns ||W+ - W||^2, or -1 where the numbers are out of scale.

    Parameters
    ----------
    one_norm : l1 balls, else l2
    radii : one a column
    thresholds : one a column: where the searches of l1 balls begin, and what they end at
    mix : p, q and r, as of `saddle.primal_step`
    """
    point, anchor, stepped = primal[POINT].reshape(-1), primal[ANCHOR].reshape(-1), primal[STEPPED].reshape(-1)
    extrapolated, gradient = primal[EXTRAPOLATED].reshape(-1), primal[GRADIENT].reshape(-1)
    d, m = primal.shape[1:]
    combine(point, 1.0, gradient, tau, gradient, 0.0, stepped)
    V = primal[STEPPED]
    column = np.empty(d)
    for k in range(m):
        for j in range(d):
            column[j] = V[j, k]
        if one_norm:
            thresholds[k] = project_l1(column, radii[k], thresholds[k])
            if thresholds[k] < 0.0:
                return -1.0
        elif not project_l2(column, radii[k]):
            return -1.0
        for j in range(d):
            V[j, k] = column[j]
    combine(stepped, 2.0, point, -1.0, point, 0.0, extrapolated)
    moved = squared_distance(stepped, point)
    combine(stepped, mix[0], point, mix[1], anchor, mix[2], point)
    return moved


@exact
def project_l1(v: Any, radius: float, theta: float) -> float:
    """v <- its projection onto an l1 ball, to rounding; returns the threshold, 0 inside, and -1 where v is out of scale.

    A Newton step from any theta ends at or below the root of the excess sum max(|v| - theta, 0) - radius, which is convex and falls.
    """
    size = _size(v)
    if not size < np.inf:
        return -1.0
    if size <= radius:
        return 0.0
    if radius == 0.0:
        v[:] = 0.0
        return 0.0
    lowest = (size - radius) / v.size  # of no more than all entries
    theta = max(theta, lowest)
    total, count = _above(v, theta)
    if count == 0.0:
        theta = lowest
        total, count = _above(v, theta)
    for _ in range(_MAX_STEPS):
        following = max(theta + (total - radius) / count, lowest)
        total, now = _above(v, following)
        settled = now == count or following == theta
        theta, count = following, now
        if settled or count == 0.0:
            break
    theta = max(theta + (total - radius) / count, 0.0) if count > 0.0 else theta  # below 0 by rounding, where v is hardly outside
    _soften(v, theta)
    return theta


@exact
def project_l2(v: Any, radius: float) -> bool:
    """v <- its projection onto an l2 ball, to rounding; False where squares of v are out of scale."""
    square = dot(v, v)
    if not square < np.inf:
        return False
    if square > radius * radius:
        scale = radius / np.sqrt(square)
        for j in range(v.size):
            v[j] *= scale
    return True


@reordered
def _size(v: Any) -> float:
    total = 0.0
    for j in range(v.size):
        total += abs(v[j])
    return total


@selecting
def _above(v: Any, theta: float) -> tuple[float, float]:
    """sum of max(|v| - theta, 0), and how many entries are above."""
    total = 0.0
    count = 0.0
    for j in range(v.size):
        term = abs(v[j]) - theta
        total += term if term > 0.0 else 0.0
        count += 1.0 if term > 0.0 else 0.0
    return total, count


@selecting
def _soften(v: Any, theta: float) -> None:
    for j in range(v.size):
        size = abs(v[j]) - theta
        size = size if size > 0.0 else 0.0
        v[j] = np.copysign(size, v[j])
