"""Columns of a matrix by rows: copies of those that are asked for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.intercepts import centred_columns

#: Features by number.
Features: TypeAlias = NDArray[np.int64]

#: Factors that a Newton step needs on the way to the face where it ends.
_FACTORS = 2.0
#: Multiplications in a product that take as long as the copy of an entry.
_COPY = 4.0
#: An array that must grow has room for this multiple of what is asked for: memory that is not touched costs nothing.
_ROOM = 4
#: What is left of the curvature of a column without its mean is rounding up to this share of the whole.
_ROUNDING_OF_MEANS = 1e-13


class Chosen(NamedTuple):
    """Some columns of a matrix.

    As in CSC form, with unsigned indices, of which none counts from the end; or one after the other, None and None; or of X^T X, None and
    None: then residuals are X^T times those of the examples.
    """

    values: Any
    indices: Any
    indptr: Any
    places: Any
    """Which they are."""


class Model(NamedTuple):
    """min_w 1/2 sum_i (g_i - h_i x_i.(w - w0))^2 / h_i + penalty ||w||_1; the row of `Columns.centre` has a curvature below 0."""

    penalty: float
    h: Any
    """The curvatures of the examples; None for all of 1."""
    curvatures: Any
    """sum_i h_i x_ij^2 of the columns."""
    cone: Any
    """The sign that their entries must have, 0 for any."""
    rounding: float
    """Of a slope, in units of the root of its column's curvature."""


class Columns(ABC):
    """The columns of an n x d matrix, for kernels that loop over some of them.

    With a free intercept each has one entry more, which is 0 until `centre` sets it, and other products leave out.
    """

    n: int
    d: int
    has_intercept: bool
    stored: int
    """Entries that a product with the matrix multiplies."""
    denser: float
    """Multiplications in a factorisation are faster by this factor than those of a sweep."""
    entry: float
    """Multiplications of a sweep that take as long as what Newton's step does with an entry of a Gram matrix."""

    has_gram = False
    """Whether the products of all columns are there, so that sweeps over all of them cost little."""

    @property
    def length(self) -> int:
        """How many entries a column has for kernels."""
        return self.n + self.has_intercept

    @abstractmethod
    def chosen(self, features: Features) -> Chosen:
        """Return what kernels take of these columns."""

    def centre(self, features: Features, h: Array | None) -> Array | None:
        """Return the curvatures h for kernels; with an intercept these take the means from these columns then.

        With s = sum(h) and c = X^T h / s, (X - 1 c^T)^T diag(h) (X - 1 c^T) is X^T diag(h) X - s c c^T: that of X with one row more,
        sqrt(s) c^T, whose curvature is -1. So sparse columns stay sparse, and means may change with h.
        """
        if not self.has_intercept:
            return h
        h = np.ones(self.n) if h is None else h
        self._last[features] = self.products_with(features, h) / math.sqrt(float(h.sum()))
        self._set_last(features)
        return np.append(h, -1.0)

    @cached_property
    def _last(self) -> Array:
        return np.zeros(self.d)

    @abstractmethod
    def _set_last(self, features: Features) -> None:
        """Set the last entries of these columns to those of `_last`."""

    def predictions(self, features: Features, w: Array) -> Array:
        """Return the sum of these columns times w."""
        from bench_mtl.solvers.l1_working_set.kernels import combine

        t = np.zeros(self.length)
        combine(self.chosen(features), w, t)
        return t[: self.n]

    def products_with(self, features: Features, r: Array) -> Array:
        """Return x_j.r of these features."""
        from bench_mtl.solvers.l1_working_set.kernels import products

        out = np.empty(len(features))
        products(self.chosen(features), np.append(r, 0.0) if self.has_intercept else np.ascontiguousarray(r), out)
        return out

    @abstractmethod
    def price(self, features: Features) -> float:
        """Return about how many multiplications take as long as `products_with` these features."""

    def squares(self, features: Features, h: Array | None) -> Array:
        """Return sum_i h_i x_ij^2 of these features."""
        from bench_mtl.solvers.l1_working_set.kernels import squares

        new = features if h is not None else features[np.isnan(self._norms[features])]
        out = np.empty(len(new))
        if len(new):
            squares(self.chosen(new), h, self.length, out)
        if h is not None:
            if self.has_intercept:
                out[out <= _ROUNDING_OF_MEANS * (out + self._last[features] ** 2)] = 0.0
            return out
        self._norms[new] = out
        return self._norms[features]

    @cached_property
    def _norms(self) -> Array:
        return np.full(self.d, np.nan)

    @abstractmethod
    def multiplied(self, features: Features) -> int:
        """Return how many entries these columns have."""

    def gram(self, features: Features, h: Array | None) -> Array:
        """Return X_S^T diag(h) X_S of these features S, an array of its own."""
        if not self.has_intercept or h is None:
            return self._gram_of(features, h)
        last = self._last[features]
        return self._gram_of(features, np.maximum(h, 0.0)) - np.outer(last, last)

    @abstractmethod
    def _gram_of(self, features: Features, h: Array | None) -> Array:
        """Return `gram` where no h is below 0."""

    def products(self, features: Features, most: float) -> tuple[Array, Features, Features] | None:
        """Return a Gram matrix, the features that it is of, and the places of these among them, for sweeps that need nothing else.

        None where it would take more than `most` multiplications, or is no smaller than the columns.
        """
        return None

    @abstractmethod
    def gram_price(self, features: Features, h: Array | None) -> float:
        """Return about how many multiplications of a sweep take as long as `gram`."""

    def newton_price(self, features: Features, h: Array | None) -> float:
        """Return the same for `gram`, some factors of it and what is done with its entries."""
        p = len(features)
        return self.gram_price(features, h) + _FACTORS * p**3 / (6.0 * self.denser) + self.entry * p**2


class DenseColumns(Columns):
    """Of an array by rows: each column is copied when it is first wanted."""

    denser = 2.0
    entry = 24.0

    def __init__(self, X: Array, has_intercept: bool) -> None:
        self.n, self.d = X.shape
        self.has_intercept = has_intercept
        self.stored = X.size
        self._X = X
        self._place = np.full(self.d, -1, dtype=np.int64)
        self._copied = 0
        self._buffer = np.empty((0, self.length))
        self._gram = np.empty((0, 0))
        self._grammed = np.full(self.d, -1, dtype=np.int64)
        self._in_gram: Features = np.zeros(0, dtype=np.int64)

    def chosen(self, features: Features) -> Chosen:
        from bench_mtl.solvers.l1_working_set.kernels import copy_columns

        new = features[self._place[features] < 0]
        if len(new):
            end = self._copied + len(new)
            if end > len(self._buffer):
                larger = np.empty((min(self.d, _ROOM * end), self.length))
                larger[: self._copied] = self._buffer[: self._copied]
                self._buffer = larger
            copies = self._buffer[self._copied : end]
            if self.has_intercept:  # without large means no digits are lost
                copies[:, : self.n], copies[:, self.n] = centred_columns(self._X[:, new])[0].T, 0.0
            else:
                copy_columns(self._X, new, copies)
            self._place[new] = np.arange(self._copied, end)
            self._copied = end
        return Chosen(self._buffer.reshape(-1), None, None, self._place[features])

    def multiplied(self, features: Features) -> int:
        return len(features) * self.n

    def price(self, features: Features) -> float:
        return float(self.n * (len(features) + _COPY * np.count_nonzero(self._place[features] < 0)))

    def rows(self, features: Features) -> Array:
        """Return the columns as rows, a copy."""
        places = self.chosen(features).places  # which may make another buffer
        return self._buffer[places]

    def _set_last(self, features: Features) -> None:
        self._buffer[self.chosen(features).places, self.n] = self._last[features]

    def _gram_of(self, features: Features, h: Array | None) -> Array:
        if h is not None:
            Z = self.rows(features)
            Z *= np.sqrt(h)
            return Z @ Z.T
        self._extend_gram(features)
        where = self._grammed[features]
        return self._gram[np.ix_(where, where)]

    def products(self, features: Features, most: float) -> tuple[Array, Features, Features] | None:
        if self.gram_price(features, None) > most:
            return None
        self._extend_gram(features)
        return (self._gram, self._in_gram, self._grammed[features]) if len(self._in_gram) <= self.n else None

    def _extend_gram(self, features: Features) -> None:
        new = features[self._grammed[features] < 0]
        if self._pays_in_all(len(features), len(new)):
            self._gram, self._in_gram = self._X.T @ self._X, np.arange(self.d)
            self._grammed, self.has_gram = self._in_gram, True
        elif len(new):
            before, after = len(self._in_gram), len(self._in_gram) + len(new)
            self._in_gram = np.concatenate([self._in_gram, new])
            self._grammed[new] = np.arange(before, after)
            products = np.empty((after, after))
            products[:before, :before] = self._gram
            products[before:] = self.rows(new) @ self.rows(self._in_gram).T
            products[:before, before:] = products[before:, :before].T
            self._gram = products

    def gram_price(self, features: Features, h: Array | None) -> float:
        size = len(features)
        new = size if h is not None else int(np.count_nonzero(self._grammed[features] < 0))
        return self.n * (self.d**2 / 15.0 if h is None and self._pays_in_all(size, new) else size * new / 5.0)

    def _pays_in_all(self, features: int, new: int) -> bool:
        """Return whether X^T X of all features, which copies nothing, is cheaper than the part that these need."""
        return self.d <= self.n and self.d**2 / 15.0 < features * new / 5.0


class SparseColumns(Columns):
    """Of a CSR matrix: all are copied when the first is wanted, which costs about as much as two or three passes for some."""

    denser = 16.0
    entry = 3.0

    def __init__(self, X: Matrix, has_intercept: bool) -> None:
        self.n, self.d = X.shape
        self.has_intercept = has_intercept
        self.stored = max(1, X.nnz)
        self._X = X

    @cached_property
    def _all(self) -> Chosen:
        X = (sp.vstack([self._X, sp.csr_array(np.ones((1, self.d)))]) if self.has_intercept else self._X).tocsc()
        if self.has_intercept:
            X.data[X.indptr[1:] - 1] = 0.0
            for j in np.flatnonzero(np.diff(X.indptr) == self.length):  # without zeros, the mean may be all but nothing of a column
                column = X.data[X.indptr[j] : X.indptr[j + 1] - 1]
                column[:] = centred_columns(column[:, None])[0][:, 0]
        return Chosen(X.data, X.indices.astype(np.uint32), X.indptr.astype(np.int64), np.arange(self.d))

    def chosen(self, features: Features) -> Chosen:
        return self._all._replace(places=features)

    def _set_last(self, features: Features) -> None:
        self._all.values[self._all.indptr[features + 1] - 1] = self._last[features]

    def price(self, features: Features) -> float:
        return float(self.multiplied(features))

    def multiplied(self, features: Features) -> int:
        ends = self._all.indptr
        return int((ends[features + 1] - ends[features]).sum())

    def _gram_of(self, features: Features, h: Array | None) -> Array:
        from bench_mtl.core.kernels.tall import add_gram
        from bench_mtl.solvers.l1_working_set.kernels import by_rows

        X, size = self.chosen(features), self.multiplied(features)
        values, columns, ends = np.empty(size), np.empty(size, dtype=np.uint32), np.zeros(self.length + 1, dtype=np.int64)
        by_rows(X, None if h is None else np.sqrt(h), values, columns, ends)
        out = np.zeros((len(features), len(features)))
        add_gram(values, columns, ends, out)
        return out + np.triu(out, 1).T

    def gram_price(self, features: Features, h: Array | None) -> float:
        entries = self.multiplied(features)
        return 2.0 * entries * (1.0 + entries / self.n) + len(features) ** 2


def columns_of(X: Matrix, has_intercept: bool = False) -> Columns:
    """Return the columns of a dense or CSR matrix."""
    return SparseColumns(X, has_intercept) if is_sparse(X) else DenseColumns(X, has_intercept)
