"""Passes over the blocks of a Newton system: designs scaled on both sides, weighted Gram matrices of sparse designs, Schur complements.

Symmetric matrices are C-contiguous and only their upper triangle is read or written: to LAPACK, which counts by columns, the lower one.
"""

from __future__ import annotations

from typing import Any

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
