"""Matrices of which most columns are 0: what the examples of one task contribute to all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array


@dataclass(frozen=True, eq=False)
class TaskColumns:
    """A d x m matrix by its columns, d x 1 arrays or intervals of such; those that are not there are 0."""

    held: Mapping[int, Array | Interval]

    def __add__(self, other: TaskColumns) -> TaskColumns:
        sums = {k: self.held[k] + column if k in self.held else column for k, column in other.held.items()}
        return TaskColumns({**self.held, **sums})

    def whole(self, d: int, m: int) -> Array | Interval:
        """Return the matrix."""
        if all(isinstance(column, np.ndarray) for column in self.held.values()):
            return _placed({k: np.asarray(column) for k, column in self.held.items()}, d, m)
        ends = ({k: getattr(column, end) for k, column in self.held.items()} for end in ("lower", "upper"))
        return Interval(*(_placed(columns, d, m) for columns in ends))


def spread(found: Any, k: int) -> Any:
    """Return what was found of task k with matrices as columns of those of all tasks; numbers stay as they are."""
    if isinstance(found, tuple):
        return tuple(spread(part, k) for part in found)
    shown = found.lower if isinstance(found, Interval) else found
    return TaskColumns({k: found}) if np.ndim(shown) == 2 else found


def gathered(found: Any, d: int, m: int) -> Any:
    """Return a sum of what `spread` gives, with whole matrices."""
    if isinstance(found, tuple):
        return tuple(gathered(part, d, m) for part in found)
    return found.whole(d, m) if isinstance(found, TaskColumns) else found


def _placed(columns: Mapping[int, Array], d: int, m: int) -> Array:
    out = np.zeros((d, m))
    for k, column in columns.items():
        out[:, k : k + 1] = column
    return out
