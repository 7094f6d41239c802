"""Compiled loop of the sparse plus low-rank least squares that minimises the sparse part out, for one design with few rows.

Matrices are held task by task. X is held by its columns (data, indices, indptr), with unsigned indices. Q = X^T B^T with B (m x n), and
E = B K are the predictions of Q, K = X X^T: only P has a side of d.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined
from bench_mtl.solvers.kernels.split import ball_threshold

#: All features are looked at in the first rounds and in one of so many later ones, else those with a coefficient that is not 0.
_ALL_FIRST, _ALL_EVERY = 2, 5

#: Places in the `scalars` of `rounds`: the momentum term t_i, and the rounds so far.
MOMENTUM, ROUNDS = 0, 1

#: X by its columns, their squared lengths, X X^T, and the targets.
Data = namedtuple("Data", "columns curvatures K targets")

#: The penalty of P, the radius of Q, sigma_max(X)^2, and the sweeps of a round.
Rule = namedtuple("Rule", "gamma tau L sweeps")

#: What rounds change: P, the residual, (B, E) of Q and of the Q before, and numbers.
State = namedtuple("State", "P R rows scalars")


@inlined
def _update(data: Any, indices: Any, first: int, end: int, curvature: float, gamma: float, old: float, r: Any) -> float:
    """The best value of an entry that is `old` now; r, the residual, is changed accordingly."""
    slope = 0.0
    for place in range(first, end):
        slope += data[place] * r[indices[place]]
    t = old * curvature + slope
    new = (max(t - gamma, 0.0) + min(t + gamma, 0.0)) / curvature
    if new != old:
        for place in range(first, end):
            r[indices[place]] -= (new - old) * data[place]
    return new


@exact
def sweep(columns: Any, curvatures: Any, gamma: float, P: Any, R: Any) -> None:
    """One exact minimisation in every entry of P; all curvatures are above 0."""
    data, indices, indptr = columns
    for k in range(P.shape[0]):
        p, r = P[k], R[k]
        for j in range(p.size):
            p[j] = _update(data, indices, indptr[j], indptr[j + 1], curvatures[j], gamma, p[j], r)


@exact
def sweep_active(columns: Any, curvatures: Any, gamma: float, sweeps: int, P: Any, R: Any) -> None:
    """`sweeps` times one in every entry that is not 0 now."""
    data, indices, indptr = columns
    active = np.empty(P.shape[1], np.int64)
    for k in range(P.shape[0]):
        p, r, count = P[k], R[k], 0
        for j in range(p.size):
            if p[j] != 0.0:
                active[count] = j
                count += 1
        for _ in range(sweeps):
            for i in range(count):
                j = active[i]
                p[j] = _update(data, indices, indptr[j], indptr[j + 1], curvatures[j], gamma, p[j], r)


@exact
def _residuals(columns: Any, targets: Any, P: Any, E: Any, R: Any) -> None:
    """R = targets - X P - E."""
    data, indices, indptr = columns
    for k in range(P.shape[0]):
        p, r, target, e = P[k], R[k], targets[k], E[k]
        for i in range(r.size):
            r[i] = target[i] - e[i]
        for j in range(p.size):
            if p[j] != 0.0:
                for place in range(indptr[j], indptr[j + 1]):
                    r[indices[place]] -= p[j] * data[place]


@exact
def project(tau: float, B: Any, E: Any) -> None:
    """The projection of Q = X^T B^T onto the trace-norm ball, a product Q M: from Q^T Q = B E^T. Changes B and E."""
    gram = np.dot(B, E.T)
    n = len(gram)
    for i in range(n):
        for j in range(i):
            gram[i, j] = gram[j, i] = 0.5 * (gram[i, j] + gram[j, i])
    values, vectors = np.linalg.eigh(gram)
    total = 0.0
    for j in range(n):
        values[j] = math.sqrt(max(values[j], 0.0))
        total += values[j]
    if total <= tau:
        return
    theta = ball_threshold(values, tau)
    shrunk = np.empty((n, n))
    for j in range(n):
        share = (values[j] - theta) / values[j] if values[j] > theta else 0.0
        for i in range(n):
            shrunk[i, j] = vectors[i, j] * share
    shrink = np.dot(shrunk, vectors.T)
    B[:] = np.dot(shrink, B)
    E[:] = np.dot(shrink, E)


@exact
def rounds(data: Any, rule: Any, state: Any, count: int) -> None:
    """`count` rounds: Q ahead along its momentum, sweeps over P, a projected gradient step in Q. At last P once more, for this Q."""
    columns, curvatures, K, targets = data
    gamma, tau, L, sweeps = rule
    P, R, rows, scalars = state
    B, E, r = rows[0], rows[1], R.ravel()
    b, e, b_before, e_before = B.ravel(), E.ravel(), rows[2].ravel(), rows[3].ravel()
    new, search = np.empty((2, B.shape[0], B.shape[1])), np.empty((2, b.size))
    B_new, E_new, b_new, e_new, b_search, e_search = new[0], new[1], new[0].ravel(), new[1].ravel(), search[0], search[1]
    step = 1.0 / L if L > 0.0 else 1.0
    for _ in range(count):
        t = scalars[MOMENTUM]
        ahead = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        momentum = (t - 1.0) / ahead
        for i in range(b.size):  # loops, for array expressions take seconds to compile
            b_search[i] = b[i] + momentum * (b[i] - b_before[i])
            e_search[i] = e[i] + momentum * (e[i] - e_before[i])
            r[i] -= e_search[i] - e[i]
        if scalars[ROUNDS] < _ALL_FIRST or scalars[ROUNDS] % _ALL_EVERY == 0:
            sweep(columns, curvatures, gamma, P, R)
        sweep_active(columns, curvatures, gamma, sweeps, P, R)
        np.dot(R, K, E_new)
        for i in range(b.size):
            b_new[i] = b_search[i] + step * r[i]
            e_new[i] = e_search[i] + step * e_new[i]
        project(tau, B_new, E_new)
        rise = 0.0
        for i in range(b.size):
            rise += (b_search[i] - b_new[i]) * (e_new[i] - e[i])
        for i in range(b.size):
            r[i] -= e_new[i] - e_search[i]
            b_before[i] = b_new[i] if rise > 0.0 else b[i]
            e_before[i] = e_new[i] if rise > 0.0 else e[i]
            b[i] = b_new[i]
            e[i] = e_new[i]
        scalars[MOMENTUM] = 1.0 if rise > 0.0 else ahead
        scalars[ROUNDS] += 1.0
    np.dot(B, K, E)  # afresh, so that rounding does not gather
    _residuals(columns, targets, P, E, R)
    sweep(columns, curvatures, gamma, P, R)
