"""Examples in shards: parts of a data set that are held in memory or in memory-mapped files, by one process or by those of a cluster.

Nobody asks for the whole matrix. What is wanted of it is computed shard by shard, and sums over shards are taken over a fixed tree, so that
a result has the same bits wherever the shards are and however many workers compute it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.blocks import Blocks, Here, Own, plus
from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import frozen, frozen_matrix, stored_entries
from bench_mtl.core.errors import InputError
from bench_mtl.core.forgetting import Forgetting
from bench_mtl.core.types import Array, Matrix

T = TypeVar("T")


class Shard(Protocol):
    """Some neighbouring examples."""

    def matrix(self) -> Matrix:
        """Return their features, a dense or CSR matrix that nobody can change."""

    def targets(self) -> Array:
        """Return their targets, rows x tasks, which nobody can change."""


@dataclass(frozen=True)
class Sizes(Forgetting):
    """What is known of shards before any of them is read."""

    counts: tuple[int, ...]
    """Rows of each shard."""
    n_columns: int
    n_tasks: int
    is_sparse: bool
    n_stored: int
    """Entries that are stored, of all shards."""
    tasks: tuple[int, ...] | None = None
    """The task whose examples each shard has, those of one task next to each other; None where all tasks have all examples."""

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    def some(self, chosen: Sequence[int]) -> Sizes:
        """Return the sizes of some shards; how much these store is a guess, by their share of the rows."""
        counts = tuple(self.counts[k] for k in chosen)
        tasks = None if self.tasks is None else tuple(self.tasks[k] for k in chosen)
        return replace(self, counts=counts, n_stored=round(self.n_stored * sum(counts) / self.n_rows), tasks=tasks)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the rows of each shard are in the matrix."""
        ends = np.cumsum([0, *self.counts]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))


@dataclass(frozen=True, eq=False)
class Shards:
    """The examples of a data set, in order, in parts that are blocks of this process or of others. Immutable."""

    blocks: Blocks
    """Each of them a `Shard`."""
    sizes: Sizes
    digests: tuple[bytes, ...] = ()
    """Of the numbers of shards that are computed each time that they are needed."""
    make: Callable[[Any, Array], Shard] | None = None
    """Makes shards of blocks that have no targets yet, and of these."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.sizes.n_rows, self.sizes.n_columns

    @classmethod
    def held(cls, parts: Sequence[tuple[Matrix, Array]], tasks: Sequence[int] | None = None) -> Shards:
        """Return shards in memory, one for each pair of features (rows x d, all dense or all CSR) and targets (rows x m).

        With `tasks` each has the examples of one task, and one column of targets.
        """
        first, targets = parts[0]
        stored = sum(stored_entries(X) for X, _ in parts)
        m = int(targets.shape[1]) if tasks is None else max(tasks) + 1
        own = None if tasks is None else tuple(tasks)
        sizes = Sizes(tuple(X.shape[0] for X, _ in parts), int(first.shape[1]), m, is_sparse(first), stored, own)
        return cls(Here([HeldShard(frozen_matrix(X), frozen(Y)) for X, Y in parts]), sizes)

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield ``function(shard, *common, *own)`` for every shard, in the order of the shards.

        Parameters
        ----------
        function : of a module, so that a worker can import it; it is given a `Shard`
        common : arguments that all shards are given
        split : arrays with a row for every example, of which each shard is given its own
        each : one more argument, another for every shard
        """
        return self.blocks.map(function, common, self._own(split, each))

    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        """Return the sum of what `map` gives, over the tree of `bench_mtl.core.blocks`; `add` is a function of a module, too."""
        return self.blocks.total(function, common, self._own(split, each), add)

    def _own(self, split: Sequence[Array], each: Sequence[Any] | None) -> Own:
        """Return what shard k alone is given."""
        return lambda k: (*(rows[self.sizes.slices[k]] for rows in split), *([] if each is None else [each[k]]))

    def some(self, chosen: Sequence[int]) -> Shards:
        """Return some of the shards, in the order given."""
        return Shards(self.blocks.some(chosen), self.sizes.some(chosen))

    def with_targets(self, Y: Array) -> Shards:
        """Return the shards with targets Y, examples x tasks: the same shards where these are stored in them."""
        if Y.shape[1] == self.sizes.n_tasks and all(self.map(_has_targets, split=(Y,))):
            return self
        targets = np.ascontiguousarray(Y)  # as they are when they have travelled
        blocks = self.blocks.joined([targets[rows] for rows in self.sizes.slices], self.make or _with_targets)
        return replace(self, blocks=blocks, sizes=replace(self.sizes, n_tasks=int(Y.shape[1])), make=None)

    def require_unchanged(self) -> None:
        """Compute once more every shard that is computed each time, and raise InputError where one has other numbers than at first: then
        nothing is proven."""
        if not self.digests:
            return
        for rows, changed in zip(self.sizes.slices, self.map(_has_changed, each=self.digests), strict=True):
            if changed:
                raise InputError(
                    f"X has other numbers each time that it is computed, first in its rows from {rows.start} on: "
                    "give random numbers a seed, leave files as they are, or persist X"
                )


@dataclass(frozen=True, eq=False)
class HeldShard:
    """A shard in memory."""

    held: Matrix
    held_targets: Array

    def matrix(self) -> Matrix:
        return self.held

    def targets(self) -> Array:
        return self.held_targets


@dataclass(frozen=True)
class FileShard:
    """A shard in a folder: ``NAME.npy``, or the arrays of a CSR matrix, ``NAME.data.npy``, ``.indices.npy`` and ``.indptr.npy``; and
    its targets, ``NAME.targets.npy``.

    Files are mapped into memory when they are used, and let go with the last array that is made of them.
    """

    folder: Path
    name: str
    shape: tuple[int, int]
    is_sparse: bool

    def matrix(self) -> Matrix:
        if not self.is_sparse:
            return self._mapped("npy")
        parts = tuple(self._mapped(f"{part}.npy") for part in ("data", "indices", "indptr"))
        return frozen_matrix(sp.csr_array(parts, shape=self.shape, copy=False))

    def targets(self) -> Array:
        return self._mapped("targets.npy")

    def _mapped(self, ending: str) -> Any:
        path = self.folder / f"{self.name}.{ending}"
        try:
            return frozen(np.asarray(np.load(path, mmap_mode="r")))
        except FileNotFoundError:
            raise InputError(f"{path} is missing: all who compute with shards need to see their files, by the same path") from None


# What follows runs where the shards are.


def digest_of(matrix: Matrix) -> bytes:
    """Return a digest of the numbers of a matrix."""
    found = hashlib.blake2b(digest_size=16)
    for part in (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,):
        found.update(np.ascontiguousarray(part).data)
    return found.digest()


def _has_changed(shard: Shard, digest: bytes) -> bool:
    return digest_of(shard.matrix()) != digest


def _has_targets(shard: Shard, Y: Array) -> bool:
    return bool(np.array_equal(shard.targets(), Y))


def _with_targets(shard: Shard, Y: Array) -> HeldShard:
    return HeldShard(shard.matrix(), frozen(Y))
