"""A shared design whose rows are in shards, for data that one process cannot hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, reduce
from typing import Any, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from bench_mtl.core.designs import CommonDesign, SharedDesign, columns_of, frozen, frozen_matrix, gram, line_norms, sum_of_squares
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated_parts, compensated_product, euclidean_norms, sum_of_parts
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Array, Matrix

T = TypeVar("T")

#: Up to so many features the spectral norm is that of the Gram matrix, which a pass over the shards adds up.
_GRAM_FEATURES = 2000


class ShardedDesign(CommonDesign):
    """One n x d matrix X for all m tasks, in shards of rows: W -> X W.

    What has n rows, such as predictions and dual points, is held here; what has n x d entries is not, so that `block` and `stacked` raise.
    """

    def __init__(self, shards: Shards, n_tasks: int) -> None:
        self.shards, self.n_tasks = shards, n_tasks
        self.n_features = shards.n_columns
        self.sizes = (shards.n_rows,) * n_tasks

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.shards.n_rows, self.n_tasks)

    @property
    def is_in_shards(self) -> bool:
        return True

    @property
    def is_sparse(self) -> bool:
        return self.shards.is_sparse

    @property
    def n_stored(self) -> int:
        return self.shards.n_stored

    def forward(self, W: Array) -> Array:
        return self._rows(_product, W)

    def adjoint(self, R: Array) -> Array:
        return summed(self.shards.map(_adjoint, split=(R,)))

    def block(self, k: int) -> NoReturn:
        raise InputError("the examples are in shards, of which no one matrix is made: choose a method that needs products with X alone")

    def stacked(self) -> NoReturn:
        self.block(0)

    def restricted(self, features: NDArray[np.intp]) -> SharedDesign:
        """Return the design of some features alone, in memory."""
        parts = list(self.shards.map(_columns, features))
        whole = sp.csr_array(sp.vstack(parts, format="csr")) if self.is_sparse else np.concatenate(parts)
        return SharedDesign._sharing(frozen_matrix(whole), self.n_tasks)

    def examples(self, k: int, rows: NDArray[np.intp]) -> Matrix:
        wanted = [rows[(rows >= own.start) & (rows < own.stop)] - own.start for own in self.shards.slices]
        order = np.argsort(rows, kind="stable")
        if np.any(order != np.arange(len(rows))):  # by shard, they come in the order of the examples
            back = np.argsort(order, kind="stable")
            return self.examples(k, rows[order])[back]
        parts = list(self.shards.map(_examples, each=wanted))
        return sp.csr_array(sp.vstack(parts, format="csr")) if self.is_sparse else np.concatenate(parts)

    def gram(self, k: int) -> Array:
        return summed(self.shards.map(gram))

    def squares(self) -> float:
        return math.fsum(self.shards.map(sum_of_squares))

    def with_constant(self) -> NoReturn:
        raise InputError("the examples are in shards, which get no further feature: write the constant feature with the shards")

    def of_task(self, k: int) -> ShardedDesign:
        return ShardedDesign(self.shards, 1)

    @cached_property
    def _row_norms(self) -> Array:
        return frozen(np.concatenate(list(self.shards.map(line_norms, 1)))[:, None])

    @cached_property
    def _column_norms(self) -> Array:
        parts = np.stack(list(self.shards.map(line_norms, 0)))
        return frozen(euclidean_norms(parts, axis=0).reshape(-1, 1))

    def _compensated_forward(self, W: Array) -> Array:
        return self._rows(compensated_product, W)

    def _compensated_adjoint(self, R: Array) -> Array:
        value, error = reduce(sum_of_parts, self.shards.map(_compensated_adjoint, split=(R,)))
        return np.asarray(value + error)

    def norms(self) -> Array:
        return np.full(self.n_tasks, self._spectral_norm)

    @cached_property
    def _spectral_norm(self) -> float:
        """sigma_max(X), as `spectral_norm` of designs has it."""
        scale = max(self.shards.map(_largest))
        if scale == 0.0:
            return 0.0
        if self.n_features <= _GRAM_FEATURES:
            squares = np.linalg.eigvalsh(summed(self.shards.map(_scaled_gram, scale)))
            return scale * math.sqrt(max(0.0, float(squares.max())))
        start = np.random.default_rng(0).standard_normal(self.n_features)
        of_gram = spla.LinearOperator((self.n_features,) * 2, matvec=lambda v: summed(self.shards.map(_gram_product, v, scale)))
        (largest,) = spla.eigsh(of_gram, k=1, v0=start, return_eigenvectors=False, tol=1e-9)
        return scale * math.sqrt(max(0.0, float(largest))) * (1.0 + 1e-6)

    def _rows(self, function: Callable[..., Array], *common: Any) -> Array:
        """Return what a function gives for every shard, one below the other."""
        out = np.empty(self.output_shape)
        for rows, part in zip(self.shards.slices, self.shards.map(function, *common), strict=True):
            out[rows] = part
        return out


def summed(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays in their order, so that its bits do not depend on when they arrive."""
    parts = iter(parts)
    total = np.array(next(parts))
    for part in parts:
        total += part
    return total


def _product(X: Matrix, W: Array) -> Array:
    return np.asarray(X @ W)


def _adjoint(X: Matrix, R: Array) -> Array:
    return np.asarray(X.T @ R)


def _compensated_adjoint(X: Matrix, R: Array) -> tuple[Array, Array]:
    return compensated_parts(X.T, R)


def _examples(X: Matrix, rows: NDArray[np.intp]) -> Matrix:
    return X[rows]


def _columns(X: Matrix, features: NDArray[np.intp]) -> Matrix:
    return columns_of(X, features)


def _largest(X: Matrix) -> float:
    from bench_mtl.core.checks import is_sparse

    return float(np.abs(X.data if is_sparse(X) else X).max(initial=0.0))


def _scaled_gram(X: Matrix, scale: float) -> Array:
    return gram(X / scale)


def _gram_product(X: Matrix, v: Array, scale: float) -> Array:
    return np.asarray(X.T @ (X @ (v / scale) / scale))
