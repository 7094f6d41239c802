"""Shards that the workers of a Dask cluster read: each of them some neighbouring ones."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from bench_mtl.core.shards import Shard, Shards, Sizes
from bench_mtl.core.tree_sums import Node, TreeSum, plus
from bench_mtl.core.types import Array
from bench_mtl.core.worker_pool import WorkerPool

T = TypeVar("T")


class ClusterShards(Shards):
    """Shards that workers read from files, which all of them see by the same path. Workers keep nothing between requests."""

    def __init__(self, shards: Sequence[Shard], sizes: Sizes, pool: WorkerPool) -> None:
        self.shards, self.sizes, self.pool = tuple(shards), sizes, pool

    def connect(self) -> None:
        self.pool.connect()

    def counts(self) -> Mapping[str, int]:
        return asdict(self.pool.traffic)

    def some(self, chosen: Sequence[int]) -> ClusterShards:
        return ClusterShards([self.shards[k] for k in chosen], self.sizes.some(chosen), self.pool)

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        early: dict[int, T] = {}
        following = 0
        for parts, values in self._computed(_Mapped(function, common), split, each):
            early.update(zip(parts, values, strict=True))
            while following in early:
                yield early.pop(following)
                following += 1

    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        tree = TreeSum(len(self.shards), add)
        for _, nodes in self._computed(_Added(function, common, add, len(self.shards)), split, each):
            for (level, place), value in nodes.items():
                tree.put(value, place, level)
        return tree.total()

    def _computed(self, work: _Mapped | _Added, split: Sequence[Array], each: Sequence[Any] | None) -> Iterator[tuple[Sequence[int], Any]]:
        def own(parts: Sequence[int]) -> bytes:
            return pickle.dumps([(self.shards[k], self.own(k, split, each)) for k in parts], protocol=5)

        return self.pool.compute(pickle.dumps(work, protocol=5), own, self.sizes.counts)


# What follows runs inside Dask workers.


@dataclass(frozen=True)
class _Mapped:
    """A function of every shard."""

    function: Callable[..., Any]
    common: tuple[Any, ...]

    def __call__(self, parts: Sequence[int], own: Sequence[tuple[Shard, tuple[Any, ...]]]) -> list[Any]:
        return [self.function(shard, *self.common, *more) for shard, more in own]


@dataclass(frozen=True)
class _Added:
    """Its sum over neighbouring shards, as the nodes of the tree that have all of theirs."""

    function: Callable[..., Any]
    common: tuple[Any, ...]
    add: Callable[[Any, Any], Any]
    count: int

    def __call__(self, parts: Sequence[int], own: Sequence[tuple[Shard, tuple[Any, ...]]]) -> dict[Node, Any]:
        tree: TreeSum[Any] = TreeSum(self.count, self.add)
        for place, (shard, more) in zip(parts, own, strict=True):
            tree.put(self.function(shard, *self.common, *more), place)
        return dict(tree.nodes)
