"""X_k^T X_k of every task as small dense blocks, ready for compiled loops: products with it, and with the inverse of it plus rho I."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_factor, lapack

from bench_mtl.core.designs import Design, dense
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array

#: Numbers that the blocks of a design may hold: 256 MiB.
LARGEST_BLOCKS = 2**25
#: The largest side of a matrix to be factorised.
LARGEST_FACTOR = 4000
#: A product with X and one with its transpose cost about so much for each stored number, in units of a number of a dense block.
_SPARSE_COST = 8


class TaskBlocks(NamedTuple):
    """A symmetric d x d operator for every task, each held as one dense block A_k.

    A square block is the operator, a thin one (n_k < d rows) represents A_k^T A_k.
    """

    rows: Array
    """All blocks, one below the other; a single one where all tasks share it."""
    offsets: NDArray[np.int64]
    """Where the rows of each block begin, and the end."""
    thin: bool
    """Of all blocks alike."""

    def block(self, k: int) -> Array:
        return self.rows[self.offsets[k] : self.offsets[k + 1]]


@dataclass(frozen=True)
class NormalEquations:
    """All that squared losses are made of: to steer by, since differences of large numbers prove nothing."""

    gram: Array
    """X^T X, d x d, or of every task, m x d x d."""
    along: Array
    """X^T Y with the weights of the tasks, d x m."""
    squares: float
    """Of the targets, with these weights."""
    weights: Array
    """Of the tasks, m numbers."""

    def value_and_gradient(self, W: Array) -> tuple[float, Array]:
        """Return f and its gradient."""
        with one_blas_thread():  # as workers: with more of them sums have other bits
            products = self.gram @ W if self.gram.ndim == 2 else (self.gram @ W.T[:, :, None])[:, :, 0].T
        image = products * self.weights
        value = 0.5 * float(np.vdot(W, image)) - float(np.vdot(W, self.along)) + 0.5 * self.squares
        return value, image - self.along

    def lipschitz(self) -> float:
        """Return the largest eigenvalue of X^T X times the largest weight."""
        with one_blas_thread():
            return max(0.0, float(np.linalg.eigvalsh(self.gram).max())) * float(self.weights.max())


def factorisable(design: Design, *, square: bool = False) -> bool:
    """Whether the blocks of a design (square ones, if asked for), and a factor of them, are of a size to be made."""
    sizes, d = _distinct_sizes(design), design.n_features
    entries = sum(sizes) * d if _is_thin(design) and not square else len(sizes) * d * d
    return entries <= LARGEST_BLOCKS and min(max(sizes), d) <= LARGEST_FACTOR


def cheaper_than_data(design: Design) -> bool:
    """Whether a product with the blocks costs less than one with X and its transpose."""
    if not factorisable(design):
        return False
    if not design.is_sparse:
        return True
    sizes, d = _distinct_sizes(design), design.n_features
    entries = 2 * sum(sizes) * d if _is_thin(design) else len(sizes) * d * d
    return entries <= _SPARSE_COST * design.n_stored


def normal_blocks(design: Design, *, square: bool = False) -> TaskBlocks:
    """X_k^T X_k as square blocks where asked for or tasks have at least d examples on average, else X_k itself as thin ones."""
    thin = _is_thin(design) and not square
    arrays = [dense(design.block(k)) if thin else design.gram(k) for k in range(len(_distinct_sizes(design)))]
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
    return TaskBlocks(np.ascontiguousarray(np.concatenate(arrays)), offsets, thin)


def normal_equations(design: Design, targets: Array, weights: Array) -> NormalEquations | None:
    """Return those of weighted squares, in memory; None where weights differ in a task, or a product with X^T X costs more than data."""
    own = weights[0 if design.is_shared else np.cumsum([0, *design.sizes[:-1]])]
    if _is_thin(design) or not cheaper_than_data(design) or np.any(weights != design.per_example(own)):
        return None
    grams = [design.gram(k) for k in range(len(_distinct_sizes(design)))]
    weighted = weights * targets
    return NormalEquations(
        grams[0] if design.is_shared else np.stack(grams), design.adjoint(weighted), float(np.vdot(weighted, targets)), own
    )


def mean_curvature(design: Design) -> float:
    """The mean eigenvalue of X_k^T X_k over all tasks, sum ||X_k||_F^2 / (d m)."""
    return design.squares() / (design.n_features * len(_distinct_sizes(design)))


def resolvent_blocks(normal: TaskBlocks, rho: float) -> TaskBlocks:
    """The blocks of (X_k^T X_k + rho I)^-1 if square; if thin, those of the C_k with (X_k^T X_k + rho I)^-1 = (I - C_k) / rho.

    Thin ones by Woodbury's identity: C_k = X_k^T (X_k X_k^T + rho I)^-1 X_k, of which the block is L^-1 X_k with L L^T the inner matrix.
    """
    rows = np.empty(normal.rows.shape)
    for k in range(len(normal.offsets) - 1):
        block = normal.block(k)
        target = rows[normal.offsets[k] : normal.offsets[k + 1]]
        if normal.thin:
            # LAPACK's columns are our rows: all of this is done on transposes, without a copy.
            inner = blas.dsyrk(1.0, block.T, trans=1, lower=0)
            inner[np.diag_indices(len(inner))] += rho
            factor = cho_factor(inner, overwrite_a=True, check_finite=False)[0]
            target[:] = blas.dtrsm(1.0, factor, block.T, side=1, lower=0).T
        else:
            shifted = np.array(block, order="F")
            shifted[np.diag_indices(len(shifted))] += rho
            factor = cho_factor(shifted, overwrite_a=True, check_finite=False)[0]
            upper = np.triu(lapack.dpotri(factor, lower=0, overwrite_c=1)[0])
            target[:] = upper + np.triu(upper, 1).T
    return TaskBlocks(rows, normal.offsets, normal.thin)


def _distinct_sizes(design: Design) -> tuple[int, ...]:
    """Examples of each block: one block where all tasks share it."""
    return design.sizes[:1] if design.is_shared else design.sizes


def _is_thin(design: Design) -> bool:
    """Whether X_k takes less than X_k^T X_k; of examples in shards there is no X_k in memory."""
    sizes = _distinct_sizes(design)
    return not design.is_in_shards and sum(sizes) < len(sizes) * design.n_features
