"""Passes over the blocks of a Newton system: designs scaled on both sides, weighted Gram matrices of sparse designs, Schur complements.

Symmetric matrices are C-contiguous and only their upper triangle is read or written: to LAPACK, which counts by columns, the lower one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.kernels.jit import reordered
from bench_mtl.core.kernels.vectors import add_multiple, dot


@reordered
def _scale_line(x: Any, columns: Any, factor: float, out: Any) -> None:
    for j in range(x.size):
        out[j] = x[j] * columns[j] * factor


@reordered
def scale_both(X: Any, rows: Any, columns: Any, out: Any) -> None:
    """out = diag(rows) X diag(columns)."""
    for i in range(X.shape[0]):
        _scale_line(X[i], columns, rows[i], out[i])


@reordered
def scale_columns(X: Any, columns: Any) -> None:
    """X <- X diag(columns)."""
    for i in range(X.shape[0]):
        _scale_line(X[i], columns, 1.0, X[i])


@reordered
def sparse_gram(data: Any, indices: Any, indptr: Any, rows: Any, columns: Any, out: Any) -> None:
    """out = diag(columns) X^T diag(rows)^2 X diag(columns) of a CSR matrix X with sorted indices."""
    out[:] = 0.0
    for i in range(indptr.size - 1):
        square = rows[i] * rows[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            line = out[j]
            value = data[p] * columns[j] * square
            for q in range(p, indptr[i + 1]):
                line[indices[q]] += value * data[q] * columns[indices[q]]


@reordered
def _add_line(inverse: Any, sides: Any, side: float, out: Any) -> None:
    for j in range(inverse.size):
        out[j] -= side * inverse[j] * sides[j]


@reordered
def add_complement(inverse: Any, sides: Any, out: Any) -> None:
    """out += diag(sides) (I - inverse) diag(sides)."""
    for i in range(inverse.shape[0]):
        side = sides[i]
        out[i, i] += side * side * (1.0 - inverse[i, i])
        _add_line(inverse[i, i + 1 :], sides[i + 1 :], side, out[i, i + 1 :])


@reordered
def _solve(U: Any, x: Any) -> None:
    """x <- (U^T U)^-1 x, U upper triangular."""
    for i in range(x.size):
        x[i] /= U[i, i]
        add_multiple(-x[i], U[i, i + 1 :], x[i + 1 :])
    for i in range(x.size - 1, -1, -1):
        x[i] = (x[i] - dot(U[i, i + 1 :], x[i + 1 :])) / U[i, i]


@reordered
def _leave_out(q: Any, x: Any) -> None:
    """x <- (I - q q^T / q.q) x."""
    add_multiple(-dot(q, x) / dot(q, q), q, x)


@reordered
def solve_examples(places: Any, rows: Any, factors: Any, roots: Any, is_centred: bool, W: Any, g: Any, a: Any, images: Any) -> None:
    """a_k = R U^-1 U^-T R (g_k - X_k w_k) with R = diag(roots_k), and images_k = X_k^T a_k, for some tasks k.

    With `is_centred` of rows without their mean, weighted by the squares of the roots: R (g_k - X_k w_k) is projected onto what is
    orthogonal to the roots, where U^T U leaves it.

    A line of `places` is a task's number, its examples' number and start in stacked vectors, and where its X starts in `rows` and
    its U (n_k x n_k) in `factors`. One pass over the tasks does it all, so that an X is read from memory once.
    """
    for index in range(places.shape[0]):
        k, n, start, first, at = places[index]
        X, U = rows[first : first + n], factors[at : at + n * n].reshape((n, n))
        root, x, image = roots[start : start + n], a[start : start + n], images[k]
        for i in range(n):
            x[i] = root[i] * (g[start + i] - dot(X[i], W[k]))
        if is_centred:
            _leave_out(root, x)
        _solve(U, x)
        if is_centred:
            _leave_out(root, x)
        image[:] = 0.0
        for i in range(n):
            x[i] *= root[i]
            add_multiple(x[i], X[i], image)


@reordered
def solve_features(tasks: Any, columns: Any, middles: Any, right: Any, out: Any) -> None:
    """out_k = diag(columns_k) A_k diag(columns_k) right_k for some tasks k, with their symmetric A_k in `middles`, in this order."""
    x = np.empty(right.shape[1])
    for place in range(tasks.size):
        k = tasks[place]
        A, y = middles[place], out[k]
        for i in range(x.size):
            x[i] = columns[k, i] * right[k, i]
        y[:] = 0.0
        for i in range(x.size):
            y[i] += A[i, i] * x[i] + dot(A[i, i + 1 :], x[i + 1 :])
            add_multiple(x[i], A[i, i + 1 :], y[i + 1 :])
        for i in range(x.size):
            y[i] *= columns[k, i]


class Point(NamedTuple):
    """A primal-dual point of rows and entries, or a direction: u, v and, with entries, s+, s- are in `slack`, (2 or 4) x m x d."""

    W: Any
    mu: Any
    slack: Any
    dual: Any


class Quadratic(NamedTuple):
    """1/2 sum_k w_k^T H_k w_k - <linear, W>, with the penalties of rows and of entries."""

    grams: Any
    """H, 1 x d x d for one that all tasks share, or m x d x d."""
    linear: Any
    levels: Any


class _Factors(NamedTuple):
    """T, D, C and (I + T C)^-1 of all entries, T^-1/2 of what is left of T, the inverses in the middle, and the factor of S."""

    T: Any
    D: Any
    C: Any
    rigid: Any
    columns: Any
    middles: Any
    schur: Any


class _Rest(NamedTuple):
    """The residuals of the equations of slacks or duals, of G, and of the levels."""

    parts: Any
    W: Any
    mu: Any


@reordered
def hinge_sides(labels: Any, x: Any, target: Any, s: Any, r: Any, out: Any) -> None:
    """out = y (target_r / a - target_xi / b + xi s / b - r) of slacks and duals x; without s and r, which are no residuals, where empty."""
    slack, dual = x
    n = labels.size
    for i in range(n):
        g = target[i] / dual[i] - target[n + i] / dual[n + i]
        if s.size > 0:
            g += slack[n + i] / dual[n + i] * s[i] - r[i]
        out[i] = labels[i] * g


@reordered
def hinge_changes(labels: Any, x: Any, target: Any, s: Any, a: Any, changes: Any) -> None:
    """Write the changes of r, xi and of their duals, y a and s - y a."""
    (slack, dual), (dslack, ddual) = x, changes
    n = labels.size
    for i in range(n):
        ddual[i] = labels[i] * a[i]
        ddual[n + i] = (s[i] if s.size > 0 else 0.0) - ddual[i]
    for i in range(2 * n):
        dslack[i] = (target[i] - slack[i] * ddual[i]) / dual[i]


@reordered
def recentred(x: Any, changes: Any, steps: Any, goal: float, factor: float, out: Any) -> None:
    """out brings the products of slacks and duals x after steps back to within a factor of the goal, or by as much as that."""
    (slack, dual), (dslack, ddual), (primal, of_dual) = x, changes, steps
    for i in range(out.size):
        product = (slack[i] + primal * dslack[i]) * (dual[i] + of_dual * ddual[i])
        out[i] = max(min(max(product, goal / factor), goal * factor) - product, -goal * factor)


@reordered
def _residuals(of: Any, x: Any) -> Any:
    m, d = x.W.shape
    parts, W, mu = np.empty_like(x.slack), np.empty((m, d)), np.full(d, of.levels[0])
    total = np.empty(d)
    for k in range(m):
        H = of.grams[k % len(of.grams)]
        for j in range(d):
            total[j] = x.W[k, j] + (x.slack[2, k, j] - x.slack[3, k, j] if len(x.slack) == 4 else 0.0)
        for j in range(d):
            G = of.linear[k, j] - dot(H[j], total)
            parts[0, k, j] = x.mu[j] - x.W[k, j] - x.slack[0, k, j]
            parts[1, k, j] = x.mu[j] + x.W[k, j] - x.slack[1, k, j]
            if len(x.slack) == 4:
                parts[2, k, j] = of.levels[1] - x.dual[2, k, j] - G
                parts[3, k, j] = of.levels[1] - x.dual[3, k, j] + G
            W[k, j] = G - x.dual[0, k, j] + x.dual[1, k, j]
            mu[j] -= x.dual[0, k, j] + x.dual[1, k, j]
    return _Rest(parts, W, mu)


@reordered
def _lower_factor(A: Any) -> bool:
    """Replace the lower triangle of A by its Cholesky factor; return whether there is one."""
    for i in range(len(A)):
        for j in range(i):
            A[i, j] = (A[i, j] - dot(A[i, :j], A[j, :j])) / A[j, j]
        pivot = A[i, i] - dot(A[i, :i], A[i, :i])
        if not pivot > 0.0:
            return False
        A[i, i] = np.sqrt(pivot)
    return True


@reordered
def _inverse_of_factor(L: Any, out: Any) -> None:
    """out = (L L^T)^-1, all of it."""
    inverse = np.zeros(L.shape)
    out[:] = 0.0
    for i in range(len(L)):
        line = inverse[i]
        for k in range(i):
            add_multiple(-L[i, k], inverse[k, : k + 1], line[: k + 1])
        line[i] = 1.0
        for k in range(i + 1):
            line[k] /= L[i, i]
        for k in range(i + 1):
            add_multiple(line[k], line[: k + 1], out[k, : k + 1])
    for i in range(len(L)):
        for k in range(i):
            out[k, i] = out[i, k]


@reordered
def _factored(of: Any, x: Any, f: Any) -> bool:
    """Write what a direction needs; return whether rounding has left the systems definite."""
    m, d = x.W.shape
    A, sides = np.empty((d, d)), np.empty(d)
    f.schur[:] = 0.0
    for k in range(m):
        H = of.grams[k % len(of.grams)]
        for j in range(d):
            P, Q = x.dual[0, k, j] / x.slack[0, k, j], x.dual[1, k, j] / x.slack[1, k, j]
            C = x.slack[2, k, j] / x.dual[2, k, j] + x.slack[3, k, j] / x.dual[3, k, j] if len(x.slack) == 4 else 0.0
            f.T[k, j], f.D[k, j], f.C[k, j] = P + Q, Q - P, C
            f.rigid[k, j] = 1.0 / (1.0 + (P + Q) * C)
            f.columns[k, j] = 1.0 / np.sqrt(f.rigid[k, j] * (P + Q))
            sides[j] = f.rigid[k, j] * (Q - P) * f.columns[k, j]
            f.schur[j, j] += 4.0 * P * (Q / (P + Q))
        for i in range(d):
            for j in range(i + 1):
                A[i, j] = f.columns[k, i] * H[i, j] * f.columns[k, j]
            A[i, i] += 1.0
        if not _lower_factor(A):
            return False
        _inverse_of_factor(A, f.middles[k])
        for i in range(d):
            for j in range(i):
                f.schur[i, j] -= sides[i] * f.middles[k, i, j] * sides[j]
            f.schur[i, i] += sides[i] * (1.0 - f.middles[k, i, i]) * sides[i]
    return _lower_factor(f.schur)


@reordered
def _solve_blocks(f: Any, right: Any, out: Any) -> None:
    """out_k = (H_k + T_k (I + T_k C_k)^-1)^-1 right_k."""
    x = np.empty(right.shape[1])
    for k in range(len(right)):
        for j in range(x.size):
            x[j] = f.columns[k, j] * right[k, j]
        for j in range(x.size):
            out[k, j] = f.columns[k, j] * dot(f.middles[k, j], x)


@reordered
def _direct(f: Any, x: Any, rest: Any, target: Any, by: Any) -> None:
    """Write the direction with slack * ddual + dual * dslack = target that removes the residuals."""
    m, d = x.W.shape
    right, forces, moves, h = np.empty((m, d)), np.empty((m, d)), np.zeros((m, d)), -rest.mu
    for k in range(m):
        for j in range(d):
            P, Q = x.dual[0, k, j] / x.slack[0, k, j], x.dual[1, k, j] / x.slack[1, k, j]
            ku = target[0, k, j] / x.slack[0, k, j] - P * rest.parts[0, k, j]
            kv = target[1, k, j] / x.slack[1, k, j] - Q * rest.parts[1, k, j]
            if len(x.slack) == 4:
                above = (target[2, k, j] - x.slack[2, k, j] * rest.parts[2, k, j]) / x.dual[2, k, j]
                moves[k, j] = above - (target[3, k, j] - x.slack[3, k, j] * rest.parts[3, k, j]) / x.dual[3, k, j]
            forces[k, j] = kv - ku + rest.W[k, j]
            alone = f.rigid[k, j] * (f.C[k, j] * forces[k, j] - moves[k, j])
            by.W[k, j] = alone
            right[k, j] = forces[k, j] - f.T[k, j] * alone
            h[j] += ku + kv - f.D[k, j] * alone
    total = np.empty((m, d))
    _solve_blocks(f, right, total)
    for k in range(m):
        for j in range(d):
            h[j] -= f.rigid[k, j] * f.D[k, j] * total[k, j]
    for i in range(d):  # by the factor of S, row by row
        h[i] = (h[i] - dot(f.schur[i, :i], h[:i])) / f.schur[i, i]
    for i in range(d - 1, -1, -1):
        h[i] /= f.schur[i, i]
        add_multiple(-h[i], f.schur[i, :i], h[:i])
    by.mu[:] = h
    for k in range(m):
        for j in range(d):
            right[k, j] -= f.rigid[k, j] * f.D[k, j] * h[j]
    _solve_blocks(f, right, total)
    for k in range(m):
        for j in range(d):
            coupling = f.D[k, j] * h[j]
            by.W[k, j] += f.rigid[k, j] * (total[k, j] - f.C[k, j] * coupling)
            by.slack[0, k, j] = h[j] - by.W[k, j] + rest.parts[0, k, j]
            by.slack[1, k, j] = h[j] + by.W[k, j] + rest.parts[1, k, j]
            for side in range(2):
                by.dual[side, k, j] = (target[side, k, j] - x.dual[side, k, j] * by.slack[side, k, j]) / x.slack[side, k, j]
            if len(x.slack) == 4:
                pull = f.rigid[k, j] * (f.T[k, j] * (total[k, j] - moves[k, j]) + coupling - forces[k, j])
                by.dual[2, k, j], by.dual[3, k, j] = rest.parts[2, k, j] - pull, rest.parts[3, k, j] + pull
                for side in range(2, 4):
                    by.slack[side, k, j] = (target[side, k, j] - x.slack[side, k, j] * by.dual[side, k, j]) / x.dual[side, k, j]


@reordered
def _boundary_ratio(x: Any, by: Any, other: Any, weight: float) -> float:
    """One over the step along by + weight other at which a slack or a dual first meets 0, or 0."""
    largest = 0.0
    for values, changes, more in ((x.slack, by.slack, other.slack), (x.dual, by.dual, other.dual)):
        value, change, extra = values.reshape(-1), changes.reshape(-1), more.reshape(-1)
        for i in range(value.size):
            largest = max(largest, -(change[i] + weight * extra[i]) / value[i])
    return largest


@reordered
def _add(weight: float, other: Any, by: Any) -> None:
    """by += weight other."""
    by.W[:] += weight * other.W
    by.mu[:] += weight * other.mu
    by.slack[:] += weight * other.slack
    by.dual[:] += weight * other.dual


@reordered
def _like(x: Any) -> Any:
    return Point(np.zeros_like(x.W), np.zeros_like(x.mu), np.zeros_like(x.slack), np.zeros_like(x.dual))


@reordered
def gram_iteration(of: Any, x: Any, correctors: int, rule: Any) -> bool:
    """Take the step of `step.advance` for a quadratic loss by its Gram matrices: x <- the next point; return whether there is one.

    `rule` has the numbers of that module, in the order in which they are unpacked here.
    """
    neighbourhood, longer, worthwhile, long_enough, least_share, largest_share = rule
    m, d = x.W.shape
    rest, by, other = _residuals(of, x), _like(x), _like(x)
    f = _Factors(
        np.empty((m, d)), np.empty((m, d)), np.empty((m, d)), np.empty((m, d)), np.empty((m, d)), np.empty((m, d, d)), np.empty((d, d))
    )
    if not _factored(of, x, f):
        return False
    products = x.slack * x.dual
    average = products.mean()
    _direct(f, x, rest, -products, by)
    step = 1.0 / max(1.0, _boundary_ratio(x, by, other, 0.0))
    predicted = ((x.slack + step * by.slack) * (x.dual + step * by.dual)).mean()
    goal = average * min(1.0, max(0.0, predicted / average)) ** 3
    _direct(f, x, rest, goal - products - by.slack * by.dual, by)
    step = 1.0 / max(1.0, _boundary_ratio(x, by, other, 0.0))
    nothing = _Rest(np.zeros_like(rest.parts), np.zeros_like(rest.W), np.zeros_like(rest.mu))
    for _ in range(correctors):
        if step > long_enough:
            break
        ahead = min(1.0, step + longer)
        products = (x.slack + ahead * by.slack) * (x.dual + ahead * by.dual)
        highest = goal * neighbourhood
        within = np.minimum(np.maximum(products, goal / neighbourhood), highest)
        _direct(f, x, nothing, np.maximum(within - products, -highest), other)
        best, weight = 0.0, 0.0
        for trial in (1.0, 0.7, 0.4):
            length = 1.0 / max(1.0, _boundary_ratio(x, by, other, trial))
            if length > best:
                best, weight = length, trial
        gain = 2.0 * (best - step)
        if gain <= 0.0:
            break
        _add(weight, other, by)
        step = best
        if gain < worthwhile:
            break
    share = min(max(least_share, 1.0 - goal / average), largest_share)
    _add(share / max(share, _boundary_ratio(x, by, other, 0.0)), by, x)
    return True
