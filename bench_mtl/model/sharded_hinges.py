"""Weighted hinges whose examples are in shards: their operators as sums over the shards.

A dual point is told by coefficients V and a smoothing, as a 1 x (d + 1) x m array whose last row is the smoothing: it is the a of
`Hinges.smoothed` at the margins of V, and that of `Hinges.duals` where the smoothing is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.sharded_design import InShards
from bench_mtl.core.types import Array
from bench_mtl.model.forms import Hinges
from bench_mtl.model.regularisers import Regulariser
from bench_mtl.model.shard_blocks import Block, Reading, ShardSums


@dataclass(frozen=True)
class ShardedHinges(ShardSums):
    """f(W) = sum over shards of the weighted hinges of their examples, without intercepts."""

    @classmethod
    def of(cls, hinges: Hinges, stored: Array) -> ShardedHinges | None:
        """Return hinges as sums over shards, `stored` the labels as they are in the shards; None where they are not made of such sums."""
        reading = None if hinges.intercept else Reading.of(hinges.design, stored, hinges.labels, hinges.weights)
        return None if reading is None or not isinstance(hinges.design, InShards) else cls(hinges.design, reading)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (1, self.design.n_features + 1, self.design.n_tasks)

    def told(self, V: Array, smoothing: float) -> Array:
        """Return the dual point of coefficients and a smoothing."""
        return np.concatenate([V, np.full((1, V.shape[1]), smoothing)])[None]

    def smoothed(self, W: Array, smoothing: float) -> tuple[float, Array, Array]:
        """Return the value of `Hinges.smoothed`, its gradient and its dual point, in one pass; with a smoothing of 0 those of f itself."""
        value, gradient = self.total(_smoothed, (W,), smoothing)
        return float(value), gradient, self.told(W, smoothing)

    def enclose(self, W: Array) -> Interval:
        """Return f between bounds that hold in exact arithmetic."""
        return self._totals(W, ())[0]

    def enclose_bound(self, dual: Array, regulariser: Regulariser) -> Interval:
        """Return what a dual point proves of min f(W) + R(W), between bounds that hold in exact arithmetic."""
        total, G = self._totals(None, [dual])
        return _proven(total, G, regulariser)

    def judge(self, W: Array, duals: Sequence[Array], regulariser: Regulariser) -> tuple[Interval, list[Interval]]:
        """Return f at W, and what each of some dual points proves, in one pass."""
        value, *totals = self._totals(W, duals)
        return value, [_proven(total, G, regulariser) for total, G in zip(totals[::2], totals[1::2], strict=True)]

    def _totals(self, W: Array | None, duals: Sequence[Array]) -> tuple[Interval, ...]:
        """Return f at W, where one is given, and the sum of a and K^T a of every dual point, one after the other."""
        matrices = [] if W is None else [W]
        told: list[tuple[int, float]] = []
        for dual in duals:
            V = dual[0, :-1]
            place = next((k for k, other in enumerate(matrices) if np.array_equal(V, other)), len(matrices))
            matrices += [V] if place == len(matrices) else []
            told.append((place, float(dual[0, -1, 0])))
        found: tuple[Interval, ...] = self.total(_judged, matrices, W is not None, told, is_proof=True)
        return found


def _proven(total: Interval, G: Interval, regulariser: Regulariser) -> Interval:
    """Return sum a less its support, or scaled until it has none, see `NormHingeForm.enclose_bound`."""
    support, limit = regulariser.enclose_support(G)
    return ((total - support) * min(limit, 1.0)).positive_part()


# What follows is computed of every block, where the shards are.


def _smoothed(block: Block, matrices: Sequence[Array], smoothing: float) -> tuple[float, Array]:
    hinges = Hinges(*block)
    margins = hinges.margins(matrices[0])
    value, a = hinges.smoothed(margins, smoothing) if smoothing > 0.0 else (hinges.loss(margins), hinges.duals(margins))
    return value, -hinges.adjoint(a)


def _judged(block: Block, matrices: Sequence[Array], has_point: bool, told: Sequence[tuple[int, float]]) -> tuple[Interval, ...]:
    """Return f at the first matrix, where that is a point, and the sums of the dual points that matrices tell with a smoothing."""
    m = matrices[0].shape[1]
    hinges = Hinges(*block)
    predictions, error = block.design.forward_with_error(np.concatenate(matrices, axis=1))  # one product for all
    error = np.broadcast_to(error, predictions.shape)
    found = [hinges.enclose_loss(predictions[:, :m], error[:, :m])] if has_point else []
    duals = [_told(hinges, hinges.labels * predictions[:, place * m : (place + 1) * m], smoothing) for place, smoothing in told]
    return tuple(found + (_sums(hinges, duals) if duals else []))


def _told(hinges: Hinges, margins: Array, smoothing: float) -> Array:
    """Return the admissible dual point of some margins."""
    return hinges.admissible(hinges.smoothed(margins, smoothing)[1] if smoothing > 0.0 else hinges.duals(margins))


def _sums(hinges: Hinges, duals: Sequence[Array]) -> list[Interval]:
    """Return sum a and K^T a of every dual point."""
    m = hinges.labels.shape[1]
    G = hinges.design.enclose_adjoint(np.concatenate([a * hinges.labels for a in duals], axis=1))
    return [part for k, a in enumerate(duals) for part in (Interval.of_sum(a), G[:, k * m : (k + 1) * m])]
