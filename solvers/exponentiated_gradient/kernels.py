"""Exponentiated gradient steps on drawn examples, at the cost of the features that these have."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from bench_mtl.core.kernels.jit import exact
from bench_mtl.solvers.exponentiated_gradient.weights import LONGEST_STEP
from bench_mtl.solvers.stochastic.kernels import add_example, derivative_of

#: Sums of weights are kept within these by dividing all weights by them: above, products might overflow; below, what they were
#: computed from by adding and subtracting was so much larger that digits are lost.
_SMALLEST_SUM, _LARGEST_SUM = 1e-3, 1e10

#: No weight falls below this, and so none is lost for good.
_LEAST = 1e-280

#: Weights that are not divided by their sums (of every simplex, one a column or one in all): U, V where they are `signed`, and slack, row
#: by row; the lazy sum of them; and what U - V is times in a point, d x m.
Held = namedtuple("Held", "weights late sums totals factors signed")

#: Room for a step: predictions and derivatives of its examples; a gradient of zeros, d x m; its rows that are not, and whether they are;
#: the lowest and the highest price of every simplex.
Scratch = namedtuple("Scratch", "predictions derivatives gradient touched is_touched ends")


@exact
def drawn_steps(examples: Any, chosen: Any, done: int, eta0: float, held: Any, scratch: Any) -> int:
    """Take a step of size eta0 / sqrt(t), t = done + 1, ..., for every line of examples.

    Returns the number of steps made; minus that where the weights have to be divided by their sums before the next.
    """
    for step in range(chosen.shape[0]):
        eta = eta0 / math.sqrt(done + step + 1)
        for c in range(held.sums.size):
            held.totals[c] += eta / held.sums[c]
        count = 0
        for b in range(chosen.shape[1]):
            count = _touch(examples, chosen[step, b], count, scratch)
            _predict(examples, chosen[step, b], held, scratch.predictions[b])
            derivative_of(examples.loss, scratch.predictions[b], examples.targets[chosen[step, b]], scratch.derivatives[b])
            add_example(examples, chosen[step, b], 1.0 / chosen.shape[1], scratch.derivatives[b], scratch.gradient)
        size = _size_of_prices(count, held, scratch)
        if 0.0 < size < math.inf:
            _multiply(count, min(eta, LONGEST_STEP / size), held, scratch)
        for q in range(count):
            scratch.gradient[scratch.touched[q]] = 0.0
            scratch.is_touched[scratch.touched[q]] = False
        for c in range(held.sums.size):
            if not _SMALLEST_SUM <= held.sums[c] <= _LARGEST_SUM:
                return -(step + 1)
    return chosen.shape[0]


@exact
def _touch(examples: Any, i: int, count: int, scratch: Any) -> int:
    """Note the features of an example; return how many there are with those of the examples before."""
    for p in range(examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]):
        j = examples.indices[p]
        if not scratch.is_touched[j]:
            scratch.is_touched[j] = True
            scratch.touched[count] = j
            count += 1
    return count


@exact
def _predict(examples: Any, i: int, held: Any, out: Any) -> None:
    start, stop = examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]
    data, indices, weights, factors = examples.data[start:stop], examples.indices[start:stop], held.weights, held.factors
    m, negative = factors.shape[1], factors.size
    for r in range(out.size):
        k, total = r if out.size > 1 else examples.tasks[i], 0.0
        for p in range(data.size):
            place = indices[p] * m + k
            value = weights[place] - weights[negative + place] if held.signed else weights[place]
            total += data[p] * factors[indices[p], k] * value
        out[r] = total / held.sums[k if held.sums.size > 1 else 0]


@exact
def _size_of_prices(count: int, held: Any, scratch: Any) -> float:
    """Make the gradient that in the weights U, and return the largest range of a simplex; untouched rows are 0."""
    gradient, ends, largest = scratch.gradient, scratch.ends, 0.0
    ends[:] = 0.0
    for q in range(count):
        j = scratch.touched[q]
        for k in range(gradient.shape[1]):
            c = k if held.sums.size > 1 else 0
            gradient[j, k] *= held.factors[j, k]
            ends[0, c], ends[1, c] = min(ends[0, c], gradient[j, k]), max(ends[1, c], gradient[j, k])
    for c in range(held.sums.size):
        largest = max(largest, 2.0 * max(ends[1, c], -ends[0, c]) if held.signed else ends[1, c] - ends[0, c])
    return largest


@exact
def _multiply(count: int, eta: float, held: Any, scratch: Any) -> None:
    """U <- U exp(-eta price), V <- V exp(eta price)."""
    m = held.factors.shape[1]
    for q in range(count):
        for k in range(m):
            price, place = scratch.gradient[scratch.touched[q], k], scratch.touched[q] * m + k
            if abs(price) > 0.0:  # nor NaN
                growth = math.exp(-eta * price)
                _replace(held, place, k if held.sums.size > 1 else 0, growth)
                if held.signed:
                    _replace(held, held.factors.size + place, k if held.sums.size > 1 else 0, 1.0 / growth)


@exact
def _replace(held: Any, place: int, c: int, growth: float) -> None:
    """Multiply a weight. (Adding its rise to it would lose what is left of one that falls far.)"""
    before = held.weights[place]
    held.weights[place] = max(before * growth, _LEAST)
    rise = held.weights[place] - before
    held.sums[c] += rise
    held.late[place] += held.totals[c] * rise
