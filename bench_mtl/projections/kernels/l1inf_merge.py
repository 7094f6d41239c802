"""Projection onto the l1,inf ball as published: sort the rows, merge their breakpoints, follow the slopes.

Quattoni, Carreras, Collins, Darrell, the algorithm of figure 1 in the technical report of 2008 (that of ICML 2009 is the same). The
comments number its steps:

1. create the vectors s_i by sorting the rows of A in decreasing order (with a 0 at place m + 1), and the vectors r_i of
   r_ik = sum_{j<k} s_ij - (k - 1) s_ik;
2. merge the d sorted vectors r_i, visiting the elements <i, k, r_ik> in increasing order, and meanwhile
3. maintain the gradients g_i = 1 / k, k the number of values of r_i that have been visited, and
4. build the points (r_t, n_t), n_t = n_{t-1} + sum_i g_i (r_t - r_{t-1}), n_0 = 0;
5. stop when n_{t+1} > delta = ||A||_{1,inf} - C, and set theta = r_t + (delta - n_t) / sum_i g_i;
6. with k the last visited value of r_i, set mu_i = max(s_ik - (theta - r_ik) / k, 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact
from bench_mtl.projections.kernels.sums import two_sum


@exact
def merge_levels(magnitudes: Any, start: Any, excess: float, levels: Any) -> float:
    """The row maxima mu, written to `levels`, of a matrix that is `excess` = ||A||_{1,inf} - C > 0 outside the ball; returns theta.

    The absolute values, row after row, are sorted in place; `start` has the places where rows begin, and the end of the last.
    """
    d = start.size - 1
    sums = np.zeros(magnitudes.size + d)  # r, with one more value a row than there are entries
    for i in range(d):  # 1.
        row = magnitudes[start[i] : start[i + 1]]
        row.sort()
        row[:] = row[::-1].copy()
        for k in range(1, row.size + 1):  # from one value to the next, k entries shrink by the difference
            below = row[k] if k < row.size else 0.0
            sums[start[i] + i + k] = sums[start[i] + i + k - 1] + k * (row[k - 1] - below)
    visited = np.zeros(d, dtype=np.int64)
    heap, size = _first_values(sums, start, d)  # 2.
    theta, reduction = 0.0, 0.0
    slope, slope_error, reduction_error = 0.0, 0.0, 0.0
    while size > 0:
        i = heap[0]
        k = visited[i]
        value = sums[start[i] + i + k]
        if slope > 0.0 and (reduction + (reduction_error + (slope + slope_error) * (value - theta))) > excess:  # 5.
            break
        reduction, lost = two_sum(reduction, (slope + slope_error) * (value - theta))  # 4.
        reduction_error += lost
        theta = value
        visited[i] = k + 1
        last = k == start[i + 1] - start[i]
        gradient = 0.0 if last else 1.0 / (k + 1)  # 3. A row of which all has been taken away has no gradient left.
        slope, lost = two_sum(slope, gradient - (1.0 / k if k > 0 else 0.0))
        slope_error += lost
        if last:
            size -= 1
            heap[0] = heap[size]
        _sift_down(heap, size, sums, start, visited)
    if slope + slope_error > 0.0:
        theta += (excess - reduction - reduction_error) / (slope + slope_error)
    for i in range(d):  # 6.
        k = visited[i]
        n = start[i + 1] - start[i]
        if k == 0 or k > n:
            levels[i] = 0.0 if n == 0 or k > n else magnitudes[start[i]]
        else:
            levels[i] = max(magnitudes[start[i] + k - 1] - (theta - sums[start[i] + i + k - 1]) / k, 0.0)
    return theta


@exact
def _first_values(sums: Any, start: Any, d: int) -> tuple[Any, int]:
    """A heap of the rows that have entries; r_i1 = 0 for all, so any order is one."""
    heap = np.empty(d, dtype=np.int64)
    size = 0
    for i in range(d):
        if start[i + 1] > start[i] and sums[start[i + 1] + i] > 0.0:
            heap[size] = i
            size += 1
    return heap, size


@exact
def _sift_down(heap: Any, size: int, sums: Any, start: Any, visited: Any) -> None:
    """Restore the order of the heap after the next value of its first row has changed."""
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _next(heap[child + 1], sums, start, visited) < _next(heap[child], sums, start, visited):
            child += 1
        if _next(heap[place], sums, start, visited) <= _next(heap[child], sums, start, visited):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@exact
def _next(i: int, sums: Any, start: Any, visited: Any) -> float:
    return sums[start[i] + i + visited[i]]
