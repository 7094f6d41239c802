"""Units of the features in which the columns of the data are alike."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign, dense
from bench_mtl.core.types import Array
from bench_mtl.model.intercepts import can_centre, centred_columns

#: Features whose norms differ by more than this factor are scaled to one norm; below it that gains nothing that the step sizes do not.
LIKE = 1000.0
#: Of the square of a column's norm what is left at least without its mean, where rounding hides it.
_LEFT = 1e-12


def feature_units(design: Design) -> Array | None:
    """Return units t of the features in which the columns of the data have norm 1, W_j = t_j V_j; None where they are alike.

    None for shards too, which would have to be written again.
    """
    if design.is_in_shards:
        return None
    squares = np.zeros(design.n_features)
    for k in range(1 if design.is_shared else design.n_tasks):
        X = design.block(k)
        with np.errstate(over="ignore", under="ignore"):
            squares += np.asarray((X * X).sum(axis=0)).ravel() if is_sparse(X) else np.einsum("ij,ij->j", X, X)  # without a copy of X
    used = squares[squares > 0.0]
    if len(used) == 0 or not np.isfinite(used).all() or used.max() <= LIKE**2 * used.min():
        return None
    return np.asarray(1.0 / np.sqrt(np.where(squares > 0.0, squares, used.max())))


def stays_sparse(design: Design) -> bool:
    """Whether dense features would be much larger than those that there are."""
    return design.is_sparse and not can_centre(design)


def scaled_sparse(design: Design, *, centre: bool) -> tuple[Design, Array]:
    """Return a sparse design with features of about these norms, as if they were centred or not, and their units."""
    squares = np.zeros(design.n_features)
    for k in range(1 if design.is_shared else design.n_tasks):
        X = design.block(k)
        own = np.asarray((X * X).sum(axis=0)).ravel()
        means = np.asarray(X.mean(axis=0)).ravel() if centre else np.zeros_like(own)
        squares += np.maximum(own - X.shape[0] * means**2, _LEFT * own)
    units = _units(np.sqrt(squares))
    return in_units(design, units), units


def _units(norms: Array) -> Array:
    """Return the powers of two with which norms are from 1/2 to 1."""
    return np.where((norms > 0.0) & np.isfinite(norms), np.ldexp(1.0, -np.frexp(norms)[1]), 1.0)


def scaled_features(design: Design, *, centre: bool, weights: Array | None = None) -> tuple[Design, Array]:
    """Return a dense design whose features have norms from 1/2 to 1 over all tasks, centred in every task or not, and their units.

    These are powers of two, t with W_j = t_j V_j, so that scaling rounds nothing. Weights are those of the examples in means and norms, in
    the output shape.
    """
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    shares: list[Array | None] = [None] * len(blocks)
    if weights is not None:  # of examples that all tasks share those of all tasks
        spread = np.broadcast_to(weights, design.output_shape)
        shares = [spread.mean(axis=1)] if design.is_shared else [np.array(design.task_outputs(spread, k)) for k in range(len(blocks))]
    rows = [
        centred_columns(X, share)[0] if centre else np.array(dense(X), dtype=np.float64) for X, share in zip(blocks, shares, strict=True)
    ]
    with np.errstate(over="ignore"):
        squares = (np.einsum("ij,ij->j", X, X if share is None else X * share[:, None]) for X, share in zip(rows, shares, strict=True))
        norms = np.sqrt(sum(squares))
    units = _units(norms)
    for X in rows:
        X *= units
    return SharedDesign(rows[0], design.n_tasks) if design.is_shared else PerTaskDesign(rows), units


def in_units(design: Design, units: Array) -> Design:
    """Return the design with its columns multiplied by the units."""
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    scaled = [sp.csr_array(X @ sp.diags_array(units)) if design.is_sparse else X * units for X in blocks]
    return SharedDesign(scaled[0], design.n_tasks) if design.is_shared else PerTaskDesign(scaled)
