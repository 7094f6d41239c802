"""The l1,2 norm (group lasso, sum of row norms), the projection onto its ball and its proximal operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.checks import floating_array, real_number
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.l2_ball import TOLERANCE, Exponents, Goals, line_norms, scale_lines
from bench_mtl.projections.simplex import L1_BALL, project_lines

_HIGH, _LOW = 1000, -900  # exponents of norms that are close to overflow and underflow
_DOWN = 40  # the norm of 2^64 doubles, scaled by 2^-40, does not overflow


def norm_l12(A: Any) -> float:
    """||A||_{1,2} = sum_j ||A_j||_2 over the rows of a d x m matrix."""
    A = floating_array("A", A, ndim=(2,))
    if A.size == 0:
        return 0.0
    norms, exponents = line_norms("A", np.array(A, np.float64, order="C", copy=None), 1)
    shift = _common(norms, exponents)
    with np.errstate(over="ignore"):
        return float(np.ldexp(np.ldexp(norms, shift - exponents).sum(), -shift))


def _common(norms: Array, exponents: Exponents) -> int:
    """A power of two by which the norms of all lines can be scaled: 0, unless the largest over- or underflows."""
    if not np.ndim(exponents):
        return 0
    top = int((np.frexp(norms)[1] - exponents)[norms > 0.0].max())
    return -_DOWN if top > _HIGH else -top if top < _LOW else 0


def project_l12_ball(A: Any, radius: float, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to sum_j ||B_j||_2 <= radius over the rows of a d x m matrix.

    The row norms are projected onto the l1 ball, and the rows scaled to them. The norm of B, not rounded, is at most radius (1 + 16 u) with
    u = 2^-53 (4 u for the projection of the norms, 4 u for the norms and the scaling, as much for the test), for float32 too, which is
    rounded towards zero. Where that holds for the computed norm, B is `A`: projecting twice changes nothing.
    """
    A = floating_array("A", A, ndim=(2,))
    radius = real_number("radius", radius)

    def goals(norms: Array, exponents: Exponents) -> Goals:
        shift = _common(norms, exponents)
        with np.errstate(over="ignore", under="ignore"):
            keys = np.ldexp(norms, shift - exponents)
            scaled = min(float(np.ldexp(radius, shift)), float(np.finfo(float).max))
        if shift < 0 and radius < 2.0**_LOW:  # only those equal to the largest survive, scaled or not, and the radius is theirs
            scaled, shift = radius, 0
        new = project_lines(keys, scaled, L1_BALL._replace(tolerance=1.5 * TOLERANCE))
        return new, shift, (new >= keys) & (keys > 0.0)

    return scale_lines("A", A, 1, goals, out)


def prox_l12(A: Any, weight: float, *, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j ||B_j||_2 over the rows of a d x m matrix: A_j max(0, 1 - weight / ||A_j||_2).

    By Moreau's identity, A less the projection of each of its rows onto the Euclidean ball of radius `weight`.
    """
    A = floating_array("A", A, ndim=(2,))
    weight = real_number("weight", weight)

    def goals(norms: Array, exponents: Exponents) -> Goals:
        with np.errstate(over="ignore", under="ignore"):
            new = np.maximum(norms - np.ldexp(weight, exponents), 0.0)
        return new, exponents, new >= norms

    return scale_lines("A", A, 1, goals, out)
