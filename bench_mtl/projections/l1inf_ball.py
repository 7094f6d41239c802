"""The l1,inf norm, its dual, the projection onto its ball and its proximal operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.checks import real_array, real_number
from bench_mtl.projections.l1_ball import project_l1_ball
from bench_mtl.types import Array

_MAX_NEWTON_STEPS = 200


def norm_l1inf(A: Array) -> float:
    """||A||_{1,inf} = sum_j max_k |A_jk| of a d x m matrix."""
    return float(np.abs(A).max(axis=1, initial=0.0).sum())


def norm_linf1(A: Array) -> float:
    """||A||_{inf,1} = max_j sum_k |A_jk| of a d x m matrix, the dual norm of `norm_l1inf`."""
    return float(np.abs(A).sum(axis=1).max(initial=0.0))


def project_l1inf_ball(A: Any, radius: float) -> Array:
    """argmin_B 1/2 ||B - A||_F^2 subject to sum_j max_k |B_jk| <= radius.

    Parameters
    ----------
    A : array of shape (d, m)
    radius : at least 0

    Returns
    -------
    B : array of shape (d, m); B_jk = sign(A_jk) min(|A_jk|, mu_j), and B = A inside the ball.

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative radius.

    Notes
    -----
    The row maxima are mu_j(theta) = max(0, max_k (S_jk - theta) / k) with S_jk the sum of the k largest entries of
    |A_j.|, for the one theta with sum_j mu_j(theta) = radius (Quattoni, Carreras, Collins, Darrell, ICML 2009, lemma 3).
    The sum is convex, piecewise linear and decreasing, so Newton's method from a theta on its left rises to the root
    monotonically and ends after finitely many steps.
    """
    A = real_array("A", A, ndim=2)
    radius = real_number("radius", radius)
    magnitude = np.abs(A)
    if A.size == 0 or radius == 0.0:
        return np.zeros_like(A)
    scale = float(magnitude.max())  # entries near 1 keep sums from overflow and the stopping test relative
    if scale == 0.0:
        return A.copy()
    scaled = magnitude / scale
    if scaled.max(axis=1).sum() <= radius / scale:
        return A.copy()
    maxima = _row_maxima(scaled, radius / scale) * scale
    return np.copysign(np.minimum(magnitude, maxima[:, None]), A)


def prox_l1inf(A: Any, weight: float) -> Array:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j max_k |B_jk|.

    By Moreau's identity: A less the projection of each of its rows onto the l1 ball of radius `weight`.

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative weight.
    """
    A = real_array("A", A, ndim=2)
    weight = real_number("weight", weight)
    return A - project_l1_ball(A, weight)


def _row_maxima(magnitude: Array, radius: float) -> Array:
    """The mu of `project_l1inf_ball` for a non-negative matrix with entries up to 1 outside the ball.

    Works with delta = max_j S_jm - theta instead of theta, so that a small radius does not cancel against large sums:
    mu_j = max(0, max_k (delta - gap_jk) / k) with gap_jk = max_i S_im - S_jk, whose sum rises with delta, convexly.
    """
    d, m = magnitude.shape
    descending = -np.sort(-magnitude, axis=1)
    totals = descending.sum(axis=1)
    tails = np.cumsum(descending[:, :0:-1], axis=1)[:, ::-1]  # what the k largest entries of a row leave out, k = 1 .. m-1
    gaps = np.hstack([tails, np.zeros((d, 1))]) + (totals.max() - totals)[:, None]
    count = np.arange(1.0, m + 1.0)
    lowest, delta = radius / d, min(float(totals.max()), m * radius)  # sum mu is at most d delta, at least delta / m
    for _ in range(_MAX_NEWTON_STEPS):
        lines = (delta - gaps) / count
        best = lines.argmax(axis=1)
        maxima = np.maximum(np.take_along_axis(lines, best[:, None], axis=1)[:, 0], 0.0)
        active = maxima > 0.0
        if not active.any():  # a radius that underflows
            return maxima
        excess = float(maxima.sum()) - radius
        step = excess / float((1.0 / count[best[active]]).sum())
        if step <= 0.0 or delta - step == delta:  # Newton's method falls to the root monotonically, until rounding
            break
        delta = max(delta - step, lowest)
    total = float(maxima.sum())
    # What rounding is left is taken out by rescaling, which ends inside the ball to rounding of the radius.
    return maxima * (radius / total if total > radius else 1.0)
