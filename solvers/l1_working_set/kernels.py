"""Sweeps of coordinate descent over some columns, with Anderson's extrapolation; products with these columns.

X is a `Chosen`, and a model a `Model`, see `bench_mtl.solvers.l1_working_set.columns`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered
from bench_mtl.solvers.kernels.lines import add, product

#: Share of the steps' squares that is added to their Gram matrix.
_RIDGE = 1e-14

#: Steps with smaller squares are not combined.
_SMALLEST = 1e-300

#: Sweeps between extrapolations.
SPAN = 5


@reordered
def descend(X: Any, model: Any, w: Any, g: Any, tolerance: float, most: int) -> tuple[int, bool]:
    """Sweep over the columns X for a model, from w0 = w, until no slope misses its condition by more than the tolerance.

    One sweep in five is over all columns, the others over those whose entries are not zero or have just become so. After every five the
    affine combination of their points with the smallest combined step (Anderson's) is taken if it is lower.
    The entries w and g, h times the residuals, change. Returns the number of sweeps, and whether the tolerance is met.
    """
    n, p = g.size, w.size
    points, slopes = np.empty((SPAN + 1, p)), np.empty((SPAN + 1, n))
    points[0], slopes[0] = w, g
    stored, close = 1, tolerance
    moving, count = np.empty(p, dtype=np.int64), 0
    for sweep in range(most):
        is_full = stored == 1 or count == 0
        size = p if is_full else count
        count = 0 if is_full else count
        largest = 0.0
        for place in range(size):
            a = place if is_full else moving[place]
            curvature = model.curvatures[a]
            old, new = w[a], 0.0
            if curvature > 0.0:  # of a column of zeros any other coefficient costs for nothing
                new = old + product(X.values, X.indices, X.indptr, X.places[a], g) / curvature
                cut = model.penalty / curvature
                if new > cut and model.cone[a] >= 0:
                    new -= cut
                elif new < -cut and model.cone[a] <= 0:
                    new += cut
                else:
                    new = 0.0
            if is_full and (new != 0.0 or old != 0.0):
                moving[count] = a
                count += 1
            move = new - old
            if move != 0.0:
                w[a] = new
                add(X.values, X.indices, X.indptr, X.places[a], -move, model.h, g)
                largest = max(largest, abs(move) * curvature - model.rounding * np.sqrt(curvature))
        if largest <= close:
            miss = excess(X, model, w, g)
            if miss <= tolerance:
                return sweep + 1, True
            close = 0.5 * min(close, largest) * max(tolerance / miss, 0.1)
            count = 0
        points[stored], slopes[stored] = w, g
        stored += 1
        if stored == SPAN + 1:
            extrapolate(X, model, points, slopes, w, g)
            points[0], slopes[0] = w, g
            stored = 1
    return most, False


@reordered
def excess(X: Any, model: Any, w: Any, g: Any) -> float:
    """By how much at most, beyond its rounding, a slope x_j.g misses its condition: penalty sign(w_j), or not above it where w_j = 0."""
    largest = 0.0
    for a in range(w.size):
        slope = product(X.values, X.indices, X.indptr, X.places[a], g)
        if w[a] != 0.0:
            miss = abs(slope - model.penalty * np.sign(w[a]))
        else:
            miss = (abs(slope) if model.cone[a] == 0.0 else model.cone[a] * slope) - model.penalty
        largest = max(largest, miss - model.rounding * np.sqrt(model.curvatures[a]))
    return largest


@reordered
def copy_columns(X: Any, features: Any, out: Any) -> None:
    """out_a = x_j of the columns j of a matrix by rows, a few rows at a time, so that lines of memory are read and written once."""
    n = X.shape[0]
    for start in range(0, n, 8):
        for a in range(features.size):
            column = features[a]
            for i in range(start, min(start + 8, n)):
                out[a, i] = X[i, column]


@reordered
def by_rows(X: Any, scales: Any, values: Any, columns: Any, indptr: Any) -> None:
    """Write the CSR form of the sparse columns X, times a scale for each row or None; `indptr`, n + 1, comes with zeros."""
    n = indptr.size - 1
    for place in X.places:
        for q in range(X.indptr[place], X.indptr[place + 1]):
            indptr[X.indices[q] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    ends = indptr[:n].copy()
    for a in range(X.places.size):
        place = X.places[a]
        for q in range(X.indptr[place], X.indptr[place + 1]):
            i = X.indices[q]
            values[ends[i]] = X.values[q] * (1.0 if scales is None else scales[i])
            columns[ends[i]] = a
            ends[i] += 1


@reordered
def products(X: Any, r: Any, out: Any) -> None:
    """out_a = x_j.r of the columns j."""
    for a in range(X.places.size):
        out[a] = product(X.values, X.indices, X.indptr, X.places[a], r)


@reordered
def combine(X: Any, w: Any, out: Any) -> None:
    """out += sum_a w_a x_j of the columns j."""
    for a in range(X.places.size):
        if w[a] != 0.0:
            add(X.values, X.indices, X.indptr, X.places[a], w[a], None, out)


@reordered
def squares(X: Any, h: Any, n: int, out: Any) -> None:
    """out_a = sum_i h_i x_ij^2 of the columns j."""
    for a in range(X.places.size):
        out[a] = square(X.values, X.indices, X.indptr, X.places[a], h, n)


@reordered
def square(values: Any, indices: Any, indptr: Any, column: int, h: Any, n: int) -> float:
    """sum_i h_i x_ij^2 of a column j."""
    total = 0.0
    if indptr is None:
        x = values[column * n : (column + 1) * n]
        for i in range(n):
            total += x[i] * x[i] * (1.0 if h is None else h[i])
    else:
        x, rows = values[indptr[column] : indptr[column + 1]], indices[indptr[column] : indptr[column + 1]]
        for q in range(x.size):
            total += x[q] * x[q] * (1.0 if h is None else h[rows[q]])
    return total


@reordered
def change(values: Any, places: Any, h: Any, steps: Any, g: Any, new_g: Any) -> float:
    """By how much 1/2 sum_i g_i^2 / h_i changes with w by these steps; g and new_g are slopes where the values are a Gram matrix."""
    total = 0.0
    if values.ndim == 2:
        for a in range(steps.size):
            total -= steps[a] * (g[places[a]] + new_g[places[a]])
    else:
        for i in range(g.size):
            total += (new_g[i] - g[i]) * (new_g[i] + g[i]) / (1.0 if h is None else h[i])
    return 0.5 * total


@reordered
def extrapolate(X: Any, model: Any, points: Any, slopes: Any, w: Any, g: Any) -> None:
    """Move w and g, the last of the points and slopes, to their affine combination with the smallest combined step, if that is lower."""
    shares = np.empty(SPAN)
    if not affine_shares(points, model.curvatures, shares):
        return
    new_w, new_g = np.zeros(w.size), np.zeros(g.size)
    for k in range(SPAN):
        share, point, slope = shares[k], points[k + 1], slopes[k + 1]
        for a in range(w.size):
            new_w[a] += share * point[a]
        for i in range(g.size):
            new_g[i] += share * slope[i]
    growth, steps = 0.0, np.empty(w.size)
    for a in range(w.size):
        if new_w[a] * model.cone[a] < 0.0:
            return
        growth += abs(new_w[a]) - abs(w[a])
        steps[a] = new_w[a] - w[a]
    if change(X.values, X.places, model.h, steps, g, new_g) + model.penalty * growth < 0.0:
        w[:] = new_w
        g[:] = new_g


@reordered
def affine_shares(points: Any, curvatures: Any, shares: Any) -> bool:
    """argmin || sum_k c_k (points[k+1] - points[k]) ||^2 subject to sum_k c_k = 1; returns False where rounding hides it.

    The curvatures are weights of the entries.
    """
    gram, trace = np.zeros((SPAN, SPAN)), 0.0
    for a in range(curvatures.size):
        for k in range(SPAN):
            step = curvatures[a] * (points[k + 1, a] - points[k, a])
            for j in range(SPAN):
                gram[k, j] += step * (points[j + 1, a] - points[j, a])
    for k in range(SPAN):
        trace += gram[k, k]
    if not _SMALLEST < trace < np.inf:
        return False
    for k in range(SPAN):
        for j in range(SPAN):
            gram[k, j] /= trace
        gram[k, k] += _RIDGE
        shares[k] = 1.0
    for k in range(SPAN):  # elimination by loops: calls of LAPACK would be most of what takes time to compile
        for i in range(k + 1, SPAN):
            factor = gram[i, k] / gram[k, k]
            for j in range(k + 1, SPAN):
                gram[i, j] -= factor * gram[k, j]
            shares[i] -= factor * shares[k]
    total = 0.0
    for k in range(SPAN - 1, -1, -1):
        for j in range(k + 1, SPAN):
            shares[k] -= gram[k, j] * shares[j]
        shares[k] /= gram[k, k]
        total += shares[k]
    if not 0.0 < abs(total) < np.inf:
        return False
    for k in range(SPAN):
        shares[k] /= total
    return True
