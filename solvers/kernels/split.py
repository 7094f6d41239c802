"""Compiled loops for least squares of a sparse plus a low-rank matrix, on blocks of X_k^T X_k (`bench_mtl.model.normal_equations`).

Matrices are held task by task, m x d, one row a task. The state of a loop is a cube of such matrices, changed in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered
from bench_mtl.core.kernels.vectors import dot, squared_distance
from bench_mtl.model.normal_equations import TaskBlocks

#: Of theta to the largest singular value: below it, squaring the matrix has cost more digits than the iterations can spare.
_SMALLEST_GRAM_THRESHOLD = 1e-4


@exact
def apply_blocks(blocks: Any, V: Any, out: Any) -> None:
    """Write the symmetric operator of every task, `TaskBlocks`, times its row of V."""
    rows, offsets = blocks.rows, blocks.offsets
    if offsets.size == 2:
        if blocks.thin:
            np.dot(np.dot(V, rows.T), rows, out)
        else:
            np.dot(V, rows, out)
        return
    for k in range(V.shape[0]):
        block = rows[offsets[k] : offsets[k + 1]]
        if blocks.thin:
            np.dot(block.T, np.dot(block, V[k]), out[k])
        else:
            np.dot(block, V[k], out[k])


@exact
def ball_threshold(values: Any, radius: float) -> float:
    """The theta with sum max(values - theta, 0) = radius, for ascending values whose sum exceeds the radius."""
    total = 0.0
    n = values.size
    for count in range(1, n + 1):
        total += values[n - count]
        theta = (total - radius) / count
        if count == n or theta >= values[n - count - 1]:
            return theta
    return 0.0


@exact
def project_trace(A: Any, radius: float, out: Any) -> float:
    """Write the projection of A onto the trace-norm ball, from the Gram matrix of its shorter side; return theta."""
    if radius == 0.0:
        out[:] = 0.0
        return 0.0
    wide = A.shape[0] <= A.shape[1]
    G = np.dot(A, A.T) if wide else np.dot(A.T, A)
    n = G.shape[0]
    trace = 0.0
    for i in range(n):
        trace += G[i, i]
    if math.sqrt(n * trace) * (1.0 + 1e-12) <= radius:
        out[:] = A
        return 0.0
    squares, vectors = np.linalg.eigh(G)
    values = np.sqrt(np.maximum(squares, 0.0))
    total = values.sum()
    theta = ball_threshold(values, radius) if total > radius else 0.0
    if theta < _SMALLEST_GRAM_THRESHOLD * values[n - 1]:
        return _project_by_svd(A, radius, out)
    kept = 0
    while kept < n and values[n - 1 - kept] > theta:
        kept += 1
    basis = np.empty((n, kept))
    for j in range(kept):
        share = math.sqrt((values[n - 1 - j] - theta) / values[n - 1 - j])
        for i in range(n):
            basis[i, j] = share * vectors[i, n - 1 - j]
    if wide:
        if 2 * kept < n:
            np.dot(basis, np.dot(basis.T, A), out)
        else:
            np.dot(np.dot(basis, basis.T), A, out)
    else:
        if 2 * kept < n:
            np.dot(np.dot(A, basis), basis.T, out)
        else:
            np.dot(A, np.dot(basis, basis.T), out)
    return theta


@exact
def _project_by_svd(A: Any, radius: float, out: Any) -> float:
    U, values, Vt = np.linalg.svd(A, False)
    if values.sum() <= radius:
        out[:] = A
        return 0.0
    theta = ball_threshold(values[::-1].copy(), radius)
    scaled = np.empty((U.shape[0], values.size))
    for i in range(U.shape[0]):
        for j in range(values.size):
            scaled[i, j] = U[i, j] * max(values[j] - theta, 0.0)
    np.dot(scaled, np.ascontiguousarray(Vt), out)
    return theta


@reordered
def _dot_sum(x: Any, a: Any, b: Any) -> float:
    """<x, a + b>."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * (a[i] + b[i])
    return total


@reordered
def _uphill(s: Any, new: Any, old: Any) -> float:
    """<s - new, new - old>."""
    total = 0.0
    for i in range(s.size):
        total += (s[i] - new[i]) * (new[i] - old[i])
    return total


@reordered
def _growth(new: Any, old: Any) -> float:
    """||new||_1 - ||old||_1, entry by entry, so that a small difference keeps its digits."""
    total = 0.0
    for i in range(new.size):
        total += abs(new[i]) - abs(old[i])
    return total


@reordered
def _ahead(new: Any, old: Any, momentum: float, out: Any) -> None:
    for i in range(out.size):
        out[i] = new[i] + momentum * (new[i] - old[i])


@reordered
def _sum(x: Any, factor: float, y: Any, out: Any) -> None:
    """out = x + factor y."""
    for i in range(out.size):
        out[i] = x[i] + factor * y[i]


@reordered
def soft_step(start: Any, gradient: Any, step: float, threshold: float, out: Any) -> None:
    """out = soft threshold of start - step gradient."""
    for i in range(start.size):
        t = start[i] - step * gradient[i]
        out[i] = max(t - threshold, 0.0) + min(t + threshold, 0.0)


#: Places in the `scalars` of `gradient_steps`.
MOMENTUM_BEFORE, MOMENTUM, LIPSCHITZ, PRODUCTS, STOPPED = 0, 1, 2, 3, 4


class Descent(NamedTuple):
    """How projected gradients go on, with gamma sum |P| and ||Q||_* <= tau."""

    gamma: float
    tau: float
    accelerated: bool
    restarted: bool
    searched: bool
    smallest_change: float


@exact
def gradient_steps(blocks: Any, B: Any, rule: Any, state: Any, work: Any, scalars: Any, count: int) -> int:
    """Up to `count` iterations of (accelerated) projected gradient; how many were made before the objective changed too little.

    state: (P, Q, H(P + Q)) of the last iterate, then of the one before; work: 6 matrices. H is the operator of the blocks, B = X^T y.
    scalars: momentum terms t_{i-2} and t_{i-1}, L, the products with H so far, and whether the last change was below `smallest_change`.
    """
    blocks, rule = TaskBlocks(*blocks), Descent(*rule)
    gamma, searched, smallest_change = rule.gamma, rule.searched, rule.smallest_change
    S, new, G, V = work[0:2], work[2:4], work[4], work[5]
    Sf, newf, Gf, Vf, Bf = S.ravel(), new.ravel(), G.ravel(), V.ravel(), B.ravel()
    T, before, HT, Hbefore = state[0:2].ravel(), state[3:5].ravel(), state[2].ravel(), state[5].ravel()
    P = state[0].ravel()
    Hnew = np.empty_like(B)
    Hnewf = Hnew.ravel()
    size = B.size
    for done in range(count):
        if rule.accelerated:
            momentum = (scalars[MOMENTUM_BEFORE] - 1.0) / scalars[MOMENTUM]
            _ahead(T, before, momentum, Sf)
            _ahead(HT, Hbefore, momentum, Gf)
        else:
            Sf[:] = T
            Gf[:] = HT
        _sum(Gf, -1.0, Bf, Gf)
        while True:
            L = scalars[LIPSCHITZ]
            step = 1.0 / L if L > 0.0 else 1.0
            soft_step(Sf[:size], Gf, step, gamma * step, newf[:size])
            _sum(Sf[size:], -step, Gf, Vf)
            project_trace(V, rule.tau, new[1])
            _sum(newf[:size], 1.0, newf[size:], Vf)
            apply_blocks(blocks, V, Hnew)
            scalars[PRODUCTS] += 1.0
            if not searched or _is_below_model(Sf, newf, Vf, Gf, Bf, Hnewf, L):
                break
            scalars[LIPSCHITZ] = 2.0 * L
        change = 0.0
        if smallest_change > 0.0:
            # F(new) - F(old) without the cancellation of two large values: <D, gradient in the middle> + gamma (change of the l1 norm).
            _sum(Vf, -1.0, T[:size], Vf)
            _sum(Vf, -1.0, T[size:], Vf)
            change = 0.5 * _dot_sum(Vf, Hnewf, HT) - dot(Vf, Bf) + gamma * _growth(newf[:size], P)
        if rule.accelerated:
            scalars[MOMENTUM_BEFORE], scalars[MOMENTUM] = (
                scalars[MOMENTUM],
                0.5 * (1.0 + math.sqrt(1.0 + 4.0 * scalars[MOMENTUM] * scalars[MOMENTUM])),
            )
            if rule.restarted and _uphill(Sf, newf, T) > 0.0:
                scalars[MOMENTUM_BEFORE], scalars[MOMENTUM] = 1.0, 1.0
        before[:] = T
        Hbefore[:] = HT
        T[:] = newf
        HT[:] = Hnewf
        if smallest_change > 0.0 and abs(change) < smallest_change:
            scalars[STOPPED] = 1.0
            return done + 1
    return count


@exact
def _is_below_model(S: Any, new: Any, W: Any, G: Any, B: Any, HW: Any, L: float) -> bool:
    """Whether f(new) is at most its quadratic model around S: <D, H D> <= L ||(D_P, D_Q)||^2 with D = D_P + D_Q, to rounding."""
    curvature = 0.0
    scale = 0.0
    length = 0.0
    n = W.size
    for i in range(n):
        difference = W[i] - S[i] - S[n + i]
        image = G[i] + B[i]
        curvature += difference * (HW[i] - image)
        scale += image * image
        length += difference * difference
    # Rounding near the optimum must not double L for ever.
    return curvature <= L * squared_distance(S, new) + 1e-13 * math.sqrt(scale * length)


@reordered
def _admm_scatter(a: Any, b: Any, s: Any, share_p: float, share_q: float) -> None:
    """(a, b) += (share_p, share_q) (s - a - b)."""
    for i in range(s.size):
        e = s[i] - a[i] - b[i]
        a[i] += share_p * e
        b[i] += share_q * e


@reordered
def _admm_gather(of_P: Any, of_Q: Any, B: Any, rho: float, v: Any) -> None:
    """a = P - U_p and b = Q - U_q, given as (P, U_p, a) and (Q, U_q, b), and v = B + rho (a + b)."""
    (P, up, a), (Q, uq, b) = of_P, of_Q
    for i in range(v.size):
        a[i] = P[i] - up[i]
        b[i] = Q[i] - uq[i]
        v[i] = B[i] + rho * (a[i] + b[i])


@reordered
def _admm_relax(ahead: Any, old: Any, u: Any, relaxation: float, out: Any) -> None:
    for i in range(out.size):
        out[i] = relaxation * ahead[i] + (1.0 - relaxation) * old[i] + u[i]


@reordered
def _admm_soft(t: Any, threshold: float, P: Any, u: Any) -> None:
    for i in range(t.size):
        p = max(t[i] - threshold, 0.0) + min(t[i] + threshold, 0.0)
        P[i] = p
        u[i] = t[i] - p


class Splitting(NamedTuple):
    """gamma sum |P| and ||Q||_* <= tau, the penalties of both parts, and by how much steps are relaxed."""

    gamma: float
    tau: float
    rho_p: float
    rho_q: float
    relaxation: float


@exact
def admm_split(rule: Any, state: Any, work: Any, residuals: Any, measured: bool) -> None:
    """What follows S in an iteration of `admm_steps`; matrices may as well be held feature by feature.

    The first two matrices of `work` are P - U_p and Q - U_q. The residuals are written where `measured`.
    """
    v, old, Q = work[2], work[3], state[1]
    Pf, Qf, upf, uqf, sf = state[0].ravel(), Q.ravel(), state[2].ravel(), state[3].ravel(), state[4].ravel()
    af, bf, vf, oldf = work[0].ravel(), work[1].ravel(), v.ravel(), old.ravel()
    rho_p, rho_q, relaxation = rule.rho_p, rule.rho_q, rule.relaxation
    rho = rho_p * rho_q / (rho_p + rho_q)
    _admm_scatter(af, bf, sf, rho / rho_p, rho / rho_q)
    if measured:
        oldf[:] = Pf
    _admm_relax(af, Pf, upf, relaxation, vf)
    _admm_soft(vf, rule.gamma / rho_p, Pf, upf)
    if measured:
        _residuals(af, Pf, oldf, upf, residuals[0])
        oldf[:] = Qf
    _admm_relax(bf, Qf, uqf, relaxation, vf)
    project_trace(v, rule.tau, Q)
    _sum(vf, -1.0, Qf, uqf)
    if measured:
        _residuals(bf, Qf, oldf, uqf, residuals[1])


@exact
def admm_steps(blocks: Any, B: Any, rule: Any, state: Any, work: Any, residuals: Any, count: int) -> None:
    """`count` iterations of ADMM, with the blocks those of the resolvent for rho = rho_p rho_q / (rho_p + rho_q).

    state: (P, Q, U_p, U_q, S), the scaled multipliers and the last S = argmin of the smooth part; work: 4 matrices.
    residuals: of the last iteration, (primal, dual) of P, then of Q, each relative: ||P' - P|| / max(||P'||, ||P||) and
    ||P - P_old|| / ||U_p||.
    """
    P, Q, up, uq, s = state[0], state[1], state[2], state[3], state[4]
    a, b, v = work[0], work[1], work[2]
    Pf, Qf, upf, uqf, sf = P.ravel(), Q.ravel(), up.ravel(), uq.ravel(), s.ravel()
    af, bf, vf, Bf = a.ravel(), b.ravel(), v.ravel(), B.ravel()
    rho = rule.rho_p * rule.rho_q / (rule.rho_p + rule.rho_q)
    for step in range(count):
        _admm_gather((Pf, upf, af), (Qf, uqf, bf), Bf, rho, vf)
        apply_blocks(blocks, v, s)
        if blocks.thin:
            _resolve(vf, 1.0 / rho, sf)
        admm_split(rule, state, work, residuals, step == count - 1)


@reordered
def _resolve(v: Any, scale: float, s: Any) -> None:
    for i in range(s.size):
        s[i] = scale * (v[i] - s[i])


@exact
def _residuals(ahead: Any, new: Any, old: Any, u: Any, out: Any) -> None:
    size = max(dot(ahead, ahead), dot(new, new))
    out[0] = math.sqrt(squared_distance(ahead, new) / size) if size > 0.0 else 0.0
    size = dot(u, u)
    out[1] = math.sqrt(squared_distance(new, old) / size) if size > 0.0 else 0.0
