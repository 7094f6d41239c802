"""ADMM for a sparse plus a low-rank matrix where features are of unlike scale: one penalty for each row of P, one for Q."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.normal_equations import normal_blocks
from bench_mtl.solvers.units import in_units

#: Iterations between two iterates, or a tenth of all so far.
_FEWEST = 5

#: The first balancing of the penalties; the later ones at twice the steps of the one before. More often is unstable.
_FIRST_BALANCE = 10

#: The most that one balancing changes the penalty of a row of P, and that of Q.
_LARGEST_CHANGE_P, _LARGEST_CHANGE_Q = 10.0, 100.0

#: The penalty of P to begin with, where columns have norm 1.
_FIRST_PENALTY = 0.15

#: The smallest shift of a matrix of columns of norm 1, for each of its columns.
_SMALLEST_SHIFT = 10.0 * float(np.finfo(float).eps)


def unlike_steps(
    form: SplitForm, first: Array, units: Array, *, relaxation: float, penalty: float | None, balance: bool, resumed: bool
) -> Iterator[Iterate]:
    """ADMM as `ADMM` says, with a penalty rho_j / t_j^2 for row j of P, for units t in which the columns of the data have norm 1.

    The prox of the l1 norm allows a penalty for each row, that of the trace norm only one for all. The steps are those in the scaled
    features P_j / t_j, Q_j / t_j, in which the matrix to factorise is well scaled. Q itself is projected in its own units. Iterates follow
    on the first one, which the caller yields.

    Parameters
    ----------
    penalty : the first rho_j; None for the default
    balance : whether residual balancing adapts every rho_j and the penalty of Q
    resumed : whether `first` is near the optimum, so that multipliers follow from its residuals
    """
    from bench_mtl.solvers.kernels.split import project_trace

    t = units[:, None]
    design = in_units(form.design, units)
    normal = normal_blocks(design, square=True)
    grams = np.stack([normal.block(k) for k in range(normal.count)])
    image = design.adjoint(form.targets)
    thresholds = form.penalty * t
    rho_p = np.full_like(t, penalty or _FIRST_PENALTY)
    rho_q = float(np.exp(-2.0 * np.log(units).mean()))  # the geometric mean of the squared norms of the columns
    P, Q = first[0] / t, np.array(first[1])
    U, V = np.zeros_like(P), np.zeros_like(Q)
    if resumed:
        # At the optimum the multipliers rho_p U = t rho_q V are the scaled X^T of the residuals.
        slope = design.adjoint(form.targets - form.design.forward(first[0] + first[1]))
        U, V = np.clip(slope, -thresholds, thresholds) / rho_p, slope / (t * rho_q)
    share = _share(rho_p, rho_q * t**2)
    factors = _factors(grams, rho_p * share)
    step, work, next_balance = 0, 2.0 if resumed else 1.0, _FIRST_BALANCE
    while True:
        count = max(_FEWEST, step // 10)
        if balance and step < next_balance:
            count = min(count, next_balance - step)
        for _ in range(count):
            near_p, near_q = P - U, (Q - V) / t
            S = _solved(factors, image + rho_p * share * (near_p + near_q))
            rest = S - near_p - near_q
            A, B = near_p + share * rest, t * (near_q + (1.0 - share) * rest)
            P_before, Q_before = P, Q
            U = U + relaxation * A + (1.0 - relaxation) * P
            P = U - np.clip(U, -thresholds / rho_p, thresholds / rho_p)
            U = U - P
            V = V + relaxation * B + (1.0 - relaxation) * Q
            Q = np.empty_like(V)
            project_trace(V, form.radius, Q)
            V = V - Q
        step += count
        work += count + 0.5
        yield Iterate(np.stack([t * P, Q]), form.targets - design.forward(S), step, work)
        if balance and step == next_balance:
            next_balance *= 2
            rows = _balancing_factors(A, P, P_before, U, _LARGEST_CHANGE_P)
            smooth_q, point_q, before_q, pull_q = (M.reshape(1, -1) for M in (B, Q, Q_before, V))
            whole = float(_balancing_factors(smooth_q, point_q, before_q, pull_q, _LARGEST_CHANGE_Q)[0, 0])
            rho_p, rho_q = rho_p * rows, rho_q * whole
            U, V = U / rows, V / whole
            share = _share(rho_p, rho_q * t**2)
            factors = _factors(grams, rho_p * share)


def _share(rho_p: Array, rho_q: Array) -> Array:
    """The share of P in what S = P + Q moves by."""
    return rho_q / (rho_p + rho_q)


def _balancing_factors(smooth: Array, point: Array, before: Array, multipliers: Array, largest: float) -> Array:
    """For every row: the root of the ratio of its relative residuals, primal to dual; 1 where one of the two is 0."""
    gap, size = _row_norms(smooth - point), np.maximum(_row_norms(smooth), _row_norms(point))
    change, pull = _row_norms(point - before), _row_norms(multipliers)
    known = (gap > 0.0) & (size > 0.0) & (change > 0.0) & (pull > 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(known, (gap / size) / (change / pull), 1.0)
    return np.clip(np.sqrt(ratio), 1.0 / largest, largest)


def _row_norms(M: Array) -> Array:
    return np.asarray(np.sqrt(np.square(M).sum(axis=1, keepdims=True)))


def _factors(grams: Array, shifts: Array) -> list[Array]:
    """The upper Cholesky factor of X_k^T X_k + diag(shifts) for every block: inverses would lose digits of nearly dependent columns."""
    factors = []
    for gram in grams:
        shifted = np.array(gram, order="F")
        # Below the rounding of the factor a shift does not keep nearly dependent columns apart.
        shifted[np.diag_indices(len(shifted))] += np.maximum(shifts[:, 0], _SMALLEST_SHIFT * len(shifted))
        factor, info = lapack.dpotrf(shifted, lower=0, clean=0, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"LAPACK returned {info}")
        factors.append(factor)
    return factors


def _solved(factors: list[Array], right: Array) -> Array:
    """The solution for every task, one a column."""
    if len(factors) == 1:
        return np.asarray(lapack.dpotrs(factors[0], right, lower=0)[0])
    return np.stack([lapack.dpotrs(factor, column, lower=0)[0] for factor, column in zip(factors, right.T, strict=True)], axis=1)
