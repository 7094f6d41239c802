"""Exponentiated gradient steps on drawn examples, at the cost of the features that these have."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bench_mtl.core.kernels.jit import exact
from bench_mtl.solvers.exponentiated_gradient.weights import LONGEST_STEP
from bench_mtl.solvers.stochastic.kernels import derivative_of

#: Sums of weights are kept within these by dividing all weights by them: above, products might overflow; below, what they were
#: computed from by adding and subtracting was so much larger that digits are lost.
_SMALLEST_SUM, _LARGEST_SUM = 1e-3, 1e10

#: No weight falls below this, and so none is lost for good.
_LEAST = 1e-280


class Rule(NamedTuple):
    """The first step size, and how weights make a point: mass times U - V, with signs (d x m) where `oriented`."""

    eta0: float
    mass: float
    signs: Any
    oriented: bool


class Held(NamedTuple):
    """Weights that are not divided by their sum, and what averages of U - V need, see `LazySum`."""

    weights: Any
    """d x m, or d x 2m: U, then V."""
    sums: Any
    """Of the weights of every simplex, one a column or one in all."""
    late: Any
    totals: Any


class Scratch(NamedTuple):
    """Room for a step: predictions and derivatives of its examples, a gradient of zeros, its rows that are not, ends of prices."""

    predictions: Any
    derivatives: Any
    gradient: Any
    touched: Any
    is_touched: Any
    highest: Any
    lowest: Any


@exact
def drawn_steps(examples: Any, chosen: Any, done: int, rule: Any, held: Any, scratch: Any) -> int:
    """Take a step of size eta0 / sqrt(t), t = done + 1, ..., for every line of examples.

    Returns the number of steps made; minus that where the weights have to be divided by their sums before the next.
    """
    for step in range(chosen.shape[0]):
        eta = rule.eta0 / math.sqrt(done + step + 1)
        for c in range(held.sums.size):
            held.totals[c] += eta / held.sums[c]
        count = _add_gradients(examples, chosen[step], rule, held, scratch)
        size = _size_of_prices(count, rule, held, scratch)
        if size > 0.0:
            _multiply(count, min(eta, LONGEST_STEP / size), held, scratch)
        for q in range(count):
            scratch.gradient[scratch.touched[q]] = 0.0
            scratch.is_touched[scratch.touched[q]] = False
        for c in range(held.sums.size):
            if not _SMALLEST_SUM <= held.sums[c] <= _LARGEST_SUM:
                return -(step + 1)
    return chosen.shape[0]


@exact
def _add_gradients(examples: Any, chosen: Any, rule: Any, held: Any, scratch: Any) -> int:
    """Put the gradient of the mean of the chosen examples' losses times N where there is room, and its rows; return how many it has."""
    m, outputs, count = held.late.shape[1], examples.targets.shape[1], 0
    for b in range(chosen.size):
        i = chosen[b]
        start, stop = examples.indptr[examples.rows[i]], examples.indptr[examples.rows[i] + 1]
        for p in range(start, stop):
            j = examples.indices[p]
            if not scratch.is_touched[j]:
                scratch.is_touched[j] = True
                scratch.touched[count] = j
                count += 1
        for r in range(outputs):
            k = r if outputs > 1 else examples.tasks[i]
            total = 0.0
            for p in range(start, stop):
                j = examples.indices[p]
                value = held.weights[j, k] - (held.weights[j, m + k] if held.weights.shape[1] > m else 0.0)
                total += examples.data[p] * (value * rule.signs[j, k] if rule.oriented else value)
            scratch.predictions[b, r] = rule.mass * total / held.sums[k if held.sums.size > 1 else 0]
        derivative_of(examples.loss, scratch.predictions[b], examples.targets[i], scratch.derivatives[b])
        for r in range(outputs):
            k = r if outputs > 1 else examples.tasks[i]
            slope = examples.scales[i, r] / chosen.size * scratch.derivatives[b, r]
            for p in range(start, stop):
                scratch.gradient[examples.indices[p], k] += slope * examples.data[p]
    return count


@exact
def _size_of_prices(count: int, rule: Any, held: Any, scratch: Any) -> float:
    """Make the gradient that in the weights U, and return the largest range of a simplex; untouched rows are 0."""
    scratch.highest[:] = 0.0
    scratch.lowest[:] = 0.0
    for q in range(count):
        j = scratch.touched[q]
        for k in range(held.late.shape[1]):
            scratch.gradient[j, k] *= rule.mass * rule.signs[j, k] if rule.oriented else rule.mass
            c, price = k if held.sums.size > 1 else 0, scratch.gradient[j, k]
            scratch.highest[c] = max(scratch.highest[c], price)
            scratch.lowest[c] = min(scratch.lowest[c], price)
    largest = 0.0
    for c in range(held.sums.size):
        high, low = scratch.highest[c], scratch.lowest[c]
        largest = max(largest, 2.0 * max(high, -low) if held.weights.shape[1] > held.late.shape[1] else high - low)
    return largest


@exact
def _multiply(count: int, eta: float, held: Any, scratch: Any) -> None:
    """U <- U exp(-eta price), V <- V exp(eta price)."""
    m = held.late.shape[1]
    for q in range(count):
        j = scratch.touched[q]
        for k in range(m):
            if scratch.gradient[j, k] == 0.0:
                continue
            c, growth = k if held.sums.size > 1 else 0, math.exp(-eta * scratch.gradient[j, k])
            rise = _replace(held.weights, j, k, growth)
            held.sums[c] += rise
            if held.weights.shape[1] > m:
                other = _replace(held.weights, j, m + k, 1.0 / growth)
                held.sums[c] += other
                rise -= other
            held.late[j, k] += held.totals[c] * rise


@exact
def _replace(weights: Any, j: int, k: int, growth: float) -> float:
    """Multiply a weight; return by how much it rises. (Adding that to it would lose what is left of one that falls far.)"""
    before = weights[j, k]
    weights[j, k] = max(before * growth, _LEAST)
    return weights[j, k] - before
