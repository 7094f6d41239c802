"""All rows of a file as a stream of blocks; in memory they are its concatenation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import stacked
from bench_mtl.core.types import Array, Matrix

Rows = NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """All rows and targets of a file."""

    n_rows: int
    n_features: int
    n_targets: int
    blocks: Callable[..., Iterator[tuple[Matrix, Array]]]
    """Yields features (rows x d) and targets (rows x m: labels -1/+1, or real), block by block, as often as it is called; of a file with
    `splits` it takes the numbers of the rows that are wanted."""
    are_labels: bool = True
    task: Rows | None = None
    """n task numbers, where each task has its own rows; None where all tasks share the rows."""
    splits: Mapping[str, Rows] = field(default_factory=dict)
    """Row numbers by the name of a split, not checked yet."""
    notes: tuple[str, ...] = ()

    def whole(self) -> tuple[Matrix, Array]:
        """Return all features and targets."""
        return concatenated(list(self.blocks()))


def concatenated(parts: list[tuple[Matrix, Array]]) -> tuple[Matrix, Array]:
    """Return features and targets of blocks, one below the other."""
    if len(parts) == 1:
        return parts[0]
    return stacked([X for X, _ in parts]), np.concatenate([targets for _, targets in parts])


def repeated(make: Callable[[], Iterator[T]], is_held: bool) -> Callable[[], Iterator[T]]:
    """Return what gives the same items as often as it is called: made again each time, or held in memory."""
    if not is_held:
        return make
    items = list(make())
    return lambda: iter(items)


def rows_of(size: int | None, numbers: int) -> int:
    """Return how many rows of so many numbers are a block of `size` bytes; None is a block for all of them."""
    return sys.maxsize if size is None else max(1, size // (8 * max(1, numbers)))
