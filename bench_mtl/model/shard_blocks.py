"""What is computed of examples in shards, where they are: the blocks of a shard, as designs and targets in memory.

Nothing that is as long as the examples leaves a shard. What comes back is as large as the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.designs import Design, SharedDesign, frozen
from bench_mtl.core.rounding import UNIT, compensated, up
from bench_mtl.core.row_blocks import row_slices, rows_of
from bench_mtl.core.sharded_design import InShards, column_norms, row_norms
from bench_mtl.core.shards import Shard
from bench_mtl.core.tall_products import tall_adjoint, tall_product
from bench_mtl.core.task_columns import gathered, spread
from bench_mtl.core.types import Array, Matrix

#: What targets of shards are to a loss: themselves, labels that have to become -1 and +1, or marks of a class.
AS_THEY_ARE, LABELS, CLASSES = "as they are", "labels", "classes"


class Bounds(NamedTuple):
    """Upper bounds on the norms of a shard's rows and columns, for all that is bounded by them."""

    row: float
    """Of the longest row."""
    columns: Array
    """d x 1."""


class BlockDesign(SharedDesign):
    """Some rows of a shard."""

    proves_by_columns: ClassVar[bool] = False

    def forward(self, W: Array) -> Array:
        return tall_product(self._X, W)

    def adjoint(self, R: Array) -> Array:
        return tall_adjoint(self._X, R)


class BoundedDesign(BlockDesign):
    """Some rows of a shard: bounds on their norms are those of the shard, so that nobody computes them again."""

    def __init__(self, X: Matrix, n_tasks: int, bounds: Bounds) -> None:
        self._hold(X, n_tasks)
        self._bounds = bounds

    @property
    def _row_norms(self) -> Array:
        return np.broadcast_to(self._bounds.row, (self.sizes[0], 1))

    @property
    def _column_norms(self) -> Array:
        return self._bounds.columns


@dataclass(frozen=True)
class Reading:
    """How the examples of a shard are read."""

    targets: str
    """`AS_THEY_ARE`, `LABELS` or `CLASSES`."""
    weights: Array
    """Of the examples of every task, m numbers; one number for losses that couple tasks."""

    @classmethod
    def of(cls, design: Design, stored: Array, wanted: Array, weights: Array) -> Reading | None:
        """Return how to make of stored targets those that a loss wants; None where weights differ within a task."""
        own = weights[0].copy() if design.is_shared else weights[[part.start for part in _task_slices(design)]]
        if weights.strides[0] != 0 and np.any(weights != (own[None] if design.is_shared else design.per_example(own))):
            return None
        if np.may_share_memory(stored, wanted):
            return cls(AS_THEY_ARE, own)
        return cls(LABELS if np.any(wanted < 0.0) else CLASSES, own)

    def of_task(self, k: int) -> Reading:
        """Return how the examples of one task are read."""
        return Reading(self.targets, self.weights[k : k + 1])

    def rows(self, targets: Array, parts: Sequence[slice]) -> tuple[Array, Array]:
        """Return the targets and weights of some shards, given those rows of all targets."""
        own = frozen(np.concatenate([targets[rows] for rows in parts]))
        return own, np.broadcast_to(self.weights, (len(own), len(self.weights)))

    def scaled(self, factor: float) -> Reading:
        """Return the reading with weights times a factor."""
        return Reading(self.targets, self.weights * factor)

    def blocks(self, shard: Shard, bounds: Bounds | None = None) -> Iterator[tuple[SharedDesign, Array, Array]]:
        """Yield design, targets and weights of every block of a shard."""
        X, Y = shard.matrix(), shard.targets()
        for rows in row_slices(X):
            block, y = rows_of(X, rows), self._wanted(Y[rows])
            m = y.shape[1]
            design = BlockDesign._sharing(block, m) if bounds is None else BoundedDesign(block, m, bounds)
            yield design, y, np.broadcast_to(self.weights, (len(y), len(self.weights)))

    def _wanted(self, Y: Array) -> Array:
        if self.targets == AS_THEY_ARE:
            return Y
        return np.where(Y > 0.0, 1.0, -1.0) if self.targets == LABELS else (Y == 1.0).astype(np.float64)


def _task_slices(design: Design) -> list[slice]:
    ends = np.cumsum([0, *design.sizes]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def total_over(
    design: InShards,
    function: Callable[..., Any],
    reading: Reading,
    matrices: Sequence[Array],
    *rest: Any,
    each: Sequence[Any] | None = None,
) -> Any:
    """Return the sum of ``function(shard, reading, matrices, *rest, *own)`` over all shards, where they are.

    Of a shard with examples of one task the function sees what belongs to that: one weight, and one column of every matrix. Matrices that
    it returns are columns of those of all tasks then.
    """
    tasks, given = design.shards.sizes.tasks, tuple(matrices)
    if tasks is None:
        return design.shards.total(function, reading, given, *rest, each=each)
    own = [(task, () if each is None else (each[place],)) for place, task in enumerate(tasks)]
    found = design.shards.total(_of_one_task, function, reading, given, rest, each=own)
    return gathered(found, design.n_features, design.n_tasks)


def _of_one_task(
    shard: Shard, function: Callable[..., Any], reading: Reading, matrices: Sequence[Array], rest: tuple[Any, ...], own: tuple[int, Any]
) -> Any:
    k, more = own
    columns = tuple(np.ascontiguousarray(matrix[:, k : k + 1]) for matrix in matrices)
    return spread(function(shard, reading.of_task(k), columns, *rest, *more), k)


def has_own(problem: object, names: Sequence[str], *bases: type) -> bool:
    """Return whether the class of a problem has methods of its own under some of these names, which sums over shards would pass by."""
    return any(all(getattr(type(problem), name) is not getattr(base, name, None) for base in bases) for name in names)


def bounds_of(design: InShards) -> list[Bounds]:
    """Return the bounds of every shard, in one pass over the data."""
    return list(design.shards.map(_bounds))


def _bounds(shard: Shard) -> Bounds:
    X = shard.matrix()
    return Bounds(float(row_norms(X).max(initial=0.0)), column_norms(X)[:, None])


def predictions_with_error(design: Design, terms: Sequence[Array]) -> tuple[Array, Array]:
    """Return the predictions of coefficients that are a sum of matrices, and how far they are from those of exact arithmetic at most."""
    value, error = design.forward_with_error(terms[0])
    for term in terms[1:]:
        more, of_more = design.forward_with_error(term)
        value = value + more
        error = up(error + up(of_more + 2.0 * UNIT * np.abs(value)))
    return value, error


def products(is_compensated: bool) -> AbstractContextManager[Any]:
    """Return the context of products in a worker, which does not know what is asked for elsewhere."""
    return compensated() if is_compensated else nullcontext()
