"""Averages over recent steps, mostly those since the last power of two but one: of points, of points known lazily, and of derivatives."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit


def begins_epoch(t: int) -> bool:
    """Return whether step t = 1, 2, ... is the first of an epoch: whether t is a power of two."""
    return t & (t - 1) == 0


def left_of_epoch(t: int) -> int:
    """Return how many steps after step t there are before the next one, later than t + 1, that begins an epoch."""
    return (1 << (t + 1).bit_length()) - (t + 1)


class RecentMean(NamedTuple):
    """The weighted mean of arrays since the last time but one that it began anew."""

    total: Array
    before: Array
    weight: float = 0.0
    weight_before: float = 0.0

    def plus(self, value: Array, weight: float, *, anew: bool) -> RecentMean:
        if anew:
            return RecentMean(weight * value, self.total, weight, self.weight)
        return self._replace(total=self.total + weight * value, weight=self.weight + weight)

    @property
    def value(self) -> Array:
        return (self.before + self.total) / (self.weight_before + self.weight)


class Epochs:
    """Arrays that steps add to: sums of this epoch, and of the one before."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.now = tuple(np.zeros(shape) for shape in shapes)
        self.before = tuple(np.zeros(shape) for shape in shapes)

    def turn(self) -> None:
        """Begin a new epoch; the last one still counts until the next call."""
        self.before, self.now = self.now, tuple(np.zeros_like(array) for array in self.now)

    @property
    def sums(self) -> tuple[Array, ...]:
        return tuple(before + now for before, now in zip(self.before, self.now, strict=True))


class LazySum:
    """The weighted sums of vectors over steps, each a scale times a v of which a step changes few entries.

    The sum is past + total v - late, where `totals` sums the weights times the scales, and what a step adds to an entry of v is added to
    `late` too, times the total so far. That loses as many digits as the scale has fallen by: now and then all is settled.
    """

    def __init__(self, shape: tuple[int, ...], totals: tuple[int, ...]) -> None:
        self.late, self.totals = np.zeros(shape), np.zeros(totals)
        self._epochs = Epochs(shape, ())

    @property
    def past(self) -> Array:
        return self._epochs.now[0]

    def weigh(self, weight: float) -> None:
        """Note the weights of some steps, which averages are divided by."""
        self._epochs.now[1][...] += weight

    def settle(self, v: Array) -> None:
        """Put the sum so far into `past`."""
        self.past[...] += self.totals * v - self.late
        self.late[...] = 0.0
        self.totals[...] = 0.0

    def turn(self, v: Array) -> None:
        """Begin a new epoch."""
        self.settle(v)
        self._epochs.turn()

    def average(self, v: Array) -> Array:
        (earlier, weight_earlier), (past, weight) = self._epochs.before, self._epochs.now
        return np.asarray((earlier + (past + (self.totals * v - self.late))) / (weight_earlier + weight))


#: What kernels note of visits: weights and weighted derivatives of this epoch, and the derivatives at the last visit.
Visits = namedtuple("Visits", "weights sums latest")


class VisitedDuals:
    """A dual point from derivatives at visits: their averages, weighted by step size.

    An example without a visit in that time keeps the derivative of its last visit, or that at W = 0 where there was none.
    """

    def __init__(self, fit: LinearFit) -> None:
        at_zero = fit.derivatives(np.zeros(fit.targets.shape)) / fit.weights
        self._latest = np.array(at_zero if fit.loss.couples_tasks else at_zero.reshape(-1, 1), order="C")
        self._epochs = Epochs((len(self._latest),), self._latest.shape)

    def turn(self) -> None:
        """Begin a new epoch."""
        self._epochs.turn()

    @property
    def for_kernels(self) -> Visits:
        weights, sums = self._epochs.now
        return Visits(weights, sums, self._latest)

    def dual(self, fit: LinearFit) -> Array:
        """Return minus the averaged derivatives times the weights of the examples, in the output shape of the design."""
        weights, sums = self._epochs.sums
        visited = weights[:, None] > 0.0
        averages = np.where(visited, sums / np.where(visited, weights[:, None], 1.0), self._latest)
        return -averages.reshape(fit.targets.shape) * fit.weights
