"""Passes over the blocks of a Newton system: designs scaled on both sides, weighted Gram matrices of sparse designs, Schur complements.

Symmetric matrices are C-contiguous and only their upper triangle is read or written: to LAPACK, which counts by columns, the lower one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.kernels.jit import reordered, selecting
from bench_mtl.kernels.vectors import add_multiple, dot

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
def solve_examples(places: Any, rows: Any, factors: Any, roots: Any, W: Any, g: Any, a: Any, images: Any) -> None:
    """a_k = R U^-1 U^-T R (g_k - X_k w_k) with R = diag(roots_k), and images_k = X_k^T a_k, for some tasks k.

    A line of `places` is a task's number, its examples' number and start in stacked vectors, and where its X starts in `rows` and
    its U (n_k x n_k) in `factors`. One pass over the tasks does it all, so that an X is read from memory once.
    """
    for index in range(places.shape[0]):
        k, n, start, first, at = places[index]
        X, U = rows[first : first + n], factors[at : at + n * n].reshape((n, n))
        root, x, image = roots[start : start + n], a[start : start + n], images[k]
        for i in range(n):
            x[i] = root[i] * (g[start + i] - dot(X[i], W[k]))
        _solve(U, x)
        image[:] = 0.0
        for i in range(n):
            x[i] *= root[i]
            add_multiple(x[i], X[i], image)


@reordered
def _ratios(x: Any, change: Any, other: Any, weight: float, out: Any) -> None:
    for i in range(x.size):
        out[i] = (change[i] + weight * other[i]) / x[i]


@selecting
def _least(x: Any) -> float:
    least = 0.0
    for i in range(x.size):
        least = min(least, x[i])
    return least


@reordered
def boundary_ratio(x: Any, change: Any, other: Any, weight: float) -> float:
    """max(0, max_i -(change + weight * other)_i / x_i), x > 0: one over the step at which x first meets 0."""
    ratios = np.empty(min(x.size, _CHUNK))
    least = 0.0
    for start in range(0, x.size, _CHUNK):
        stop = min(start + _CHUNK, x.size)
        _ratios(x[start:stop], change[start:stop], other[start:stop], weight, ratios)
        least = min(least, _least(ratios[: stop - start]))
    return -least
