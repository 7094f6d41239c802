"""Designs: the linear map from coefficients W (d x m) to one prediction per example and task, and its adjoint.

A design is either shared (one X for all tasks) or per task (X_k), each dense or CSR. What a design maps to has its
`output_shape`: (n, m) when shared, (n_1 + ... + n_m,) stacked task by task otherwise. Targets, margins and dual points
have that shape too, so that losses are plain element-wise code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse, real_matrix
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import SAFE, TINIEST, Interval, compensated_product, euclidean_norms, gamma, is_compensated, product_error, up
from bench_mtl.core.types import Array, Matrix

_EXACT_NORM_SIZE = 2000
#: Where at most one in so many features has coefficients other than 0, predictions are proven from the columns of these alone.
_FEW_FEATURES = 8

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)


class Design(ABC):
    """A linear map W -> (X_k w_k)_k. Immutable; its arrays are read-only."""

    is_shared: ClassVar[bool]
    """Whether all tasks have one X; then outputs are examples x tasks, otherwise they are stacked task by task."""
    is_in_shards: ClassVar[bool] = False
    """Whether X is in parts of which no one matrix is made, so that `block` and `stacked` raise."""
    proves_by_columns: ClassVar[bool] = True
    """Whether predictions of few features are proven from their columns alone, where X is dense: not where norms are given beforehand."""

    n_features: int
    n_tasks: int
    sizes: tuple[int, ...]
    """Examples of each task."""
    _X: Matrix
    """Of designs in memory: X, or the rows of all tasks, of sparse designs as one block-diagonal matrix."""

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(n, m) for a shared design, (sum of n_k,) otherwise."""
        return (self.sizes[0], self.n_tasks) if self.is_shared else (self.n_examples,)

    @property
    def n_examples(self) -> int:
        """Examples over all tasks; those of a shared design count once a task."""
        return sum(self.sizes)

    def per_example(self, values: Array) -> Array:
        """One value a task, spread to its examples: something that broadcasts against `output_shape`."""
        return values[None, :] if self.is_shared else np.repeat(values, self.sizes)

    def task_outputs(self, R: Array, k: int) -> Array:
        """The part of an output-shaped array that belongs to task k, length n_k."""
        return R[:, k] if self.is_shared else R[self._spans[k]]

    def task_sums(self, R: Array) -> Array:
        """The sum of `task_outputs` of every task, m numbers."""
        return np.asarray(R.sum(axis=0)) if self.is_shared else np.add.reduceat(R, self._starts)

    def stack(self, R: Array) -> Array:
        """An output-shaped array as one vector, task after task: the rows of `stacked`."""
        return np.ascontiguousarray(R.T).ravel() if self.is_shared else R

    def unstack(self, r: Array) -> Array:
        """The inverse of `stack`."""
        return np.ascontiguousarray(r.reshape(self.n_tasks, -1).T) if self.is_shared else r

    @cached_property
    def _spans(self) -> tuple[slice, ...]:
        """The rows of each task, where tasks have rows of their own."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return frozen(np.array([rows.start for rows in self._spans]))

    def _task_norms(self, R: Array) -> Array:
        """Return upper bounds on the norms of `task_outputs`, m numbers."""
        if self.is_shared:
            return np.asarray(euclidean_norms(R, axis=0)[0])
        top = float(np.abs(R).max(initial=0.0))
        if top == 0.0:
            return np.zeros(self.n_tasks)
        squares = self.task_sums(np.square(R / top))
        return np.asarray(top * (np.sqrt(squares + R.size * TINIEST) * (1.0 + gamma(R.size + 8))) + TINIEST)

    @abstractmethod
    def forward(self, W: Array) -> Array:
        """Predictions X_k w_k of all tasks, in `output_shape`; by compensated dot products where these are asked for (`compensated`)."""

    @abstractmethod
    def adjoint(self, R: Array) -> Array:
        """The d x m matrix with columns X_k^T r_k, as `forward`."""

    @abstractmethod
    def block(self, k: int) -> Matrix:
        """X_k, the n_k x d design of task k."""

    @abstractmethod
    def of_task(self, k: int) -> Design:
        """Return the design of task k alone, with an `output_shape` of (n_k, 1); dense and shared data are not copied."""

    @abstractmethod
    def restricted(self, features: NDArray[np.intp]) -> Design:
        """Return the design of some features alone, in the order given, with an `output_shape` like this one's."""

    @abstractmethod
    def with_constant(self) -> Design:
        """Return the design with one feature more, the last one, that is 1 in all examples."""

    @abstractmethod
    def squares(self) -> float:
        """Return the sum of squares of all entries; those of a shared design count once."""

    @abstractmethod
    def norms(self) -> Array:
        """sigma_max(X_k) of every task, shape (m,), as `spectral_norm` gives it."""

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self._X)

    @property
    def n_stored(self) -> int:
        """Entries of the matrices that are held; of sparse ones those that are stored."""
        return stored_entries(self._X)

    def stacked(self) -> sp.csr_array:
        """The map as one sparse matrix from vec(W), column by column, to the outputs of task 1, task 2, ..."""
        return sp.csr_array(sp.block_diag([sp.csr_array(self.block(k)) for k in range(self.n_tasks)], format="csr"))

    def gram(self, k: int) -> Array:
        """Return X_k^T X_k, d x d."""
        return gram(self.block(k))

    @final
    def norm(self) -> float:
        """The operator norm, max_k sigma_max(X_k)."""
        return float(self.norms().max())

    @final
    def forward_with_error(self, W: Array) -> tuple[Array, Array]:
        """Return predictions X_k w_k in `output_shape`, and how far they are from those of exact arithmetic at most.

        |fl(x_i.w_k) - x_i.w_k| <= gamma_(d+2) ||x_i|| ||w_k||, see `bench_mtl.core.rounding`; compensated dot products where asked for.
        """
        used = np.flatnonzero(W.any(axis=1))
        if not len(used):  # as at the start of most runs: no pass over the data
            # Of shards there may be columns of several W.
            shape = (self.output_shape[0], W.shape[1]) if self.is_shared else self.output_shape
            return np.zeros(shape), np.zeros(shape)
        if _FEW_FEATURES * len(used) <= self.n_features and self.proves_by_columns and not self.is_sparse:
            return self.restricted(used).forward_with_error(np.ascontiguousarray(W[used]))
        sizes = self.per_example(euclidean_norms(W, axis=0)[0])
        value = self.forward(W)
        return value, product_error(value, self.n_features, self._row_norms, sizes)

    @final
    def adjoint_with_error(self, R: Array | Interval) -> tuple[Array, Array]:
        """Return the d x m matrix with columns X_k^T r_k, and how far it is from that of exact arithmetic, entry by entry; R may be between
        bounds.

        |fl(G) - G|_jk <= gamma_(n_k+2) ||X_k[:, j]|| ||r_k||.
        """
        if isinstance(R, Interval):
            (value, error), spread = self.adjoint_with_error(R.middle), self._task_norms(R.error)
            lost = TINIEST * ((self.column_norms > 0.0) & (spread > 0.0))  # where nothing is uncertain, nothing becomes so
            return value, up(error + up(self.column_norms * spread)) + lost
        value = self.adjoint(R)
        return value, product_error(value, max(self.sizes), self.column_norms, self._task_norms(R))

    @final
    def enclose_adjoint(self, R: Array | Interval) -> Interval:
        """Return the matrix with columns X_k^T r_k between bounds that hold in exact arithmetic, R itself between bounds or not."""
        return Interval.around(*self.adjoint_with_error(R))

    @final
    def enclose_task_sums(self, R: Array) -> Interval:
        """Return `task_sums` between bounds that hold in exact arithmetic."""
        terms = max(self.sizes)
        return Interval.around(self.task_sums(R), 2.0 * gamma(terms) * self.task_sums(np.abs(R)))

    @property
    @abstractmethod
    def _row_norms(self) -> Array:
        """Upper bounds on ||x_i||, in a shape that broadcasts against `output_shape`."""

    @property
    @abstractmethod
    def column_norms(self) -> Array:
        """Upper bounds on ||X_k[:, j]||, in a shape that broadcasts against d x m; computed once, and part of every certificate."""


class SharedDesign(Design):
    """One n x d matrix X for all m tasks: W -> X W."""

    is_shared = True

    def __init__(self, X: Any, n_tasks: int) -> None:
        checked = real_matrix("X", X)
        _require_examples("X", checked)
        self._hold(frozen_matrix(checked.copy()), n_tasks)  # a copy, so that nobody else can change it

    def _hold(self, X: Matrix, n_tasks: int) -> None:
        self._X, self.n_tasks = X, n_tasks
        self.n_features = int(X.shape[1])
        self.sizes = (int(X.shape[0]),) * n_tasks

    @classmethod
    def _sharing(cls, X: Matrix, n_tasks: int) -> SharedDesign:
        """Return the design of a matrix that nobody can change, which is not copied."""
        design = cls.__new__(cls)
        design._hold(X, n_tasks)
        return design

    def forward(self, W: Array) -> Array:
        return compensated_product(self._X, W) if is_compensated() else np.asarray(self._X @ W)

    def adjoint(self, R: Array) -> Array:
        return compensated_product(self._X.T, R) if is_compensated() else np.asarray(transposed(self._X) @ R)

    def block(self, k: int) -> Matrix:
        return self._X

    def of_task(self, k: int) -> SharedDesign:
        return self._sharing(self._X, 1)

    def restricted(self, features: NDArray[np.intp]) -> SharedDesign:
        return self._sharing(frozen_matrix(columns_of(self._X, features)), self.n_tasks)

    def with_constant(self) -> SharedDesign:
        return self._sharing(frozen_matrix(with_column(self._X, 1.0)), self.n_tasks)

    def squares(self) -> float:
        return sum_of_squares(self._X)

    def norms(self) -> Array:
        return np.full(self.n_tasks, spectral_norm(self._X))

    @cached_property
    def _row_norms(self) -> Array:
        return frozen(line_norms(self._X, axis=1)[:, None])

    @cached_property
    def column_norms(self) -> Array:
        return frozen(line_norms(self._X, axis=0)[:, None])


class SeparateDesign(Design):
    """A matrix X_k (n_k x d) for each task, wherever its rows are: W -> (X_1 w_1, ..., X_m w_m), stacked."""

    is_shared = False

    def _by_task(self, ask: Callable[[Design, int], T]) -> list[T]:
        """Return what is asked of the design of every task."""
        return [ask(self.of_task(k), k) for k in range(self.n_tasks)]

    def forward(self, W: Array) -> Array:
        return np.concatenate(self._by_task(lambda design, k: design.forward(W[:, k : k + 1])[:, 0]))

    def adjoint(self, R: Array) -> Array:
        return np.concatenate(self._by_task(lambda design, k: design.adjoint(R[self._spans[k]][:, None])), axis=1)

    def restricted(self, features: NDArray[np.intp]) -> PerTaskDesign:
        """Return the design of some features alone, in memory."""
        return PerTaskDesign(self._by_task(lambda design, k: design.restricted(features).block(0)))

    def squares(self) -> float:
        return math.fsum(self._by_task(lambda design, k: design.squares()))

    def norms(self) -> Array:
        return np.concatenate(self._by_task(lambda design, k: design.norms()))

    @cached_property
    def _row_norms(self) -> Array:
        return frozen(np.concatenate(self._by_task(lambda design, k: design._row_norms[:, 0])))

    @cached_property
    def column_norms(self) -> Array:
        return frozen(np.concatenate(self._by_task(lambda design, k: design.column_norms), axis=1))


class PerTaskDesign(SeparateDesign):
    """Matrices in memory: sparse ones as the block-diagonal map itself, dense ones as rows, and as a cube where their sizes agree."""

    def __init__(self, blocks: Sequence[Any]) -> None:
        if not blocks:
            raise InputError("designs must hold at least one task")
        checked = [real_matrix(f"X of task {k}", block) for k, block in enumerate(blocks)]
        for k, block in enumerate(checked):
            _require_examples(f"X of task {k}", block)
            if block.shape[1] != checked[0].shape[1]:
                raise InputError(f"X of task {k} has {block.shape[1]} features, but task 0 has {checked[0].shape[1]}")
        self.n_features, self.n_tasks = int(checked[0].shape[1]), len(checked)
        self.sizes = tuple(int(block.shape[0]) for block in checked)
        self._cube: Array | None = None
        self._sparse = any(is_sparse(block) for block in checked)
        if self._sparse:
            self._X = frozen_matrix(sp.csr_array(sp.block_diag([sp.csr_array(block) for block in checked], format="csr")))
        else:
            self._X = frozen(np.concatenate(checked))
            if len(set(self.sizes)) == 1:
                self._cube = self._X.reshape(self.n_tasks, self.sizes[0], self.n_features)

    def forward(self, W: Array) -> Array:
        if is_compensated():
            return super().forward(W)
        columns = np.ascontiguousarray(W.T)
        if self._sparse:
            return np.asarray(self._X @ columns.ravel())
        if self._cube is not None:
            return (self._cube @ columns[:, :, None]).ravel()
        out = np.empty(self.output_shape)
        for k in range(self.n_tasks):
            np.matmul(self.block(k), columns[k], out=out[self._spans[k]])
        return out

    def adjoint(self, R: Array) -> Array:
        if is_compensated():
            return super().adjoint(R)
        if self._sparse:
            columns = np.asarray(self._X.T @ R).reshape(self.n_tasks, self.n_features)
        elif self._cube is not None:
            columns = (R.reshape(self.n_tasks, 1, -1) @ self._cube)[:, 0, :]
        else:
            columns = np.empty((self.n_tasks, self.n_features))
            for k in range(self.n_tasks):
                np.matmul(R[self._spans[k]], self.block(k), out=columns[k])
        return np.ascontiguousarray(columns.T)

    def block(self, k: int) -> Matrix:
        if self._sparse:
            return self._X[self._spans[k], k * self.n_features : (k + 1) * self.n_features]
        return self._X[self._spans[k]]

    def restricted(self, features: NDArray[np.intp]) -> PerTaskDesign:
        if not self._sparse:
            return PerTaskDesign([columns_of(self.block(k), features) for k in range(self.n_tasks)])
        width = len(features)
        chosen = columns_of(self._X, (np.arange(self.n_tasks)[:, None] * self.n_features + features).ravel())
        return PerTaskDesign([chosen[self._spans[k], k * width : (k + 1) * width] for k in range(self.n_tasks)])

    def of_task(self, k: int) -> SharedDesign:
        return SharedDesign._sharing(frozen_matrix(self.block(k)), 1)

    def with_constant(self) -> PerTaskDesign:
        return PerTaskDesign([with_column(self.block(k), 1.0) for k in range(self.n_tasks)])

    @cached_property
    def _row_norms(self) -> Array:
        return frozen(line_norms(self._X, axis=1))


def line_norms(X: Matrix, axis: int) -> Array:
    """Return upper bounds on the Euclidean norms of the rows (`axis` 1) or columns (0), a vector."""
    if not is_sparse(X):
        return euclidean_norms(X, axis).ravel()
    with np.errstate(over="ignore", under="ignore"):
        squares, top = np.square(X.data), 1.0
    if not SAFE < squares.max(initial=0.0) < 1.0 / SAFE:
        top = float(np.abs(X.data).max(initial=0.0))
        if top == 0.0:
            return np.zeros(X.shape[1 - axis])
        squares = np.square(X.data / top)
    count = X.shape[axis]
    totals = np.asarray(sp.csr_array((squares, X.indices, X.indptr), shape=X.shape).sum(axis=axis)).ravel()
    # What is lost below the normal numbers is less than the smallest of all for every entry.
    return np.asarray(top * (np.sqrt(totals + count * TINIEST) * (1.0 + gamma(count + 12))) + TINIEST)


def stored_entries(X: Matrix) -> int:
    """Return how many entries a dense or CSR matrix stores."""
    return int(X.nnz if is_sparse(X) else X.size)


def largest_entry(X: Matrix) -> float:
    """Return the size of the largest entry of a dense or CSR matrix, 0 where it has none."""
    entries = X.data if is_sparse(X) else X
    return max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))


def gram(X: Matrix) -> Array:
    """Return X^T X as a dense matrix."""
    return dense(X.T @ X)


def sum_of_squares(X: Matrix) -> float:
    """Return the sum of the squares of the entries."""
    return float(np.square(X.data if is_sparse(X) else X).sum())


def divided(X: Matrix, scale: float) -> Matrix:
    """X / scale. (SciPy multiplies sparse X by 1 / scale, which overflows for the smallest numbers.)"""
    if not is_sparse(X):
        return X / scale
    result = X.copy()
    result.data /= scale
    return result


def spectral_norm(X: Matrix) -> float:
    """sigma_max(X): exact from the smaller Gram matrix up to size 2000, else by Lanczos from a random start, rounded up by 1e-6.

    Lanczos approaches from below, so beyond size 2000 this is an estimate; `spectral_norm_bound` is a proven bound.
    """
    scale = float(np.abs(X.data if is_sparse(X) else X).max(initial=0.0))
    if scale == 0.0:
        return 0.0
    scaled = divided(X, scale)  # the Gram matrix squares the entries, so bring them near 1 first
    if min(X.shape) > _EXACT_NORM_SIZE:
        largest = leading_value(scaled)
        return spectral_norm_bound(X) if largest is None else scale * largest
    gram = scaled @ scaled.T if X.shape[0] < X.shape[1] else scaled.T @ scaled
    diagonal = diagonal_of(gram)
    squares = np.linalg.eigvalsh(dense(gram)) if diagonal is None else diagonal
    return scale * float(np.sqrt(max(0.0, squares.max())))


def leading_value(A: Any) -> float | None:
    """The largest singular value of a matrix or a linear operator by Lanczos' method, rounded up by 1e-6; None where that fails."""
    # A random start has a part along the leading singular vector, whatever the matrix; a fixed one may have none.
    start = np.random.default_rng(0).standard_normal(min(A.shape))
    try:
        return float(spla.svds(A, k=1, v0=start, return_singular_vectors=False, tol=1e-9, random_state=0)[0]) * (1.0 + 1e-6)
    except spla.ArpackError:  # as for the identity, where the start is an eigenvector already
        return None


def spectral_norm_bound(X: Matrix) -> float:
    """An upper bound on sigma_max(X): itself up to size 2000, else min(||X||_F, sqrt(||X||_1 ||X||_inf))."""
    if min(X.shape) <= _EXACT_NORM_SIZE:
        return spectral_norm(X)
    magnitude = abs(X)
    scale = float(magnitude.max())
    if scale == 0.0:
        return 0.0
    magnitude = divided(magnitude, scale)
    frobenius = float(np.sqrt((magnitude * magnitude).sum()))
    return scale * min(frobenius, float(np.sqrt(magnitude.sum(axis=0).max() * magnitude.sum(axis=1).max())))


def leading_pair(A: Array) -> tuple[Array, Array]:
    """Unit singular vectors u, v of the largest singular value of a d x m matrix: u^T A v = sigma_max(A); any two where A = 0.

    From the smaller Gram matrix, so u^T A v is sigma_max to rounding, while u and v may be off by the root of it where values are close.
    """
    d, m = A.shape
    scale = float(np.abs(A).max(initial=0.0))
    if scale == 0.0:
        return np.eye(d, 1)[:, 0], np.eye(m, 1)[:, 0]
    wide = d < m
    tall = (A.T if wide else A) / scale
    v = np.linalg.eigh(tall.T @ tall)[1][:, -1]
    u = tall @ v
    u /= np.linalg.norm(u)
    return (v, u) if wide else (u, v)


def stacked_rows(design: Design) -> Matrix:
    """The rows of all examples in one matrix, dense or CSR: X itself where it is shared, else those of X_1, X_2, ..."""
    if design.is_shared:
        return design.block(0)
    return stacked([design.block(k) for k in range(design.n_tasks)])


def stacked(blocks: Sequence[Matrix]) -> Matrix:
    """Return blocks of rows, all dense or all sparse, one below the other."""
    return sp.csr_array(sp.vstack(blocks, format="csr")) if is_sparse(blocks[0]) else np.concatenate(blocks)


def diagonal_of(A: Matrix) -> Array | None:
    """The diagonal of a square sparse matrix that stores nothing beside it; None of any other."""
    if not is_sparse(A) or A.nnz > A.shape[0] or not np.array_equal(*A.nonzero()):
        return None
    return np.asarray(A.diagonal())


def columns_of(X: Matrix, columns: NDArray[np.intp]) -> Matrix:
    """Return a copy of some columns of a dense or CSR matrix, in the order given, CSR with sorted indices."""
    if not is_sparse(X):
        return np.ascontiguousarray(X[:, columns])
    chosen = sp.csr_array(X[:, columns])
    chosen.sort_indices()
    return chosen


def transposed(X: Matrix) -> Matrix:
    """Return X^T, which shares the memory of X, dense or CSR."""
    if not is_sparse(X):
        return X.T
    # Filled afterwards, since the constructor copies arrays that are a small part of others.
    made = sp.csc_array(X.shape[::-1])
    made.data, made.indices, made.indptr = X.data, X.indices, X.indptr
    made.has_sorted_indices, made.has_canonical_format = X.has_sorted_indices, X.has_canonical_format
    return made


def with_column(X: Matrix, value: float) -> Matrix:
    """Return a matrix with one column more, the last one, that is `value`."""
    n, d = X.shape
    if not is_sparse(X):
        return np.hstack([X, np.full((n, 1), value)])
    ends, indices = X.indptr, X.indices.dtype.type(d)
    return sp.csr_array((np.insert(X.data, ends[1:], value), np.insert(X.indices, ends[1:], indices), ends + np.arange(n + 1)), (n, d + 1))


def dense(X: Matrix) -> Array:
    """X as an array, itself where it is one."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """A read-only view of `array`; the owner's array stays as writable as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen_matrix(matrix: Matrix) -> Matrix:
    """`frozen` for dense and CSR matrices."""
    if not is_sparse(matrix):
        return frozen(matrix)
    parts = (frozen(matrix.data), frozen(matrix.indices), frozen(matrix.indptr))
    view = sp.csr_array(parts, shape=matrix.shape, copy=False)
    view.has_sorted_indices = True
    view.has_canonical_format = True
    return view


def _require_examples(name: str, X: Matrix) -> None:
    if X.shape[0] == 0:
        raise InputError(f"{name} is empty: a task needs at least one example")
    if X.shape[1] == 0:
        raise InputError(f"{name} has no features: at least one is needed")
