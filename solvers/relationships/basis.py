"""The singular value decomposition of X, in whose basis the least squares of all tasks are diagonal."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.designs import dense, diagonal_of
from bench_mtl.core.types import Array, Iterate, Matrix
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.normal_equations import LARGEST_FACTOR
from bench_mtl.model.protocols import SHOWN_SHARE, Problem, Solver
from bench_mtl.model.solver_state import Stepper

#: Eigenvalues of X^T X below this share of the largest, times their number, are rounding of 0.
_RANK_SHARE = 1e-14


class SingularBasis(NamedTuple):
    """X = P S U^T, through what is needed of it; r is the rank of X. For W = U Z ::

    f(W) = weight/2 ||X W - Y||_F^2 = weight/2 sum_ij (s_i^2 Z_ij^2 - 2 products_ij Z_ij) + const
    """

    squares: Array
    """S^2, r numbers, ascending."""
    products: Array
    """U^T X^T Y = S P^T Y, r x m."""
    basis: Array
    """U, d x r; where X is wider than long P S^-1, n x r, as U = X^T P S^-1."""
    X: Matrix | None
    """X where the basis is of its rows."""
    weight: float

    @staticmethod
    def of(form: LinearForm) -> SingularBasis:
        """From the eigenvalues of the smaller of X^T X and X X^T."""
        design, targets, weight = form.fit.design, form.fit.targets, float(form.fit.weights.flat[0])
        X: Any = design.block(0)
        wide = X.shape[0] < X.shape[1]
        squares, vectors = _decomposed(X @ X.T if wide else X.T @ X)
        kept = squares > _RANK_SHARE * len(squares) * max(float(squares[-1]), 0.0)
        squares, vectors = squares[kept], vectors[:, kept]
        if wide:
            lengths = np.sqrt(squares)
            return SingularBasis(squares, lengths[:, None] * (vectors.T @ targets), vectors / lengths, X, weight)
        return SingularBasis(squares, vectors.T @ design.adjoint(targets), vectors, None, weight)

    def point(self, Z: Array) -> Array:
        """U Z, d x m."""
        inner = self.basis @ Z
        return np.ascontiguousarray(inner if self.X is None else np.asarray(self.X.T @ inner))

    def coordinates(self, W: Array) -> Array:
        """U^T W, r x m."""
        return np.asarray(self.basis.T @ (W if self.X is None else np.asarray(self.X @ W)))


class BasisStepper(Stepper):
    """Steps on coordinates, of whose points the first 32 are iterates, then one in about 32.

    Work: 1 for the decomposition, and half a pass a point; the steps themselves do not touch the data.
    """

    def __init__(self, form: LinearForm) -> None:
        self.form, self.basis = form, SingularBasis.of(form)

    @abstractmethod
    def after(self, now: Any) -> Any:
        """Return the state after one step, with its `step` and the same `work`; None where there is none."""

    def step(self, now: Any) -> Any:
        for _ in range(1 + now.step // SHOWN_SHARE):
            now = None if now is None else self.after(now)
        return None if now is None else now._replace(work=now.work + 0.5)

    def iterate(self, now: Any) -> Iterate:
        return Iterate(self.basis.point(now.Z), None, now.step, now.work)


def _decomposed(gram: Matrix) -> tuple[Array, Array]:
    """The ascending eigenvalues of a symmetric matrix, and its eigenvectors."""
    diagonal = diagonal_of(gram)
    if diagonal is None:
        return np.linalg.eigh(dense(gram))
    order = np.argsort(diagonal)
    return diagonal[order], np.eye(len(order))[:, order]


def basis_objection(solver: Solver, problem: Problem) -> str | None:
    """Why there is no such basis for the tasks of a problem with a `SquaredNorms`, as a sentence."""
    fit = problem.form(LinearForm).fit
    if not fit.design.is_shared or np.ptp(fit.weights) > 0.0:
        return f"{solver.label} needs one design for all tasks and equal weights"
    n, d = fit.design.sizes[0], fit.design.n_features
    if min(n, d) > LARGEST_FACTOR:
        return f"{solver.label} needs X^T X or X X^T of at most {LARGEST_FACTOR} rows, but X is {n} x {d}"
    return None
