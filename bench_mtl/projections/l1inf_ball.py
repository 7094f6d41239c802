"""The l1,inf norm, its dual, the projection onto its ball and its proximal operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bench_mtl.core.checks import is_sparse, one_of, real_number, result_array, true_or_false
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array, Matrix
from bench_mtl.projections import l1inf_levels
from bench_mtl.projections.aliasing import separated
from bench_mtl.projections.l1inf_levels import Levels
from bench_mtl.projections.l1inf_passes import Passes
from bench_mtl.projections.matrix_rows import MatrixRows, checked_matrix, is_plain, require_finite_matrix

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
    """||A||_{1,inf} = sum_j max_k |A_jk| of a d x m matrix, dense or sparse, to 2 units in the last place.

    Raises
    ------
    InputError : not a matrix, NaN or inf.
    """
    return _norms(A)[0]


def norm_linf1(A: Any) -> float:
    """||A||_{inf,1} = max_j sum_k |A_jk| of a d x m matrix, dense or sparse, the dual norm of `norm_l1inf`.

    Raises
    ------
    InputError : not a matrix, NaN or inf.
    """
    return _norms(A)[1]


def project_l1inf_ball(
    A: Any,
    radius: float,
    *,
    nonneg: bool = False,
    method: str = "newton",
    theta0: float | None = None,
    out: AnyArray | None = None,
) -> Matrix:
    """argmin_B 1/2 ||B - A||_F^2 subject to sum_j max_k |B_jk| <= radius (and B >= 0 if `nonneg`).

    Parameters
    ----------
    A : matrix of shape (d, m), float32 or float64 (others become float64), in any memory order; or a SciPy sparse matrix
    radius : at least 0
    nonneg : keep B non-negative as well: the projection of max(A, 0)
    method : "newton", or "merge", the published algorithm (sort all rows, merge their breakpoints). They differ in time alone.
    theta0 : a guess of theta for "newton", such as that of the projection of a matrix nearby (see `l1inf_projection`)
    out : where to write the result, an array of the shape and type of A; may be A itself

    Returns
    -------
    B : an array of the type of A, or CSR. B_jk = sign(A_jk) min(|A_jk|, mu_j), and B = A inside the ball. The sum of its row
        maxima, not rounded, is at most radius (A inside the ball to rounding: radius (1 + 4 u), u = 2^-53), and projecting B again gives B.

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative radius or theta0, an unknown method, an `out` that does not fit.

    Notes
    -----
    The row maxima are mu_j(theta) = max(0, max_k (S_jk - theta) / k) with S_jk the sum of the k largest entries of |A_j.|, for the one
    theta with sum_j mu_j(theta) = radius (Quattoni, Carreras, Collins, Darrell, ICML 2009, lemma 3). "newton" finds it by Newton's method,
    "merge" as in figure 1 of their technical report of 2008. The error is a few units in the last place of max |A|.
    """
    return _project(A, radius, nonneg, method, theta0, out)[0]


def l1inf_projection(
    A: Any,
    radius: float,
    *,
    nonneg: bool = False,
    method: str = "newton",
    theta0: float | None = None,
    out: AnyArray | None = None,
) -> L1InfProjection:
    """`project_l1inf_ball` together with theta, the row maxima and the number of passes."""
    matrix, levels = _project(A, radius, nonneg, method, theta0, out)
    maxima = levels.values.copy() if matrix.dtype == np.float64 else _rounded_down(levels.values, matrix.dtype)
    return L1InfProjection(matrix, levels.theta, maxima, levels.passes)


def _project(A: Any, radius: float, nonneg: bool, method: str, theta0: float | None, out: AnyArray | None) -> tuple[Matrix, Levels]:
    radius, nonneg = real_number("radius", radius), true_or_false("nonneg", nonneg)
    one_of("method", method, METHODS)
    guess = None if theta0 is None else real_number("theta0", theta0)
    A = checked_matrix("A", A)

    def find(passes: Passes) -> Levels | None:
        return l1inf_levels.merge(passes, radius) if method == "merge" else l1inf_levels.newton(passes, radius, guess)

    return _clipped(A, find, nonneg, out)


def _rounded_down(levels: Array, dtype: Any) -> Array:
    """The numbers that the kernels write where they cut at these levels."""
    rounded = levels.astype(dtype)
    return np.where(rounded > levels, np.nextafter(rounded, dtype.type(0)), rounded).astype(np.float64)


def prox_l1inf(A: Any, weight: float, *, nonneg: bool = False, out: AnyArray | None = None) -> Matrix:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j max_k |B_jk| (subject to B >= 0 if `nonneg`).

    Parameters
    ----------
    A, nonneg, out : as for `project_l1inf_ball`
    weight : at least 0

    Returns
    -------
    B : an array of the type of A, or CSR

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative weight, an `out` that does not fit.

    Notes
    -----
    By Moreau's identity A less the projection of each of its rows onto the l1 ball of radius `weight`; which is the projection onto the
    l1,inf ball with theta = weight, so each row is cut at the level above which it has `weight` in all.
    """
    weight, nonneg = real_number("weight", weight), true_or_false("nonneg", nonneg)
    A = checked_matrix("A", A)
    return _clipped(A, lambda passes: l1inf_levels.fixed(passes, weight), nonneg, out)[0]


def _norms(A: Any) -> tuple[float, float]:
    """Sum of the largest magnitudes and largest sum of the magnitudes of the rows of A."""
    A = checked_matrix("A", A)
    if not is_sparse(A) and not is_plain(A):
        A = A.copy(order="C")
    norms = l1inf_levels.norms(MatrixRows.of(A))
    if norms is None:
        _raise_not_finite(A)
    return norms


def _raise_not_finite(A: Matrix) -> NoReturn:
    require_finite_matrix("A", A)
    raise AssertionError("a kernel found NaN or inf where there is none")


def _clipped(A: Matrix, find: Callable[[Passes], Levels | None], nonneg: bool, out: AnyArray | None) -> tuple[Matrix, Levels]:
    """The rows of A cut at the levels that `find` returns (None: A has NaN or inf), and the levels."""
    if is_sparse(A):
        if out is not None:
            raise InputError("out must be None for a sparse matrix, whose result is a new one")
        rows = MatrixRows.of(A)
        if nonneg:  # so that the kernels need no variant for it
            require_finite_matrix("A", A)
            rows = replace(rows, data=np.maximum(rows.data, 0.0))
        data = np.empty_like(rows.data)
        levels = _clip(A, find, Passes.of(rows, False, data))
        result = type(A)((data, A.indices.copy(), A.indptr.copy()), shape=A.shape)
        result.eliminate_zeros()
        return result, levels
    target = result_array(out, A)
    source, _ = separated(A, out)
    work = target if is_plain(target) else np.empty(A.shape, A.dtype)
    if not (is_plain(source) and source.flags.c_contiguous == work.flags.c_contiguous):
        np.copyto(work, source)
        source = work
    levels = _clip(source, find, Passes.of(MatrixRows.of(source), nonneg, MatrixRows.of(work).data))
    if work is not target:
        np.copyto(target, work)
    return target, levels


def _clip(A: Matrix, find: Callable[[Passes], Levels | None], passes: Passes) -> Levels:
    levels = find(passes)
    if levels is None:
        _raise_not_finite(A)
    if not levels.inside:
        passes.clip(levels.values)
    elif passes.nonneg:
        np.maximum(passes.rows.data, 0.0, out=passes.result)
    else:
        np.copyto(passes.result, passes.rows.data)
    return levels
