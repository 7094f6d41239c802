"""Stochastic gradient steps under an l1 ball or penalty: on sparse vectors, many in one call, and one on a dense matrix.

Examples are rows of a CSR matrix. Most losses have one prediction an example, that of its task; "multiclass" has one of every task.
"""

from __future__ import annotations

import math
from typing import Any

from bench_mtl.core.kernels.jit import exact
from bench_mtl.projections.kernels.sparse_ball import LARGEST, MASK, SHIFT, change, make_room, place_of, project, shrink, value_at

SQUARED, LOGISTIC, HINGE, MULTICLASS = range(4)
OVERFLOW = -1


@exact
def derivative_of(loss: int, t: Any, y: Any, out: Any) -> None:
    """Write to `out` the derivative of the loss in the predictions t of one example with targets y."""
    if loss == SQUARED:
        out[0] = t[0] - y[0]
        return
    margin = y[0] * t[0]
    if loss == LOGISTIC:
        small = math.exp(-abs(margin))
        out[0] = -y[0] * (small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small))
        return
    if loss == HINGE:
        out[0] = -y[0] if margin < 1.0 else 0.0
        return
    highest = t[0]
    for r in range(t.size):
        highest = max(highest, t[r])
    whole = 0.0
    for r in range(t.size):
        out[r] = math.exp(t[r] - highest)
        whole += out[r]
    for r in range(t.size):
        out[r] = out[r] / whole - y[r]


@exact
def _record_visit(i: int, eta: float, derivatives: Any, visited: Any, sums: Any, latest: Any) -> None:
    """Add to the parts of a dual point: the derivatives at visits, weighted by step sizes, and those at the last visit."""
    visited[i] += eta
    for r in range(derivatives.size):
        sums[i, r] += eta * derivatives[r]
        latest[i, r] = derivatives[r]


@exact
def _predict(
    columns: Any,
    entries: Any,
    stride: int,
    offset: int,
    n_tasks: int,
    k: int,
    signs: Any,
    features: Any,
    stored: Any,
    slots: Any,
    state: Any,
    reals: Any,
    places: Any,
) -> float:
    """x.w_k, and in `places` where its entries are; feature j of task k is known as j stride + offset."""
    mask, shift = state[MASK], reals[SHIFT]
    total = 0.0
    for p in range(columns.size):
        j = columns[p]
        place = place_of(features, slots, mask, j * stride + offset)
        places[p] = place
        term = entries[p] * value_at(stored, shift, place)
        total += term * signs[j * n_tasks + k] if signs.size > 1 else term
    return total


@exact
def _update(
    columns: Any,
    entries: Any,
    stride: int,
    offset: int,
    n_tasks: int,
    k: int,
    signs: Any,
    places: Any,
    factor: float,
    nonneg: bool,
    part: Any,
    tree: bool,
) -> bool:
    """w_k <- w_k + factor x, before any projection. Whether all changes were numbers of at most `LARGEST`, as the structure needs them."""
    features, stored, slots, nodes, state, reals = part
    for p in range(columns.size):
        j = columns[p]
        delta = factor * entries[p]
        if signs.size > 1:
            delta *= signs[j * n_tasks + k]
        if not abs(delta) <= LARGEST:
            return False
        change(features, stored, slots, nodes, state, reals, tree, j * stride + offset, places[p], delta, nonneg)
    return True


@exact
def sparse_steps(
    data: Any,
    indices: Any,
    indptr: Any,
    rows: Any,
    tasks: Any,
    targets: Any,
    scales: Any,
    loss: int,
    n_tasks: int,
    chosen: Any,
    done: int,
    eta0: float,
    radius: float,
    penalty: float,
    nonneg: bool,
    signs: Any,
    features: Any,
    stored: Any,
    slots: Any,
    nodes: Any,
    state: Any,
    reals: Any,
    tree: bool,
    visited: Any,
    sums: Any,
    latest: Any,
    places: Any,
    predictions: Any,
    derivatives: Any,
) -> int:
    """w <- P(w - eta_t scales_i loss'(x_i.w) x_i) for the examples i chosen, with eta_t = eta0 / sqrt(t) for t = done + 1, ...

    P is the projection onto the l1 ball of radius `radius`, of the whole or (as many sparse vectors as tasks) of every task; with an
    infinite radius the soft threshold at eta_t penalty.
    Returns the number of steps made, fewer than asked for where the arrays are full; or `OVERFLOW`, where a step is not finite.

    Parameters
    ----------
    signs : of the entries, where they may have one only; of size 1 where they all may be positive alone, or any (`nonneg` false)
    places : scratch, outputs x the longest row
    """
    apart = state.shape[0] > 1
    outputs = targets.shape[1]
    for step in range(chosen.size):
        i = chosen[step]
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        columns, entries = indices[start:stop], data[start:stop]
        coming = columns.size if apart else columns.size * outputs
        for r in range(outputs):
            b = (r if outputs > 1 else tasks[i]) if apart else 0
            if not make_room(features[b], stored[b], slots[b], nodes[b], state[b], reals[b], tree, coming):
                return step
        for r in range(outputs):
            k = r if outputs > 1 else tasks[i]
            b = k if apart else 0
            stride, offset = (1, 0) if apart else (n_tasks, k)
            predictions[r] = _predict(
                columns, entries, stride, offset, n_tasks, k, signs, features[b], stored[b], slots[b], state[b], reals[b], places[r]
            )
        derivative_of(loss, predictions, targets[i], derivatives)
        eta = eta0 / math.sqrt(done + step + 1)
        _record_visit(i, eta, derivatives, visited, sums, latest)
        for r in range(outputs):
            k = r if outputs > 1 else tasks[i]
            b = k if apart else 0
            stride, offset = (1, 0) if apart else (n_tasks, k)
            part = (features[b], stored[b], slots[b], nodes[b], state[b], reals[b])
            factor = -eta * scales[i] * derivatives[r]
            if factor != 0.0:
                if not _update(columns, entries, stride, offset, n_tasks, k, signs, places[r], factor, nonneg, part, tree):
                    return OVERFLOW
                if apart:
                    project(part[0], part[1], part[2], part[3], part[4], part[5], tree, radius)
        if radius == math.inf:
            if not eta * penalty <= LARGEST:
                return OVERFLOW
            shrink(nodes[0], state[0], reals[0], tree, eta * penalty)
        elif not apart:
            project(features[0], stored[0], slots[0], nodes[0], state[0], reals[0], tree, radius)
    return chosen.size


@exact
def dense_step(
    data: Any,
    indices: Any,
    indptr: Any,
    rows: Any,
    tasks: Any,
    targets: Any,
    scales: Any,
    loss: int,
    chosen: Any,
    eta: float,
    W: Any,
    visited: Any,
    sums: Any,
    latest: Any,
    predictions: Any,
    derivatives: Any,
) -> None:
    """W <- W - eta mean_b g_b, g_b the derivative of scales_i loss(x_i.w_k) for the examples i chosen.

    `predictions` and `derivatives` are scratch, a line an example chosen.
    """
    outputs = targets.shape[1]
    for b in range(chosen.size):
        i = chosen[b]
        for r in range(outputs):
            k = r if outputs > 1 else tasks[i]
            total = 0.0
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                total += data[p] * W[indices[p], k]
            predictions[b, r] = total
        derivative_of(loss, predictions[b], targets[i], derivatives[b])
        _record_visit(i, eta, derivatives[b], visited, sums, latest)
    for b in range(chosen.size):
        i = chosen[b]
        for r in range(outputs):
            k = r if outputs > 1 else tasks[i]
            factor = -eta / chosen.size * scales[i] * derivatives[b, r]
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                W[indices[p], k] += factor * data[p]
