"""The active set of Frank-Wolfe methods with away and pairwise steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array


@dataclass(frozen=True, eq=False)
class HeldAtoms:
    """An active set at one moment."""

    start: Array
    start_weight: float
    keys: tuple[tuple[int, bytes], ...]
    """Of every atom the row that is not zero, and what is in it."""
    weights: Array

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.array([row for row, _ in self.keys], dtype=np.int64)

    @property
    def values(self) -> Array:
        """What is in the rows, an atom a row."""
        return np.array([np.frombuffer(value) for _, value in self.keys]).reshape(len(self.keys), self.start.shape[1])


class Atoms:
    """A point as a convex combination of the start and of vertices, of each of which only one row is not zero (a vector is a row)."""

    def __init__(self, start: Array) -> None:
        m = start.shape[1]
        self._start, self._start_weight = start, 1.0
        self._places: dict[tuple[int, bytes], int] = {}
        self._keys: list[tuple[int, bytes]] = []
        self._rows = np.zeros(16, dtype=np.int64)
        self._values = np.zeros((16, m))
        self._weights = np.zeros(16)

    @classmethod
    def restored(cls, start: Array, start_weight: float, rows: Array, values: Array, weights: Array) -> Atoms:
        """Return the active set that `held` has described: rows by number, what is in each, and the weights."""
        atoms = cls(start)
        atoms._start_weight = start_weight
        for row, value in zip(rows.astype(np.int64), values, strict=True):
            atoms._append((int(row), value.tobytes()), value)
        atoms._weights[: len(weights)] = weights
        return atoms

    def held(self) -> HeldAtoms:
        """Return the active set as it is now, which stays when this one changes."""
        return HeldAtoms(self._start, self._start_weight, tuple(self._keys), self._weights[: len(self._keys)].copy())

    def worst(self, gradient: Array) -> int:
        """The atom with the largest product with the gradient; -1 is the start."""
        n = len(self._keys)
        best, place = (float(np.vdot(gradient, self._start)), -1) if self._start_weight > 0.0 else (-np.inf, -1)
        if n:
            products = np.einsum("ij,ij->i", gradient[self._rows[:n]], self._values[:n])
            if float(products.max()) > best:
                place = int(products.argmax())
        return place

    def weight(self, place: int) -> float:
        return self._start_weight if place < 0 else float(self._weights[place])

    def dense(self, place: int) -> Array:
        if place < 0:
            return self._start
        out = np.zeros_like(self._start)
        out[self._rows[place]] = self._values[place]
        return out

    def total(self) -> Array:
        out = self._start_weight * self._start
        n = len(self._keys)
        np.add.at(out, self._rows[:n], self._weights[:n, None] * self._values[:n])
        return out

    def move(self, place: int | None, vertex: Array, gamma: float, *, all_of_it: bool) -> None:
        """gamma of the weight of one atom to the vertex."""
        assert place is not None
        if gamma > 0.0 and (place < 0 or self._keys[place] != _key(vertex)):  # from an atom to itself there is no way
            self._add(vertex, gamma)
            self._set(place, 0.0 if all_of_it else self.weight(place) - gamma)

    def towards(self, vertex: Array, gamma: float) -> None:
        self._scale(1.0 - gamma)
        if gamma > 0.0:
            self._add(vertex, gamma)
        if gamma == 1.0:
            for place in range(len(self._keys) - 1, -1, -1):
                if self._weights[place] == 0.0:
                    self._drop(place)

    def away_from(self, place: int, gamma: float, *, all_of_it: bool) -> None:
        self._scale(1.0 + gamma)
        self._set(place, 0.0 if all_of_it else max(0.0, self.weight(place) - gamma))

    def _scale(self, factor: float) -> None:
        self._start_weight *= factor
        self._weights *= factor

    def _set(self, place: int, weight: float) -> None:
        if place < 0:
            self._start_weight = max(0.0, weight)
        elif weight > 0.0:
            self._weights[place] = weight
        else:
            self._drop(place)

    def _add(self, vertex: Array, weight: float) -> None:
        row, _ = key = _key(vertex)
        place = self._places.get(key)
        if place is None:
            place = self._append(key, vertex[row])
        self._weights[place] += weight

    def _append(self, key: tuple[int, bytes], value: Array) -> int:
        """Add an atom without weight and return its place."""
        place = len(self._keys)
        if place == len(self._rows):
            self._grow()
        self._places[key] = place
        self._keys.append(key)
        self._rows[place], self._values[place], self._weights[place] = key[0], value, 0.0
        return place

    def _drop(self, place: int) -> None:
        """The last atom takes its place."""
        del self._places[self._keys[place]]
        last = len(self._keys) - 1
        if place != last:
            self._keys[place] = self._keys[last]
            self._places[self._keys[place]] = place
            for array in (self._rows, self._values, self._weights):
                array[place] = array[last]
        self._weights[last] = 0.0
        self._keys.pop()

    def _grow(self) -> None:
        self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])


def _key(vertex: Array) -> tuple[int, bytes]:
    """The row of a vertex that is not zero, and what is in it."""
    row = int(np.abs(vertex).max(axis=1).argmax())
    return row, vertex[row].tobytes()
