"""A vector that stays inside an l1 ball while a few of its entries change at a time, whatever its dimension."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, real_array, real_number, require_finite, true_or_false, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array

STORAGES = ("array", "tree")

_SMALLEST = 32  # places


class SparseBall:
    """A sparse vector w with ||w||_1 <= radius (and w >= 0 if `nonneg`), under changes of a few entries at a time::

        add(indices, values):   w <- argmin_u 1/2 ||u - (w + values at indices)||^2  subject to  ||u||_1 <= radius

    Only non-zeros are stored, without the sum of all thresholds that projections have subtracted, so that a projection does not touch them
    (Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, section 5 and figure 3). Neither time nor memory depends on the dimension, of which
    this class knows nothing: an index is any whole number from 0 to 2^63 - 1. Starts at 0.

    The storage "tree" finds the threshold in a balanced tree with counts and sums: O(k log n) for k changes among n non-zeros. "array"
    finds it by passes over the stored numbers: O(k + n), yet with so small a constant that it is faster up to some 1e5 non-zeros. Raises
    InputError: a negative radius, an unknown storage.
    """

    def __init__(self, radius: float, *, nonneg: bool = False, storage: str = "array") -> None:
        self.radius = real_number("radius", radius)
        true_or_false("nonneg", nonneg)
        self.nonneg = nonneg
        self.storage = one_of("storage", storage, STORAGES)
        self._parts = SparseParts(1, tree=storage == "tree")
        self._ball = tuple(self._parts.ball(0))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy, or a pickled one: `_ball` is views of its own arrays."""
        self.__dict__.update(state)
        self._ball = tuple(self._parts.ball(0))

    def __copy__(self) -> SparseBall:
        return copy.deepcopy(self)

    def add(self, indices: Any, values: Any) -> None:
        """Add `values` to the entries at `indices`, one after the other, then project.

        With `nonneg` an entry that comes below 0 is 0 at once; that matters only to an index that occurs twice. Raises InputError: indices
        that are not whole numbers of at least 0, values that are not finite or sum to more than 1e290 in magnitude, different lengths.
        """
        kernel = _kernel()
        if not (_plain(indices, np.int64) and _plain(values, np.float64) and indices.size == values.size):
            indices, values = _indices(indices), np.require(np.atleast_1d(real_array("values", values)), requirements=["C", "W"])
            if values.shape != indices.shape:
                raise InputError("values", values.shape, f"have the shape {indices.shape} of indices")
        while True:
            code = kernel.add(self._ball, indices, values, self.radius, self.nonneg)
            if code == kernel.DONE:
                return
            if code == kernel.REFUSED:
                _indices(indices)
                require_finite("values", values)
                raise InputError(f"values must sum to at most {kernel.LARGEST:g} in magnitude, so that no sum overflows")
            self._parts.grow(indices.size)
            self._ball = tuple(self._parts.ball(0))

    def get(self, indices: Any) -> Array:
        """The entries at `indices`."""
        kernel = _kernel()
        places = _indices(indices)
        out = np.empty(places.shape)
        kernel.look_up(self._parts.ball(0), places, out)
        return out

    def items(self) -> tuple[NDArray[np.int64], Array]:
        """Indices, ascending, and values of the non-zeros."""
        return self._parts.items(0)

    def to_dense(self, dimension: int) -> Array:
        """w as a dense vector.

        Raises InputError: an entry beyond the dimension is not zero.
        """
        dimension = whole_number("dimension", dimension)
        indices, values = self.items()
        if indices.size and indices[-1] >= dimension:
            raise InputError(f"dimension must be above {indices[-1]}, where an entry is not zero, but is {dimension}")
        out = np.zeros(dimension)
        out[indices] = values
        return out

    def clear(self) -> None:
        """Make w = 0, and keep the memory."""
        self._parts.clear()

    @property
    def nnz(self) -> int:
        """Entries that are not zero."""
        return self._parts.count(0)

    @property
    def theta(self) -> float:
        """What the last projection subtracted from the magnitudes; 0 where the vector was inside."""
        kernel = _kernel()
        return float(self._parts.reals[0, kernel.THETA])

    @property
    def norm(self) -> float:
        """||w||_1, summed anew."""
        return float(np.abs(self.items()[1]).sum())

    @property
    def nbytes(self) -> int:
        """Memory of the arrays: in proportion to the largest number of entries stored at a time."""
        return self._parts.nbytes


class SparseParts:
    """The arrays of some sparse vectors, a line each, for `kernels/sparse_ball.py`."""

    def __init__(self, balls: int, *, tree: bool, places: int = _SMALLEST) -> None:
        from bench_mtl.projections.kernels import tree as treap

        kernel = _kernel()

        self.tree = tree
        self.features = np.zeros((balls, places), dtype=np.int64)
        self.stored = np.zeros((balls, places))
        self.slots = np.zeros((balls, 2 * places), dtype=np.int32)
        self.nodes = np.zeros((balls, places + 1 if tree else 1), dtype=treap.NODE)
        self.state = np.zeros((balls, kernel.STATE), dtype=np.int64)
        self.reals = np.zeros((balls, kernel.REALS))
        self.clear()

    @property
    def arrays(self) -> Any:
        """What the kernels take, with a line for every vector."""
        return _kernel().Parts(self.features, self.stored, self.slots, self.nodes, self.state, self.reals, self.tree)

    def ball(self, b: int) -> Any:
        """What the kernels take for one vector."""
        return _kernel().Parts(*(array[b] for array in self.arrays[:-1]), self.tree)

    def clear(self) -> None:
        kernel = _kernel()
        for b in range(len(self.state)):
            kernel.clear(self.ball(b))

    def grow(self, coming: int) -> None:
        """At least double the room, so that `coming` more entries fit into each vector."""
        kernel = _kernel()
        balls, old = self.features.shape
        most = max(self.count(b) for b in range(balls)) + coming
        places = 2 * old
        while 2 * places < 3 * most:
            places *= 2
        larger = SparseParts(balls, tree=self.tree, places=places)
        larger.features[:, :old], larger.stored[:, :old] = self.features, self.stored
        larger.state[:], larger.reals[:] = self.state, self.reals
        larger.nodes[:, : self.nodes.shape[1]] = self.nodes
        for b in range(balls):
            kernel.rebuild(larger.ball(b), coming)
        self.__dict__ = larger.__dict__

    def count(self, b: int) -> int:
        return int(_kernel().count_living(self.ball(b)))

    def items(self, b: int) -> tuple[NDArray[np.int64], Array]:
        """Features, ascending, and values of the non-zeros of one vector."""
        kernel = _kernel()
        filled = int(self.state[b, kernel.FILLED])
        stored = self.stored[b, :filled]
        sizes = np.abs(stored) - self.reals[b, kernel.SHIFT]
        alive = np.flatnonzero(sizes > 0.0)
        alive = alive[np.argsort(self.features[b, alive])]
        return self.features[b, alive], np.copysign(sizes[alive], stored[alive])

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays[:-1]))


def _kernel() -> Any:
    import bench_mtl.projections.kernels.sparse_ball as kernel

    return kernel


def _plain(value: Any, kind: type) -> bool:
    """Whether the kernels can take a vector as it is; of read-only ones they would be compiled anew."""
    return type(value) is np.ndarray and value.dtype == kind and value.ndim == 1 and bool(value.flags.carray)


def _indices(value: Any) -> NDArray[np.int64]:
    try:
        array = np.atleast_1d(np.asarray(value))
    except ValueError:  # lists of different lengths
        raise InputError("indices must be a vector of whole numbers") from None
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"indices must be a vector of whole numbers, not {array.dtype} of shape {array.shape}")
    if array.min() < 0 or array.max() > np.iinfo(np.int64).max:
        raise InputError("indices must be from 0 to 2^63 - 1")
    return np.require(array, np.int64, ["C", "W"])
