"""Data in blocks: a list of them in one of two places, this process or workers of Dask, and what is asked of all: a function of every
block, or the sum of what it gives.

Sums are taken over one binary tree, whoever adds up which part of them. Leaf i is what block i gives, and node i of a level is the sum of
nodes 2i and 2i + 1 of the level below; a node without a neighbour is passed up as it is. So the bits of a sum depend on the blocks and
their number alone, and whoever has a run of neighbouring blocks sends a few nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from bench_mtl.core.threads import one_blas_thread, run_together

T = TypeVar("T")

#: A level of the tree, 0 that of the blocks, and a place in it.
Node = tuple[int, int]
#: What a function is given of block k alone.
Own = Callable[[int], tuple[Any, ...]]


def nothing_of(k: int) -> tuple[()]:
    """Return what belongs to block k where nothing does."""
    return ()


def plus(one: Any, other: Any) -> Any:
    """Return the sum of two numbers, arrays or intervals, or of two tuples of such, entry by entry."""
    if isinstance(one, tuple):
        return tuple(plus(a, b) for a, b in zip(one, other, strict=True))
    return one + other


class TreeSum(Generic[T]):
    """The sum of `count` values, as far as they have been put in."""

    def __init__(self, count: int, add: Callable[[T, T], T]) -> None:
        self._count, self._add = count, add
        self.nodes: dict[Node, T] = {}
        """The sums of the largest parts of the tree of which all is there."""

    def put(self, nodes: Iterable[tuple[Node, T]]) -> None:
        """Add values, or sums of nodes, in any order; what is there already is added up."""
        for (level, place), value in nodes:
            while not self._is_root(level, place):
                if (place ^ 1) << level < self._count:
                    other = self.nodes.pop((level, place ^ 1), None)
                    if other is None:
                        break
                    value = self._add(value, other) if place % 2 == 0 else self._add(other, value)
                level, place = level + 1, place >> 1
            self.nodes[level, place] = value

    def _is_root(self, level: int, place: int) -> bool:
        return place == 0 and 1 << level >= self._count

    def total(self) -> T:
        """Return the sum of all values. Raises ValueError: some are missing."""
        if len(self.nodes) != 1 or not self._is_root(*next(iter(self.nodes))):
            raise ValueError("not all values are there")
        return next(iter(self.nodes.values()))


def leaves(values: Iterable[T], first: int = 0) -> Iterator[tuple[Node, T]]:
    """Yield the values of neighbouring blocks as leaves of the tree, the first of them that of block `first`."""
    for k, value in enumerate(values, first):
        yield (0, k), value


class Blocks(ABC):
    """Some blocks of data, in order. Immutable."""

    @property
    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def map(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of) -> Iterator[T]:
        """Yield ``function(block_k, *common, *own(k))`` for every block k, in their order; the function is one of a module."""

    @abstractmethod
    def total(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of, add: Callable[[T, T], T] = plus) -> T:
        """Return the sum of what `map` gives, over the tree."""

    @abstractmethod
    def some(self, chosen: Sequence[int]) -> Blocks:
        """Return some of the blocks, in the order given."""

    @abstractmethod
    def joined(self, values: Sequence[Any], make: Callable[[Any, Any], Any]) -> Blocks:
        """Return what a function of a module makes of every block and a value for it, which has as many rows."""

    def connect(self) -> None:  # noqa: B027 (of this process there is nothing to be found)
        """Find or start the workers, where there are any, so that none is looked for in the middle of a run.

        Raises InputError: there is no such scheduler, or it refuses this process.
        """

    def counts(self) -> Mapping[str, int]:
        """Return what has gone between this process and others so far, by name: nothing where there are no others."""
        return {}


@dataclass(frozen=True, eq=False)
class Lazy:
    """A block that is made whenever it is needed, of a value and perhaps another such block."""

    make: Callable[..., Any]
    block: Any
    value: Any

    def made(self) -> Any:
        """Return the block."""
        return self.make(self.block.made() if isinstance(self.block, Lazy) else self.block, self.value)


class Here(Blocks):
    """Blocks that this process computes with: one after another, or by several threads at once."""

    def __init__(self, blocks: Sequence[Any], threads: int = 1) -> None:
        self.blocks, self._threads = tuple(blocks), min(threads, len(blocks))

    @property
    def count(self) -> int:
        return len(self.blocks)

    def some(self, chosen: Sequence[int]) -> Here:
        return Here([self.blocks[k] for k in chosen], self._threads)

    def joined(self, values: Sequence[Any], make: Callable[[Any, Any], Any]) -> Here:
        return Here([Lazy(make, block, value) for block, value in zip(self.blocks, values, strict=True)], self._threads)

    def map(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of) -> Iterator[T]:
        def one(k: int) -> T:
            block = self.blocks[k]
            with one_blas_thread():  # as workers do: with more of them sums have other bits
                return function(block.made() if isinstance(block, Lazy) else block, *common, *own(k))

        if self._threads < 2:
            yield from map(one, range(self.count))
            return
        values: dict[int, T] = {}

        def run(first: int) -> None:
            values.update((k, one(k)) for k in range(first, self.count, self._threads))

        run_together([partial(run, first) for first in range(self._threads)])
        yield from (values[k] for k in range(self.count))

    def total(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of, add: Callable[[T, T], T] = plus) -> T:
        tree = TreeSum(self.count, add)
        tree.put(leaves(self.map(function, common, own)))
        return tree.total()
