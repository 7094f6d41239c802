"""Shards that are the blocks of rows of a Dask array, or the partitions of a Dask frame."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse, real_matrix
from bench_mtl.core.dask_blocks import DaskBlocks, require_array_or_frame
from bench_mtl.core.designs import frozen, frozen_matrix
from bench_mtl.core.errors import InputError
from bench_mtl.core.shards import HeldShard, Shard, Shards, Sizes
from bench_mtl.core.tree_sums import plus
from bench_mtl.core.types import Array, Matrix

T = TypeVar("T")


class _Facts(NamedTuple):
    """What a block turns out to be."""

    rows: int
    columns: int
    is_sparse: bool
    stored: int
    digest: bytes
    """Of its numbers."""


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Examples x features in blocks of Dask, each computed whenever it is needed, and none of them held here."""

    blocks: DaskBlocks
    """Those that have rows."""
    facts: tuple[_Facts, ...]

    @classmethod
    def of(cls, X: Any, name: str = "X") -> DaskRows:
        """Look at every block of a Dask array or frame, in one pass over the data.

        Raises
        ------
        InputError : not two dimensions, no row or no column, entries that are no finite real numbers, blocks of different kinds or widths.
        """
        require_array_or_frame(name, X)
        if X.ndim != 2:
            raise InputError(f"{name} must have 2 dimensions, but has {X.ndim}")
        blocks = DaskBlocks.of(name, X)
        found = list(blocks.each(_facts_of, (name,), lambda k: (k,)))
        full = [k for k, facts in enumerate(found) if facts.rows]
        if not full:
            raise InputError(f"{name} is empty: a task needs at least one example")
        facts = [found[k] for k in full]
        if facts[0].columns == 0:
            raise InputError(f"{name} has no features: at least one is needed")
        for k, one in zip(full, facts, strict=True):
            if one.columns != facts[0].columns:
                raise InputError(f"block {k} of {name} has {one.columns} columns, but block {full[0]} has {facts[0].columns}")
            if one.is_sparse != facts[0].is_sparse:
                raise InputError(f"{name} has dense and sparse blocks, such as block {full[0]} and block {k}: all must be of one kind")
        return cls(blocks.select(full), tuple(facts))

    @property
    def shape(self) -> tuple[int, int]:
        return sum(facts.rows for facts in self.facts), self.facts[0].columns

    def shards(self, Y: Array) -> DaskShards:
        """Return the rows with their targets, examples x tasks."""
        counts = tuple(facts.rows for facts in self.facts)
        sizes = Sizes(counts, self.shape[1], int(Y.shape[1]), self.facts[0].is_sparse, sum(facts.stored for facts in self.facts))
        rows = np.ascontiguousarray(Y)
        return DaskShards(self.blocks.keeping([rows[own] for own in sizes.slices]), sizes, tuple(facts.digest for facts in self.facts))


class DaskShards(Shards):
    """Shards that Dask computes: the workers of the client that was active when the blocks were made, or else this process."""

    def __init__(self, blocks: DaskBlocks, sizes: Sizes, digests: Sequence[bytes]) -> None:
        self.blocks, self.sizes, self._digests = blocks, sizes, tuple(digests)

    def some(self, chosen: Sequence[int]) -> DaskShards:
        return DaskShards(self.blocks.select(chosen), self.sizes.some(chosen), [self._digests[k] for k in chosen])

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        return self.blocks.each(_of_shard, (function, *common), lambda k: self.own(k, split, each))

    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        return self.blocks.total(_of_shard, (function, *common), lambda k: self.own(k, split, each), add)

    def require_unchanged(self) -> None:
        """Compute every block once more, and raise InputError where one has other numbers than at first: then nothing is proven."""
        for k, changed in enumerate(self.map(_has_changed, each=self._digests)):
            if changed:
                raise InputError(
                    f"X has other numbers each time that it is computed, first in its rows from {self.sizes.slices[k].start} on: "
                    "give random numbers a seed, leave files as they are, or persist X"
                )


def values_of(name: str, collection: Any) -> NDArray[Any]:
    """Return a Dask array, frame or series as an array in memory, computed block by block.

    Raises
    ------
    InputError : another collection.
    """
    parts = list(DaskBlocks.of(name, collection).each(_values))
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


# What follows runs where the blocks are.


def rows_of_block(block: Any) -> Matrix:
    """Return a block as a C-contiguous array of float64 or a CSR matrix without duplicates, at an address of its type."""
    if is_sparse(block):
        matrix = sp.csr_array(block, dtype=np.float64)
        if not (matrix.has_canonical_format and matrix.data.flags.aligned):
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    return np.require(numbers_of_block(block), np.float64, ["C", "A"])


def numbers_of_block(block: Any) -> Any:
    """Return the numbers of a frame, NaN where one is missing; another block as it is."""
    return block.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(block, "to_numpy") else block


def _values(block: Any, kept: None) -> Any:
    if is_sparse(block):
        return block.toarray()
    return block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)


def _facts_of(block: Any, kept: None, name: str, k: int) -> _Facts:
    where = f"block {k} of {name}"
    try:
        numbers = numbers_of_block(block)
    except (TypeError, ValueError) as error:  # a column of text
        raise InputError(f"{where} must be an array of real numbers: {error}") from None
    matrix = real_matrix(where, numbers)
    stored = int(matrix.nnz if is_sparse(matrix) else matrix.size)
    return _Facts(matrix.shape[0], matrix.shape[1], is_sparse(matrix), stored, _digest(matrix))


def _digest(matrix: Matrix) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,):
        found.update(np.ascontiguousarray(part).data)
    return found.digest()


def _has_changed(shard: Shard, digest: bytes) -> bool:
    return _digest(shard.matrix()) != digest


def _of_shard(block: Any, targets: Array, function: Callable[..., T], *arguments: Any) -> T:
    return function(HeldShard(frozen_matrix(rows_of_block(block)), frozen(targets)), *arguments)
