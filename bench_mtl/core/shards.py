"""Examples in shards: parts of a data set that are held in memory or in memory-mapped files, by one process or by those of a cluster.

Nobody asks for the whole matrix. What is wanted of it is computed shard by shard, and sums over shards are taken over a fixed tree, so that
a result has the same bits wherever the shards are and however many workers compute it.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import frozen, frozen_matrix
from bench_mtl.core.errors import InputError
from bench_mtl.core.forgetting import Forgetting
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.tree_sums import TreeSum, plus
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


class Shards(ABC):
    """The examples of a data set, in order, in parts. Immutable."""

    sizes: Sizes

    @abstractmethod
    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield ``function(shard, *common, *own)`` for every shard, in the order of the shards.

        Parameters
        ----------
        function : of a module, so that a worker can import it; it is given a `Shard`
        common : arguments that all shards are given
        split : arrays with a row for every example, of which each shard is given its own
        each : one more argument, another for every shard
        """

    @abstractmethod
    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        """Return the sum of what `map` gives, over the tree of `bench_mtl.core.tree_sums`; `add` is a function of a module, too."""

    def connect(self) -> None:  # noqa: B027 (most have no workers)
        """Find or start the workers, where there are any to compute with, so that none is looked for in the middle of a run.

        Raises
        ------
        InputError : there is no such scheduler, or it refuses this process.
        """

    def counts(self) -> Mapping[str, int]:
        """Return what has gone between this process and others so far, by name: nothing where there are no others."""
        return {}

    @abstractmethod
    def some(self, chosen: Sequence[int]) -> Shards:
        """Return some of the shards, in the order given."""

    def own(self, k: int, split: Sequence[Array], each: Sequence[Any] | None) -> tuple[Any, ...]:
        """Return the arguments that only shard k is given."""
        return (*(whole[self.sizes.slices[k]] for whole in split), *([] if each is None else [each[k]]))


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
            with path.open("rb") as file:
                shape, is_fortran, kind = _header(file)
                start = file.tell()
                is_small = path.stat().st_size <= _MOST_AT_ONCE
                pages = mmap.mmap(file.fileno(), 0, **(_ALL_AT_ONCE if is_small else {"access": mmap.ACCESS_READ}))
        except FileNotFoundError:
            raise InputError(f"{path} is missing: all who compute with shards need to see their files, by the same path") from None
        array: Any = np.frombuffer(pages, kind, count=int(np.prod(shape)), offset=start)
        return frozen(array.reshape(shape, order="F" if is_fortran else "C"))


#: Bytes of a file up to which that is done: where it has to be read first, its process does nothing else meanwhile.
_MOST_AT_ONCE = 2**28
#: How to map a file: pages that are in memory already are mapped together, which takes a tenth of the time that one by one takes.
_ALL_AT_ONCE: dict[str, int] = (
    {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE, "prot": mmap.PROT_READ}
    if hasattr(mmap, "MAP_POPULATE")
    else {"access": mmap.ACCESS_READ}
)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of the array in an open .npy file, and leave the file where its numbers begin."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, kind = read(file)
    return shape, is_fortran, kind


class LocalShards(Shards):
    """Shards that this process reads, one after another."""

    def __init__(self, shards: Sequence[Shard], sizes: Sizes) -> None:
        self.shards, self.sizes = tuple(shards), sizes

    @classmethod
    def held(cls, parts: Sequence[tuple[Matrix, Array]], tasks: Sequence[int] | None = None) -> LocalShards:
        """Return shards in memory, one for each pair of features (rows x d, all dense or all CSR) and targets (rows x m).

        With `tasks` each has the examples of one task, and one column of targets.
        """
        first, targets = parts[0]
        is_sparse = sp.issparse(first)
        stored = sum(int(X.nnz if is_sparse else X.size) for X, _ in parts)
        m = int(targets.shape[1]) if tasks is None else max(tasks) + 1
        own = None if tasks is None else tuple(tasks)
        sizes = Sizes(tuple(X.shape[0] for X, _ in parts), int(first.shape[1]), m, is_sparse, stored, own)
        return cls([HeldShard(frozen_matrix(X), frozen(Y)) for X, Y in parts], sizes)

    def some(self, chosen: Sequence[int]) -> LocalShards:
        return LocalShards([self.shards[k] for k in chosen], self.sizes.some(chosen))

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        for k, shard in enumerate(self.shards):
            with one_blas_thread():  # as workers do: with more of them sums have other bits
                value = function(shard, *common, *self.own(k, split, each))
            yield value

    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        tree = TreeSum(len(self.shards), add)
        for k, value in enumerate(self.map(function, *common, split=split, each=each)):
            tree.put(value, k)
        return tree.total()
