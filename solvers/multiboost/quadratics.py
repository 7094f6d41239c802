"""Convex quadratic forms v -> 1/2 v^T M v of entries of W, and their minimisers: by factorisation, or by conjugate gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array
from bench_mtl.solvers.second_order import solved

#: Conjugate gradients end at this share of the first residual, in the norm of the preconditioner, ...
_FORCING = 0.05
#: ... or after this number of steps.
_MOST_STEPS = 150
#: Share of the mean diagonal that is added to the blocks of the preconditioner at least.
_LEAST_RIDGE = 1e-8


class Quadratic(ABC):
    """A positive semidefinite M, and a multiple of the identity that is added to it."""

    mean: float
    """The mean of the diagonal of M."""
    ridge: float = 0.0

    @abstractmethod
    def times(self, v: Array) -> Array:
        """(M + ridge I) v."""

    @abstractmethod
    def solve(self, free: NDArray[np.intp], side: Array, guess: Array) -> Array | None:
        """Return about the v with (M + ridge I) v = side in the free rows and columns; None where there is none."""


@final
class Stored(Quadratic):
    """M itself."""

    def __init__(self, M: Array) -> None:
        self.M = M
        self.mean = float(np.diag(M).mean())

    def times(self, v: Array) -> Array:
        return self.M @ v + self.ridge * v

    def solve(self, free: NDArray[np.intp], side: Array, guess: Array) -> Array | None:
        return solved(self.M[np.ix_(free, free)] if len(free) < len(self.M) else self.M.copy(), side, self.ridge)

    def solve_merged(self, merge: Any, side: Array) -> Array | None:
        """Solve in variables that represent several entries each: `merge` has a row for each variable, with ones at its entries."""
        return solved(merge @ (merge @ self.M).T, side, self.ridge * np.asarray(merge.sum(axis=1)))


@final
class Applied(Quadratic):
    """M as a product v -> M v, with its blocks on the diagonal, in order, for a preconditioner."""

    def __init__(self, product: Callable[[Array], Array], blocks: list[Array]) -> None:
        self._product, self._blocks = product, blocks
        self._starts = np.cumsum([0, *map(len, blocks)])
        diagonal = np.concatenate([np.diag(block) for block in blocks])
        self.mean = float(diagonal.mean())

    def times(self, v: Array) -> Array:
        return self._product(v) + self.ridge * v

    def solve(self, free: NDArray[np.intp], side: Array, guess: Array) -> Array | None:
        """Solve inexactly, by preconditioned conjugate gradients from the guess."""
        precondition = self._preconditioner(free)
        if precondition is None:
            return None
        whole = np.zeros(self._starts[-1])

        def times(v: Array) -> Array:
            whole[free] = v
            return self.times(whole)[free]

        v = guess.copy()
        r = side - times(v)
        z = precondition(r)
        p, size = z.copy(), float(r @ z)
        enough = _FORCING**2 * size
        for _ in range(_MOST_STEPS):
            if not size > enough:
                break
            Mp = times(p)
            curvature = float(p @ Mp)
            if not curvature > 0.0:
                break
            v += size / curvature * p
            r -= size / curvature * Mp
            z = precondition(r)
            before, size = size, float(r @ z)
            p = z + size / before * p
        return v

    def _preconditioner(self, free: NDArray[np.intp]) -> Callable[[Array], Array] | None:
        """Return the product with the inverses of the blocks of free entries."""
        ends = np.searchsorted(free, self._starts)
        inverses = []
        for block, start, first, last in zip(self._blocks, self._starts, ends, ends[1:], strict=False):
            own = free[first:last] - start
            inverse = solved(block[np.ix_(own, own)], np.eye(len(own)), max(self.ridge, _LEAST_RIDGE * self.mean))
            if inverse is None:
                return None
            inverses.append((slice(first, last), inverse))

        def precondition(r: Array) -> Array:
            return np.concatenate([inverse @ r[own] for own, inverse in inverses])

        return precondition
