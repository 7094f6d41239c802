"""Rows of a matrix in shards: parts of it that are held in memory, in memory-mapped files, or by the workers of a cluster.

Nobody asks for the whole matrix. What is wanted of it is computed shard by shard, and sums over shards are taken in their order,
so that a result has the same bits wherever the shards are and however many workers hold them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import frozen_matrix
from bench_mtl.core.types import Matrix

T = TypeVar("T")


class Shards(ABC):
    """The rows of an n x d matrix, in order, in parts. Immutable."""

    counts: tuple[int, ...]
    """Rows of each shard."""
    n_columns: int
    is_sparse: bool
    n_stored: int
    """Entries that are stored, of all shards."""

    @abstractmethod
    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Any] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield ``function(matrix, *common, *own)`` for every shard, in the order of the shards.

        Parameters
        ----------
        function : of a module, so that a worker can import it; its matrix is read-only
        common : arguments that all shards are given
        split : arrays with a row for every row of the matrix, of which each shard is given its own
        each : one more argument, another for every shard
        """

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the rows of each shard are in the matrix."""
        ends = np.cumsum([0, *self.counts]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))


@dataclass(frozen=True)
class HeldShard:
    """A shard in memory."""

    held: Matrix

    def matrix(self) -> Matrix:
        """Return its rows."""
        return self.held


@dataclass(frozen=True)
class FileShard:
    """A shard in a folder: ``NAME.npy``, or the arrays of a CSR matrix, ``NAME.data.npy``, ``.indices.npy`` and ``.indptr.npy``."""

    folder: Path
    name: str
    shape: tuple[int, int]
    is_sparse: bool

    def matrix(self) -> Matrix:
        """Return its rows, which the system reads from the files when they are used, and may forget again."""
        if not self.is_sparse:
            return self._mapped("npy")
        parts = tuple(self._mapped(f"{part}.npy") for part in ("data", "indices", "indptr"))
        return frozen_matrix(sp.csr_array(parts, shape=self.shape, copy=False))

    def _mapped(self, ending: str) -> Any:
        return np.asarray(np.load(self.folder / f"{self.name}.{ending}", mmap_mode="r", allow_pickle=False))


class LocalShards(Shards):
    """Shards that this process reads, one after another."""

    def __init__(
        self, shards: Sequence[HeldShard | FileShard], counts: Sequence[int], n_columns: int, is_sparse: bool, n_stored: int
    ) -> None:
        self.shards, self.counts, self.n_columns = tuple(shards), tuple(counts), n_columns
        self.is_sparse, self.n_stored = is_sparse, n_stored

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Any] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        for k, (shard, rows) in enumerate(zip(self.shards, self.slices, strict=True)):
            yield function(shard.matrix(), *common, *(whole[rows] for whole in split), *([] if each is None else [each[k]]))
