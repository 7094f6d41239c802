"""Singular values between bounds that hold in exact arithmetic: of the spectral norm and the trace norm of small dense matrices.

LAPACK promises no constant, so nothing is taken from it on trust: what it returns is checked by products whose error is bounded
(Rump, "Verification of positive definiteness", BIT 46, 2006, and "Verified bounds for singular values", BIT 51, 2011).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from bench_mtl.core.rounding import SAFE, SMALLEST, TINIEST, UNIT, Interval, down, euclidean_norms, gamma, up
from bench_mtl.core.types import Array

#: Beyond this many rows and columns norms are bounded by sums of moduli.
_LARGEST = 2000
#: A first guess of the square of the largest singular value is raised by this share, and by more where that does not do.
_RAISED = 1e-13


def frobenius_bound(A: Array) -> float:
    """Return an upper bound on ||A||_F."""
    entries = A.ravel(order="K")
    squares = float(entries @ entries)  # an order of summing is as good as another, and this one takes a tenth of the time on small ones
    if SAFE < squares < 1.0 / SAFE:
        return math.sqrt(squares) * (1.0 + gamma(A.size + 8))
    return float(euclidean_norms(A).item())


def enclose_spectral_norm(A: Array | Interval) -> Interval:
    """Return sigma_max(A), of a matrix of floats or of intervals."""
    if isinstance(A, Interval):
        inner, error = enclose_spectral_norm(A.middle), frobenius_bound(A.error)
        return Interval(max(0.0, down(inner.lower - error)), up(inner.upper + error))
    if not A.any():
        return Interval(0.0, 0.0)
    if not np.isfinite(A).all():
        return Interval(0.0, np.nan)
    exponent = _exponent(A)
    scaled = np.ldexp(A, -exponent)  # exact, but for what is lost below the range
    tall = scaled if A.shape[0] >= A.shape[1] else scaled.T
    lost = A.size * TINIEST
    low, high = _largest_singular_value(tall) if tall.shape[1] <= _LARGEST else _by_sums(tall)
    return _scaled_back(down(low - lost), up(high + lost), exponent)


def enclose_trace_norm(A: Array) -> Interval:
    """Return the sum of the singular values of a matrix of floats.

    With A = U S V^T + E as in `_factors`, s the sum of the entries of S, and p the smaller side, it is between ::

        s (1 - a) (1 - b) - sqrt(p) ||E||_F   and   s (1 + a) (1 + b) + sqrt(p) ||E||_F
    """
    if not A.any():
        return Interval(0.0, 0.0)
    if not np.isfinite(A).all():
        return Interval(0.0, np.nan)
    exponent = _exponent(A)
    scaled = np.ldexp(A, -exponent)
    root = math.sqrt(min(A.shape)) * (1.0 + 4.0 * UNIT)
    try:
        values, stretch, residual = _factors(scaled)
        total, spread = Interval.exact(values).sum() * stretch, up(root * residual)
        low, high = float(down(total.lower - spread)), float(up(total.upper + spread))
    except np.linalg.LinAlgError:
        low, high = 0.0, up(root * frobenius_bound(scaled))
    lost = 2.0 * A.size * A.size * TINIEST
    return _scaled_back(down(low - lost), up(high + lost), exponent)


def singular_value_bounds(A: Interval) -> Array:
    """Return upper bounds on the singular values of a matrix that is known between bounds, in descending order: with `_factors` of its
    middle each is at most s_i ||U||_2 ||V||_2 + ||E||_F, and what is between the bounds moves it by no more than its norm."""
    middle = A.middle
    if not np.isfinite(middle).all():
        return np.full(min(middle.shape), np.inf)
    exponent = _exponent(middle)
    try:
        values, stretch, residual = _factors(np.ldexp(middle, -exponent))
    except np.linalg.LinAlgError:
        return np.full(min(middle.shape), up(frobenius_bound(middle) + frobenius_bound(A.error)))
    bounds = up(up(values * stretch.upper) + (residual + middle.size * TINIEST)) + TINIEST
    return np.asarray(up(up(np.ldexp(bounds, exponent)) + (frobenius_bound(A.error) + SMALLEST)))


def _factors(A: Array) -> tuple[Array, Interval, float]:
    """Return the diagonal of S in descending order, bounds on how U and V stretch it, and one on ||E||_F, where A = U S V^T + E.

    U and V are near orthonormal ones: with a = ||U^T U - I||_F and b = ||V^T V - I||_F they stretch by (1 - a) (1 - b) to (1 + a) (1 + b).
    Raises numpy.linalg.LinAlgError: LAPACK finds none.
    """
    U, values, rows = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    factor, a, b = U * values, _from_orthonormal(U), _from_orthonormal(rows.T)
    products = gamma(len(rows) + 8) * frobenius_bound(factor) * frobenius_bound(rows)
    rounded = up(products + 2.0 * UNIT * frobenius_bound(A)) + A.size * TINIEST
    residual = float(up(frobenius_bound(A - factor @ rows) * (1.0 + 4.0 * UNIT) + rounded))
    return values, Interval(max(0.0, down(1.0 - up(a + b))), up(up(1.0 + a) * up(1.0 + b))), residual


def _largest_singular_value(A: Array) -> tuple[float, float]:
    """Return bounds on sigma_max of a tall matrix, from A^T A; its largest entry is about 1.

    If Cholesky's factorisation of M = t I - A^T A runs to its end, no eigenvalue of M is below -gamma_(p+1) trace M.
    """
    n, p = A.shape
    gram = A.T @ A
    size = frobenius_bound(A)
    slack = gamma(n + 8) * size * size * (1.0 + 8.0 * UNIT) + p * TINIEST
    if not gram.any():
        return 0.0, size
    guess = float(np.linalg.eigvalsh(gram)[-1])
    share = _RAISED
    while share < 1.0:
        square = guess * (1.0 + share)
        shifted = -gram
        shifted[np.diag_indices(p)] += square
        factor, failed = lapack.dpotrf(shifted, lower=1)
        if failed:
            share *= 8.0
            continue
        moved = gamma(p + 8) * float(np.trace(shifted)) * (1.0 + 8.0 * UNIT) + 4.0 * UNIT * square
        return _reached(A, factor, size), min(size, up(math.sqrt(up(up(square + moved) + slack))))
    return 0.0, size


def _reached(A: Array, factor: Array, size: float) -> float:
    """Return a lower bound on sigma_max(A): ||A v|| / ||v||, v by inverse iteration with the factor of t I - A^T A."""
    v = np.ones(A.shape[1])
    for _ in range(2):
        v = lapack.dpotrs(factor, v, lower=1)[0]
        v /= np.abs(v).max()
    n, p = A.shape
    length = frobenius_bound(v)
    shortest = float(np.linalg.norm(A @ v)) * (1.0 - gamma(n + 8)) - gamma(p + 8) * size * length
    return float(down(shortest / length))


def _by_sums(A: Array) -> tuple[float, float]:
    """Return the largest length of a column, and min(||A||_F, sqrt(||A||_1 ||A||_inf)), bounds on sigma_max."""
    sizes = Interval.exact(np.abs(A))
    sums = up(float(sizes.sum(axis=0).largest().upper) * float(sizes.sum(axis=1).largest().upper))
    columns = float(np.linalg.norm(A, axis=0).max()) * (1.0 - gamma(len(A) + 8))
    return max(0.0, columns), min(frobenius_bound(A), up(math.sqrt(sums)))


def _from_orthonormal(Q: Array) -> float:
    """Return an upper bound on ||Q^T Q - I||_F."""
    gram = Q.T @ Q
    gram[np.diag_indices(len(gram))] -= 1.0
    size = frobenius_bound(Q)
    return up(frobenius_bound(gram) * (1.0 + 4.0 * UNIT) + up(gamma(len(Q) + 8) * size * size * (1.0 + 4.0 * UNIT)))


def _exponent(A: Array) -> int:
    """Return the power of two that brings the largest entry near 1."""
    return int(np.frexp(np.abs(A).max(initial=0.0))[1])


def _scaled_back(low: float, high: float, exponent: int) -> Interval:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        back = Interval(down(low), up(high)).ldexp(exponent)
        return Interval(max(0.0, float(back.lower)), float(back.upper))
