"""A smooth loss of linear predictions whose examples are in shards: its operators as sums over the shards.

A dual point is told by coefficients: it is minus the derivative of the loss at their predictions. So it takes no more room than a point,
and whoever has the shards can make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.sharded_design import InShards
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss, Squared
from bench_mtl.model.normal_equations import LARGEST_FACTOR
from bench_mtl.model.regularisers import Regulariser
from bench_mtl.model.shard_blocks import Block, Reading, ShardSums, predictions_with_error


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
class ShardedFit(ShardSums):
    """f(W) = sum over shards of the weighted losses of their examples, without intercepts."""

    loss: Loss

    @classmethod
    def of(cls, fit: LinearFit, stored: Array) -> ShardedFit | None:
        """Return a fit as sums over shards, `stored` the targets as they are in the shards; None where it is not made of such sums."""
        reading = None if fit.intercept else Reading.of(fit.design, stored, fit.targets, fit.weights)
        return None if reading is None or not isinstance(fit.design, InShards) else cls(fit.design, reading, fit.loss)

    def lipschitz(self, fit: LinearFit) -> float:
        """Return `LinearFit.lipschitz` of the fit that these sums are of; by the normal equations where there are any."""
        return self._normal.lipschitz() if self._has_normal_equations else fit.lipschitz()

    def value(self, W: Array) -> float:
        """Return f."""
        return self._normal.value_and_gradient(W)[0] if self._has_normal_equations else float(self.total(_value, (W,), self.loss))

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        """Return f and its gradient, in one pass, or in none by the normal equations."""
        if self._has_normal_equations:
            return self._normal.value_and_gradient(W)
        value, gradient = self.total(_value_and_gradient, (W,), self.loss)
        return float(value), gradient

    def enclose(self, terms: Sequence[Array]) -> Interval:
        """Return f at coefficients that are a sum of matrices, between bounds that hold in exact arithmetic."""
        found: Interval = self.total(_enclosed, terms, self.loss, is_proof=True)
        return found

    def enclose_bound(self, V: Array, regulariser: Regulariser) -> Interval:
        """Return what the dual point that is told by V proves of min f(W) + R(W), between bounds that hold in exact arithmetic."""
        return self.judge((V,), regulariser)[1]

    def judge(self, terms: Sequence[Array], regulariser: Regulariser) -> tuple[Interval, Interval]:
        """Return f, and what the dual point proves that the coefficients tell, in one pass."""
        value, gains, G = self.total(_judged, terms, self.loss, is_proof=True)
        support, limit = regulariser.enclose_support(G)
        return value, self.loss.enclose_bound_of(gains, support, limit)

    @property
    def _has_normal_equations(self) -> bool:
        return isinstance(self.loss, Squared) and self.design.is_shared and self.design.n_features <= LARGEST_FACTOR

    @cached_property
    def _normal(self) -> NormalEquations:
        along, squares = self.total(_moments, ())
        return NormalEquations(self.design.gram(0), along, float(squares), self.reading.weights)


# What follows is computed of every block, where the shards are.


def _moments(block: Block, matrices: Sequence[Array]) -> tuple[Array, float]:
    weighted = block.weights * block.targets
    return block.design.adjoint(weighted), float(np.vdot(weighted, block.targets))


def _value(block: Block, matrices: Sequence[Array], loss: Loss) -> float:
    return loss.total(block.design.forward(matrices[0]), block.targets, block.weights)


def _value_and_gradient(block: Block, matrices: Sequence[Array], loss: Loss) -> tuple[float, Array]:
    value, derivatives = loss.total_and_derivatives(block.design.forward(matrices[0]), block.targets, block.weights)
    return value, block.design.adjoint(derivatives)


def _enclosed(block: Block, terms: Sequence[Array], loss: Loss) -> Interval:
    return loss.enclose_total(Interval.around(*predictions_with_error(block.design, terms)), block.targets, block.weights)


def _judged(block: Block, terms: Sequence[Array], loss: Loss) -> Any:
    design, y, w = block
    t, error = predictions_with_error(design, terms)
    r = loss.admissible(-w * loss.derivatives(t, y), y, w)
    value = loss.enclose_total(Interval.around(t, error), y, w)
    return value, loss.enclose_gains(r, y, w), design.enclose_adjoint(loss.enclose_admissible(r, y, w))
