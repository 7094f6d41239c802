"""The leading singular vectors that a shrinkage of singular values keeps, found in three ways.

All three take a finite float64 matrix A (d x n, d >= n, entries neither huge nor tiny) and a rule that maps descending singular values to
(theta, count): what is taken off the remaining values and how many those are; theta = 0 means that A is the answer. They return the right
singular vectors to keep, or None where they cannot answer to about 1e-13 of the largest singular value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from bench_mtl.core.types import Array

Rule: TypeAlias = Callable[[Array], tuple[float, int]]

_UNIT = float(np.finfo(np.float64).eps) / 2
#: Of theta to the largest singular value s. A Gram matrix is off by about 10 u s^2, what is kept therefore by up to 10 u s^2 / (2 theta).
_SMALLEST_GRAM_THRESHOLD = 1e-2
#: A singular value is off by up to sqrt(few u s^2) in a Gram matrix that is singular.
_GRAM_ROUNDING = 1e-7
#: Residual of a singular triplet relative to s at which it counts as found; the error of the answer is at most this.
_CONVERGED = 3e-14
#: Residual of the leading triplet, relative to s, that shows halfway that a Krylov space will not do.
_HOPELESS = 1e-2
#: Entries below this share of the largest are zero to `by_partial`.
_LOST = 1e-290
#: A vector shorter than this has squares that vanish.
_TINY = 1e-140
#: A unit vector of which less than this is outside a subspace is taken to lie in it; projecting any other away from it leaves few units of
#: rounding in it.
_CONTAINED = 0.1
#: Projections that make a random vector orthogonal to a subspace, even to one of almost all dimensions.
_ORTHOGONALISATIONS = 3
#: Up to this many columns one call of `eigh` is quickest.
_SMALL = 32


class Leading(NamedTuple):
    """The right singular vectors to keep, one a column (n x count, leading first), their values and the threshold."""

    vectors: Array
    values: Array
    theta: float


def by_svd(A: Array, rule: Rule) -> Leading:
    """From LAPACK's singular value decomposition, of the triangular QR factor where A is tall."""
    d, n = A.shape
    square = np.linalg.qr(A, mode="r") if 2 * d > 3 * n else A
    try:
        _, values, rows = scipy.linalg.svd(square, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:  # divide and conquer can fail to converge where QR iteration does not
        _, values, rows = scipy.linalg.svd(square, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    theta, count = rule(values)
    return Leading(rows[:count].T, values[:count], theta)


def by_gram(A: Array, rule: Rule) -> Leading | None:
    """From the eigenvalues of A^T A and the eigenvectors of those retained; None where squaring has cost too many digits.

    Values come before vectors: the tridiagonal form gives all eigenvalues cheaply, they give theta, and only vectors above it are computed.
    """
    G = A.T @ A
    n = len(G)
    form = None
    try:
        if n <= _SMALL:
            values, vectors = np.linalg.eigh(G)
        else:
            reflectors, diagonal, off_diagonal, tau, info = lapack.dsytrd(G.T, lower=1, lwork=64 * len(G), overwrite_a=1)
            form = _Tridiagonal(_checked(reflectors, info), diagonal, off_diagonal, tau)
            values = _checked(*lapack.dsterf(form.diagonal, form.off_diagonal))
    except np.linalg.LinAlgError:
        return None
    values = np.sqrt(np.maximum(values[::-1], 0.0))
    theta, count = rule(values)
    if theta < _SMALLEST_GRAM_THRESHOLD * values[0]:
        inside = rule(values + _GRAM_ROUNDING * values[0])[0] == 0.0  # by more than rounding
        return Leading(np.empty((n, 0)), values[:0], 0.0) if inside else None
    if count == 0:  # of no vectors LAPACK knows nothing
        return Leading(np.empty((n, 0)), values[:0], theta)
    try:
        return Leading((vectors if form is None else form.vectors(count))[:, : -count - 1 : -1], values[:count], theta)
    except np.linalg.LinAlgError:
        return None


class _Tridiagonal(NamedTuple):
    """Q T Q^T with T tridiagonal and Q in Householder form, as LAPACK's sytrd leaves it."""

    reflectors: Array
    diagonal: Array
    off_diagonal: Array
    tau: Array

    def vectors(self, count: int) -> Array:
        """The eigenvectors of the `count` largest eigenvalues, in ascending order."""
        n = len(self.diagonal)
        if 6 * count < n:
            padded = np.append(self.off_diagonal, 0.0)
            _, _, found, info = lapack.dstemr(self.diagonal, padded, 2, 0.0, 0.0, n - count + 1, n, compute_v=1)
            found = _checked(found, info)[:, :count]
        else:
            found = _checked(*lapack.dstevd(self.diagonal, self.off_diagonal)[1:])[:, n - count :]
        # The reflectors leave the first coordinate alone; below it they are those of a QR factorisation.
        found = np.array(found, order="F")
        lower = np.asfortranarray(found[1:])
        turned, _, info = lapack.dormqr("L", "N", self.reflectors[1:, :-1], self.tau, lower, lwork=64 * (count + 65), overwrite_c=1)
        found[1:] = _checked(turned, info)
        return found


def _checked(result: Array, info: int) -> Array:
    if info:
        raise np.linalg.LinAlgError(f"LAPACK returned {info}")
    return result


def by_partial(A: Array, rule: Rule, start: Array | None, columns: int) -> Leading | None:
    """From a Krylov space of A^T A of up to `columns` dimensions; None unless certified.

    Block Golub-Kahan bidiagonalisation with full reorthogonalisation: A V = U B and A^T U = V B^T + W S e^T, with W S the last, still
    outer block. The singular triplets (s, U x, V y) of A that B gives have A V y = s U x exactly and A^T U x = s V y up to S x_last. So the
    answer is that for a matrix at most ||S x_last||_F away, and projections and proximal operators do not expand errors, provided
    that what is left of A without those retained has no singular value above theta: the certificate.
    """
    d, n = A.shape
    A = _without_lost(A)
    fresh = np.random.default_rng(0).standard_normal((n, 1))
    block = fresh if start is None else np.hstack([start, fresh])  # a start that misses a direction altogether still finds it
    width = block.shape[1]
    columns = min(columns, n - width)
    if columns < width:
        return None
    V, U, B = np.empty((n, columns + width), order="F"), np.empty((d, columns), order="F"), np.zeros((columns, columns))
    V[:, :width] = np.linalg.qr(block)[0]
    size, check, unseen, total = 0, width, math.inf, squared_norm(A)
    while size + width <= columns:
        old, new = slice(0, size), slice(size, size + width)
        U[:, new], B[old, new], B[new, new] = _orthonormal(A @ V[:, new], U[:, old])
        size += width
        V[:, size : size + width], _, S = _orthonormal(A.T @ U[:, new], V[:, :size])
        last = size + width > columns
        if size < check and not last:
            continue
        X, values, Y = np.linalg.svd(B[:size, :size])
        theta, count = rule(values)
        residuals = np.linalg.norm(S @ X[size - width :, : count + 1], axis=0)
        unseen, before = total - float(values @ values), unseen
        if np.linalg.norm(residuals[:count]) <= _CONVERGED * values[0]:
            found = Leading(V[:, :size] @ Y[:count].T, values[:count], theta)
            if rest_bound(values[count:], unseen, total) <= theta**2:
                return found
            if last or unseen > before / 2:  # more columns would not help the bound
                return found if nothing_larger_is_left(A, found.vectors, theta) else None
        elif 2 * size >= columns and residuals[0] > _HOPELESS * values[0]:
            return None
        check = size + max(4, size // 3)
    return None


def _without_lost(A: Array) -> Array:
    """A with entries that no digit of the others sees made zero: among the smallest doubles their directions would have no digits."""
    sizes = np.abs(A)
    lost = (sizes < _LOST * sizes.max(initial=0.0)) & (sizes > 0.0)
    return np.where(lost, 0.0, A) if lost.any() else A


def _orthonormal(block: Array, basis: Array) -> tuple[Array, Array, Array]:
    """(Q, H, R) with block = basis H + Q R and Q orthonormal, also to the basis, even where the block is (almost) in its span."""
    H = basis.T @ block
    block = block - basis @ H
    correction = basis.T @ block
    Q, R = _qr(block - basis @ correction)
    if np.abs(np.diagonal(R)).min() <= 1e-8 * np.abs(H).max(initial=0.0):  # Q then is mostly rounding, which the basis may well contain
        residual = block - basis @ correction
        # Largest first, so that columns of rounding take nothing from the others.
        Q = np.asarray(scipy.linalg.qr(residual, mode="economic", pivoting=True)[0], dtype=np.float64)
        Q, turn = np.linalg.qr(Q - basis @ (basis.T @ Q))
        contained = np.abs(np.diagonal(turn)) < _CONTAINED
        if contained.any():  # then what was left is rounding again, and any other direction will do
            Q[:, contained] = np.random.default_rng(len(basis)).standard_normal((len(Q), np.count_nonzero(contained)))
            for _ in range(_ORTHOGONALISATIONS):
                Q = np.linalg.qr(Q - basis @ (basis.T @ Q))[0]
        R = Q.T @ residual
    return Q, H + correction, R


def _qr(block: Array) -> tuple[Array, Array]:
    """QR factors; of one ordinary column without LAPACK, whose call takes longer than the column."""
    length = np.linalg.norm(block)
    if block.shape[1] > 1 or length < _TINY:
        return np.linalg.qr(block)
    return block / length, np.array([[length]])


def rest_bound(following: Array, unseen: float, total: float) -> float:
    """An upper bound of the square of the largest singular value that A has beside the leading ones: the certificate that costs nothing.

    By a split into columns it is at most following[0]^2 + unseen, where `following` are the singular values of A in the space V beside
    the leading ones and unseen = ||A||_F^2 - ||A V||_F^2, a difference that is known to rounding of `total` = ||A||_F^2.
    """
    return float(following[:1] @ following[:1]) + unseen + 1e-13 * total


def nothing_larger_is_left(A: Array, vectors: Array, theta: float) -> bool:
    """Whether A without the singular `vectors` has no singular value above theta: theta^2 I - rest^T rest has a Cholesky factorisation."""
    image = A @ vectors
    largest, n = float(np.linalg.norm(image, axis=0).max(initial=0.0)), A.shape[1]
    rest = image @ vectors.T
    np.subtract(A, rest, out=rest)
    margin = 8 * n * _UNIT * max(theta, largest) ** 2  # of the product and of the factorisation
    slack = -(rest.T @ rest)
    slack[np.diag_indices(n)] += theta**2 - margin
    return theta**2 > margin and bool(lapack.dpotrf(slack.T, lower=1, overwrite_a=1, clean=0)[1] == 0)


def squared_norm(A: Array) -> float:
    """||A||_F^2 of a matrix in one block of memory."""
    flat = A.ravel(order="K")
    return float(np.vdot(flat, flat))
