"""Compiled loops that change the sparse and the low-rank part in turn, on square blocks of X_k^T X_k.

Matrices are held task by task, m x d. The state (P, Q, H(P + Q)) is changed in place, with H the operator of the blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered
from bench_mtl.core.kernels.vectors import dot
from bench_mtl.solvers.kernels.split import apply_blocks, project_trace


@reordered
def _add(out: Any, factor: float, x: Any) -> None:
    for i in range(out.size):
        out[i] += factor * x[i]


@exact
def coordinate_sweep(rows: Any, offsets: Any, B: Any, gamma: float, P: Any, HW: Any) -> None:
    """One exact minimisation in every entry of P: p <- soft threshold of p - g / H_jj at gamma / H_jj."""
    shared = offsets.size == 2
    for k in range(P.shape[0]):
        first = 0 if shared else offsets[k]
        for j in range(P.shape[1]):
            curvature = rows[first + j, j]
            old = P[k, j]
            new = 0.0
            if curvature > 0.0:
                t = old - (HW[k, j] - B[k, j]) / curvature
                new = max(t - gamma / curvature, 0.0) + min(t + gamma / curvature, 0.0)
            if new != old:
                P[k, j] = new
                _add(HW[k], new - old, rows[first + j])


@exact
def block_steps(
    rows: Any, offsets: Any, B: Any, gamma: float, tau: float, sweeps: int, projections: int, L: float, state: Any, count: int
) -> None:
    """`count` rounds: sweeps over P, then accelerated projected gradient steps in Q with the step 1 / L."""
    P, Q, HW = state[0], state[1], state[2]
    V, new, HS, S, before = np.empty_like(Q), np.empty_like(Q), np.empty_like(Q), np.empty_like(Q), np.empty_like(Q)
    step = 1.0 / L if L > 0.0 else 1.0
    for _ in range(count):
        apply_blocks(rows, offsets, False, P + Q, HW)  # afresh, so that rounding does not gather
        for _ in range(sweeps):
            coordinate_sweep(rows, offsets, B, gamma, P, HW)
        before[:] = Q
        t = 1.0
        for _ in range(projections):
            ahead = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
            S[:] = Q + (t - 1.0) / ahead * (Q - before)
            t = ahead
            apply_blocks(rows, offsets, False, P + S, HS)
            V[:] = S - step * (HS - B)
            project_trace(V, tau, new)
            if np.sum((S - new) * (new - Q)) > 0.0:
                t = 1.0
            before[:] = Q
            Q[:] = new
    apply_blocks(rows, offsets, False, P + Q, HW)


@exact
def top_pair(G: Any, u: Any) -> float:
    """Write the leading singular vector of the shorter side of G into u; return a lower bound of the singular value.

    From the Gram matrix where that side is short, else by power iterations from u.
    """
    wide = G.shape[0] <= G.shape[1]
    gram = np.dot(G, G.T) if wide else np.dot(G.T, G)
    n = gram.shape[0]
    if n <= 64:
        squares, vectors = np.linalg.eigh(gram)
        u[:] = vectors[:, n - 1]
        return math.sqrt(max(squares[n - 1], 0.0))
    value = 0.0
    for _ in range(200):
        image = np.dot(gram, u)
        size = math.sqrt(dot(image, image))
        if size == 0.0:
            return 0.0
        u[:] = image / size
        if size <= value * (1.0 + 1e-9):
            break
        value = size
    return math.sqrt(max(value, 0.0))


@exact
def frank_wolfe_steps(
    rows: Any, offsets: Any, B: Any, gamma: float, tau: float, sweeps: int, state: Any, direction: Any, count: int
) -> float:
    """`count` rounds: sweeps over P, then one Frank-Wolfe step in Q with exact line search; the last Frank-Wolfe gap of Q.

    The step goes to the best point of the triangle of Q, the oracle's vertex and 0, so that Q also shrinks at once.
    """
    P, Q, HW = state[0], state[1], state[2]
    wide = Q.shape[0] <= Q.shape[1]
    HV, HQ = np.empty_like(Q), np.empty_like(Q)
    gap = 0.0
    for _ in range(count):
        apply_blocks(rows, offsets, False, P + Q, HW)
        for _ in range(sweeps):
            coordinate_sweep(rows, offsets, B, gamma, P, HW)
        G = HW - B
        size = top_pair(G, direction)
        if size == 0.0 or tau == 0.0:
            Q *= 1.0 if tau > 0.0 else 0.0
            continue
        other = np.dot(direction, G) if wide else np.dot(G, direction)
        length = math.sqrt(dot(other, other))
        V = np.outer(direction, other) if wide else np.outer(other, direction)
        V *= -tau / length
        gap = np.sum(G * (Q - V))
        apply_blocks(rows, offsets, False, V, HV)
        apply_blocks(rows, offsets, False, Q, HQ)
        a, b = _best_in_triangle(G, Q, V, HQ, HV)
        Q[:] = a * Q + b * V
    apply_blocks(rows, offsets, False, P + Q, HW)
    return gap


@exact
def _best_in_triangle(G: Any, Q: Any, V: Any, HQ: Any, HV: Any) -> tuple[float, float]:
    """The (a, b) >= 0, a + b <= 1, that minimise f with Q replaced by a Q + b V; G is the gradient at Q."""
    qq, qv, vv = np.sum(Q * HQ), np.sum(Q * HV), np.sum(V * HV)
    gq, gv = np.sum(G * Q), np.sum(G * V)
    # With x = a - 1: slopes gq + qq x + qv b and gv + qv x + vv b.
    best_a, best_b, best = 1.0, 0.0, 0.0
    determinant = qq * vv - qv * qv
    for case in range(4):
        a, b = 1.0, 0.0
        if case == 0:
            if determinant <= 1e-14 * qq * vv:
                continue
            a, b = 1.0 + (qv * gv - vv * gq) / determinant, (qv * gq - qq * gv) / determinant
            if a < 0.0 or b < 0.0 or a + b > 1.0:
                continue
        elif case == 1:  # from Q to V
            curvature = qq - 2.0 * qv + vv
            b = min(max((gq - gv) / curvature, 0.0), 1.0) if curvature > 0.0 else (1.0 if gv < gq else 0.0)
            a = 1.0 - b
        elif case == 2:  # from Q to 0
            a = min(max(1.0 - gq / qq, 0.0), 1.0) if qq > 0.0 else 1.0
        else:  # from V to 0
            a = 0.0
            b = min(max((qv - gv) / vv, 0.0), 1.0) if vv > 0.0 else 0.0
        x = a - 1.0
        value = gq * x + gv * b + 0.5 * (qq * x * x + 2.0 * qv * x * b + vv * b * b)
        if value < best:
            best_a, best_b, best = a, b, value
    return best_a, best_b


def warm_up() -> None:
    """Compile both loops."""
    rows, offsets, target = np.eye(3), np.array([0, 3]), np.ones((2, 3))
    block_steps(rows, offsets, target, 1.0, 1.0, 1, 1, 1.0, np.zeros((3, 2, 3)), 1)
    frank_wolfe_steps(rows, offsets, target, 1.0, 1.0, 1, np.zeros((3, 2, 3)), np.ones(2), 1)
