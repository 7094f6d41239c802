"""The graphical lasso: a sparse inverse of a covariance matrix, by ADMM with a proven gap, or by scikit-learn."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning

from bench_mtl.core.types import Array

METHODS = ("admm", "scikit-learn")

#: The gap to prove, for each row of the matrix, of which the objective has about 1.
_GAP = 1e-4

#: The largest number of steps, and the steps between two computations of the gap and of the penalty.
_MOST_STEPS, _CHECKED = 1000, 5

#: A residual this many times the other one moves the penalty, by a factor of 2.
_UNBALANCED = 5.0

#: Of scikit-learn's coordinate descent: its gap, its iterations, and the tolerance of its regressions.
_LASSO_TOLERANCE, _LASSO_ITERATIONS, _REGRESSION_TOLERANCE = 1e-3, 100, 1e-7


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
        """I."""
        return Precision(np.eye(n), np.zeros((n, n)), 0.25)


def precision_objective(K: Array, S: Array, alpha: float) -> float:
    """tr(S K) - log det K + alpha sum_{i != j} |K_ij|."""
    off = float(np.abs(K).sum() - np.abs(np.diagonal(K)).sum())
    return float(np.vdot(S, K)) - float(np.linalg.slogdet(K)[1]) + alpha * off


def sparse_precision(S: Array, alpha: float, start: Precision, method: str) -> Precision:
    """argmin of `precision_objective` over positive definite K; `start` where that fails.

    With alpha = 0, or of one row, K is the inverse of S. Of the methods

    - "admm" alternates an eigendecomposition of S and a soft threshold (Boyd et al. 2011, section 6.5) until a gap of 1e-4 a row is proven:
      the scaled multipliers Y have no diagonal and entries of at most alpha, so where S + Y is positive definite log det(S + Y) + n is
      a lower bound.
    - "scikit-learn" is `sklearn.covariance.graphical_lasso`, a coordinate descent. It often fails where S is a matrix of low rank plus a
      small multiple of I ("Non SPD result"), which the scatter matrix of many features over few tasks is.

    Parameters
    ----------
    S : symmetric, positive definite
    """
    if alpha == 0.0 or len(S) == 1:
        return start._replace(matrix=_symmetric(np.asarray(np.linalg.inv(S))), failure="")
    return _by_admm(S, alpha, start) if method == "admm" else _by_scikit_learn(S, alpha, start)


def _by_admm(S: Array, alpha: float, start: Precision) -> Precision:
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
    if not np.isfinite(_log_determinant(Z)):
        Z = start.matrix
    return Precision(Z, Y, rho, failure)


def _log_determinant(K: Array) -> float:
    """log det K; infinite where K is not positive definite."""
    try:
        return 2.0 * float(np.log(np.diagonal(np.linalg.cholesky(K))).sum())
    except np.linalg.LinAlgError:
        return np.inf


def _by_scikit_learn(S: Array, alpha: float, start: Precision) -> Precision:
    failure = ""
    options = {"tol": _LASSO_TOLERANCE, "max_iter": _LASSO_ITERATIONS, "enet_tol": _REGRESSION_TOLERANCE}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            K = _symmetric(graphical_lasso(S, alpha, **options)[1])
        except FloatingPointError as error:
            return start._replace(failure=" ".join(str(error).split()))
    for warning in caught:
        # Regressions that have not converged to their own tight tolerance are no failure; that the whole has not is one.
        if "graphical_lasso" in str(warning.message):
            failure = " ".join(str(warning.message).split())
    return (
        start._replace(matrix=K, failure=failure) if np.isfinite(_log_determinant(K)) else start._replace(failure="not positive definite")
    )


def _symmetric(K: Array) -> Array:
    return np.asarray(0.5 * (K + K.T))
