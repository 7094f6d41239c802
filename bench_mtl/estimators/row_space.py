"""Wide data in coordinates of the space that their rows span, for fits that rotations of the features do not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import dense, divided, stacked_rows
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.examples import blocks_of, with_blocks

#: The largest number of rows of all tasks: their Gram matrix is decomposed.
_MOST_ROWS = 2000

#: Singular values below the root of this share of the largest count as 0. The basis then is orthonormal to about 1e-5 at worst, in
#: directions that add no more than that to predictions.
_SMALLEST_SQUARE = 1e-11

#: Products with a reduced design that is dense are worth it while it has at most this number of entries for every entry of W.
_ENTRIES = 8


class RowSpace(NamedTuple):
    """W = V A for an orthonormal basis V (d x r) of the space of all rows, of all tasks: the coordinates A (r x m) in place of W.

    A problem of the predictions X_k w_k and the singular values of W alone has the same optimum over A as over W: what W has outside the
    space of the rows changes no prediction, and without it no singular value is larger; and V A has the singular values of A. Any dual
    point r proves the same bound as well, for G = (X_k^T r_k)_k is V times the one of the reduced designs. So a proven gap holds for both.

    With X = P S V^T, from the eigenvectors P of X X^T, the reduced designs are P S, and V = X^T P S^-1 is never formed. A sum of squares
    over the examples of a shared design is that of S A - P^T Y as well, where the design is diagonal.
    """

    data: TaskData
    """The reduced designs, with as many rows and the same targets; turned by P^T where `turn` is given."""
    rows: Matrix
    """X, in units of its largest entry."""
    inverse: Array
    """P S^-1, n x r, for these rows."""
    turn: Array | None
    """P, n x n."""

    @staticmethod
    def of(data: TaskData, *, squares: bool) -> RowSpace | None:
        """From the Gram matrix of all rows; None where that would not make steps quicker, for too many rows, without any, or of
        examples in shards. `squares` says whether the loss is a sum of squares, which weighs all examples of a shared design alike."""
        if data.design.is_in_shards:
            return None
        turned = squares and data.design.is_shared and data.weights is None
        n, d, m = data.design.output_shape[0], data.n_features, data.n_tasks
        if 2 * n > d or n > _MOST_ROWS or (data.design.is_sparse and not turned and n * n > _ENTRIES * d * m):
            return None
        rows: Any = stacked_rows(data.design)
        scale = float(np.abs(rows.data if is_sparse(rows) else rows).max(initial=0.0))
        if scale == 0.0:
            return None
        rows = divided(rows, scale)  # the Gram matrix squares the entries
        values, P = np.linalg.eigh(dense(rows @ rows.T))
        values, P = values[::-1], np.ascontiguousarray(P[:, ::-1])
        rank = int(np.count_nonzero(values > _SMALLEST_SQUARE * values[0]))
        lengths = np.sqrt(values[:rank])
        inverse = P[:, :rank] / lengths
        if turned:
            design = sp.csr_array(sp.diags_array(scale * lengths, shape=(n, rank)))
            turned_data = TaskData.shared(design, P.T @ data.targets, name=data.name)
            return RowSpace(replace(turned_data, task_weights=data.task_weights), rows, inverse, P)
        targets = [y for _, y in blocks_of(data)]
        reduced = np.split(P[:, :rank] * (scale * lengths), np.cumsum([len(y) for y in targets])[:-1])
        return RowSpace(with_blocks(data, zip(reduced, targets, strict=True)), rows, inverse, None)

    def coefficients(self, A: Array) -> Array:
        """V A, d x m."""
        return np.ascontiguousarray(np.asarray(self.rows.T @ (self.inverse @ A)))

    def coordinates(self, W: Array) -> Array:
        """V^T W, r x m: W without what changes no prediction."""
        return np.ascontiguousarray(self.inverse.T @ np.asarray(self.rows @ W))

    def dual(self, dual: Array | None) -> Array | None:
        """Return the dual point of the full problem, shaped like its targets."""
        return dual if dual is None or self.turn is None else np.asarray(self.turn @ dual)
