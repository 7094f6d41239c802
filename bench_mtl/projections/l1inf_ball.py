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
    The sum is convex, piecewise linear and decreasing, so Newton's method from theta = 0 rises to the root
    monotonically and ends after finitely many steps.
    """
    A = real_array("A", A, ndim=2)
    radius = real_number("radius", radius)
    magnitude = np.abs(A)
    if norm_l1inf(magnitude) <= radius:
        return A.copy()
    if radius == 0.0:
        return np.zeros_like(A)
    scale = float(magnitude.max())  # entries near 1 keep sums from overflow and the stopping test relative
    maxima = _row_maxima(magnitude / scale, radius / scale) * scale
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
    """The mu of `project_l1inf_ball` for a non-negative matrix outside the ball, radius > 0."""
    descending = -np.sort(-magnitude, axis=1)
    sums = np.cumsum(descending, axis=1)
    count = np.arange(1.0, magnitude.shape[1] + 1.0)
    theta = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        lines = (sums - theta) / count
        best = lines.argmax(axis=1)
        maxima = np.take_along_axis(lines, best[:, None], axis=1)[:, 0]
        positive = maxima > 0.0
        excess = float(maxima[positive].sum()) - radius
        step = excess / float((1.0 / count[best[positive]]).sum()) if positive.any() else 0.0
        if theta + step <= theta:  # the excess is zero, or below rounding
            break
        theta += step
    maxima = np.maximum(maxima, 0.0)
    # The maxima carry rounding at the size of the largest entry; rescaling ends inside the ball to rounding of the radius.
    return maxima * min(1.0, radius / float(maxima.sum()))
