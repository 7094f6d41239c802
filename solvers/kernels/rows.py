"""Products with single rows of a matrix, sparse or dense: values, indices and indptr are those of `TaskRows`."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import reordered


@reordered
def product(values: Any, indices: Any, indptr: Any, row: int, w: Any) -> float:
    """x.w."""
    total = 0.0
    if indptr is None:
        x = values[row * w.size : (row + 1) * w.size]
        for j in range(w.size):
            total += x[j] * w[j]
    else:
        start, stop = indptr[row], indptr[row + 1]
        entries, where = values[start:stop], indices[start:stop]
        for p in range(entries.size):
            total += entries[p] * w[where[p]]
    return total


@reordered
def add(values: Any, indices: Any, indptr: Any, row: int, factor: float, w: Any) -> None:
    """w <- w + factor x."""
    if indptr is None:
        x = values[row * w.size : (row + 1) * w.size]
        for j in range(w.size):
            w[j] += factor * x[j]
    else:
        start, stop = indptr[row], indptr[row + 1]
        entries, where = values[start:stop], indices[start:stop]
        for p in range(entries.size):
            w[where[p]] += factor * entries[p]


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
