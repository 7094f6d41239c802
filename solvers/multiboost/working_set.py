"""The columns of H that have joined, in the order in which they did."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array, Matrix

#: A column joins where its violation exceeds nu by this share of nu: less is rounding.
_ABOVE = 1e-13


class WorkingSet:
    """The numbers of the columns, and the columns themselves, dense and contiguous."""

    def __init__(self, X: Matrix, first: NDArray[np.intp]) -> None:
        self._source: Matrix = X.tocsc() if is_sparse(X) else X
        self._outside = np.ones(X.shape[1], dtype=bool)
        self.columns: Array = np.empty((X.shape[0], 0), order="F")
        self.numbers = np.zeros(0, dtype=np.intp)
        self.join(first)

    def join(self, new: NDArray[np.intp]) -> None:
        self.columns = beside(self.columns, dense(self._source[:, new]))
        self._outside[new] = False
        self.numbers = np.concatenate([self.numbers, new])

    def best_outside(self, violations: Array, nu: float, most: int) -> NDArray[np.intp]:
        """Return at most `most` columns outside, those with the highest violations above nu; of equals the lowest number is first."""
        candidates = np.flatnonzero(self._outside & (violations > nu * (1.0 + _ABOVE)))
        return candidates[np.argsort(-violations[candidates], kind="stable")[:most]]

    def point(self, W: Array) -> Array:
        """Return W with zero rows for all other columns."""
        whole = np.zeros((len(self._outside), W.shape[1]))
        whole[self.numbers] = W
        return whole


def beside(columns: Array, more: Array) -> Array:
    """Return both, each column contiguous."""
    size = columns.shape[1]
    wider = np.empty((len(columns), size + more.shape[1]), order="F")
    wider[:, :size], wider[:, size:] = columns, more
    return wider
