"""Passes of dual coordinate ascent over the examples of all tasks, in random order, with shrinking."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered
from bench_mtl.solvers.kernels.lines import add, product

#: Columns of the state of a task: the largest and the smallest projected gradient of the pass before, which decide what is left out, and
#: the spread of projected gradients at which the examples left out are looked at again.
HIGHEST, LOWEST, WIDTH = range(3)

#: The width falls by this factor when all examples are within it.
_FALL = 0.1

#: Projected gradients are differences of margins and 1: below this they are rounding.
_ROUNDING = 1e-13

#: Of the examples, as the labels are: the upper ends of their boxes, the curvatures of the dual in their variables, and what of these is of
#: the loss; and 1 / (2 sigma).
Boxes = namedtuple("Boxes", "uppers squares softness shrink")

#: What passes change: the flattened dual point; w_k = shrink sum_i a_i y_i x_i as rows; rows of example numbers, of which the first
#: `counts` are not left out; a row a task, see above, whose width is 0 once it is solved to rounding; one state of random numbers.
State = namedtuple("State", "a V orders counts tasks random")


@reordered
def passes(rows: Any, boxes: Any, state: Any, count: int) -> int:
    """Make `count` passes over the examples of every task that are not left out; returns how many were looked at."""
    values, indices, indptr, firsts, places, stride, labels = rows
    uppers, squares, softness, shrink = boxes
    a, V, orders, counts, tasks, random = state
    visited = 0
    for k in range(V.shape[0]):
        order, task, w, n = orders[k], tasks[k], V[k], orders.shape[1]
        while n > 0 and order[n - 1] < 0:
            n -= 1
        for _ in range(count):
            if task[WIDTH] == 0.0:
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
                gradient = 1.0 - y * product(values, indices, indptr, row, w) - softness[place] * before
                if (before == 0.0 and gradient <= 0.0) or (before == upper and gradient >= 0.0):
                    # at its bound, and the slope points outwards
                    if gradient < task[LOWEST] or gradient > task[HIGHEST]:
                        left -= 1
                        order[i], order[left] = order[left], example
                        continue
                    highest, lowest = max(highest, 0.0), min(lowest, 0.0)
                else:
                    highest, lowest = max(highest, gradient), min(lowest, gradient)
                    after = upper if square == 0.0 else min(max(before + gradient / square, 0.0), upper)
                    if after != before:
                        a[place] = after
                        add(values, indices, indptr, row, (after - before) * y * shrink, None, w)
                i += 1
            if max(highest, 0.0) - min(lowest, 0.0) <= task[WIDTH]:
                if left == n:
                    task[WIDTH] = 0.0 if task[WIDTH] < _ROUNDING else _FALL * task[WIDTH]
                left = n
                highest, lowest = np.inf, -np.inf
            counts[k] = left
            # Left out next time: above 0 at 0 by more than the largest ascent, and likewise at the upper end.
            task[HIGHEST] = highest if highest > 0.0 else np.inf
            task[LOWEST] = lowest if lowest < 0.0 else -np.inf
    return visited
