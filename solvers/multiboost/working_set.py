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

    kept = ("numbers",)

    def __init__(self, X: Matrix, first: NDArray[np.intp]) -> None:
        self._source: Matrix = X.tocsc() if is_sparse(X) else X
        self.numbers = self._copied = first
        self._columns = np.asfortranarray(dense(self._source[:, first]))

    @property
    def columns(self) -> Array:
        if self._copied is not self.numbers:  # those of an earlier run
            self._columns, self._copied = np.asfortranarray(dense(self._source[:, self.numbers])), self.numbers
        return self._columns

    def join(self, new: NDArray[np.intp]) -> None:
        size = len(self.numbers)
        wider = np.empty((len(self._columns), size + len(new)), order="F")  # each column contiguous
        wider[:, :size], wider[:, size:] = self.columns, dense(self._source[:, new])
        self._columns = wider
        self.numbers = self._copied = np.concatenate([self.numbers, new])

    def best_outside(self, violations: Array, nu: float, most: int) -> NDArray[np.intp]:
        """Return at most `most` columns outside, those with the highest violations above nu; of equals the lowest number is first."""
        candidates = np.setdiff1d(np.flatnonzero(violations > nu * (1.0 + _ABOVE)), self.numbers)
        return candidates[np.argsort(-violations[candidates], kind="stable")[:most]]

    def point(self, W: Array) -> Array:
        """Return W with zero rows for all other columns."""
        whole = np.zeros((self._source.shape[1], W.shape[1]))
        whole[self.numbers] = W
        return whole
