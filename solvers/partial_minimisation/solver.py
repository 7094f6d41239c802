"""Accelerated gradient in the low-rank part, with the sparse part minimised out, in the space of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from bench_mtl.core.checks import whole_number
from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, LinearForm
from bench_mtl.model.normal_equations import LARGEST_FACTOR
from bench_mtl.model.protocols import IterativeSolver, Problem

#: Rounds between two iterates: the first number, and one for this number of rounds so far.
_ROUNDS_FIRST, _ROUNDS_SHARE = 4, 8

#: The largest residual of an interpolation, relative to the largest target.
_EXACT = 1e-10


@dataclass(frozen=True)
class PartialMinimisation(IterativeSolver):
    """An accelerated projected gradient method on F(Q) = min_P f(P + Q) + gamma ||P||_1, f the squares of one design X for all tasks.

    ::

        S_i = Q_i + (t_{i-1} - 1) / t_i (Q_i - Q_{i-1})
        P:  p_jk <- soft threshold of p_jk + (X^T r_k)_j / h_j at gamma / h_j, r_k = y_k - X (p_k + s_k), h_j = ||x_j||^2, `sweeps` times
        Q_{i+1} <- projection of S_i + X^T R / sigma_max(X)^2 onto the trace-norm ball

    X^T R is minus the gradient of F at S_i where the sweeps have ended at the best P, and F is as smooth as f. Sweeps go over the entries
    of P that are not 0, and now and then over all, by the columns of X. All Q_i have their columns in the space of the rows, Q = X^T B^T,
    and the projection multiplies B by a matrix m x m that follows from Q^T Q = B X X^T B^T. So a step costs a product with X X^T (n x n),
    which is made once, and sweeps: the method is for wide data. Momentum is dropped where it points uphill.

    Where the ball has room for the least of all Q with X Q = Y, X^+ Y (of every unitarily invariant norm, the trace norm among them), that
    and P = 0 have an objective of 0, and are the answer.

    Where columns are nearly dependent (hardly more features than examples, a small gamma) a few sweeps leave P behind its best, steps go
    by a wrong gradient, and the method may stall far from the optimum; more `sweeps` help, and `admm` is better there.

    Parameters
    ----------
    sweeps : number of sweeps in a step

    References
    ----------
    Beck, Teboulle, SIAM Journal on Imaging Sciences 2(1), 2009; O'Donoghue, Candes, Foundations of Computational Mathematics 15, 2015;
    Friedman, Hastie, Tibshirani, Journal of Statistical Software 33(1), 2010, for the sweeps.
    """

    sweeps: int = 3

    name: ClassVar[str] = "partial_minimisation"
    takes = (SPARSE_PLUS_LOW_RANK,)

    def __post_init__(self) -> None:
        whole_number("sweeps", self.sweeps, minimum=1)

    def incompatibility(self, problem: Problem) -> str | None:
        own = super().incompatibility(problem)
        if own is not None:
            return own
        form = problem.form(LinearForm)
        if not form.design.is_shared:
            return f"{self.label} needs one design for all tasks"
        if form.design.sizes[0] > LARGEST_FACTOR:
            return f"{self.label} works on the dense product X X^T of at most {LARGEST_FACTOR} rows, but X has {form.design.sizes[0]}"
        return None

    def warm_up(self) -> None:
        from bench_mtl.solvers.partial_minimisation.kernels import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        from bench_mtl.solvers.partial_minimisation.kernels import rounds

        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first, None, 0, 0.0)
        form = problem.form(LinearForm)
        X: Any = form.design.block(0)
        K = np.ascontiguousarray(dense(X @ X.T))
        exact = _interpolation(K, form.fit.targets.T, form.penalty_and_radius[1]) if len(K) <= X.shape[1] else None
        if exact is not None:
            yield Iterate(np.stack([np.zeros(first.shape[1:]), X.T @ exact.T]), None, 1, 1.0)
            return
        columns = sp.csc_array(X)
        squares = np.asarray(columns.multiply(columns).sum(axis=0)).ravel()
        seen = np.flatnonzero(squares)
        columns, squares = columns[:, seen], squares[seen]
        held = (
            columns.data,
            columns.indices.astype(np.uint32),
            columns.indptr.astype(np.uint32),
        )  # unsigned, so that no index wraps around
        targets = np.array(form.fit.targets.T, order="C")  # a copy also for one task, since the loop is compiled for what can be written to
        P = np.ascontiguousarray(first[0, seen].T)
        state = np.zeros((4, *targets.shape))
        state[0] = _row_coordinates(K, X, first[1])
        state[1] = state[0] @ K
        state[2:] = state[:2]
        R = targets - state[1] - (columns @ P.T).T
        scalars = np.array([1.0, 0.0])
        kind = (*form.penalty_and_radius, float(np.linalg.eigvalsh(K)[-1]), self.sweeps)
        step, work = 0, 1.0
        while True:
            count = _ROUNDS_FIRST + step // _ROUNDS_SHARE
            rounds(held, squares, K, targets, *kind, P, R, state, scalars, count)
            step, work = step + count, work + count + 1.0
            point = np.zeros(problem.point_shape)
            point[0, seen] = P.T
            point[1] = X.T @ state[0].T
            yield Iterate(point, None, step, work)


def _interpolation(K: Array, Y: Array, tau: float) -> Array | None:
    """Return the B (m x n) with B K = Y, K = X X^T, so that X^T B^T = X^+ Y^T; None where it misses the targets or the ball."""
    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return None
    half = scipy.linalg.solve_triangular(L, Y.T, lower=True)  # its singular values are those of X^+ Y^T
    if not np.isfinite(half).all() or scipy.linalg.svdvals(half).sum() > tau:
        return None
    B: Array = scipy.linalg.solve_triangular(L, half, lower=True, trans=1).T
    return B if np.abs(B @ K - Y).max() <= _EXACT * np.abs(Y).max() else None


def _row_coordinates(K: Array, X: Any, Q: Array) -> Array:
    """Return the B (m x n) with X^T B^T next to Q; the part of Q outside the space of the rows changes no prediction."""
    if not Q.any():
        return np.zeros((Q.shape[1], len(K)))
    return np.ascontiguousarray(np.linalg.lstsq(K, np.asarray(X @ Q), rcond=None)[0].T)
