"""Passes of dual coordinate ascent over the examples of all tasks, in random order, with shrinking, and conjugate gradients on a face."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered
from bench_mtl.solvers.kernels.lines import add, product

#: Columns of the state of a task: the largest and the smallest projected gradient of the pass before, which decide what is left out; the
#: spread of projected gradients at which it is summed next, 0 once it is solved to rounding; its gap; its objective when that was summed
#: last; and by which factor the pass before it had estimated the gap too large.
HIGHEST, LOWEST, WIDTH, GAP, VALUE, EXCESS = range(6)

#: The width falls by this factor when all examples are within it.
_FALL = 0.1
#: Below this width w is summed anew whenever that falls: what is followed step by step drifts.
_FINE = 1e-6
#: Projected gradients are differences of margins and 1: below this they are rounding.
_ROUNDING = 1e-13
#: An estimate of the gap is taken for off by this factor at most.
_MOST_EXCESS = 4.0
#: Conjugate gradients end when they have brought the squared slopes down to this share of the largest, or after so many of them.
_SOLVED, _MOST_GRADIENTS = 0.01, 20
#: A step that reaches a bound up to rounding ends at it.
_AT_BOUND = 1.0 + 1e-12

#: Of the examples, as the labels are: the upper ends of their boxes, ||x||^2 / (2 sigma), and the curvature that the loss adds to that;
#: and 1 / (2 sigma).
Boxes = namedtuple("Boxes", "uppers squares softness shrink")

#: What passes change: the flattened dual point; w_k = shrink sum_i a_i y_i x_i as rows; rows of example numbers, of which the first
#: `counts` are not left out, with -1 behind the last; a row a task, see above; one state of random numbers.
State = namedtuple("State", "a V orders counts tasks random")


@reordered
def row_squares(values: Any, indptr: Any, out: Any) -> None:
    """out_i <- the squared length of row i of a CSR matrix."""
    for i in range(out.size):
        x, total = values[indptr[i] : indptr[i + 1]], 0.0
        for p in range(x.size):
            total += x[p] * x[p]
        out[i] = total


@reordered
def _gap_of(slack: float, a: float, upper: float, softness: float) -> float:
    """What an example with 1 - y x.w = `slack` adds to the gap of its task: its loss, less a slack, plus the conjugate of the loss at a."""
    if slack <= 0.0:
        return a * (0.5 * softness * a - slack)
    if softness == 0.0:
        return (upper - a) * slack
    return 0.5 * (slack - softness * a) ** 2 / softness


@reordered
def test_gap(rows: Any, boxes: Any, state: Any, k: int) -> bool:
    """Sum the gap and the objective of task k, and have those examples come back that are left out and are to change by more than a share
    of the width; returns whether there were any."""
    values, indices, indptr, firsts, places, stride, labels = rows
    uppers, _, softness, shrink = boxes
    order, task, w, left = state.orders[k], state.tasks[k], state.V[k], state.counts[k]
    gap = loss = square = 0.0
    for i in range(order.size):
        example = order[i]
        if example < 0:
            break
        place = places[k] + stride * example
        a, upper, soft = state.a[place], uppers[place], softness[place]
        slack = 1.0 - labels[place] * product(values, indices, indptr, firsts[k] + example, w)
        gap += _gap_of(slack, a, upper, soft)
        if slack > 0.0:
            loss += upper * slack if soft == 0.0 else 0.5 * slack * slack / soft
        gradient = slack - soft * a
        rise = max(gradient if a < upper else 0.0, -gradient if a > 0.0 else 0.0)
        if i >= left and rise > _FALL * task[WIDTH]:
            order[i], order[left] = order[left], example
            left += 1
    for j in range(w.size):
        square += w[j] * w[j]
    task[GAP], task[VALUE] = max(gap, 0.0), loss + 0.5 * square / shrink
    has_grown = left > state.counts[k]
    state.counts[k] = left
    return bool(has_grown)


@reordered
def sum_coefficients(rows: Any, boxes: Any, state: Any, k: int) -> None:
    """w_k <- shrink sum_i a_i y_i x_i."""
    values, indices, indptr, firsts, places, stride, labels = rows
    order, w = state.orders[k], state.V[k]
    w[:] = 0.0
    for i in range(order.size):
        if order[i] >= 0:
            place = places[k] + stride * order[i]
            if state.a[place] != 0.0:
                add(values, indices, indptr, firsts[k] + order[i], state.a[place] * labels[place] * boxes.shrink, None, w)


@reordered
def ascend_face(rows: Any, boxes: Any, state: Any, k: int, most: int) -> tuple[int, int]:
    """Raise the dual objective of task k over the variables between their bounds, by up to `most` conjugate gradients scaled by their
    curvatures, which begin anew without those that meet a bound; returns how many examples were visited, and the gradients."""
    values, indices, indptr, firsts, places, stride, labels = rows
    uppers, squares, softness, shrink = boxes
    a, w, order = state.a, state.V[k], state.orders[k]
    free, slopes = np.empty(state.counts[k], dtype=np.int64), np.empty(state.counts[k])
    directions, images, moved = np.zeros(state.counts[k]), np.empty(state.counts[k]), np.empty(w.size)
    count = visited = steps = 0
    for i in range(state.counts[k]):
        place = places[k] + stride * order[i]
        if 0.0 < a[place] < uppers[place] and squares[place] > 0.0:
            free[count] = order[i]
            slopes[count] = 1.0 - labels[place] * product(values, indices, indptr, firsts[k] + order[i], w) - softness[place] * a[place]
            count += 1
    before = first = 0.0
    while count and steps < min(most, _MOST_GRADIENTS):
        visited += count
        steps += 1
        squared = 0.0
        for i in range(count):
            place = places[k] + stride * free[i]
            squared += slopes[i] ** 2 / (squares[place] + softness[place])
        first = max(first, squared)
        if squared <= _SOLVED * first:
            break
        share = squared / before if before > 0.0 else 0.0
        moved[:] = 0.0
        for i in range(count):
            place = places[k] + stride * free[i]
            directions[i] = slopes[i] / (squares[place] + softness[place]) + share * directions[i]
            add(values, indices, indptr, firsts[k] + free[i], directions[i] * labels[place] * shrink, None, moved)
        curvature, longest = 0.0, np.inf
        for i in range(count):
            place, direction = places[k] + stride * free[i], directions[i]
            images[i] = labels[place] * product(values, indices, indptr, firsts[k] + free[i], moved) + softness[place] * direction
            curvature += direction * images[i]
            if direction != 0.0:
                longest = min(longest, ((uppers[place] if direction > 0.0 else 0.0) - a[place]) / direction)
        if not curvature > 0.0:
            break
        length = min(squared / curvature, longest)
        for j in range(w.size):
            w[j] += length * moved[j]
        left = 0
        for i in range(count):
            place, direction = places[k] + stride * free[i], directions[i]
            end = uppers[place] if direction > 0.0 else 0.0
            if direction != 0.0 and (end - a[place]) / direction <= length * _AT_BOUND:
                a[place] = end
            else:
                a[place] += length * direction
                free[left], slopes[left], directions[left] = free[i], slopes[i] - length * images[i], direction
                left += 1
        before = squared if left == count else 0.0
        count = left
    return visited, steps


@reordered
def _pass(rows: Any, boxes: Any, state: Any, k: int) -> tuple[float, float, int]:
    """Make a pass over the examples of task k that are not left out; returns its gap, of every example before its own step, the spread of
    the projected gradients, and how many variables have met or left a bound."""
    values, indices, indptr, firsts, places, stride, labels = rows
    uppers, squares, softness, shrink = boxes
    a, random = state.a, state.random
    order, task, w = state.orders[k], state.tasks[k], state.V[k]
    left, i = state.counts[k], 0
    highest, lowest, gap, moves = 0.0, 0.0, 0.0, 0
    while i < left:
        random[0] = random[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = i + np.int64(((random[0] >> np.uint64(32)) * np.uint64(left - i)) >> np.uint64(32))
        example = order[j]
        order[j], order[i] = order[i], example
        place, row = places[k] + stride * example, firsts[k] + example
        y, upper, soft = labels[place], uppers[place], softness[place]
        before = a[place]
        slack = 1.0 - y * product(values, indices, indptr, row, w)
        gradient = slack - soft * before
        if (before == 0.0 and gradient <= 0.0) or (before == upper and gradient >= 0.0):
            # at its bound, and the slope points outwards
            if gradient < task[LOWEST] or gradient > task[HIGHEST]:
                left -= 1
                order[i], order[left] = order[left], example
                continue
        else:
            highest, lowest = max(highest, gradient), min(lowest, gradient)
            gap += _gap_of(slack, before, upper, soft)
            square = squares[place] + soft
            after = upper if square == 0.0 else min(max(before + gradient / square, 0.0), upper)
            if after != before:
                moves += not (0.0 < before < upper and 0.0 < after < upper)
                a[place] = after
                add(values, indices, indptr, row, (after - before) * y * shrink, None, w)
        i += 1
    state.counts[k] = left
    # Left out next time: above 0 at 0 by more than the largest ascent, and likewise at the upper end.
    task[HIGHEST] = highest if highest > 0.0 else np.inf
    task[LOWEST] = lowest if lowest < 0.0 else -np.inf
    return gap, highest - lowest, moves


@reordered
def passes(rows: Any, boxes: Any, state: Any, allowed: Any, count: int) -> tuple[int, int]:
    """Make up to `count` passes and gradients over every task whose gap is above what is allowed; returns how many examples were visited,
    and the passes and gradients of the task with most of them.

    A gap at or below what is allowed has been summed over all examples of the task, others may be estimates.
    """
    visited = most = 0
    for k in range(allowed.size):
        task, made = state.tasks[k], 0
        while made < count and task[WIDTH] > 0.0 and task[GAP] > allowed[k]:
            made += 1
            visited += state.counts[k]
            estimate, spread, moves = _pass(rows, boxes, state, k)
            task[GAP] = estimate / task[EXCESS]
            if task[GAP] <= allowed[k] or spread <= task[WIDTH]:
                has_grown = test_gap(rows, boxes, state, k)
                visited += rows.labels.size // allowed.size
                task[EXCESS] = min(max(estimate / task[GAP], 1.0 / _MOST_EXCESS), _MOST_EXCESS) if task[GAP] > 0.0 else 1.0
                if spread <= task[WIDTH] and not has_grown:
                    task[WIDTH] = 0.0 if task[WIDTH] < _ROUNDING else _FALL * task[WIDTH]
                    if task[WIDTH] < _FINE:
                        sum_coefficients(rows, boxes, state, k)
            elif moves == 0:
                examples, steps = ascend_face(rows, boxes, state, k, count - made)
                visited += examples
                made += steps
        most = max(most, made)
    return visited, most
