"""The graphical lasso: a sparse inverse of a covariance matrix, by ADMM with a proven gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench_mtl.core.types import Array

#: The gap to prove, for each row of the matrix, of which the objective has about 1.
_GAP = 1e-4

#: The largest number of steps, and the steps between two computations of the gap and of the penalty.
_MOST_STEPS, _CHECKED = 1000, 5

#: A residual this many times the other one moves the penalty, by a factor of 2.
_UNBALANCED = 5.0


class Precision(NamedTuple):
    """A positive definite K, and where the next search for one like it may start."""

    matrix: Array
    dual: Array
    """Y, with a zero diagonal and entries of at most alpha."""
    step: float
    """The penalty of the method of multipliers."""
    failure: str = ""
    """What went wrong, if anything did."""

    @staticmethod
    def identity(n: int) -> Precision:
        return Precision(np.eye(n), np.zeros((n, n)), 0.25)


def precision_objective(K: Array, S: Array, alpha: float) -> float:
    """tr(S K) - log det K + alpha sum_{i != j} |K_ij|."""
    off = float(np.abs(K).sum() - np.abs(np.diagonal(K)).sum())
    return float(np.vdot(S, K)) - float(np.linalg.slogdet(K)[1]) + alpha * off


def sparse_precision(S: Array, alpha: float, start: Precision) -> Precision:
    """argmin of `precision_objective` over positive definite K, for a positive definite S; with alpha = 0, or of one row, the inverse of S.

    An eigendecomposition and a soft threshold alternate (Boyd et al. 2011, section 6.5) until a gap of 1e-4 a row is proven: the scaled
    multipliers Y have no diagonal and entries of at most alpha, so where S + Y is positive definite log det(S + Y) + n is a lower bound.
    """
    if alpha == 0.0 or len(S) == 1:
        return start._replace(matrix=_symmetric(np.asarray(np.linalg.inv(S))), failure="")
    n, rho, failure = len(S), start.step, f"no gap is proven after {_MOST_STEPS} steps"
    Z, Y = start.matrix, np.clip(start.dual, -alpha, alpha)
    for step in range(1, _MOST_STEPS + 1):
        values, vectors = np.linalg.eigh(rho * Z - Y - S)
        K = (vectors * ((values + np.sqrt(values**2 + 4.0 * rho)) / (2.0 * rho))) @ vectors.T
        total = _symmetric(rho * K + Y)
        Y = np.clip(total, -alpha, alpha)
        np.fill_diagonal(Y, 0.0)
        before, Z = Z, (total - Y) / rho
        if step % _CHECKED:
            continue
        bound, is_positive = _log_determinant(S + Y), np.isfinite(_log_determinant(Z))
        if is_positive and np.isfinite(bound):
            gap = precision_objective(Z, S, alpha) - bound - n
            if gap <= _GAP * n:
                return Precision(Z, Y, rho)
            failure = f"a gap of {gap:.1e} after {_MOST_STEPS} steps"
        primal, dual = float(np.linalg.norm(K - Z)), rho * float(np.linalg.norm(Z - before))
        rho *= 2.0 if primal > _UNBALANCED * dual else 0.5 if dual > _UNBALANCED * primal else 1.0
    return Precision(Z if np.isfinite(_log_determinant(Z)) else start.matrix, Y, rho, failure)


def _log_determinant(K: Array) -> float:
    """log det K; infinite where K is not positive definite."""
    try:
        return 2.0 * float(np.log(np.diagonal(np.linalg.cholesky(K))).sum())
    except np.linalg.LinAlgError:
        return np.inf


def _symmetric(K: Array) -> Array:
    return np.asarray(0.5 * (K + K.T))
