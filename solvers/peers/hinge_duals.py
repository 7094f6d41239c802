"""The dual variables of a support vector machine, from its coefficients."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.peers.pieces import Piece

#: How near 1 a margin must be for its example to count as on the margin, from near to far; what proves most is taken.
_BANDS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

#: Examples on the margin at most: more are many more than there are features, or a fit that is far from done.
_MOST = 1000


def hinge_dual_of(piece: Piece, w: Array) -> Array:
    """Return a dual point r = a y of min_w weight sum_i max(0, 1 - y_i x_i.w) + penalty ||w||^2 that goes with w.

    At the optimum 2 penalty w = sum_i a_i y_i x_i, where a_i is `weight` on the wrong side of the margin, 0 on the right side, and between
    both on it. There the a_i are the solution of this equation by least squares within their bounds; which examples are on the margin is
    tried from near to far, and that point is taken which proves most.
    """
    from scipy.optimize import lsq_linear

    assert piece.penalty is not None
    margins = piece.y * (piece.X @ w)
    best, best_value, tried = np.zeros(piece.n), 0.0, -1
    for band in _BANDS:
        on = np.abs(1.0 - margins) <= band
        count = int(on.sum())
        if count == tried or count > _MOST:
            continue
        tried = count
        a = np.where(margins < 1.0, piece.weight, 0.0)
        a[on] = 0.0
        if count:
            rows = piece.X[np.flatnonzero(on)]
            A = np.asarray(rows.toarray() if piece.is_sparse else rows).T * piece.y[on]
            rest = 2.0 * piece.penalty * w - piece.X.T @ (a * piece.y)
            A, rest = _reduced(A, rest)
            a[on] = np.clip(lsq_linear(A, rest, (0.0, piece.weight), method="bvls", tol=1e-15).x, 0.0, piece.weight)
        G = piece.X.T @ (a * piece.y)
        value = float(a.sum()) - float(G @ G) / (4.0 * piece.penalty)
        if value > best_value:
            best, best_value = a, value
    return np.asarray(best * piece.y)


def _reduced(A: Array, b: Array) -> tuple[Array, Array]:
    """Return a least-squares problem with the same solutions and no more rows than columns."""
    if A.shape[0] <= A.shape[1]:
        return A, b
    Q, R = np.linalg.qr(A)
    return R, Q.T @ b
