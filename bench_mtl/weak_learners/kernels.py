"""The search for the decision stumps that violate the dual constraint of boosting most, in one pass over the sorted features.

Stumps are looked at in ascending order of feature, threshold and polarity (+1 first); each has a place, twice the entry below its
threshold, plus one for polarity -1. `bench_mtl.weak_learners.stumps` says how entries are stored.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact

L12, L1INF, L1 = range(3)
CODES = {"l12": L12, "l1inf": L1INF, "l1": L1}


@exact
def _sizes(total: Any, left: Any, norm: int) -> tuple[float, float]:
    """The dual norms of max(G, 0) and max(-G, 0), G = total - 2 left; of l2 the squares."""
    plus = 0.0
    minus = 0.0
    for r in range(total.size):
        g = total[r] - 2.0 * left[r]
        a = max(g, 0.0)
        b = max(-g, 0.0)
        if norm == L12:
            plus += a * a
            minus += b * b
        elif norm == L1INF:
            plus += a
            minus += b
        else:
            plus = max(plus, a)
            minus = max(minus, b)
    return plus, minus


@exact
def _add(total: Any, row: Any) -> None:
    for r in range(total.size):
        total[r] += row[r]


@exact
def _look(
    R: Any, total: Any, rows: Any, values: Any, start: int, stop: int, zero: int, norm: int, left: Any, rest: Any, sizes: Any
) -> None:
    """Store the violations of all stumps of a feature, whose entries stand from `start` to `stop`, by their places less 2 start; -1 where
    a place has none. `left` and `rest` are scratch of size K."""
    left[:] = 0.0
    if zero >= 0:
        rest[:] = 0.0
        for p in range(start, stop):
            if p != zero:
                _add(rest, R[rows[p]])
    for p in range(start, stop - 1):
        if p == zero:
            for r in range(left.size):
                left[r] += total[r] - rest[r]
        else:
            _add(left, R[rows[p]])
        plus, minus = -1.0, -1.0
        if values[p + 1] > values[p]:
            plus, minus = _sizes(total, left, norm)
        sizes[2 * (p - start)] = plus
        sizes[2 * (p - start) + 1] = minus


@exact
def most_violating(R: Any, total: Any, rows: Any, values: Any, starts: Any, zeros: Any, norm: int, count: int, is_one_each: bool) -> Any:
    """The places of the `count` most violating stumps, in no order; fewer where there are not as many. Of equal ones the first count.

    R is n x K, C-contiguous, and `total` the sum of its rows; `rows, values, starts, zeros` are sorted columns. With `is_one_each` only the
    most violating stump of each feature counts.
    """
    left, rest, sizes = np.empty(total.size), np.empty(total.size), np.empty(2 * R.shape[0] + 2)
    heap = [(-1.0, 0)]  # the worst on top: the smallest, and of equal ones the last; at first one that is worse than all
    for j in range(zeros.size):
        start, stop = starts[j], starts[j + 1]
        places = 2 * (stop - start) - 2
        _look(R, total, rows, values, start, stop, zeros[j], norm, left, rest, sizes)
        if is_one_each and places > 0:
            best = np.argmax(sizes[:places])
            top = sizes[best]
            sizes[:places] = -1.0
            sizes[best] = top
        for q in range(places):
            if sizes[q] >= 0.0 and len(heap) < count:
                heapq.heappush(heap, (sizes[q], -(2 * start + q)))
            elif sizes[q] > heap[0][0]:
                heapq.heapreplace(heap, (sizes[q], -(2 * start + q)))
    return np.array([-place for size, place in heap if size >= 0.0])
