"""The cones of CVXPY: what is proven to lie in them, points inside, and the bounds that they imply.

A `Cone` stands for many cones of one kind and size at once; z has a line for each of them. Semidefinite matrices S are stored as
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

    # Points inside, in floats: nothing is proven by them

    def nearest(self, z: Array) -> Array:
        """Return points of the cones near z, about the nearest ones."""
        return np.zeros_like(z) if self.kind == "zero" else self.pushed(z, np.full(len(z), _LEAST), dual=False)

    def pushed(self, z: Array, depth: Array, *, dual: bool) -> Array:
        """Return points near z that are inside by about `depth`, a number a cone."""
        z = self._as_primal(z, dual).copy()
        deep = depth[:, None]
        if self.kind == "nonneg":
            z = np.maximum(z, deep)
        elif self.kind == "soc":
            z[:, 0] = np.maximum(z[:, 0], np.linalg.norm(z[:, 1:], axis=1) * (1.0 + 1e-15) + depth)
        elif self.kind == "psd":
            D, V = np.linalg.eigh(self.matrices(z, dual=dual))
            Z = (V * np.maximum(D, deep)[:, None, :]) @ np.swapaxes(V, 1, 2)
            i, j = self.triangle
            z = Z[:, i, j] * (1.0 if dual else np.where(i == j, 1.0, 2.0))
        elif self.kind == "exp":
            y, w = np.maximum(z[:, 1], depth), np.maximum(z[:, 2], depth)
            x = np.minimum(z[:, 0], y * np.log(w / y) - depth)
            top = np.maximum(w, y * np.exp(np.minimum((z[:, 0] + depth) / y, 600.0)))
            by_x = np.abs(x - z[:, 0]) < np.abs(top - z[:, 2])
            z = np.stack((np.where(by_x, x, z[:, 0]), y, np.where(by_x, w, top)), axis=1)
        elif self.alpha is not None:
            x, y = np.maximum(z[:, 0], depth), np.maximum(z[:, 1], depth)
            top = np.maximum(x**self.alpha * y ** (1.0 - self.alpha) - 0.5 * depth, 0.0)
            z = np.stack((x, y, np.clip(z[:, 2], -top, top)), axis=1)
        return self._as_primal(z, dual, back=True)

    def ellipsoids(self, z: Array, *, dual: bool) -> Array:
        """Return matrices L, cones x dim x dim, with z + L v about in the cone where ||v|| < 1: inverse roots of the barrier's Hessian."""
        if self.kind == "nonneg":
            return z[:, :, None]
        if self.kind == "soc":
            norm = np.linalg.norm(z[:, 1:], axis=1)
            size = np.sqrt(np.maximum((z[:, 0] - norm) * (z[:, 0] + norm), _LEAST))
            w = z / size[:, None]
            L = np.einsum("ki,kj->kij", w, w) / (1.0 + w[:, 0])[:, None, None] + np.eye(z.shape[1])
            L[:, 0, :] = L[:, :, 0] = w
            return np.asarray(L * size[:, None, None] * 0.7)
        if self.kind == "psd":
            D, V = np.linalg.eigh(self.matrices(z, dual=dual))
            K = (V * np.sqrt(np.maximum(D, 0.0))[:, None, :]) @ np.swapaxes(V, 1, 2)
            i, j = self.triangle
            rows, columns = i[:, None], j[:, None]
            L = (K[:, rows, i] * K[:, columns, j] + K[:, rows, j] * K[:, columns, i]) / np.where(i == j, 2.0, 2.0**0.5)
            return L if dual else L * np.where(i == j, 1.0, 2.0)[None, :, None]
        D, V = np.linalg.eigh(self._hessians(self._as_primal(z, dual)))
        L = V / np.sqrt(np.maximum(D, 1e-18 * D[:, -1:]))[:, None, :]
        return np.stack([self._as_primal(L[:, :, k], dual, back=True) for k in range(3)], axis=2)

    def _hessians(self, z: Array) -> Array:
        """Return the Hessians of the barriers -log psi - ... of exponential and power cones, psi the excess of a point."""
        x, y, w = z.T
        H, G = np.zeros((2, len(z), 3, 3))
        if self.alpha is None:
            excess = np.maximum(y * np.log(w / y) - x, _LEAST)
            g = np.stack((-np.ones_like(x), np.log(w / y) - 1.0, y / w), axis=1)
            H[:, 1, 1], H[:, 2, 2], G[:, 1, 1], G[:, 2, 2] = 1.0 / y**2, 1.0 / w**2, -1.0 / y, -y / w**2
            G[:, 1, 2] = G[:, 2, 1] = 1.0 / w
        else:
            a, b = 2.0 * self.alpha, 2.0 - 2.0 * self.alpha
            power = x**a * y**b
            excess = np.maximum(power - w**2, _LEAST)
            g = np.stack((a * power / x, b * power / y, -2.0 * w), axis=1)
            G[:, 0, 0], G[:, 1, 1], G[:, 2, 2] = a * (a - 1.0) * power / x**2, b * (b - 1.0) * power / y**2, -2.0
            G[:, 0, 1] = G[:, 1, 0] = a * b * power / (x * y)
            H[:, 0, 0], H[:, 1, 1] = 0.5 * b / x**2, 0.5 * a / y**2
        return H + np.einsum("ki,kj->kij", g, g) / (excess**2)[:, None, None] - G / excess[:, None, None]

    def _as_primal(self, z: Array, dual: bool, *, back: bool = False) -> Array:
        """Return points of dual exponential and power cones in the coordinates of the cones, which are linear images of them; and back."""
        if dual and self.kind == "exp":
            return np.stack((-z[:, 1], -z[:, 0], z[:, 2] / np.e if back else z[:, 2] * np.e), axis=1)
        if dual and self.alpha is not None:
            shares = np.stack((self.alpha, 1.0 - self.alpha, np.ones_like(self.alpha)), axis=1)
            return z * shares if back else z / shares
        return z


def _in_exponential_cones(x: Interval, y: Interval, w: Interval) -> bool:
    """Return whether x <= y log(w / y), or y = 0 and x <= 0 <= w; y log(w / y) is concave in y, so that its ends decide."""
    rising = [(Interval.exact(end) * (_log(w.lower) - _log(end))).lower for end in (y.lower, y.upper)]
    flat = (y.lower == 0.0) & (y.upper == 0.0) & (x.upper <= 0.0) & (w.lower >= 0.0)
    return bool((flat | ((y.lower > _LEAST) & (w.lower > _LEAST) & (x.upper <= np.minimum(*rising)))).all())


def _log(x: Array) -> Interval:
    return Interval.exact(np.maximum(x, _LEAST)).log()


def _limit(low: Array, high: Array, rows: NDArray[np.intp], most: Array) -> None:
    low[rows], high[rows] = np.maximum(low[rows], -most), np.minimum(high[rows], most)
