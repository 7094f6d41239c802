"""Passes over the blocks of a Newton system: designs scaled on both sides, weighted Gram matrices of sparse designs, Schur complements.

Symmetric matrices are C-contiguous and only their upper triangle is read or written: to LAPACK, which counts by columns, the lower one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered, selecting
from bench_mtl.core.kernels.vectors import add_multiple, dot

_CHUNK = 1024  # ratios compared at a time


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
def _ratios(x: Any, change: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = change[i] / x[i]


@reordered
def _sums(x: Any, y: Any, weight: float, out: Any) -> None:
    for i in range(x.size):
        out[i] = x[i] + weight * y[i]


@selecting
def _least(x: Any) -> float:
    least = 0.0
    for i in range(x.size):
        least = min(least, x[i])
    return least


@reordered
def boundary_ratios(x: Any, change: Any, other: Any, weights: Any) -> Any:
    """max(0, max_i -(change + weight * other)_i / x_i), x > 0, of every weight: one over the step at which x first meets 0."""
    size = min(x.size, _CHUNK)
    ratios, others, sums = np.empty(size), np.empty(size), np.empty(size)
    largest = np.zeros(weights.size)
    for start in range(0, x.size, _CHUNK):
        stop = min(start + _CHUNK, x.size)
        _ratios(x[start:stop], change[start:stop], ratios)
        _ratios(x[start:stop], other[start:stop], others)
        for k in range(weights.size):
            _sums(ratios[: stop - start], others[: stop - start], weights[k], sums)
            largest[k] = max(largest[k], -_least(sums[: stop - start]))
    return largest


@reordered
def recentred(slack: Any, dual: Any, slack_change: Any, dual_change: Any, steps: Any, low: float, high: float, out: Any) -> None:
    """What brings the products of slacks and duals after these two steps into [low, high], but at least -high."""
    primal, other = steps
    for i in range(out.size):
        product = (slack[i] + primal * slack_change[i]) * (dual[i] + other * dual_change[i])
        out[i] = max(min(max(product, low), high) - product, -high)


@reordered
def example_sides(dual: Any, target: Any, labels: Any, out: Any) -> None:
    """What examples ask for: labels (target_r / a - target_xi / b), of vectors that begin with the parts of r and xi (a and b)."""
    n = out.size
    for i in range(n):
        out[i] = labels[i] * (target[i] / dual[i] - target[n + i] / dual[n + i])


@reordered
def example_changes(slack: Any, dual: Any, target: Any, labels: Any, signed: Any, rest: Any, dslack: Any, ddual: Any) -> None:
    """From labels da the changes da and db = rest - da, and those of r and xi by which slack * ddual + dual * dslack = target."""
    n = labels.size
    for i in range(n):
        da = labels[i] * signed[i]
        ddual[i] = da
        dslack[i] = (target[i] - slack[i] * da) / dual[i]
    for i in range(n):
        db = rest[i] - ddual[i]
        ddual[n + i] = db
        dslack[n + i] = (target[n + i] - slack[n + i] * db) / dual[n + i]


@reordered
def symmetric_products(matrices: Any, X: Any, out: Any) -> None:
    """out_k = matrices_k X_k, of symmetric matrices."""
    for k in range(len(matrices)):
        A, x, y = matrices[k], X[k], out[k]
        y[:] = 0.0
        for i in range(x.size):
            y[i] += A[i, i] * x[i] + dot(A[i, i + 1 :], x[i + 1 :])
            add_multiple(x[i], A[i, i + 1 :], y[i + 1 :])
