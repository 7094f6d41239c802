"""Sums of many values over one binary tree, whoever adds up which part of them.

Leaf i is value i, and node i of a level is the sum of nodes 2i and 2i + 1 of the level below; a node without a neighbour is passed up as it
is. So the bits of a sum depend on the values and their number alone, and whoever has a run of neighbouring values sends a few nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: A level of the tree, 0 that of the values, and a place in it.
Node = tuple[int, int]


class TreeSum(Generic[T]):
    """The sum of `count` values, as far as they have been put in."""

    def __init__(self, count: int, add: Callable[[T, T], T]) -> None:
        self._count, self._add = count, add
        self._nodes: dict[Node, T] = {}

    def put(self, value: T, place: int, level: int = 0) -> None:
        """Add a value, or the sum of a node, in any order; what is there already is added up."""
        while not self._is_root(level, place):
            if (place ^ 1) << level < self._count:
                other = self._nodes.pop((level, place ^ 1), None)
                if other is None:
                    break
                value = self._add(value, other) if place % 2 == 0 else self._add(other, value)
            level, place = level + 1, place >> 1
        self._nodes[level, place] = value

    def _is_root(self, level: int, place: int) -> bool:
        return place == 0 and 1 << level >= self._count

    @property
    def nodes(self) -> Mapping[Node, T]:
        """The sums of the largest parts of the tree of which all is there."""
        return self._nodes

    def total(self) -> T:
        """Return the sum of all values.

        Raises
        ------
        ValueError : some are missing.
        """
        if len(self._nodes) != 1 or not self._is_root(*next(iter(self._nodes))):
            raise ValueError("not all values are there")
        return next(iter(self._nodes.values()))


def plus(one: Any, other: Any) -> Any:
    """Return the sum of two numbers, arrays or intervals, or of two tuples of such, entry by entry."""
    if isinstance(one, tuple):
        return tuple(plus(a, b) for a, b in zip(one, other, strict=True))
    return one + other
