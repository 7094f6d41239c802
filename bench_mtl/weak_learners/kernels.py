"""The search for the decision stumps that violate the dual constraint of boosting most, in one pass over the sorted features.

Stumps are looked at in ascending order of feature, threshold and polarity (+1 first); each has a place, twice the entry below its
threshold, plus one for polarity -1. `bench_mtl.weak_learners.columns` says how entries are stored.
"""

from __future__ import annotations

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
def _is_worse(sizes: Any, places: Any, a: int, b: int) -> bool:
    return sizes[a] < sizes[b] or (sizes[a] == sizes[b] and places[a] > places[b])


@exact
def _swap(sizes: Any, places: Any, a: int, b: int) -> None:
    sizes[a], sizes[b] = sizes[b], sizes[a]
    places[a], places[b] = places[b], places[a]


@exact
def _offer(sizes: Any, places: Any, held: int, size: float, place: int) -> int:
    """Keep a stump in a heap with the worst on top, where there is room or a worse one; returns how many it holds.

    Later stumps have larger places, so one as large as the worst of a full heap comes behind it.
    """
    if held < sizes.size:
        at = held
        sizes[at] = size
        places[at] = place
        while at > 0 and _is_worse(sizes, places, at, (at - 1) // 2):
            _swap(sizes, places, at, (at - 1) // 2)
            at = (at - 1) // 2
        return held + 1
    if size > sizes[0]:
        sizes[0] = size
        places[0] = place
        at = 0
        while 2 * at + 1 < held:
            child = 2 * at + 1
            if child + 1 < held and _is_worse(sizes, places, child + 1, child):
                child += 1
            if not _is_worse(sizes, places, child, at):
                break
            _swap(sizes, places, child, at)
            at = child
    return held


@exact
def _add(total: Any, row: Any) -> None:
    for r in range(total.size):
        total[r] += row[r]


@exact
def _offer_feature(
    R: Any,
    total: Any,
    rows: Any,
    values: Any,
    start: int,
    stop: int,
    zero: int,
    norm: int,
    left: Any,
    rest: Any,
    sizes: Any,
    places: Any,
    held: int,
) -> int:
    """Offer all stumps of one feature, whose entries stand from `start` to `stop`; `left` and `rest` are scratch of size K."""
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
        if values[p + 1] > values[p]:
            plus, minus = _sizes(total, left, norm)
            held = _offer(sizes, places, held, plus, 2 * p)
            held = _offer(sizes, places, held, minus, 2 * p + 1)
    return held


@exact
def most_violating(R: Any, total: Any, rows: Any, values: Any, starts: Any, zeros: Any, norm: int, count: int) -> Any:
    """The places of the `count` most violating stumps, in no order; fewer where there are not as many.

    Parameters
    ----------
    R, total : n x K, C-contiguous, and the sum of its rows
    rows, values, starts, zeros : sorted columns
    """
    sizes, places = np.empty(count), np.empty(count, dtype=np.int64)
    left, rest = np.empty(total.size), np.empty(total.size)
    held = 0
    for j in range(zeros.size):
        held = _offer_feature(R, total, rows, values, starts[j], starts[j + 1], zeros[j], norm, left, rest, sizes, places, held)
    return places[:held]


@exact
def best_of_each(R: Any, total: Any, rows: Any, values: Any, starts: Any, zeros: Any, norm: int) -> tuple[Any, Any]:
    """The most violating stump of each feature: what its violation (of l2 the square) and its place are; place -1 where it has none."""
    sizes, places = np.zeros(zeros.size), np.full(zeros.size, -1, dtype=np.int64)
    left, rest = np.empty(total.size), np.empty(total.size)
    for j in range(zeros.size):
        own = slice(j, j + 1)
        _offer_feature(R, total, rows, values, starts[j], starts[j + 1], zeros[j], norm, left, rest, sizes[own], places[own], 0)
    return sizes, places
