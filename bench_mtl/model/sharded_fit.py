"""A loss of linear predictions whose examples are in shards: its operators as sums over the shards.

A dual point is stored as the coefficients V that generate it, a 1 x d x m array: it is minus the derivative of the loss at their
predictions. So it takes no more room than a point, and whoever has the shards can make it. Of a loss that is not
smooth there is one more row, the smoothing at which the derivative is taken; where that is 0 it is a subgradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import columns_of
from bench_mtl.core.forgetting import Forgetting
from bench_mtl.core.rounding import Interval, is_compensated
from bench_mtl.core.sharded_design import InShards, weighted_gram
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit, limited
from bench_mtl.model.losses import Loss, Squared
from bench_mtl.model.normal_equations import LARGEST_FACTOR, NormalEquations
from bench_mtl.model.regularisers import Regulariser
from bench_mtl.model.shard_blocks import Block, Bounds, Reading, bounds_of, gathered, sum_with_error, total_of_shard


class Expansion(NamedTuple):
    """f near some coefficients, with its second derivatives in some features S, and a dual point r: to steer by, and no proof."""

    value: float
    gradient: Array
    """d x m."""
    gain: float
    """-f*(-r)."""
    slopes: Array
    """X^T r, d x m."""
    grams: Array
    """X_S^T D X_S of every task, m x S x S, D the second derivatives in the predictions, weights included. Of the squared loss X_S^T X_S, a
    single one where all tasks share the examples."""


@dataclass(frozen=True)
class ShardedFit(Forgetting):
    """f(W) = sum over shards of the weighted losses of their examples, without intercepts."""

    design: InShards
    reading: Reading
    loss: Loss

    @classmethod
    def of(cls, fit: LinearFit, stored: Array) -> ShardedFit | None:
        """Return a fit as sums over shards, `stored` the targets as they are in the shards; None where it is not made of such sums."""
        reading = None if fit.intercept else Reading.of(fit.design, stored, fit.targets, fit.weights)
        return None if reading is None or not isinstance(fit.design, InShards) else cls(fit.design, reading, fit.loss)

    def total(self, function: Callable[..., Any], matrices: Sequence[Array], *rest: Any, is_proof: bool = False) -> Any:
        """Return the sum of ``function(block, matrices, *rest)`` over the blocks of all shards, where they are; a proof needs bounds.

        In a shard with examples of one task the function sees what belongs to that: one weight, and one column of every matrix. Matrices
        that it returns are columns of those of all tasks then.
        """
        shards = self.design.shards
        tasks = shards.sizes.tasks or (None,) * shards.blocks.count
        bounds = self._bounds if is_proof else (Bounds(np.inf, np.full((1, 1), np.inf)),) * len(tasks)
        each = list(zip(tasks, bounds, strict=True))
        found = shards.total(total_of_shard, function, self.reading, tuple(matrices), rest, is_compensated(), each=each)
        return found if shards.sizes.tasks is None else gathered(found, self.design.n_tasks)

    @cached_property
    def _bounds(self) -> list[Bounds]:
        """Of every shard, in one pass over the data."""
        return list(self.design.shards.map(bounds_of))

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (1, self.design.n_features + (not self.loss.is_smooth), self.design.n_tasks)

    def told(self, V: Array, smoothing: float = 0.0) -> Array:
        """Return the dual point of coefficients and a smoothing."""
        return np.array(V[None]) if self.loss.is_smooth else np.concatenate([V, np.full((1, V.shape[1]), smoothing)])[None]

    def lipschitz(self, fit: LinearFit) -> float:
        """Return `LinearFit.lipschitz` of the fit that these sums are of; by the normal equations where there are any."""
        return self._normal.lipschitz() if self._has_normal_equations else fit.lipschitz()

    def value(self, W: Array) -> float:
        """Return f."""
        return self._normal.value_and_gradient(W)[0] if self._has_normal_equations else float(self.total(_value, (W,), self.loss))

    def value_and_gradient(self, W: Array, smoothing: float = 0.0) -> tuple[float, Array]:
        """Return f, smoothed where it is not smooth, and its gradient, in one pass, or in none by the normal equations."""
        if self._has_normal_equations:
            return self._normal.value_and_gradient(W)
        value, gradient = self.total(_value_and_gradient, (W,), self.loss, smoothing)
        return float(value), gradient

    def expansion(self, W: Array, dual: Array, features: NDArray[np.intp]) -> Expansion:
        """Return f near W, with second derivatives in some features, and what a dual point given by coefficients is made of, in one pass.

        Raises InputError: a loss without second derivatives of single predictions.
        """
        value, gradient, gain, slopes, grams = self.total(_expansion, (W, dual[0]), self.loss, features)
        return Expansion(float(value), gradient, float(gain), slopes, grams.T.reshape(grams.shape[1], len(features), len(features)))

    def enclose(self, terms: Sequence[Array]) -> Interval:
        """Return f at coefficients that are a sum of matrices, between bounds that hold in exact arithmetic."""
        return self._judged(terms, ())[0]

    def enclose_bound(self, dual: Array, regulariser: Regulariser) -> Interval:
        """Return what a dual point, stored as coefficients, proves of min f(W) + R(W), between bounds that hold in exact arithmetic."""
        return self.judge((), [dual], regulariser)[1][0]

    def judge(self, terms: Sequence[Array], duals: Sequence[Array], regulariser: Regulariser) -> tuple[Interval, list[Interval]]:
        """Return f at coefficients that are a sum of matrices, and what each dual point, stored as coefficients, proves, in one pass."""
        value, *proofs = self._judged(terms, duals)
        bounds = []
        for gains, G in proofs:
            support, limit = regulariser.enclose_support(G)
            bounds.append(limited(self.loss.enclose_bound_of(gains, support, limit.ends[0]), limit, self.loss.largest_multiple))
        return value, bounds

    def _judged(self, terms: Sequence[Array], duals: Sequence[Array]) -> tuple[Any, ...]:
        """Return f, and gains and X^T r of each of the dual points r."""
        matrices = [term for k, term in enumerate(terms) if not k or term.any()]
        count, told, d = len(matrices), [], self.design.n_features
        for dual in duals:
            V = dual[0, :d]
            place = next((k for k, other in enumerate(matrices) if np.array_equal(V, other)), len(matrices))
            matrices += [V] if place == len(matrices) else []
            told.append((place, float(dual[0, d:, :1].sum())))
        found: tuple[Any, ...] = self.total(_judged, matrices, count, told, self.loss, is_proof=True)
        return found

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


def _value_and_gradient(block: Block, matrices: Sequence[Array], loss: Loss, smoothing: float) -> tuple[float, Array]:
    value, derivatives = loss.smoothed(block.design.forward(matrices[0]), block.targets, block.weights, smoothing)
    return value, block.design.adjoint(derivatives)


def _expansion(block: Block, matrices: Sequence[Array], loss: Loss, features: NDArray[np.intp]) -> tuple[Any, ...]:
    """Return what `Expansion` has; Gram matrices as columns."""
    design, y, w = block
    t, of_dual = map(design.forward, matrices)
    value, derivatives = loss.total_and_derivatives(t, y, w)
    r = loss.admissible(-w * loss.derivatives(of_dual, y), y, w)
    X = design.block(0)
    chosen = X if len(features) == X.shape[1] else columns_of(X, features)
    shares = [None] if isinstance(loss, Squared) else list((w * loss.curvatures(t, y)).T)
    grams = np.stack([weighted_gram(chosen, share).ravel() for share in shares]).T
    return value, design.adjoint(derivatives), loss.conjugate_gain(r, y, w), design.adjoint(r), grams


def _judged(block: Block, matrices: Sequence[Array], terms: int, told: Sequence[tuple[int, float]], loss: Loss) -> tuple[Any, ...]:
    """Return f at the sum of the first matrices, and gains and X^T r of the dual points r that matrices tell with a smoothing."""
    (design, y, w), m = block, matrices[0].shape[1]
    values, errors = design.forward_with_error(np.concatenate(matrices, axis=1))  # one product for all
    errors = np.broadcast_to(errors, values.shape)
    parts = [slice(k * m, (k + 1) * m) for k in range(len(matrices))]
    value = Interval(0.0, 0.0)
    if terms:
        t, error = sum_with_error([(values[:, part], errors[:, part]) for part in parts[:terms]])
        value = loss.enclose_total(Interval.around(t, error), y, w)
    if not told:
        return (value,)
    slopes = [loss.smoothed(values[:, parts[place]], y, w, smoothing)[1] for place, smoothing in told]
    duals = [loss.admissible(-slope, y, w) for slope in slopes]
    G = design.enclose_adjoint(_side_by_side([loss.enclose_admissible(r, y, w) for r in duals]))
    return value, *((loss.enclose_gains(r, y, w), G[:, k * m : (k + 1) * m]) for k, r in enumerate(duals))


def _side_by_side(matrices: Sequence[Array | Interval]) -> Array | Interval:
    ends = [Interval.exact(M) if isinstance(M, np.ndarray) else M for M in matrices]
    lower = np.concatenate([M.lower for M in ends], axis=1)
    return lower if isinstance(matrices[0], np.ndarray) else Interval(lower, np.concatenate([M.upper for M in ends], axis=1))
