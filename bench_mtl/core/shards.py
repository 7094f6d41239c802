"""Examples in shards: parts of a data set that are held in memory or in memory-mapped files, by one process or by those of a cluster.

Nobody asks for the whole matrix. What is wanted of it is computed shard by shard, and sums over shards are taken over a fixed tree, so that
a result has the same bits wherever the shards are and however many workers compute it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
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

#: Within so many nanoseconds a file may be written to twice and have the same time.
_TICK = 1_000_000_000


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
    largest: float = 0.0
    """The size of the largest entry, where every shard has been computed once; 0 where nobody has read them."""

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
        """Yield ``function(shard, *common, *own)`` for every `Shard`, in their order.

        The function is one of a module, so that workers can import it. What a shard alone is given are its rows of `split`, arrays with a
        row for every example, and its entry of `each`.
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
    written: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)
    """Sizes and times of the files of features when the manifest was read; not pickled, as others may see copies with other times."""

    def __reduce__(self) -> Any:
        return FileShard, (self.folder, self.name, self.shape, self.is_sparse)

    def as_written(self) -> FileShard:
        """Return the shard, which takes its files as they are now and as no others."""
        return replace(self, written=tuple(_contents(self._state(ending)) for ending in self.endings))

    def matrix(self) -> Matrix:
        states = tuple(self._state(ending) for ending in self.endings)
        if self.written is not None and self.written != tuple(map(_contents, states)):
            raise self._unsound()
        if time.time_ns() - max(max(state[2:]) for state in states) < _TICK:
            self.require_sound()
        else:
            _require_sound(self, states)
        parts = self.parts()
        return frozen_matrix(sp.csr_array(tuple(parts), shape=self.shape, copy=False)) if self.is_sparse else parts[0]

    def targets(self) -> Array:
        targets = self._mapped("targets.npy")
        if targets.ndim != 2 or len(targets) != self.shape[0]:
            raise self._unsound()
        return targets

    @property
    def endings(self) -> tuple[str, ...]:
        """How the names of the files of features end."""
        return ("data.npy", "indices.npy", "indptr.npy") if self.is_sparse else ("npy",)

    def parts(self) -> list[Any]:
        """Return the arrays of the features as they are in the files."""
        return [self._mapped(ending) for ending in self.endings]

    def require_sound(self) -> None:
        """Raise InputError unless the features are what the manifest says, with rows and columns that are there, each once and in order:
        compiled code checks no further."""
        parts, (n, d) = self.parts(), self.shape
        is_sound = parts[0].dtype == np.float64
        if not self.is_sparse:
            is_sound &= parts[0].shape == self.shape
        else:
            data, indices, indptr = parts
            is_sound &= [part.ndim for part in parts] == [1, 1, 1] and indices.dtype.kind == indptr.dtype.kind == "i"
            is_sound = is_sound and len(indptr) == n + 1 and len(data) == len(indices) and (indptr[0], indptr[-1]) == (0, len(data))
            is_sound = is_sound and bool(np.all(indptr[1:] >= indptr[:-1]))
            is_sound = is_sound and (not len(data) or bool(indices.min() >= 0 and indices.max() < d))
            is_sound = is_sound and bool(np.isin(np.flatnonzero(indices[1:] <= indices[:-1]) + 1, indptr).all())
        if not is_sound:
            raise self._unsound()

    def _unsound(self) -> InputError:
        n, d = self.shape
        where = f"shard {self.name} in {self.folder}"
        return InputError(f"{where} is not {n} rows of {d} features, as its manifest says: its files have changed")

    def _state(self, ending: str) -> tuple[int, ...]:
        """Return what is other once a file has been written to."""
        with self._there(ending) as path:
            state = path.stat()
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def _mapped(self, ending: str) -> Any:
        with self._there(ending) as path:
            return frozen(np.asarray(np.load(path, mmap_mode="r")))

    @contextmanager
    def _there(self, ending: str) -> Iterator[Path]:
        path = self.folder / f"{self.name}.{ending}"
        try:
            yield path
        except FileNotFoundError:
            raise InputError(f"{path} is missing: all who compute with shards need to see their files, by the same path") from None
        except (ValueError, EOFError) as error:
            raise InputError(f"{path} is no array: {error}") from None


def _contents(state: tuple[int, ...]) -> tuple[int, int]:
    """Return what of the state of a file changes with its bytes, and not with its name or owner: size and time."""
    return state[1], state[2]


@lru_cache(maxsize=2**12)
def _require_sound(shard: FileShard, states: tuple[tuple[int, ...], ...]) -> None:
    """Look at the files of a shard once in each state."""
    shard.require_sound()


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
