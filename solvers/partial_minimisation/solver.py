"""Accelerated gradient in the low-rank part, with the sparse part minimised out, in the space of the rows."""

from __future__ import annotations

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
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver

#: Rounds between two iterates: the first number, and one for this number of rounds so far.
_ROUNDS_FIRST, _ROUNDS_SHARE = 4, 8
#: The largest residual of an interpolation, relative to the largest target.
_EXACT = 1e-10


@dataclass(frozen=True)
class PartialMinimisation(SteppingSolver):
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

    def objection(self, problem: Problem) -> str | None:
        form = problem.form(LinearForm)
        if not form.design.is_shared:
            return f"{self.label} needs one design for all tasks"
        if form.design.sizes[0] > LARGEST_FACTOR:
            return f"{self.label} works on the dense product X X^T of at most {LARGEST_FACTOR} rows, but X has {form.design.sizes[0]}"
        return None

    def stepper(self, problem: Problem) -> PartialStepper:
        return PartialStepper(problem.form(LinearForm), self.sweeps)


class PartialStepper(Stepper):
    kept = ("_state", "_step", "_work")

    def __init__(self, form: LinearForm, sweeps: int) -> None:
        import bench_mtl.solvers.partial_minimisation.kernels as kernels

        self._kernels: Any = kernels
        self._X: Any = form.design.block(0)
        K = np.ascontiguousarray(dense(self._X @ self._X.T))
        penalty, radius = form.penalty_and_radius
        self._exact = _interpolation(K, form.fit.targets.T, radius) if len(K) <= self._X.shape[1] else None
        columns = sp.csc_array(self._X)
        squares = np.asarray(columns.multiply(columns).sum(axis=0)).ravel()
        self._seen = np.flatnonzero(squares)
        self._columns = columns[:, self._seen]
        # unsigned, so that no index wraps around
        held = self._columns.data, self._columns.indices.astype(np.uint32), self._columns.indptr.astype(np.uint32)
        targets = np.array(form.fit.targets.T, order="C")  # a copy also for one task, since the loop is compiled for what can be written to
        self._data = kernels.Data(held, squares[self._seen], K, targets)
        largest = 1.0 if self._exact is not None else float(np.linalg.eigvalsh(K)[-1])
        self._rule = kernels.Rule(penalty, radius, largest, sweeps)
        self._step, self._work = 0, 1.0

    def start(self, at: Iterate) -> PartialStepper:
        K, targets, rows = self._data.K, self._data.targets, np.zeros((4, *self._data.targets.shape))
        if self._exact is not None:
            P, rows[0], R = np.zeros((len(targets), len(self._seen))), self._exact, targets
        else:
            P = np.ascontiguousarray(at.primal[0, self._seen].T)
            rows[0] = _row_coordinates(K, self._X, at.primal[1])
            rows[1] = rows[0] @ K
            rows[2:] = rows[:2]
            R = np.ascontiguousarray(targets - rows[1] - (self._columns @ P.T).T)
        self._state = self._kernels.State(P, R, rows, np.array([1.0, 0.0]))
        return self

    def step(self, now: PartialStepper) -> PartialStepper | None:
        if self._exact is not None and self._step:
            return None
        count = _ROUNDS_FIRST + self._step // _ROUNDS_SHARE if self._exact is None else 1
        if self._exact is None:
            self._kernels.rounds(self._data, self._rule, self._state, count)
            self._work += count + 1.0
        self._step += count
        return self

    def iterate(self, now: PartialStepper) -> Iterate:
        point = np.zeros((2, self._X.shape[1], len(self._data.targets)))
        point[0, self._seen] = self._state.P.T
        point[1] = self._X.T @ self._state.rows[0].T
        return Iterate(point, None, self._step, self._work)


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
