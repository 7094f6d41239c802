"""Passes of dual coordinate ascent over the examples of all tasks, in random order, with shrinking."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered

#: Columns of the state of a task: the largest and the smallest projected gradient of the pass before, which decide what is left out, and
#: the spread of projected gradients at which the examples left out are looked at again.
HIGHEST, LOWEST, WIDTH = range(3)
STATES = 3

#: The width falls by this factor when all examples are within it.
_FALL = 0.1

#: Projected gradients are differences of margins and 1: below this they are rounding.
_ROUNDING = 1e-13


@reordered
def passes(
    values: Any, indices: Any, indptr: Any, firsts: Any, places: Any, stride: int, labels: Any, uppers: Any, squares: Any, shrink: float,
    a: Any, V: Any, orders: Any, counts: Any, states: Any, random: Any, count: int,
) -> int:  # fmt: skip
    """Make `count` passes over the examples of every task that are not left out; returns how many were looked at.

    Parameters
    ----------
    values, indices, indptr : the rows of all examples, CSR with unsigned indices (of which none counts from the end); or a matrix row by
        row, None and None
    firsts, places : of every task, the row of its first example, and its place in the flattened labels
    stride : from the place of one example of a task to that of the next
    labels, uppers, squares : flattened: labels, the upper ends of the boxes, squared norms of the rows over 2 sigma
    shrink : 1 / (2 sigma)
    a, V : the flattened dual point, and w_k = shrink sum_i a_i y_i x_i as rows; both change
    orders, counts : rows of example numbers, and how many of the first of them are not left out; both change
    states : one row a task, see above; a width of 0 marks a task that is solved to rounding
    random : one state of a generator of random numbers; changes
    """
    visited = 0
    for k in range(V.shape[0]):
        order, state, w, n = orders[k], states[k], V[k], orders.shape[1]
        while n > 0 and order[n - 1] < 0:
            n -= 1
        for _ in range(count):
            if state[WIDTH] == 0.0:
                break
            left, i = counts[k], 0
            highest, lowest = -np.inf, np.inf
            visited += left
            while i < left:
                random[0] = random[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                j = i + np.int64((random[0] >> np.uint64(33)) % np.uint64(left - i))
                example = order[j]
                order[j], order[i] = order[i], example
                place, row = places[k] + stride * example, firsts[k] + example
                y, upper, square = labels[place], uppers[place], squares[place]
                before = a[place]
                gradient = 1.0 - y * _product(values, indices, indptr, row, w)
                if (before == 0.0 and gradient <= 0.0) or (before == upper and gradient >= 0.0):
                    # at its bound, and the slope points outwards
                    if gradient < state[LOWEST] or gradient > state[HIGHEST]:
                        left -= 1
                        order[i], order[left] = order[left], example
                        continue
                    highest, lowest = max(highest, 0.0), min(lowest, 0.0)
                else:
                    highest, lowest = max(highest, gradient), min(lowest, gradient)
                    after = upper if square == 0.0 else min(max(before + gradient / square, 0.0), upper)
                    if after != before:
                        a[place] = after
                        _add(values, indices, indptr, row, (after - before) * y * shrink, w)
                i += 1
            if max(highest, 0.0) - min(lowest, 0.0) <= state[WIDTH]:
                if left == n:
                    state[WIDTH] = 0.0 if state[WIDTH] < _ROUNDING else _FALL * state[WIDTH]
                left = n
                highest, lowest = np.inf, -np.inf
            counts[k] = left
            # Left out next time: above 0 at 0 by more than the largest ascent, and likewise at the upper end.
            state[HIGHEST] = highest if highest > 0.0 else np.inf
            state[LOWEST] = lowest if lowest < 0.0 else -np.inf
    return visited


@reordered
def _product(values: Any, indices: Any, indptr: Any, row: int, w: Any) -> float:
    total = 0.0
    if indptr is None:
        x = values[row * w.size : (row + 1) * w.size]
        for j in range(w.size):
            total += x[j] * w[j]
    else:
        entries, where = values[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        for p in range(entries.size):
            total += entries[p] * w[where[p]]
    return total


@reordered
def _add(values: Any, indices: Any, indptr: Any, row: int, factor: float, w: Any) -> None:
    if indptr is None:
        x = values[row * w.size : (row + 1) * w.size]
        for j in range(w.size):
            w[j] += factor * x[j]
    else:
        entries, where = values[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        for p in range(entries.size):
            w[where[p]] += factor * entries[p]
