"""The l1,inf norm, its dual, the projection onto its ball and its proximal operator."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from bench_mtl.core.checks import canonical_csr, floating_array, is_sparse, one_of, real_number, require_finite, true_or_false
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array, Matrix
from bench_mtl.projections import l1inf_levels
from bench_mtl.projections.border import projected
from bench_mtl.projections.l1inf_levels import Levels, Rows, Search, found, newton

METHODS = ("newton", "merge")


class L1InfProjection(NamedTuple):
    """A projection onto the l1,inf ball with details."""

    matrix: Matrix
    """The projection B: an array, or CSR."""
    theta: float
    """The sum that every row with something left has lost, sum_k |A_jk| - |B_jk|; 0 inside the ball. A good start for a matrix nearby."""
    maxima: Array
    """max_k |B_jk| of every row j, shape (d,)."""
    passes: int
    """Passes over all or some rows that the search took, at most `kernels.l1inf.MAX_PASSES`."""


def norm_l1inf(A: Any) -> float:
    """||A||_{1,inf} = sum_j max_k |A_jk| of a d x m matrix, dense or sparse, to 2 units in the last place."""
    return _norms(A)[0]


def norm_linf1(A: Any) -> float:
    """||A||_{inf,1} = max_j sum_k |A_jk| of a d x m matrix, dense or sparse, the dual norm of `norm_l1inf`."""
    return _norms(A)[1]


def project_l1inf_ball(
    A: Any, radius: float, *, nonneg: bool = False, method: str = "newton", theta0: float | None = None, out: AnyArray | None = None
) -> Matrix:
    """argmin_B 1/2 ||B - A||_F^2 subject to sum_j max_k |B_jk| <= radius (and B >= 0 if `nonneg`).

    B_jk = sign(A_jk) min(|A_jk|, mu_j), and B = A inside the ball. The row maxima are mu_j(theta) = max(0, max_k (S_jk - theta) / k) with
    S_jk the sum of the k largest entries of |A_j.|, for the one theta with sum_j mu_j(theta) = radius (Quattoni, Carreras, Collins,
    Darrell, ICML 2009, lemma 3). The error is a few units in the last place of max |A|. The sum of the row maxima of B, not rounded, is at
    most radius (A inside the ball to rounding: radius (1 + 4 u), u = 2^-53), and projecting B again gives B.

    Parameters
    ----------
    A : matrix of shape (d, m), or a SciPy sparse matrix, of which B is CSR
    nonneg : keep B non-negative as well: the projection of max(A, 0)
    method : "newton", or "merge", the published algorithm (figure 1 of their technical report of 2008: sort all rows, merge their
        breakpoints). They differ in time alone.
    theta0 : a guess of theta for "newton", such as that of the projection of a matrix nearby (see `l1inf_projection`)
    """
    return _project(A, radius, nonneg, method, theta0, out)[0]


def l1inf_projection(
    A: Any, radius: float, *, nonneg: bool = False, method: str = "newton", theta0: float | None = None, out: AnyArray | None = None
) -> L1InfProjection:
    """`project_l1inf_ball` together with theta, the row maxima and the number of passes."""
    matrix, levels = _project(A, radius, nonneg, method, theta0, out)
    maxima = levels.values.copy() if matrix.dtype == np.float64 else _row_maxima(matrix)
    return L1InfProjection(matrix, levels.theta, maxima, levels.passes)


def _row_maxima(A: Matrix) -> Array:
    if A.shape[1] == 0:
        return np.zeros(A.shape[0])
    maxima = abs(A).max(axis=1)
    return np.asarray(maxima.toarray() if is_sparse(A) else maxima, np.float64).ravel()


def _project(A: Any, radius: float, nonneg: bool, method: str, theta0: float | None, out: AnyArray | None) -> tuple[Matrix, Levels]:
    one_of("method", method, METHODS)
    search = l1inf_levels.merge if method == "merge" else newton(None if theta0 is None else real_number("theta0", theta0))
    return _clipped(A, real_number("radius", radius), search, nonneg, out)


def prox_l1inf(A: Any, weight: float, *, nonneg: bool = False, out: AnyArray | None = None) -> Matrix:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j max_k |B_jk| (subject to B >= 0 if `nonneg`), of a matrix as `project_l1inf_ball` takes.

    By Moreau's identity A less the projection of each of its rows onto the l1 ball of radius `weight`; which is the projection onto the
    l1,inf ball with theta = weight, so each row is cut at the level above which it has `weight` in all.
    """
    return _clipped(A, real_number("weight", weight), l1inf_levels.fixed, nonneg, out)[0]


def _norms(A: Any) -> tuple[float, float]:
    """Sum of the largest magnitudes and largest sum of the magnitudes of the rows of A."""
    A = _checked("A", A)
    data = A.data if is_sparse(A) else np.array(A, np.float64, order="C", copy=None).reshape(-1)
    levels = found(l1inf_levels.norms, _rows(A, np.require(data, np.float64, "W")), 0.0)
    if levels is None:
        _raise_not_finite(A)
    return float(l1inf_levels.kernels().compensated_sum(levels.values)), levels.theta


def _checked(name: str, A: Any) -> Matrix:
    """A matrix of float32 or float64: an array as it is, or CSR, with sorted columns and no duplicates, if it is sparse."""
    if not is_sparse(A):
        return floating_array(name, A, ndim=(2,))
    return canonical_csr(name, A, floating_array(name, A.data if A.format == "csr" else A.dtype.type(0)).dtype)


def _rows(A: Matrix, data: Array) -> Rows:
    """The rows of a matrix with these entries."""
    if not is_sparse(A):
        return Rows(data, None, *A.shape)
    fits = len(data) <= np.iinfo(np.int32).max  # one type, compiled once
    return Rows(data, np.require(A.indptr, np.int32 if fits else np.int64, ["C", "A", "W"]), *A.shape)


def _raise_not_finite(A: Matrix) -> NoReturn:
    if not is_sparse(A):
        require_finite("A", A)
    place = int(np.flatnonzero(~np.isfinite(A.data))[0])
    row = int(np.searchsorted(A.indptr, place, side="right")) - 1
    kind = "NaN" if np.isnan(A.data[place]) else "inf"
    raise InputError(f"A has {kind} at index ({row}, {int(A.indices[place])}): only finite numbers are allowed")


def _clipped(A: Any, size: float, search: Search, nonneg: bool, out: AnyArray | None) -> tuple[Matrix, Levels]:
    """The rows of A cut at the levels that the search finds, and the levels."""
    true_or_false("nonneg", nonneg)
    A = _checked("A", A)
    levels: list[Levels] = []

    def compute(source: Array, result: Array) -> None:
        if nonneg:
            if not np.isfinite(source).all():
                _raise_not_finite(A)
            source = np.maximum(source, 0.0, out=result)
        rows = _rows(A, source.reshape(-1))
        one = found(search, rows, size)
        if one is None:
            _raise_not_finite(A)
        if not one.inside:
            l1inf_levels.kernels().clip(rows.matrix, rows.lanes, one.values, None, result.reshape(-1))
        elif result is not source:
            np.copyto(result, source)
        levels.append(one)

    if not is_sparse(A):
        return projected(A, out, compute), levels[0]
    if out is not None:
        raise InputError("out must be None for a sparse matrix, whose result is a new one")
    result = type(A)((projected(A.data, None, compute), A.indices.copy(), A.indptr.copy()), shape=A.shape)
    result.eliminate_zeros()
    return result, levels[0]
