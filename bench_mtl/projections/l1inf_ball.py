"""The l1,inf norm, its dual, the projection onto its ball and its proximal operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bench_mtl.core.checks import is_sparse, one_of, real_number, result_array
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import useful_threads
from bench_mtl.core.types import AnyArray, Array, Matrix
from bench_mtl.projections import l1inf_levels
from bench_mtl.projections.in_place import apart
from bench_mtl.projections.l1inf_levels import Levels
from bench_mtl.projections.l1inf_passes import Passes, shared_passes
from bench_mtl.projections.matrix_rows import MatrixRows, checked_matrix, is_plain, require_finite_matrix

METHODS = ("newton", "merge")


class L1InfProjection(NamedTuple):
    """A projection onto the l1,inf ball, and what there is to know of it."""

    matrix: Matrix
    """The projection B: an array, or CSR."""
    theta: float
    """What every row with something left has lost: sum_k |A_jk| - |B_jk| = theta; 0 inside the ball. Good to start from at a
    matrix nearby."""
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
    threads: int | None = None,
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
    threads : the most to use, for "newton" on large matrices; None for as many as there are processors, or as OMP_NUM_THREADS says.
        The result does not depend on it.
    out : where to write the result, an array of the shape and type of A; may be A itself

    Returns
    -------
    B : an array of the type of A, or CSR. B_jk = sign(A_jk) min(|A_jk|, mu_j), and B = A inside the ball. The sum of its row
        maxima, not rounded, is at most radius (A inside the ball to rounding: radius (1 + 4 u), u = 2^-53), and projecting B again gives B.

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative radius or theta0, an unknown method, threads below 1, an `out` that does not fit.

    Notes
    -----
    The row maxima are mu_j(theta) = max(0, max_k (S_jk - theta) / k) with S_jk the sum of the k largest entries of |A_j.|, for the one
    theta with sum_j mu_j(theta) = radius (Quattoni, Carreras, Collins, Darrell, ICML 2009, lemma 3). "newton" finds it by Newton's method,
    "merge" as in figure 1 of their technical report of 2008. The error is a few units in the last place of max |A|.
    """
    return _project(A, radius, nonneg, method, theta0, threads, out)[0]


def l1inf_projection(
    A: Any,
    radius: float,
    *,
    nonneg: bool = False,
    method: str = "newton",
    theta0: float | None = None,
    threads: int | None = None,
    out: AnyArray | None = None,
) -> L1InfProjection:
    """`project_l1inf_ball` together with theta, the row maxima and the number of passes."""
    matrix, levels = _project(A, radius, nonneg, method, theta0, threads, out)
    maxima = levels.values.copy() if matrix.dtype == np.float64 else _rounded_down(levels.values, matrix.dtype)
    return L1InfProjection(matrix, levels.theta, maxima, levels.passes)


def _project(
    A: Any, radius: float, nonneg: bool, method: str, theta0: float | None, threads: int | None, out: AnyArray | None
) -> tuple[Matrix, Levels]:
    radius = real_number("radius", radius)
    one_of("method", method, METHODS)
    guess = None if theta0 is None else real_number("theta0", theta0)
    A = checked_matrix("A", A)
    workers = useful_threads(threads, A.size)
    workers = workers if method == "newton" else 1

    def find(passes: Passes) -> Levels | None:
        return l1inf_levels.merge(passes, radius) if method == "merge" else l1inf_levels.newton(passes, radius, guess)

    return _clipped(A, find, nonneg, workers, out)


def _rounded_down(levels: Array, dtype: Any) -> Array:
    """What the kernels write where they cut at these levels."""
    rounded = levels.astype(dtype)
    return np.where(rounded > levels, np.nextafter(rounded, dtype.type(0)), rounded).astype(np.float64)


def prox_l1inf(A: Any, weight: float, *, nonneg: bool = False, threads: int | None = None, out: AnyArray | None = None) -> Matrix:
    """argmin_B 1/2 ||B - A||_F^2 + weight * sum_j max_k |B_jk| (subject to B >= 0 if `nonneg`).

    Parameters
    ----------
    A, nonneg, threads, out : as for `project_l1inf_ball`
    weight : at least 0

    Returns
    -------
    B : an array of the type of A, or CSR

    Raises
    ------
    InputError : not a matrix, NaN or inf, a negative weight, threads below 1, an `out` that does not fit.

    Notes
    -----
    By Moreau's identity A less the projection of each of its rows onto the l1 ball of radius `weight`; which is the projection onto the
    l1,inf ball with theta = weight, so each row is cut at the level above which it has `weight` in all.
    """
    weight = real_number("weight", weight)
    A = checked_matrix("A", A)
    workers = useful_threads(threads, A.size)
    return _clipped(A, lambda passes: l1inf_levels.fixed(passes, weight), nonneg, workers, out)[0]


def _norms(A: Any) -> tuple[float, float]:
    """Sum of the largest magnitudes and largest sum of the magnitudes of the rows of A."""
    A = checked_matrix("A", A)
    if not is_sparse(A) and not is_plain(A):
        A = A.copy(order="C")
    norms = l1inf_levels.norms(MatrixRows.of(A))
    if norms is None:
        _refuse(A)
    return norms


def _refuse(A: Matrix) -> NoReturn:
    require_finite_matrix("A", A)
    raise AssertionError("a kernel found NaN or inf where there is none")


def _clipped(A: Matrix, find: Callable[[Passes], Levels | None], nonneg: bool, workers: int, out: AnyArray | None) -> tuple[Matrix, Levels]:
    """The rows of A cut at the levels that `find` returns (None: A has NaN or inf), and the levels."""
    if is_sparse(A):
        if out is not None:
            raise InputError("out must be None for a sparse matrix, whose result is a new one")
        rows = MatrixRows.of(A)
        data = np.empty_like(rows.data)
        levels = _find_and_clip(A, rows, find, nonneg, workers, data)
        result = type(A)((data, A.indices.copy(), A.indptr.copy()), shape=A.shape)
        result.eliminate_zeros()
        return result, levels
    target = result_array(out, A)
    source, _ = apart(A, out)
    work = target if is_plain(target) else np.empty(A.shape, A.dtype)
    if not (is_plain(source) and source.flags.c_contiguous == work.flags.c_contiguous):
        np.copyto(work, source)
        source = work
    levels = _find_and_clip(source, MatrixRows.of(source), find, nonneg, workers, MatrixRows.of(work).data)
    if work is not target:
        np.copyto(target, work)
    return target, levels


def _find_and_clip(
    A: Matrix, rows: MatrixRows, find: Callable[[Passes], Levels | None], nonneg: bool, workers: int, result: AnyArray
) -> Levels:
    if workers == 1:
        return _clip(A, find, Passes.of(rows, nonneg, result))
    with shared_passes(Passes.of(rows, nonneg, result), workers) as passes:
        return _clip(A, find, passes)


def _clip(A: Matrix, find: Callable[[Passes], Levels | None], passes: Passes) -> Levels:
    levels = find(passes)
    if levels is None:
        _refuse(A)
    if not levels.inside:
        passes.clip(levels.values)
    elif passes.nonneg:
        np.maximum(passes.rows.data, 0.0, out=passes.result)
    else:
        np.copyto(passes.result, passes.rows.data)
    return levels
