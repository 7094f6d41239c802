"""The cones of CVXPY: what is proven to lie in them, points inside, and the bounds that they imply.

A `Cone` represents many cones of one kind and size at once; z has a line for each of them. Semidefinite matrices S are stored as
(S_ii, S_ij + S_ji) in slacks, and Z as (Z_ii, Z_ij) in multipliers, i <= j, so that their inner product is that of the lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.rounding import TINIEST, Interval, up
from bench_mtl.core.types import Array
from bench_mtl.enclosures.linear import least_eigenvalue

_E = Interval(2.718281828459045, 2.7182818284590455)
_INVERSE_OF_E = 0.3678794411714424  # rounded up
#: Below this logarithms are not taken.
_LEAST = 1e-300
#: Halvings until a violation is measured to twelve digits of the sizes of slacks.
_HALVINGS = 50
#: A point on the central ray of the exponential cone, and of its dual.
_CENTRE_OF_EXP = (-1.051383945322714, 0.556409619469370, 1.258967884768947)


@dataclass(frozen=True)
class Cone:
    """Cones of one kind ("zero", "nonneg", "soc", "psd", "exp" or "pow") and size."""

    kind: str
    rows: NDArray[np.intp]
    """A line for each cone: the places of its entries."""
    alpha: Array | None = None
    """The exponents of power cones, x^alpha y^(1 - alpha) >= |z|."""

    @cached_property
    def triangle(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places i <= j of a symmetric matrix."""
        i, j = np.triu_indices(round(((8 * self.rows.shape[1] + 1) ** 0.5 - 1) / 2))
        return i, j

    @property
    def centres(self) -> Array:
        """Points well inside, in the cone and its dual alike; 0 where there is none."""
        k, dim = self.rows.shape
        if self.kind == "zero":
            return np.zeros((k, dim))
        if self.kind == "exp":
            return np.tile(_CENTRE_OF_EXP, (k, 1))
        if self.alpha is not None:
            return np.stack((np.sqrt(1.0 + self.alpha), np.sqrt(2.0 - self.alpha), np.zeros(k)), axis=1)
        return np.tile(np.equal(*self.triangle) * 1.0 if self.kind == "psd" else np.eye(dim)[0], (k, 1))

    def contains(self, z: Interval, *, dual: bool) -> bool:
        """Return whether all of a box is proven to lie in the cones, or in their duals."""
        if self.kind == "zero":
            return dual
        if self.kind == "nonneg":
            return bool((z.lower >= 0.0).all())
        if self.kind == "soc":
            return bool((z.lower[:, 0] >= z[:, 1:].square().sum(axis=1).root().upper).all())
        if self.kind == "psd":
            pairs = zip(self.matrices(z.middle, dual=dual), self.matrices(z.error, dual=dual), strict=True)
            return all(least_eigenvalue(Z, R) >= 0.0 for Z, R in pairs)
        if self.kind == "exp":
            return _in_exponential_cones(*((-z[:, 1], -z[:, 0], z[:, 2] * _E) if dual else (z[:, 0], z[:, 1], z[:, 2])))
        return self._in_power_cones(z, dual=dual)

    def _in_power_cones(self, z: Interval, *, dual: bool) -> bool:
        assert self.alpha is not None
        share = Interval.exact(self.alpha)
        other = 1.0 - share
        x, y = (z[:, 0] / share, z[:, 1] / other) if dual else (z[:, 0], z[:, 1])
        least = share * _log(x.lower) + other * _log(y.lower)
        top = _log(z[:, 2].magnitude().upper)
        return bool(((x.lower > _LEAST) & (y.lower > _LEAST) & (top.upper <= least.lower)).all())

    def matrices(self, z: Array, *, dual: bool) -> Array:
        """Return the symmetric matrices of lines, exactly."""
        i, j = self.triangle
        Z = np.zeros((len(z), j[-1] + 1, j[-1] + 1))
        Z[:, i, j] = Z[:, j, i] = z if dual else z * np.where(i == j, 1.0, 0.5)
        return Z

    def narrow(self, low: Array, high: Array) -> None:
        """Bring bounds on slacks, in place, to what the cones imply."""
        rows = self.rows
        i, j = self.triangle if self.kind == "psd" else (np.zeros(1, dtype=np.intp),) * 2
        firsts = {"psd": np.flatnonzero(i == j).tolist(), "exp": [1, 2], "pow": [0, 1]}
        first = rows[:, firsts.get(self.kind, [0])]
        low[first] = np.maximum(low[first], 0.0)
        if self.kind == "zero":
            high[first] = np.minimum(high[first], 0.0)
        elif self.kind == "exp":  # x <= y log(z / y) <= z / e
            high[rows[:, 0]] = np.minimum(high[rows[:, 0]], up(np.maximum(high[rows[:, 2]], 0.0) * _INVERSE_OF_E) + TINIEST)
        elif self.kind == "pow":  # |z| <= max(x, y)
            _limit(low, high, rows[:, 2:], up(np.maximum(high[first].max(axis=1, keepdims=True), 0.0)))
        elif self.kind == "soc":
            _limit(low, high, rows[:, 1:], high[first])
        elif self.kind == "psd":  # |2 S_ij| <= 2 sqrt(S_ii S_jj)
            root = np.sqrt(np.maximum(high[first], 0.0)) * (1.0 + 2.0**-50) + 1e-150
            _limit(low, high, rows, np.where(i == j, np.inf, 2.0 * root[:, i] * root[:, j] * (1.0 + 2.0**-50)))

    # In floats: nothing is proven by these

    def coordinates(self, *, dual: bool) -> tuple[NDArray[np.intp], Array]:
        """Return which entries of a line, times which numbers (a line for each cone), are a point of the cone in the form of Clarabel.

        Dual exponential and power cones are linear images of the cones.
        """
        entries, factors = np.arange(self.rows.shape[1]), np.ones(self.rows.shape)
        if self.kind == "psd":
            i, j = self.triangle
            entries = np.lexsort((i, j))
            factors[:] = np.where(i == j, 1.0, 2.0 ** (0.5 if dual else -0.5))[entries]
        elif dual and self.kind == "exp":
            entries, factors[:] = np.array([1, 0, 2]), (-1.0, -1.0, np.e)
        elif dual and self.alpha is not None:
            factors = 1.0 / np.stack((self.alpha, 1.0 - self.alpha, np.ones_like(self.alpha)), axis=1)
        return entries, factors

    def violation(self, z: Array) -> float:
        """Return how far points, of entries of at most 1, must go along the centres to be inside; of 0 their largest modulus."""
        if self.kind == "zero":
            return float(np.abs(z).max(initial=0.0))
        low, high = 0.0, 4.0 * self.rows.shape[1]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.contains(Interval.exact(z + middle * self.centres), dual=False) else (middle, high)
        return high


def _in_exponential_cones(x: Interval, y: Interval, w: Interval) -> bool:
    """Return whether x <= y log(w / y), or y = 0 and x <= 0 <= w; y log(w / y) is concave in y, so that its ends decide."""
    rising = [(Interval.exact(end) * (_log(w.lower) - _log(end))).lower for end in (y.lower, y.upper)]
    flat = (y.lower == 0.0) & (y.upper == 0.0) & (x.upper <= 0.0) & (w.lower >= 0.0)
    return bool((flat | ((y.lower > _LEAST) & (w.lower > _LEAST) & (x.upper <= np.minimum(*rising)))).all())


def _log(x: Array) -> Interval:
    return Interval.exact(np.maximum(x, _LEAST)).log()


def _limit(low: Array, high: Array, rows: NDArray[np.intp], most: Array) -> None:
    low[rows], high[rows] = np.maximum(low[rows], -most), np.minimum(high[rows], most)
