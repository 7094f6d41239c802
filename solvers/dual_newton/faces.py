"""Factors of the derivatives of proximal maps: J = L P L^T, L the columns of a face and P an orthogonal projection.

The derivative of the proximal map of a penalty is J = L L^T. On a ball the map is that of a penalty whose weight changes with the point:
that takes the derivative of the norm, L^T grad ||.||, out of the span of L, and P = I - N N^T does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array

Times: TypeAlias = Callable[[Array], Array]
"""G -> G L_k, L_k the columns of L in one task, vectors of d entries."""


@final
@dataclass(frozen=True)
class RowFace:
    """Columns of which each is in one row of d x m."""

    features: int
    rows: NDArray[np.intp]
    values: Array
    """What is in the row, r x m."""

    @property
    def size(self) -> int:
        """The number of columns r."""
        return len(self.rows)

    @classmethod
    def of_entries(cls, chosen: NDArray[np.bool_]) -> RowFace:
        """Return the unit matrices of the entries that are chosen."""
        rows, tasks = np.nonzero(chosen)
        return cls(len(chosen), rows, np.eye(chosen.shape[1])[tasks])

    def within(self, rows: NDArray[np.intp]) -> RowFace:
        """Return the face in these rows alone, in increasing order, which hold all that is not 0."""
        return RowFace(len(rows), np.searchsorted(rows, self.rows), self.values)

    def combined(self, y: Array) -> Array:
        """Return L y, the sum of the columns with these weights, d x m."""
        total = np.zeros((self.features, self.values.shape[1]))
        np.add.at(total, self.rows, self.values * y[:, None])
        return total

    def products(self, G: Array) -> Array:
        """Return L^T G, the products of the columns with a d x m matrix."""
        return np.asarray(np.einsum("rm,rm->r", self.values, G[self.rows]))

    def of_task(self, k: int) -> tuple[NDArray[np.intp], Times]:
        """Return the numbers of the columns that are not 0 in task k, and products with these."""
        places = np.flatnonzero(self.values[:, k])
        rows, values = self.rows[places], self.values[places, k]
        return places, lambda G: np.asarray(G[:, rows] * values)

    def scaled(self, factors: Array) -> RowFace:
        """Return the face with row j of every column times `factors`_j."""
        return RowFace(self.features, self.rows, self.values * factors[self.rows][:, None])


@final
@dataclass(frozen=True)
class DenseFace:
    """Columns of any kind."""

    columns: Array
    """d x m x r."""

    @property
    def size(self) -> int:
        return int(self.columns.shape[2])

    def combined(self, y: Array) -> Array:
        return np.asarray(self.columns @ y)

    def products(self, G: Array) -> Array:
        return np.asarray(np.tensordot(G, self.columns, axes=2))

    def of_task(self, k: int) -> tuple[NDArray[np.intp], Times]:
        columns = self.columns[:, k]
        return np.arange(self.size), lambda G: np.asarray(G @ columns)

    def scaled(self, factors: Array) -> DenseFace:
        return DenseFace(self.columns * factors[:, None, None])


Face: TypeAlias = RowFace | DenseFace
"""The columns of L, each a d x m matrix."""
