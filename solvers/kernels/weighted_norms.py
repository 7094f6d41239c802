"""Projections in weighted norms, which are those of features that are scaled.

With V_j = W_j / t_j the norm of W is one of V with weights t: sum_j t_j max_k |V_jk|, sum_j t_j |v_j|, or (sum_j t_j^2 v_j^2)^(1/2). All
three projections search the root of a function that is convex and falls, by Newton's method from its left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered, selecting

#: More steps of Newton's method than a search takes.
_MAX_STEPS = 200

#: Norms that exceed the radius by this share are those of projected points.
_ROUNDING = 1e-15


@exact
def project_rows(V: Any, radius: float, penalised: bool, theta: float, t: Any) -> float:
    """V <- argmin 1/2 ||V - V'||^2 subject to sum_j t_j max_k |V'_jk| <= radius, or + theta times that sum where `penalised`.

    Returns theta: 0 where V is inside, -1 where it is out of scale.
    """
    d, m = V.shape
    sorted_rows, levels = np.empty((d, m)), np.empty(d)
    norm = 0.0
    for j in range(d):
        sorted_rows[j] = np.sort(-np.abs(V[j]))  # largest first, negated
        norm -= t[j] * sorted_rows[j, 0]
    if not norm < np.inf:
        return -1.0
    if not penalised:
        if norm <= radius * (1.0 + _ROUNDING):
            return 0.0
        theta = 0.0
        for _ in range(_MAX_STEPS):
            total, fall = 0.0, 0.0
            for j in range(d):
                level, count = _level(sorted_rows[j], theta * t[j])
                total += t[j] * level
                if count > 0:
                    fall += t[j] * t[j] / count
            if fall == 0.0 or total <= radius * (1.0 + _ROUNDING):
                break
            following = theta + (total - radius) / fall
            if not following > theta:
                break
            theta = following
    norm = 0.0
    for j in range(d):
        levels[j] = _level(sorted_rows[j], theta * t[j])[0]
        norm += t[j] * levels[j]
    factor = radius / norm if norm > radius and not penalised else 1.0  # in a tiny ball small differences are left of large sums
    for j in range(d):
        levels[j] *= factor
        for k in range(m):
            V[j, k] = min(max(V[j, k], -levels[j]), levels[j])
    return theta


@exact
def _level(negated: Any, mass: float) -> tuple[float, int]:
    """The level mu with sum_k max(|v_k| - mu, 0) = mass, 0 where there is none; and how many entries are cut, 0 where the row is 0.

    `negated` holds -|v_k|, the largest |v_k| first.
    """
    m = negated.size
    total = 0.0
    for k in range(m):
        total -= negated[k]
        if k + 1 == m or total + (k + 1) * negated[k + 1] >= mass:
            level = (total - mass) / (k + 1)
            return (level, k + 1) if level > 0.0 else (0.0, 0)
    return 0.0, 0


@exact
def project_weighted_l1(v: Any, radius: float, t: Any, theta: float) -> float:
    """v <- its projection onto sum_j t_j |v_j| <= radius, sign(v_j) max(|v_j| - theta t_j, 0); 0 is returned inside, -1 out of scale.

    The search begins at theta >= 0.
    """
    total, fall, count = _above(v, t, 0.0)
    if not total < np.inf:
        return -1.0
    if total <= radius:
        return 0.0
    if radius == 0.0:
        v[:] = 0.0
        return 0.0
    lowest = (total - radius) / fall
    theta = max(theta, lowest)
    total, fall, count = _above(v, t, theta)
    if count == 0.0:
        theta = lowest
        total, fall, count = _above(v, t, theta)
    for _ in range(_MAX_STEPS):
        if count == 0.0:
            break
        before, many = theta, count
        theta = max(theta + (total - radius) / fall, lowest)
        total, fall, count = _above(v, t, theta)
        if count == many or theta == before:  # sets at different theta contain one another, so that these are the same
            break
    theta = max(theta + (total - radius) / fall, 0.0) if count > 0.0 else theta  # below 0 by rounding, where v is hardly outside
    _soften(v, t, theta)
    return theta


@selecting
def _above(v: Any, t: Any, theta: float) -> tuple[float, float, float]:
    """sum_j t_j max(|v_j| - theta t_j, 0), how fast it falls with theta, and the number of its terms above 0."""
    total = 0.0
    fall = 0.0
    count = 0.0
    for j in range(v.size):
        rest = abs(v[j]) - theta * t[j]
        total += t[j] * rest if rest > 0.0 else 0.0
        fall += t[j] * t[j] if rest > 0.0 else 0.0
        count += 1.0 if rest > 0.0 else 0.0
    return total, fall, count


@selecting
def _soften(v: Any, t: Any, theta: float) -> None:
    for j in range(v.size):
        rest = abs(v[j]) - theta * t[j]
        v[j] = np.copysign(rest if rest > 0.0 else 0.0, v[j])


@exact
def project_weighted_l2(v: Any, radius: float, t: Any) -> float:
    """v <- its projection onto sum_j t_j^2 v_j^2 <= radius^2; returns theta, 0 inside, and -1 out of scale.

    v_j / (1 + theta t_j^2) for the root theta of 1 / ||t v(theta)|| - 1 / radius, which is nearly linear (More, Sorensen 1983).
    """
    theta = 0.0
    for _ in range(_MAX_STEPS):
        square, fall = _square(v, t, theta)
        if not square < np.inf:
            return -1.0
        length = np.sqrt(square)
        if fall == 0.0 or radius == 0.0 or length <= radius * (1.0 + _ROUNDING):
            break
        following = theta + square / fall * (length - radius) / radius
        if not following > theta:
            break
        theta = following
    if theta > 0.0 or radius == 0.0:
        for j in range(v.size):
            v[j] = v[j] / (1.0 + theta * t[j] * t[j]) if radius > 0.0 else 0.0
    return theta


@reordered
def _square(v: Any, t: Any, theta: float) -> tuple[float, float]:
    """sum_j t_j^2 v_j^2 at theta, and half of how fast it falls."""
    square = 0.0
    fall = 0.0
    for j in range(v.size):
        grown = 1.0 + theta * t[j] * t[j]
        share = t[j] * v[j] / grown
        square += share * share
        fall += share * share * t[j] * t[j] / grown
    return square, fall
