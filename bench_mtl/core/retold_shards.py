"""Shards with other targets than those that are stored with them, such as labels -1 and +1 in place of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bench_mtl.core.designs import frozen
from bench_mtl.core.shards import Shard, Shards
from bench_mtl.core.tree_sums import plus
from bench_mtl.core.types import Array, Matrix

T = TypeVar("T")


def with_targets(shards: Shards, Y: Array) -> Shards:
    """Return shards whose targets are Y, examples x tasks: the same ones where these are stored in them."""
    if Y.shape[1] == shards.sizes.n_tasks and all(shards.map(_has_targets, split=(Y,))):
        return shards
    return RetoldShards(shards, Y)


class RetoldShards(Shards):
    """The features of other shards with targets of this process, which go along with every request."""

    def __init__(self, shards: Shards, targets: Array) -> None:
        self.shards, self.targets = shards, targets
        self.sizes = replace(shards.sizes, n_tasks=int(targets.shape[1]))

    def connect(self) -> None:
        self.shards.connect()

    def counts(self) -> Mapping[str, int]:
        return self.shards.counts()

    def some(self, chosen: Sequence[int]) -> RetoldShards:
        rows = np.concatenate([self.targets[self.sizes.slices[k]] for k in chosen])
        return RetoldShards(self.shards.some(chosen), frozen(rows))

    def map(self, function: Callable[..., T], *common: Any, split: Sequence[Array] = (), each: Sequence[Any] | None = None) -> Iterator[T]:
        return self.shards.map(_retold, function, len(common), *common, split=(self.targets, *split), each=each)

    def total(
        self,
        function: Callable[..., T],
        *common: Any,
        split: Sequence[Array] = (),
        each: Sequence[Any] | None = None,
        add: Callable[[T, T], T] = plus,
    ) -> T:
        return self.shards.total(_retold, function, len(common), *common, split=(self.targets, *split), each=each, add=add)


class _Retold:
    """A shard with other targets."""

    def __init__(self, shard: Shard, own: Array) -> None:
        self._shard, self._own = shard, frozen(own)

    def matrix(self) -> Matrix:
        return self._shard.matrix()

    def targets(self) -> Array:
        return self._own


# What follows runs where the shards are.


def _has_targets(shard: Shard, Y: Array) -> bool:
    return bool(np.array_equal(shard.targets(), Y))


def _retold(shard: Shard, function: Callable[..., T], count: int, *arguments: Any) -> T:
    common, own, more = arguments[:count], arguments[count], arguments[count + 1 :]
    return function(_Retold(shard, own), *common, *more)
