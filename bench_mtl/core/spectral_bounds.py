"""Singular values between bounds that hold in exact arithmetic: of the spectral norm and the trace norm of small dense matrices.

LAPACK promises no constant, so nothing is taken from it on trust: what it returns is checked by products whose error is bounded
(Rump, "Verification of positive definiteness", BIT 46, 2006, and "Verified bounds for singular values", BIT 51, 2011).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from bench_mtl.core.rounding import SAFE, TINIEST, UNIT, Interval, down, euclidean_norms, gamma, up
from bench_mtl.core.types import Array

#: Beyond this many rows and columns norms are bounded by sums of moduli.
_LARGEST = 2000

#: A first guess of the square of the largest singular value is raised by this share, and by more where that does not do.
_RAISED = 1e-13

#: Columns below this share of the longest are left out of a lower bound, and the relative width of bounds that is too much.
_SHORT, _ROOM = 1e-5, 1e-11


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

    Rotated by V, near right singular vectors, C = A V has columns c_i that are nearly orthogonal, and with e = ||V^T V - I||_F::

        ||A||_* <= ||C||_* ||V^-1||_2 <= sum_i ||c_i|| / sqrt(1 - e)
        ||A||_* >= ||C||_* / ||V||_2  >= <C, Z> / (||Z||_2 sqrt(1 + e)),    Z the columns of C scaled to length 1, but for short ones

    Where that leaves too much room, as singular values far below the largest may, the factors of A are computed.
    """
    if not A.any():
        return Interval(0.0, 0.0)
    if not np.isfinite(A).all():
        return Interval(0.0, np.nan)
    exponent = _exponent(A)
    scaled = np.ldexp(A, -exponent)
    try:
        low, high = _by_rotation(scaled if A.shape[0] >= A.shape[1] else scaled.T)
        if not high - low <= _ROOM * high:
            low, high = _by_factors(scaled)
    except np.linalg.LinAlgError:
        low, high = 0.0, up(math.sqrt(min(A.shape)) * frobenius_bound(scaled) * (1.0 + 4.0 * UNIT))
    lost = 2.0 * A.size * A.size * TINIEST
    return _scaled_back(down(low - lost), up(high + lost), exponent)


def _by_rotation(A: Array) -> tuple[float, float]:
    n, p = A.shape
    C, error, drift = _rotated(A)
    sizes = euclidean_norms(C, axis=0)[0]
    kept = sizes > _SHORT * sizes.max()
    skew = _from_orthonormal(C[:, kept] / sizes[kept])
    sums, spread = Interval.of_sum(sizes), up(math.sqrt(p) * error * (1.0 + 4.0 * UNIT))
    reached = float(Interval.of_sum(sizes[kept]).lower) * (1.0 - 8.0 * gamma(n + 8)) * (1.0 - skew)
    return down((reached - spread) * (1.0 - drift) * (1.0 - 8.0 * UNIT)), up(up(float(sums.upper) + spread) * up(1.0 + drift))


def _rotated(A: Array) -> tuple[Array, float, float]:
    """Return C near A V for nearly orthonormal V and nearly orthogonal columns of C, a bound on ||C - A V||_F, and one on ||V^T V - I||_F.

    Raises
    ------
    numpy.linalg.LinAlgError : no V is found that is any good.
    """
    V = np.linalg.eigh(A.T @ A)[1][:, ::-1]
    drift = _from_orthonormal(V)
    if not drift < 0.5:  # up to there 1 / sqrt(1 - e) is below 1 + e
        raise np.linalg.LinAlgError("eigenvectors are not orthonormal")
    return A @ V, up(gamma(len(V) + 8) * frobenius_bound(A) * frobenius_bound(V) * (1.0 + 4.0 * UNIT)), drift


def _by_factors(A: Array) -> tuple[float, float]:
    """With computed factors, A = U S V^T + E, and s the sum of the entries of S, ||A||_* is between ::

        s (1 - a) (1 - b) - sqrt(p) ||E||_F   and   s (1 + a) (1 + b) + sqrt(p) ||E||_F

    where a = ||U^T U - I||_F, b = ||V^T V - I||_F and p is the smaller side.
    """
    root = math.sqrt(min(A.shape)) * (1.0 + 4.0 * UNIT)
    U, values, rows = scipy.linalg.svd(A, full_matrices=False, check_finite=False)
    residual = up(root * _residual(A, U * values, rows))
    total = Interval.exact(values).sum()
    a, b = _from_orthonormal(U), _from_orthonormal(rows.T)
    stretched = total * Interval(max(0.0, 1.0 - up(a + b)), up(up(1.0 + a) * up(1.0 + b)))
    return float(down(stretched.lower - residual)), float(up(stretched.upper + residual))


def singular_value_bounds(A: Interval) -> Array:
    """Return upper bounds on the singular values of a matrix that is known between bounds, in descending order.

    With C = A V as in `enclose_trace_norm`, each is at most sqrt(||c_i||^2 + ||F||_F) / sqrt(1 - e), where F is C^T C but for its diagonal
    (Weyl, of C^T C), columns in descending order.
    """
    middle = A.middle
    count = min(middle.shape)
    if not np.isfinite(middle).all():
        return np.full(count, np.inf)
    exponent = _exponent(middle)
    scaled = np.ldexp(middle if middle.shape[0] >= middle.shape[1] else middle.T, -exponent)
    try:
        C, error, drift = _rotated(scaled)
    except np.linalg.LinAlgError:
        return np.full(count, up(frobenius_bound(middle) + frobenius_bound(A.error)))
    sizes = np.sort(euclidean_norms(C, axis=0)[0])[::-1]
    cross = C.T @ C
    cross[np.diag_indices(count)] = 0.0
    size = frobenius_bound(C)
    off = up(frobenius_bound(cross) + up(gamma(len(C) + 8) * size * size * (1.0 + 4.0 * UNIT)))
    raised = up(np.sqrt(up(up(sizes * sizes) + off)) * (1.0 + 4.0 * UNIT))
    bounds = up(up(raised + (error + A.middle.size * TINIEST)) * up(1.0 + drift)) + TINIEST
    return np.asarray(up(up(np.ldexp(bounds, exponent)) + frobenius_bound(A.error)))


def _residual(A: Array, factor: Array, rows: Array) -> float:
    """Return an upper bound on ||A - factor rows||_F."""
    products = gamma(len(rows) + 8) * frobenius_bound(factor) * frobenius_bound(rows)
    rounded = up(products + 2.0 * UNIT * frobenius_bound(A)) + A.size * TINIEST
    return float(up(frobenius_bound(A - factor @ rows) * (1.0 + 4.0 * UNIT) + rounded))


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
        return Interval(max(0.0, float(down(np.ldexp(low, exponent)))), float(up(np.ldexp(high, exponent))))
