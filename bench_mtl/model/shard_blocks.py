"""What is computed of examples in shards, where they are: the blocks of a shard, as designs and targets in memory.

Nothing that is as long as the examples leaves a shard. What comes back is as large as the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.blocks import plus
from bench_mtl.core.designs import Design, SharedDesign
from bench_mtl.core.rounding import UNIT, Interval, compensated, is_compensated, up
from bench_mtl.core.sharded_design import InShards, column_norms, row_norms
from bench_mtl.core.shards import Shard
from bench_mtl.core.tall_products import row_slices, rows_of, tall_adjoint, tall_product
from bench_mtl.core.types import Array, Matrix

#: What targets of shards are to a loss: themselves, labels that have to become -1 and +1, or marks of a class.
AS_THEY_ARE, LABELS, CLASSES = "as they are", "labels", "classes"


#: Methods that say what a problem is, and what proves it.
_JUDGING = (
    "objective", "dual_bound", "enclose_objective", "enclose_objective_at", "enclose_dual", "predictions", "predictions_with_error",
    "coefficients", "coefficient_terms", "dual_of", "dual_at", "value_and_gradient", "smooth_value", "value_and_subgradient", "smoothed",
)  # fmt: skip


class Bounds(NamedTuple):
    """Upper bounds on the norms of a shard's rows and columns; inf where nothing is to be proven."""

    row: float
    """Of the longest row."""
    columns: Array
    """d x 1."""


class BlockDesign(SharedDesign):
    """Some rows of a shard: bounds on their norms are those of the shard, so that nobody computes them again."""

    proves_by_columns: ClassVar[bool] = False

    def __init__(self, X: Matrix, n_tasks: int, bounds: Bounds) -> None:
        self._hold(X, n_tasks)
        self._bounds = bounds

    def forward(self, W: Array) -> Array:
        return super().forward(W) if is_compensated() else tall_product(self._X, W)

    def adjoint(self, R: Array) -> Array:
        return super().adjoint(R) if is_compensated() else tall_adjoint(self._X, R)

    @property
    def _row_norms(self) -> Array:
        return np.broadcast_to(self._bounds.row, (self.sizes[0], 1))

    @property
    def column_norms(self) -> Array:
        return self._bounds.columns


class Block(NamedTuple):
    """Some examples of a shard."""

    design: SharedDesign
    targets: Array
    weights: Array


@dataclass(frozen=True)
class Reading:
    """How the examples of a shard are read."""

    targets: str
    """`AS_THEY_ARE`, `LABELS` or `CLASSES`."""
    weights: Array
    """Of the examples of every task, m numbers; one number for losses that couple tasks."""

    @classmethod
    def of(cls, design: Design, stored: Array, wanted: Array, weights: Array) -> Reading | None:
        """Return how to make of stored targets those that a loss wants; None where there are no shards, or weights differ within a task."""
        if not isinstance(design, InShards):
            return None
        firsts = 0 if design.is_shared else np.cumsum([0, *design.sizes[:-1]])
        own = np.array(weights[firsts])
        if weights.strides[0] != 0 and np.any(weights != (own[None] if design.is_shared else design.per_example(own))):
            return None
        if np.may_share_memory(stored, wanted):
            return cls(AS_THEY_ARE, own)
        return cls(LABELS if np.any(wanted < 0.0) else CLASSES, own)

    def of_task(self, k: int) -> Reading:
        """Return how the examples of one task are read."""
        return Reading(self.targets, self.weights[k : k + 1])

    def blocks(self, shard: Shard, bounds: Bounds) -> Iterator[Block]:
        """Yield every block of a shard."""
        X, Y = shard.matrix(), shard.targets()
        for rows in row_slices(X):
            y = self._wanted(Y[rows])
            design = BlockDesign(rows_of(X, rows), y.shape[1], bounds)
            yield Block(design, y, np.broadcast_to(self.weights, (len(y), len(self.weights))))

    def _wanted(self, Y: Array) -> Array:
        if self.targets == AS_THEY_ARE:
            return Y
        return np.where(Y > 0.0, 1.0, -1.0) if self.targets == LABELS else (Y == 1.0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class TaskColumns:
    """A matrix by its columns, d x 1 arrays or intervals of such; those that are not there are 0: what examples of one task give."""

    held: Mapping[int, Array | Interval]

    def __add__(self, other: TaskColumns) -> TaskColumns:
        sums = {k: self.held[k] + column if k in self.held else column for k, column in other.held.items()}
        return TaskColumns({**self.held, **sums})

    def whole(self, m: int) -> Array | Interval:
        """Return the matrix."""
        if all(isinstance(column, np.ndarray) for column in self.held.values()):
            return _placed({k: np.asarray(column) for k, column in self.held.items()}, m)
        ends = ({k: getattr(column, end) for k, column in self.held.items()} for end in ("lower", "upper"))
        return Interval(*(_placed(columns, m) for columns in ends))


def _spread(found: Any, k: int) -> Any:
    """Return what was found of task k with matrices as columns of those of all tasks; numbers stay as they are."""
    if isinstance(found, tuple):
        return tuple(_spread(part, k) for part in found)
    shown = found.lower if isinstance(found, Interval) else found
    return TaskColumns({k: found}) if np.ndim(shown) == 2 else found


def gathered(found: Any, m: int) -> Any:
    """Return a sum of what `_spread` gives, with whole matrices."""
    if isinstance(found, tuple):
        return tuple(gathered(part, m) for part in found)
    return found.whole(m) if isinstance(found, TaskColumns) else found


def _placed(columns: Mapping[int, Array], m: int) -> Array:
    out = np.zeros((len(next(iter(columns.values()))), m))
    for k, column in columns.items():
        out[:, k : k + 1] = column
    return out


def total_of_shard(
    shard: Shard, function: Callable[..., Any], reading: Reading, matrices: Sequence[Array], rest: tuple[Any, ...],
    with_compensation: bool, own: tuple[int | None, Bounds],
) -> Any:  # fmt: skip
    """Return the sum of ``function(block, matrices, *rest)`` over the blocks of a shard; of one task alone, columns of the matrices."""
    k, bounds = own
    if k is not None:
        reading, matrices = reading.of_task(k), tuple(np.ascontiguousarray(matrix[:, k : k + 1]) for matrix in matrices)
    found: Any = None
    with compensated() if with_compensation else nullcontext():  # a worker does not know what is asked for elsewhere
        for block in reading.blocks(shard, bounds):
            one = function(block, matrices, *rest)
            found = one if found is None else plus(found, one)
    return found if k is None else _spread(found, k)


def bounds_of(shard: Shard) -> Bounds:
    """Return the bounds of a shard, in one pass over it."""
    X = shard.matrix()
    return Bounds(float(row_norms(X).max(initial=0.0)), column_norms(X)[:, None])


def has_own_judge(problem: object) -> bool:
    """Return whether a class of a problem outside this package says what the problem is, or what proves it, which sums would pass by."""
    owners = (next((base for base in type(problem).__mro__ if name in vars(base)), object) for name in _JUDGING)
    return any(not owner.__module__.startswith(__package__) for owner in owners if owner is not object)


def sum_with_error(terms: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the sum of arrays that are known up to an error each, and how far it is from that of exact arithmetic at most."""
    value, error = terms[0]
    for more, of_more in terms[1:]:
        value = value + more
        error = up(error + up(of_more + 2.0 * UNIT * np.abs(value)))
    return value, error
