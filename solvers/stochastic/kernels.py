"""Stochastic gradient steps under an l1 ball or penalty: on sparse vectors, many in one call, and one on a dense matrix.

Examples are rows of a CSR matrix. Most have one prediction, that of their task; others have one of every task.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from bench_mtl.core.kernels.jit import exact
from bench_mtl.projections.kernels.sparse_ball import LARGEST, MASK, SHIFT, Parts, change, make_room, place_of, project, shrink, value_at

SQUARED, LOGISTIC, HINGE, MULTICLASS = range(4)
OVERFLOW = -1

#: How long a step is, and how it is projected: onto l1 balls of this radius, of the whole or (as many sparse vectors as tasks) of every
#: task; with an infinite radius by the soft threshold at eta_t penalty. Signs of the entries, where they may have one only; none
#: where they all may be positive alone, or any (`nonneg` false).
Rule = namedtuple("Rule", "eta0 radius penalty nonneg signs n_tasks")

#: Room for one example: where its entries are (outputs x the longest row), its predictions, and their derivatives.
Scratch = namedtuple("Scratch", "places predictions derivatives")


@exact
def derivative_of(loss: int, t: Any, y: Any, out: Any) -> None:
    """Write to `out` the derivative of the loss in the predictions t of one example with targets y."""
    if loss == MULTICLASS:
        highest, total = t[0], 0.0
        for r in range(t.size):
            highest = max(highest, t[r])
        for r in range(t.size):
            out[r] = math.exp(t[r] - highest)
            total += out[r]
        for r in range(t.size):
            out[r] = out[r] / total - y[r]
        return
    for r in range(t.size):
        margin = y[r] * t[r]
        if loss == SQUARED:
            out[r] = t[r] - y[r]
        elif loss == LOGISTIC:
            small = math.exp(-abs(margin))
            out[r] = -y[r] * (small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small))
        else:
            out[r] = -y[r] if margin < 1.0 else 0.0


@exact
def _record_visit(i: int, eta: float, derivatives: Any, visits: Any) -> None:
    visits.weights[i] += eta
    for r in range(derivatives.size):
        visits.sums[i, r] += eta * derivatives[r]
        visits.latest[i, r] = derivatives[r]


@exact
def _ball(parts: Any, b: int) -> Any:
    return Parts(parts.features[b], parts.stored[b], parts.slots[b], parts.nodes[b], parts.state[b], parts.reals[b], parts.tree)


@exact
def _predict(columns: Any, entries: Any, k: int, ball: Any, apart: bool, rule: Any, places: Any) -> float:
    """x.w_k, and in `places` where its entries are."""
    mask, shift, total = ball.state[MASK], ball.reals[SHIFT], 0.0
    for p in range(columns.size):
        j = columns[p]
        place = place_of(ball.features, ball.slots, mask, j if apart else j * rule.n_tasks + k)
        places[p] = place
        term = entries[p] * value_at(ball.stored, shift, place)
        total += term * rule.signs[j * rule.n_tasks + k] if rule.signs.size > 0 else term
    return total


@exact
def _update(row: Any, k: int, ball: Any, apart: bool, rule: Any, places: Any, factor: float) -> bool:
    """w_k <- w_k + factor x, before any projection. Whether all changes were numbers of at most `LARGEST`, as the structure needs them."""
    columns, entries = row
    for p in range(columns.size):
        key = columns[p] * rule.n_tasks + k
        delta = factor * entries[p]
        if rule.signs.size > 0:
            delta *= rule.signs[key]
        if not abs(delta) <= LARGEST:
            return False
        feature = columns[p] if apart else key
        change(ball, feature, places[p], delta, rule.nonneg)
    return True


@exact
def sparse_steps(examples: Any, chosen: Any, done: int, rule: Any, parts: Any, visits: Any, scratch: Any) -> int:
    """w <- P(w - eta_t scales_i loss'(x_i.w) x_i) for the examples i chosen, with eta_t = eta0 / sqrt(t) for t = done + 1, ...

    Returns the number of steps made, fewer than asked for where the arrays are full; or `OVERFLOW`, where a step is not finite.
    """
    apart, outputs = parts.state.shape[0] > 1, examples.targets.shape[1]
    for step in range(chosen.size):
        i = chosen[step]
        start, stop = examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]
        columns, entries = examples.indices[start:stop], examples.data[start:stop]
        coming = columns.size if apart else columns.size * outputs
        for r in range(outputs):
            b = (r if outputs > 1 else examples.tasks[i]) if apart else 0
            if not make_room(_ball(parts, b), coming):
                return step
        for r in range(outputs):
            k = r if outputs > 1 else examples.tasks[i]
            ball = _ball(parts, k if apart else 0)
            scratch.predictions[r] = _predict(columns, entries, k, ball, apart, rule, scratch.places[r])
        derivative_of(examples.loss, scratch.predictions, examples.targets[i], scratch.derivatives)
        eta = rule.eta0 / math.sqrt(done + step + 1)
        _record_visit(i, eta, scratch.derivatives, visits)
        for r in range(outputs):
            k = r if outputs > 1 else examples.tasks[i]
            ball = _ball(parts, k if apart else 0)
            factor = -eta * examples.scales[i, r] * scratch.derivatives[r]
            if factor != 0.0:
                if not _update((columns, entries), k, ball, apart, rule, scratch.places[r], factor):
                    return OVERFLOW
                if apart:
                    project(ball, rule.radius)
        ball = _ball(parts, 0)
        if rule.radius == math.inf:
            if not eta * rule.penalty <= LARGEST:
                return OVERFLOW
            shrink(ball, eta * rule.penalty)
        elif not apart:
            project(ball, rule.radius)
    return chosen.size


@exact
def predict(examples: Any, i: int, W: Any, out: Any) -> None:
    """Write to `out` the predictions of example i by the columns of W."""
    start, stop = examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]
    data, indices = examples.data[start:stop], examples.indices[start:stop]
    for r in range(out.size):
        k, total = r if out.size > 1 else examples.tasks[i], 0.0
        for p in range(data.size):
            total += data[p] * W[indices[p], k]
        out[r] = total


@exact
def add_example(examples: Any, i: int, factor: float, derivatives: Any, W: Any) -> None:
    """W <- W + factor times the gradient of scales_i loss(x_i.w_k), by the derivatives in the predictions."""
    start, stop = examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]
    data, indices = examples.data[start:stop], examples.indices[start:stop]
    for r in range(derivatives.size):
        k, slope = r if derivatives.size > 1 else examples.tasks[i], factor * examples.scales[i, r] * derivatives[r]
        for p in range(data.size):
            W[indices[p], k] += slope * data[p]


@exact
def dense_step(examples: Any, chosen: Any, eta: float, W: Any, visits: Any, predictions: Any, derivatives: Any) -> None:
    """W <- W - eta mean_b g_b, g_b the derivative of scales_i loss(x_i.w_k) for the examples i chosen.

    `predictions` and `derivatives` are scratch, a line an example chosen.
    """
    for b in range(chosen.size):
        predict(examples, chosen[b], W, predictions[b])
        derivative_of(examples.loss, predictions[b], examples.targets[chosen[b]], derivatives[b])
        _record_visit(chosen[b], eta, derivatives[b], visits)
    for b in range(chosen.size):
        add_example(examples, chosen[b], -eta / chosen.size, derivatives[b], W)
