"""Products with single lines of a matrix: rows as in `TaskRows`, columns as in `Chosen`.

A sparse matrix has the `values`, `indices` and `indptr` of its CSR or CSC form; the last two of a dense one are None, and its lines are
one after the other. For a symmetric matrix (`values` in two dimensions) w is a vector of products already, of which one is read off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered


@reordered
def product(values: Any, indices: Any, indptr: Any, line: int, w: Any) -> float:
    """x.w."""
    total = 0.0
    if values.ndim == 2:
        total = w[line]
    elif indptr is None:
        x = values[line * w.size : (line + 1) * w.size]
        for j in range(w.size):
            total += x[j] * w[j]
    else:
        start, stop = indptr[line], indptr[line + 1]
        x, where = values[start:stop], indices[start:stop]
        for p in range(x.size):
            total += x[p] * w[where[p]]
    return total


@reordered
def add(values: Any, indices: Any, indptr: Any, line: int, factor: float, h: Any, w: Any) -> None:
    """w <- w + factor diag(h) x; h may be None, for ones, and is no matter to a symmetric matrix."""
    if values.ndim == 2:
        x = values[line]
        for j in range(w.size):
            w[j] += factor * x[j]
    elif indptr is None:
        x = values[line * w.size : (line + 1) * w.size]
        if h is None:
            for j in range(w.size):
                w[j] += factor * x[j]
        else:
            for j in range(w.size):
                w[j] += factor * h[j] * x[j]
    else:  # without slices, which take as long here as ten entries; unsigned, so that no entry counts from the end
        for p in range(np.uint64(indptr[line]), np.uint64(indptr[line + 1])):
            j = indices[p]
            w[j] += factor * values[p] * (1.0 if h is None else h[j])


@reordered
def add_to_both(values: Any, indices: Any, indptr: Any, row: int, factors: tuple[float, float], v: Any, w: Any) -> float:
    """v <- v + factors_0 x, w <- w + factors_1 x; return by how much ||v||^2 grows."""
    first, second = factors
    growth = 0.0
    if indptr is None:
        x = values[row * w.size : (row + 1) * w.size]
        for j in range(w.size):
            growth += first * x[j] * (2.0 * v[j] + first * x[j])
            v[j] += first * x[j]
            w[j] += second * x[j]
    else:
        for p in range(indptr[row], indptr[row + 1]):
            x, j = values[p], indices[p]
            growth += first * x * (2.0 * v[j] + first * x)
            v[j] += first * x
            w[j] += second * x
    return growth
