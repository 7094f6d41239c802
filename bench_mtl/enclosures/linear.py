"""Enclosures of linear images, and solutions of linear equations near a point, in floats and proven."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.rounding import TINIEST, UNIT, Interval, down, euclidean_norms, gamma, up
from bench_mtl.core.types import Array

#: Up to so many entries a right inverse is made, whose boxes are tighter than those by the least singular value; and up to so many where
#: that value is not proven to be above 0.
_INVERTED, _INVERTED_LAST = 500_000, 2_000_000
#: Of matrices with more entries, zeros included, and more nonzeros than these nothing is factored.
_MOST_ENTRIES, _MOST_NONZEROS = 50_000_000, 200_000
#: Eigenvalues of larger matrices without a radius are bounded by a Cholesky factor, from a little below 0.
_BY_EIGENVECTORS = 400
#: Columns of more nonzeros are left out of a normal matrix that has more entries than that.
_MOST_IN_A_COLUMN = 500
#: Products with such a matrix and its transpose for a least-squares solution, at the most.
_PASSES = 60
#: More unknowns than these, in a matrix with more than this share of entries, are solved for by normal equations.
_SMALL, _DENSE_SHARE = 4000, 0.05
#: Largest denominator of the multiples of rows by which another follows from them.
_DENOMINATOR = 60
#: Terms of such combinations, of all rows together, in floats and in exact arithmetic, which is 1000 times slower.
_MOST_TERMS, _MOST_EXACT_TERMS = 50_000_000, 1_000_000
#: What floats leave of a row that may follow from others, relative to the largest entry of all of them.
_ALMOST_NOTHING = 1e-9


def is_too_large(A: Any) -> bool:
    """Return whether a sparse matrix is too large to be factored: what is left are products with it."""
    return math.prod(A.shape) > _MOST_ENTRIES and A.nnz > _MOST_NONZEROS


def image(A: Any, x: Array, radius: Array | None = None, b: Array | float = 0.0) -> Interval:
    """Enclose A x + b for every x within `radius` of x; A is CSR."""
    counts, size = np.diff(A.indptr), abs(A)
    radius = np.zeros(len(x)) if radius is None else radius
    terms = int(counts.max(initial=0)) + 4
    spread = size @ radius
    lost = terms * TINIEST * (size @ ((x != 0.0) | (radius != 0.0)) > 0.0)
    error = gamma(terms) * (size @ np.abs(x) + np.abs(b)) + spread + lost
    exact = (counts == 1) & (np.abs(A.sum(axis=1)) == 1.0) & (spread == 0.0)  # one entry of x, or minus it, plus b: rounded once
    return Interval.around(A @ x + b, np.where(exact, 0.0, error * (1.0 + 4.0 * gamma(terms))))


def value_of(a: Array, x: Array, radius: Array, P: Any = None) -> Interval:
    """Enclose a^T x + 1/2 x^T P x for every x within `radius` of x."""
    linear = image(sp.csr_array(a[None, :]), x, radius)[0]
    return linear if P is None else linear + (image(P, x, radius) * Interval.around(x, radius)).sum() * 0.5


def least_products(r: Interval, low: Array, high: Array) -> Array:
    """Return lower bounds on r_j x_j for low <= x <= high, 0 times infinity being 0."""

    def product(a: Array, end: Array) -> Array:
        value = np.where((a == 0.0) | (end == 0.0), 0.0, a * end)
        return np.where(np.isfinite(value), down(value) - TINIEST * ((a != 0.0) & (end != 0.0)), value)

    return np.minimum.reduce([product(a, end) for a in (r.lower, r.upper) for end in (low, high)])


class Equations:
    """M v = t, with M k x N, CSR, k <= N, whose v is sought near 0 in units of its own for each entry, N numbers above 0.

    With `by_products` nothing is factored, as of matrices that are too large.

    Rows that depend on others, and matrices that are too large, are met as well as may be in floats, and prove nothing. Columns with many
    entries, without which a matrix is not too large, are left out: v is 0 there.
    """

    def __init__(self, M: Any, units: Array, *, by_products: bool = False) -> None:
        self.M = M
        self.units = _powers_of_two(units)  # so that scaling rounds nothing
        scaled = sp.csr_array(M @ sp.diags_array(self.units))
        self._used = np.ones(M.shape[1], dtype=bool)
        if is_too_large(scaled):
            sparse = np.bincount(scaled.indices, minlength=M.shape[1]) <= _MOST_IN_A_COLUMN
            without = sp.csr_array(scaled[:, sparse])
            if without.shape[0] <= without.shape[1] and not is_too_large(without):
                self._used, scaled = sparse, without
        norms = np.sqrt(np.asarray(scaled.power(2).sum(axis=1)).ravel())
        self._scale = _powers_of_two(1.0 / np.maximum(norms, 1e-200))
        self.scaled = sp.csr_array(sp.diags_array(self._scale) @ scaled)
        self.is_too_large = by_products or is_too_large(self.scaled)
        k, N = self.scaled.shape
        self._is_dense = not self.is_too_large and k <= N and self.scaled.nnz > _DENSE_SHARE * k * N

    @property
    def obstacle(self) -> str:
        """Why `reach` is None."""
        return f"are too large (more than {_MOST_NONZEROS} nonzeros)" if self.is_too_large else "depend on each other"

    def solve(self, t: Array) -> Array:
        """Return about the v with M v = t that is the least in its units; t may have columns."""
        if not len(t):
            return np.zeros(len(self.units))
        right = (self._scale * t.T).T
        u = self._by_factors(right)
        for _ in range(0 if self.is_too_large else 2):
            u = u + self._by_factors(right - self.scaled @ u)
        v = np.zeros((len(self.units), *u.shape[1:]))
        v[self._used] = (self.units[self._used] * u.T).T
        return v

    def reach(self, rho: Interval) -> Array | None:
        """Return how far from 0, entry by entry, some v with M v = r is at the most, for every r in rho; None where that is not proven."""
        entries, most = math.prod(self.M.shape), rho.magnitude().upper
        if not most.any():
            return np.zeros(self.M.shape[1])
        if self.is_too_large:
            return None
        most = np.maximum(most, 1e-300)
        if entries <= _INVERTED or (entries <= _INVERTED_LAST and self.least_singular_value <= 0.0):
            return self._reach_by_inverse(most)
        least = self.least_singular_value
        if least <= 0.0:
            return None
        length = float(euclidean_norms(self._scale * most + TINIEST)[0])
        return np.where(self._used, up(self.units * up(length / least)) + TINIEST, 0.0)

    def _reach_by_inverse(self, most: Array) -> Array | None:
        """By v = X u, u = r + (I - M X) u, for a right inverse X in floats."""
        X, residue = self._right_inverse
        size = most
        for _ in range(3):
            size = most + 4.0 * residue @ size
        part = ((residue @ size) / size).max(initial=0.0) * (1.0 + gamma(len(size) + 8))
        if not part < 0.5:
            return None
        return np.asarray((np.abs(X) @ (size / (1.0 - part))) * (1.0 + gamma(len(size) + 16)) + len(size) * TINIEST)

    @cached_property
    def _right_inverse(self) -> tuple[Array, Array]:
        """X, and upper bounds on |I - M X|, entry by entry."""
        k, N = self.M.shape
        X = self.solve(np.eye(k))
        size = gamma(int(np.diff(self.M.indptr).max(initial=0)) + 8) * (abs(self.M) @ np.abs(X) + 1.0)
        return X, (np.abs(self.M @ X - np.eye(k)) + size) * (1.0 + gamma(N + 8)) + N * TINIEST

    @cached_property
    def least_singular_value(self) -> float:
        """A lower bound on the least singular value of the scaled rows; 0 where none is proven.

        All eigenvalues of A A^T are at least those of K, which is A A^T in floats, less ||K - A A^T||.
        """
        k, N = self.scaled.shape
        if self.is_too_large or k > N or self._normal is None:
            return 0.0
        x, least = np.random.default_rng(0).standard_normal(k), 0.0
        for _ in range(12):  # inverse iterations
            solved = self._normal(x / np.linalg.norm(x))
            least, x = 1.0 / float(np.linalg.norm(solved)), solved
        trace = float(self._gram.diagonal().sum()) * (1.0 + gamma(k + N + 8))
        lost = gamma(int(np.diff(self.scaled.indptr).max(initial=0)) + 4) * trace + k * N * TINIEST
        shift = 0.5 * least
        bound = down(eigenvalues_by_factor(self._gram, shift, _factor(self._gram, shift)) - lost) if shift > 4.0 * lost else 0.0
        return float(down(math.sqrt(bound))) if bound > 0.0 else 0.0

    @cached_property
    def _gram(self) -> Any:
        """A A^T in floats, dense or CSR; of many rows without the columns that would fill it, so that its eigenvalues are less."""
        A: Any = self.scaled.toarray() if self._is_dense else self.scaled
        if len(self._scale) ** 2 > _MOST_ENTRIES:
            A = A[:, np.bincount(A.indices, minlength=A.shape[1]) <= _MOST_IN_A_COLUMN]
        return A @ A.T

    @cached_property
    def _normal(self) -> Any:
        """Solves (A A^T) x = b in floats; None where A A^T has no factor."""
        try:
            if not self._is_dense:
                return sp.linalg.splu(sp.csc_array(self._gram)).solve
            factor = scipy.linalg.cho_factor(self._gram, lower=True, check_finite=False)
        except (RuntimeError, np.linalg.LinAlgError):
            return None
        return lambda b: scipy.linalg.cho_solve(factor, b, check_finite=False)

    @cached_property
    def _by_factors(self) -> Any:
        """Solves A u = b for the u of least length in floats."""
        A = self.scaled
        k, N = A.shape
        if self.is_too_large:
            return lambda b: sp.linalg.lsmr(A, b, atol=1e-12, btol=1e-12, maxiter=_PASSES)[0]
        if self._is_dense and k + N > _SMALL and self._normal is not None:
            return lambda b: A.T @ self._normal(b)
        system = sp.csc_array(sp.block_array([[-1e-15 * sp.eye_array(k), A], [A.T, -sp.eye_array(N)]]))
        lu = sp.linalg.splu(system)

        def solve(b: Array) -> Array:
            right = np.concatenate((b, np.zeros((N, *b.shape[1:]))))
            z = lu.solve(right)
            return np.asarray((z + lu.solve(right - system @ z))[k:])

        return solve


def least_eigenvalue(K: Any, R: Array | None = None) -> float:
    """Return a lower bound on the eigenvalues of every symmetric matrix within R of K, which may be CSR; -inf where none is proven."""
    n = K.shape[0]
    if n <= _BY_EIGENVECTORS or R is not None:
        K = K if isinstance(K, np.ndarray) else K.toarray()
        D, V = np.linalg.eigh(K)
        shift = float(D[0] - 4.0 * n * UNIT * np.abs(D).max())
        return eigenvalues_by_factor(K, shift, V * np.sqrt(np.maximum(D - shift, 0.0)), R)
    if is_too_large(K):
        return -np.inf
    K = K.toarray() if not isinstance(K, np.ndarray) and K.nnz > _DENSE_SHARE * n * n else K
    shift = -8.0 * n * UNIT * float(abs(K).sum(axis=1).max())
    return eigenvalues_by_factor(K, shift, _factor(K, shift))


def eigenvalues_by_factor(K: Any, shift: float, factor: Any, R: Array | None = None) -> float:
    """Return a lower bound, near `shift`, on the eigenvalues of the symmetric part of every matrix within R of K, dense or CSR.

    For any F they are at least shift - ||K - shift I - F F^T|| - ||R||. It is -inf where there is no F.
    """
    if factor is None:
        return -np.inf
    ones, terms = np.ones(K.shape[0]), K.shape[0] + 8
    size = abs(factor) @ (abs(factor).T @ ones) + abs(K) @ ones + abs(K).T @ ones + abs(shift)
    rest = abs(_shifted(K, shift) - factor @ factor.T)
    rest = rest if R is None else rest + R
    error = np.maximum(rest @ ones, rest.T @ ones) * (1.0 + gamma(terms)) + 1.01 * gamma(terms) * size + terms * TINIEST
    bound = float(down(shift - up(float(error.max()))))
    return bound if bound == bound else -np.inf


def _shifted(K: Any, shift: float) -> Any:
    return K - shift * (np.eye(len(K)) if isinstance(K, np.ndarray) else sp.eye_array(K.shape[0]))


def _factor(K: Any, shift: float) -> Any:
    """Return F with F F^T about K - shift I, dense or CSR; None where there is none."""
    K = _shifted(K, shift)
    if isinstance(K, np.ndarray):
        try:
            return np.linalg.cholesky(K)
        except np.linalg.LinAlgError:
            return None
    try:
        lu = sp.linalg.splu(sp.csc_array(K), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # it is singular
        return None
    pivots, k = lu.U.diagonal(), K.shape[0]
    if not (pivots > 0.0).all() or not np.array_equal(lu.perm_r, lu.perm_c):
        return None
    order = sp.csr_array((np.ones(k), (np.arange(k), lu.perm_r)), shape=(k, k))
    return sp.csr_array(order @ lu.L @ sp.diags_array(np.sqrt(pivots)))


def independent_rows(A: Any, b: Array) -> tuple[NDArray[np.intp], bool]:
    """Return the rows of A x + b = 0 without those that are proven to follow from the others, and whether one contradicts them.

    They follow by small rational multiples, in exact arithmetic, which is tried where floats leave almost nothing of a row. More rows than
    a normal matrix may have are all taken to be independent, and so are those whose combinations, the shortest first, have too many terms.
    """
    chosen = np.flatnonzero((np.diff(A.indptr) > 0) | (b != 0.0))
    if not len(chosen) or len(chosen) ** 2 > _INVERTED_LAST:
        return chosen, False
    rows: Any = sp.csr_array(A[chosen])
    counts, sizes = np.diff(rows.indptr) + 1, np.maximum(abs(rows).max(axis=1).toarray().ravel(), 1e-300)
    scaled = sp.csr_array(sp.diags_array(1.0 / sizes) @ rows)
    R, order = scipy.linalg.qr((scaled @ scaled.T).toarray(), mode="r", pivoting=True)
    rank = int((np.abs(np.diag(R)) > 1e-11 * abs(R[0, 0])).sum())
    basis, others = order[:rank], order[rank:]
    shares = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]) / sizes[basis, None] * sizes[others]
    numerators, denominators = _near_fractions(shares.T)
    multiples, terms = numerators / denominators, counts[others] + (numerators != 0.0) @ counts[basis]
    tried = _shortest(np.flatnonzero(np.isfinite(multiples).all(axis=1)), terms, _MOST_TERMS)
    residue = abs(rows[others[tried]] - sp.csr_array(multiples[tried]) @ rows[basis]).max(axis=1).toarray().ravel()
    largest = np.maximum(sizes[others[tried]], (np.abs(multiples[tried]) * sizes[basis]).max(axis=1, initial=0.0))
    dependent = []
    for k in _shortest(tried[residue <= _ALMOST_NOTHING * largest], terms, _MOST_EXACT_TERMS).tolist():
        row = others[k]
        rest = {A.shape[1]: -Fraction(float(b[chosen[row]]))}
        fractions = [Fraction(int(n), int(q)) for n, q in zip(numerators[k].tolist(), denominators[k].tolist(), strict=True)]
        for i, multiple in ((row, Fraction(-1)), *zip(basis.tolist(), fractions, strict=True)):
            place = slice(rows.indptr[i], rows.indptr[i + 1])
            for column, value in zip(rows.indices[place].tolist(), rows.data[place].tolist(), strict=True) if multiple else ():
                rest[column] = rest.get(column, Fraction(0)) + multiple * Fraction(value)
        rest[A.shape[1]] += sum(multiple * Fraction(float(b[chosen[i]])) for i, multiple in zip(basis.tolist(), fractions, strict=True))
        left = [column for column, value in rest.items() if value]
        if left == [A.shape[1]]:
            return chosen, True
        dependent += [] if left else [row]
    return np.delete(chosen, np.array(dependent, dtype=int)), False


def _near_fractions(x: Array) -> tuple[Array, Array]:
    """Return numerators and denominators, of at most `_DENOMINATOR`, of the fractions that are nearest to x in floats."""
    best, denominators = np.round(x), np.ones(x.shape)
    for q in range(2, _DENOMINATOR + 1):
        numerators = np.round(q * x)
        is_nearer = np.abs(numerators / q - x) < np.abs(best / denominators - x) - 4.0 * UNIT * np.abs(x)
        best, denominators = np.where(is_nearer, numerators, best), np.where(is_nearer, float(q), denominators)
    return best, denominators


def _shortest(places: NDArray[np.intp], terms: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return the places of the fewest terms, up to so many terms in all."""
    order = places[np.argsort(terms[places], kind="stable")]
    return order[np.cumsum(terms[order]) <= most]


def _powers_of_two(x: Array) -> Array:
    return np.asarray(np.exp2(np.clip(np.round(np.log2(np.maximum(x, 1e-300))), -500.0, 500.0)))
