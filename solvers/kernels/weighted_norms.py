"""Projections in weighted norms, which are those of features that are scaled.

With V_j = W_j / t_j the norm of W is one of V with weights t: sum_j t_j max_k |V_jk|, sum_j t_j |v_j|, or (sum_j t_j^2 v_j^2)^(1/2). All
three projections search the root of a function that is convex and falls, by Newton's method from its left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact

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
    for j in range(d):
        levels[j] = _level(sorted_rows[j], theta * t[j])[0]
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
def project_weighted_l1(v: Any, radius: float, t: Any) -> bool:
    """v <- its projection onto sum_j t_j |v_j| <= radius; False where it is out of scale."""
    theta = 0.0
    for _ in range(_MAX_STEPS):
        total, fall = 0.0, 0.0
        for j in range(v.size):
            size = abs(v[j]) - theta * t[j]
            if size > 0.0:
                total += t[j] * size
                fall += t[j] * t[j]
        if not total < np.inf:
            return False
        if fall == 0.0 or total <= radius * (1.0 + _ROUNDING):
            break
        following = theta + (total - radius) / fall
        if not following > theta:
            break
        theta = following
    for j in range(v.size):
        size = abs(v[j]) - theta * t[j]
        v[j] = np.copysign(size if size > 0.0 and radius > 0.0 else 0.0, v[j])
    return True


@exact
def project_weighted_l2(v: Any, radius: float, t: Any) -> bool:
    """v <- its projection onto sum_j t_j^2 v_j^2 <= radius^2; False where it is out of scale.

    v_j / (1 + theta t_j^2) for the root theta of 1 / ||t v(theta)|| - 1 / radius, which is nearly linear (More, Sorensen 1983).
    """
    theta = 0.0
    for _ in range(_MAX_STEPS):
        square, fall = 0.0, 0.0
        for j in range(v.size):
            own = t[j] * v[j] / (1.0 + theta * t[j] * t[j])
            square += own * own
            fall += own * own * t[j] * t[j] / (1.0 + theta * t[j] * t[j])
        if not square < np.inf:
            return False
        length = np.sqrt(square)
        if fall == 0.0 or radius == 0.0 or length <= radius * (1.0 + _ROUNDING):
            break
        following = theta + square / fall * (length - radius) / radius
        if not following > theta:
            break
        theta = following
    for j in range(v.size):
        v[j] = v[j] / (1.0 + theta * t[j] * t[j]) if radius > 0.0 else 0.0
    return True
