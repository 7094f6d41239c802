"""A smooth loss of linear predictions whose examples are in shards: its operators as sums over the shards.

A dual point is told by coefficients: it is minus the derivative of the loss at their predictions. So it takes no more room than a point,
and whoever has the shards can make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bench_mtl.core.blocks import plus
from bench_mtl.core.forgetting import Forgetting
from bench_mtl.core.rounding import Interval, is_compensated
from bench_mtl.core.sharded_design import InShards, ShardedDesign
from bench_mtl.core.shards import Shard
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss, Squared
from bench_mtl.model.normal_equations import LARGEST_FACTOR
from bench_mtl.model.regularisers import Regulariser
from bench_mtl.model.shard_blocks import Bounds, Reading, bounds_of, predictions_with_error, products, total_over


@dataclass(frozen=True)
class NormalEquations:
    """All that squared losses are made of: to steer by, since differences of large numbers prove nothing."""

    gram: Array
    along: Array
    """X^T Y with the weights of the tasks, d x m."""
    squares: float
    """Of the targets, with these weights."""
    weights: Array

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        """Return f and its gradient."""
        with one_blas_thread():  # as workers: with more of them sums have other bits
            image = (self.gram @ W) * self.weights
        value = 0.5 * float(np.vdot(W, image)) - float(np.vdot(W, self.along)) + 0.5 * self.squares
        return value, image - self.along

    def lipschitz(self) -> float:
        """Return the largest eigenvalue of X^T X times the largest weight."""
        with one_blas_thread():
            return max(0.0, float(np.linalg.eigvalsh(self.gram).max())) * float(self.weights.max())


@dataclass(frozen=True)
class ShardedFit(Forgetting):
    """f(W) = sum over shards of the weighted losses of their examples, without intercepts."""

    design: InShards
    loss: Loss
    reading: Reading

    @classmethod
    def of(cls, fit: LinearFit, stored: Array) -> ShardedFit | None:
        """Return a fit as sums over shards, `stored` the targets as they are in the shards; None where it is not made of such sums."""
        if not isinstance(fit.design, InShards) or fit.intercept:
            return None
        reading = Reading.of(fit.design, stored, fit.targets, fit.weights)
        return None if reading is None else cls(fit.design, fit.loss, reading)

    def lipschitz(self, fit: LinearFit) -> float:
        """Return `LinearFit.lipschitz` of the fit that these sums are of; by the normal equations where there are any."""
        return self._normal.lipschitz() if self._has_normal_equations else fit.lipschitz()

    def on_shards(self, chosen: Sequence[int]) -> ShardedFit:
        """Return the fit to some shards, with weights that make them stand for all."""
        assert isinstance(self.design, ShardedDesign)
        design = self.design.on_shards(chosen)
        return replace(self, design=design, reading=self.reading.scaled(self.design.sizes[0] / design.sizes[0]))

    def value(self, W: Array) -> float:
        """Return f."""
        if self._has_normal_equations:
            return self._normal.value_and_gradient(W)[0]
        return float(total_over(self.design, _value, self.reading, (W,), self.loss))

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        """Return f and its gradient, in one pass, or in none by the normal equations."""
        if self._has_normal_equations:
            return self._normal.value_and_gradient(W)
        value, gradient = total_over(self.design, _value_and_gradient, self.reading, (W,), self.loss)
        return float(value), gradient

    def enclose(self, terms: Sequence[Array]) -> Interval:
        """Return f at coefficients that are a sum of matrices, between bounds that hold in exact arithmetic."""
        found: Interval = total_over(self.design, _enclosed, self.reading, terms, self.loss, is_compensated(), each=self._bounds)
        return found

    def enclose_bound(self, V: Array, regulariser: Regulariser) -> Interval:
        """Return what the dual point that is told by V proves of min f(W) + R(W), between bounds that hold in exact arithmetic."""
        return self.judge((V,), regulariser)[1]

    def judge(self, terms: Sequence[Array], regulariser: Regulariser) -> tuple[Interval, Interval]:
        """Return f, and what the dual point proves that the coefficients tell, in one pass."""
        found = total_over(self.design, _judged, self.reading, terms, self.loss, is_compensated(), each=self._bounds)
        value, gains, G = found
        support, limit = regulariser.enclose_support(G)
        return value, self.loss.enclose_bound_of(gains, support, limit)

    @property
    def _has_normal_equations(self) -> bool:
        return isinstance(self.loss, Squared) and self.design.is_shared and self.design.n_features <= LARGEST_FACTOR

    @cached_property
    def _normal(self) -> NormalEquations:
        along, squares = self.design.shards.total(_moments, self.reading)
        return NormalEquations(self.design.gram(0), along, float(squares), self.reading.weights)

    @cached_property
    def _bounds(self) -> list[Bounds]:
        return bounds_of(self.design)


# What follows is computed where the shards are.


def _moments(shard: Shard, reading: Reading) -> tuple[Array, float]:
    along, squares = np.zeros((shard.matrix().shape[1], shard.targets().shape[1])), 0.0
    for design, y, w in reading.blocks(shard):
        weighted = w * y
        along += design.adjoint(weighted)
        squares += float(np.vdot(weighted, y))
    return along, squares


def _value(shard: Shard, reading: Reading, matrices: Sequence[Array], loss: Loss) -> float:
    (W,) = matrices
    return sum(loss.total(design.forward(W), y, w) for design, y, w in reading.blocks(shard))


def _value_and_gradient(shard: Shard, reading: Reading, matrices: Sequence[Array], loss: Loss) -> tuple[float, Array]:
    (W,) = matrices
    value, gradient = 0.0, np.zeros(W.shape)
    for design, y, w in reading.blocks(shard):
        here, derivatives = loss.total_and_derivatives(design.forward(W), y, w)
        value += here
        gradient += design.adjoint(derivatives)
    return value, gradient


def _enclosed(shard: Shard, reading: Reading, terms: Sequence[Array], loss: Loss, with_compensation: bool, bounds: Bounds) -> Interval:
    total = Interval(0.0, 0.0)
    with products(with_compensation):
        for design, y, w in reading.blocks(shard, bounds):
            total = total + loss.enclose_total(Interval.around(*predictions_with_error(design, terms)), y, w)
    return total


def _judged(shard: Shard, reading: Reading, terms: Sequence[Array], loss: Loss, with_compensation: bool, bounds: Bounds) -> Any:
    found: Any = None
    with products(with_compensation):
        for design, y, w in reading.blocks(shard, bounds):
            t, error = predictions_with_error(design, terms)
            r = loss.admissible(-w * loss.derivatives(t, y), y, w)
            value = loss.enclose_total(Interval.around(t, error), y, w)
            one = value, loss.enclose_gains(r, y, w), design.enclose_adjoint(loss.enclose_admissible(r, y, w))
            found = one if found is None else plus(found, one)
    return found
