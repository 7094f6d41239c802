"""Designs whose rows are in shards, for data that one process cannot hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from operator import iadd
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import (
    Design,
    SeparateDesign,
    SharedDesign,
    columns_of,
    divided,
    frozen,
    frozen_matrix,
    gram,
    largest_entry,
    line_norms,
    stacked,
    sum_of_squares,
)
from bench_mtl.core.errors import InputError
from bench_mtl.core.forgetting import Forgetting
from bench_mtl.core.rounding import compensated_parts, compensated_product, euclidean_norms, is_compensated, sum_of_parts
from bench_mtl.core.shards import Shard, Shards
from bench_mtl.core.tall_products import row_blocks, tall_adjoint, tall_product
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array, Matrix

T = TypeVar("T")

#: Up to so many features, of sparse and of dense shards, the spectral norm is that of the Gram matrix: it takes as long as a few passes.
_GRAM_FEATURES = {True: 64, False: 512}
#: With more it is found by Lanczos' method, up to this relative error of its square: steps that are one hundredth shorter cost less than
#: further passes.
_NORM_ERROR = 2e-2
#: With every product the part of an eigenvalue a quarter above all others grows by e to this power (a Chebyshev polynomial at 1.5);
#: how many times as large as the rest of a start its part along the leading vector has to become.
_GROWTH, _CLEAR = math.acosh(1.5), 20.0
#: One of so many shards belongs to the sample whose leading vector is where it starts.
_SAMPLED = 8


class InShards(Forgetting, Design):
    """A design whose rows are in shards, of which no one matrix is made."""

    is_in_shards = True
    proves_by_columns: ClassVar[bool] = False  # they would be gathered here
    shards: Shards

    @property
    def is_sparse(self) -> bool:
        return self.shards.sizes.is_sparse

    @property
    def n_stored(self) -> int:
        return self.shards.sizes.n_stored

    def block(self, k: int) -> NoReturn:
        raise InputError("the examples are in shards, of which no one matrix is made: choose a method that needs products with X alone")

    def with_constant(self) -> NoReturn:
        raise InputError("the examples are in shards, which get no further feature: write the constant feature with the shards")


class ShardedDesign(InShards):
    """One n x d matrix X for all m tasks, in shards of rows: W -> X W.

    What has n rows, such as predictions and dual points, is held here; what has n x d entries is not, so that `block` and `stacked` raise.
    """

    is_shared = True

    def __init__(self, shards: Shards, n_tasks: int | None = None) -> None:
        sizes = shards.sizes
        self.shards, self.n_tasks = shards, sizes.n_tasks if n_tasks is None else n_tasks
        self.n_features = sizes.n_columns
        self.sizes = (sizes.n_rows,) * self.n_tasks

    def forward(self, W: Array) -> Array:
        return self._joined(compensated_product if is_compensated() else tall_product, W)

    def adjoint(self, R: Array) -> Array:
        if not is_compensated():
            return self.shards.total(_of_matrix, tall_adjoint, split=(R,))
        value, error = self.shards.total(_of_matrix, _compensated_adjoint, split=(R,), add=sum_of_parts)
        return np.asarray(value + error)

    def restricted(self, features: NDArray[np.intp]) -> SharedDesign:
        """Return the design of some features alone, in memory."""
        return SharedDesign._sharing(frozen_matrix(self._joined(columns_of, features)), self.n_tasks)

    def gram(self, k: int) -> Array:
        return self._gram

    def squares(self) -> float:
        return math.fsum(self._map(_squares))

    def on_shards(self, chosen: Sequence[int]) -> ShardedDesign:
        """Return the design of some shards, in the order given."""
        return ShardedDesign(self.shards.some(chosen), self.n_tasks)

    def of_task(self, k: int) -> ShardedDesign:
        return ShardedDesign(self.shards, 1)

    @cached_property
    def _row_norms(self) -> Array:
        return frozen(self._joined(row_norms)[:, None])

    @cached_property
    def column_norms(self) -> Array:
        parts = np.stack(list(self._map(column_norms)))
        return frozen(euclidean_norms(parts, axis=0).reshape(-1, 1))

    def norms(self) -> Array:
        return np.full(self.n_tasks, self._spectral_norm)

    @cached_property
    def _gram(self) -> Array:
        return frozen(self.shards.total(_of_matrix, _gram_of))

    @cached_property
    def _spectral_norm(self) -> float:
        """sigma_max(X), exact from the Gram matrix; of many features an estimate, see `_leading_pair`."""
        scale = max(self._map(largest_entry))
        if scale == 0.0:
            return 0.0
        with one_blas_thread():
            if self.n_features <= _GRAM_FEATURES[self.is_sparse]:
                largest = float(np.linalg.eigvalsh(self.shards.total(_of_matrix, _gram_of, scale)).max())
            else:
                largest, _ = self._leading_pair(scale)
        return scale * math.sqrt(max(0.0, largest))

    def _leading_pair(self, scale: float) -> tuple[float, Array]:
        """Return the largest eigenvalue of X^T X over the square of the scale, mostly a little too large, and its vector.

        A random start has a part of about 1/sqrt(d) along the leading vector, which residuals do not show at first. So Lanczos' method
        makes as many products before it looks at them as an eigenvalue a quarter above all others needs to stand out.
        """
        count = len(self.shards.sizes.counts)
        start = np.random.default_rng(count).standard_normal(self.n_features)  # another one for the sample
        if count > 1:
            _, found = self.on_shards(range(0, count, _SAMPLED))._leading_pair(scale)
            start = found + start / np.linalg.norm(start)  # shards may have nothing in common

        def product(v: Array) -> Array:
            return self.shards.total(_of_matrix, _gram_product, v, scale)

        operator = spla.LinearOperator((self.n_features, self.n_features), matvec=product, dtype=np.float64)
        fewest = 1 + math.ceil(math.log(_CLEAR * math.sqrt(self.n_features)) / _GROWTH)
        try:
            vector = spla.eigsh(operator, 1, v0=start, ncv=min(fewest, self.n_features), tol=_NORM_ERROR)[1][:, 0]
        except spla.ArpackNoConvergence as error:
            found = np.asarray(error.eigenvectors, dtype=np.float64)
            vector = found[:, 0] if found.size else start / np.linalg.norm(start)
        except spla.ArpackError:  # the start is an eigenvector already
            vector = start / np.linalg.norm(start)
        image = product(vector)
        value = float(vector @ image)
        return value + float(np.linalg.norm(image - value * vector)), vector

    def _map(self, function: Callable[..., T], *common: Any) -> Iterator[T]:
        """Yield what a function gives for the matrix of every shard."""
        return self.shards.map(_of_matrix, function, *common)

    def _joined(self, function: Callable[..., Matrix], *common: Any) -> Any:
        """Return the arrays or matrices that a function gives for every shard, one below the other."""
        return stacked(list(self._map(function, *common)))


class ShardedTaskDesign(InShards, SeparateDesign):
    """Matrices in shards of rows of one task each: what is asked of all is asked of the shards of one task after the other."""

    def __init__(self, shards: Shards) -> None:
        sizes = shards.sizes
        tasks = np.asarray(sizes.tasks)
        if np.any(np.diff(tasks) < 0) or set(tasks.tolist()) != set(range(sizes.n_tasks)):
            raise InputError(f"shards must be in the order of their tasks, 0 to {sizes.n_tasks - 1}, and every task must have one")
        self.shards = shards
        self.n_features, self.n_tasks = sizes.n_columns, sizes.n_tasks
        self._designs = tuple(ShardedDesign(shards.some(np.flatnonzero(tasks == k).tolist()), 1) for k in range(self.n_tasks))
        self.sizes = tuple(design.sizes[0] for design in self._designs)

    def of_task(self, k: int) -> ShardedDesign:
        return self._designs[k]

    def gram(self, k: int) -> Array:
        return self._designs[k].gram(0)


def design_of(shards: Shards) -> ShardedDesign | ShardedTaskDesign:
    """Return the design of shards, shared by all tasks or not."""
    return ShardedDesign(shards) if shards.sizes.tasks is None else ShardedTaskDesign(shards)


# What follows runs where the shards are.


def _of_matrix(shard: Shard, function: Callable[..., T], *arguments: Any) -> T:
    return function(shard.matrix(), *arguments)


def _compensated_adjoint(X: Matrix, R: Array) -> tuple[Array, Array]:
    return compensated_parts(X.T, R)


def row_norms(X: Matrix) -> Array:
    """Return `line_norms` of the rows, by blocks."""
    return np.concatenate([line_norms(block, 1) for block in row_blocks(X)])


def column_norms(X: Matrix) -> Array:
    """Return upper bounds on the norms of the columns, by blocks."""
    parts = np.stack([line_norms(block, 0) for block in row_blocks(X)])
    return np.asarray(euclidean_norms(parts, axis=0).ravel())


def _squares(X: Matrix) -> float:
    return math.fsum(sum_of_squares(block) for block in row_blocks(X))


def _gram_of(X: Matrix, scale: float = 1.0) -> Array:
    if is_sparse(X):
        return sparse_gram(X if scale == 1.0 else divided(X, scale))
    return reduce(iadd, (gram(block / scale if scale != 1.0 else block) for block in row_blocks(X)))


def sparse_gram(X: Matrix) -> Array:
    """Return X^T X of a CSR matrix with many rows, dense: by rows, where SciPy's product takes ten times as long."""
    from bench_mtl.core.kernels.tall import add_gram

    out = np.zeros((X.shape[1], X.shape[1]))
    add_gram(frozen(X.data), frozen(X.indices), frozen(X.indptr), out)
    return np.asarray(np.triu(out) + np.triu(out, 1).T)


def weighted_gram(X: Matrix, shares: Array | None) -> Array:
    """Return X^T diag(shares) X of a dense or CSR matrix, dense, with shares of at least 0; None means ones."""
    if shares is not None:
        roots = np.sqrt(shares)
        data = X.data * np.repeat(roots, np.diff(X.indptr)) if is_sparse(X) else X * roots[:, None]
        X = sp.csr_array((data, X.indices, X.indptr), shape=X.shape) if is_sparse(X) else data
    return sparse_gram(X) if is_sparse(X) else gram(X)


def _gram_product(X: Matrix, v: Array, scale: float) -> Array:
    scaled = v / scale
    return reduce(iadd, (tall_adjoint(block, tall_product(block, scaled) / scale) for block in row_blocks(X)))
