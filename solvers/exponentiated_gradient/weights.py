"""Weights on simplices: how they make a point, and one multiplicative step."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.forms import SimplexForm

#: No weight changes by more than this in its logarithm in one step, so that nothing overflows.
LONGEST_STEP = 200.0
#: No step is longer than this: its product with a price of 0 has to be 0.
LARGEST_ETA = 1e300
#: A given start, which may have weights of 0, is mixed with this much of all weights alike: products never lift a weight from 0.
_MIXED = 1e-3


class Weights:
    """The map from logarithms of weights, one column for every simplex (U, then V, then the slack), to a point."""

    def __init__(self, form: SimplexForm, shape: tuple[int, ...]) -> None:
        self._form, self.shape = form, shape
        self._columns = shape[1] if form.balls == "task" else 1
        self._entries = shape[0] * shape[1] // self._columns

    @property
    def count(self) -> int:
        """Weights of a column."""
        return self._entries * (1 + self._form.signed) + self._form.slack

    def alike(self) -> Array:
        return np.full((self.count, self._columns), -np.log(self.count))

    def mixed(self, point: Array) -> Array:
        """Weights that make this point, almost."""
        form, n = self._form, self._entries
        p = np.zeros((self.count, self._columns))
        V = self._oriented(point).reshape(n, self._columns) / (form.mass or 1.0)
        p[:n] = np.maximum(V, 0.0)
        if form.signed:
            p[n : 2 * n] = np.maximum(-V, 0.0)
        left = np.maximum(1.0 - p.sum(axis=0), 0.0)
        if form.signed:
            p += left / self.count  # U and V cancel
        elif form.slack:
            p[-1] += left
        return np.log((1.0 - _MIXED) * p / p.sum(axis=0) + _MIXED / self.count)

    @property
    def factors(self) -> Array:
        """What the entries of U - V are times in a point."""
        return np.full(self.shape, self._form.mass) if self._form.orientation is None else self._form.mass * self._form.orientation

    @property
    def signed(self) -> bool:
        return self._form.signed

    def point(self, p: Array) -> Array:
        n = self._entries
        W = p[:n] - p[n : 2 * n] if self._form.signed else p[:n]
        return self._oriented(self._form.mass * W.reshape(self.shape))

    def prices(self, gradient: Array) -> Array:
        """The gradient in the weights."""
        g = self._form.mass * self._oriented(gradient).reshape(self._entries, self._columns)
        parts = [g, -g] if self._form.signed else [g]
        return np.concatenate([*parts, np.zeros((1, self._columns))] if self._form.slack else parts)

    def _oriented(self, W: Array) -> Array:
        return W if self._form.orientation is None else W * self._form.orientation


def normalised(logs: Array) -> Array:
    """Logarithms of weights that add up to 1 in every column."""
    logs = logs - logs.max(axis=0)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=0)))


def first_step(rate: float, prices: Array) -> float:
    """rate sqrt(log N) / G."""
    size = size_of(prices)
    return min(rate * float(np.sqrt(np.log(max(2, len(prices))))) / size, LARGEST_ETA) if 0.0 < size < np.inf else 1.0


def size_of(prices: Array) -> float:
    """The largest range of a column."""
    return float((prices.max(axis=0) - prices.min(axis=0)).max())
