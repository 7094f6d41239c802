"""The dual variables of a support vector machine, from its coefficients."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.peers.pieces import Piece
from bench_mtl.solvers.positive_definite import solved

#: How near 1 a margin must be for its example to count as on the margin, from near to far; what proves most is taken.
_BANDS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
#: Examples on the margin at most, whose Gram matrix takes 32 MB.
_MOST = 2000
#: A dual value so near the objective proves all that rounding lets it prove.
_CLOSED = 1e-12
#: Steps of Newton's method, each a factorisation, and halvings of one step.
_MOST_STEPS, _MOST_HALVINGS = 50, 30
#: What is added to the diagonal of a Gram matrix, as a share of its largest entry: examples may be there twice.
_RIDGE = 1e-13
#: A gradient below this share of its largest term is rounding.
_ROUNDING = 1e-15


def hinge_dual_of(piece: Piece, w: Array) -> Array:
    """Return a dual point r = a y of min_w weight sum_i max(0, 1 - y_i x_i.w) + penalty ||w||^2 that goes with w.

    At the optimum 2 penalty w = sum_i a_i y_i x_i, where a_i is `weight` on the wrong side of the margin, 0 on the right side, and between
    both on it. There the a_i are the solution of this equation by least squares within their bounds; which examples are on the margin is
    tried from near to far, and that point is taken which proves most. It takes about as long as a few certificates.
    """
    assert piece.penalty is not None
    margins = piece.y * (piece.X @ w)
    objective = piece.weight * float(np.maximum(0.0, 1.0 - margins).sum()) + piece.penalty * float(w @ w)
    best, best_value, tried = np.zeros(piece.n), 0.0, -1
    rows = piece.X.tocsr() if piece.is_sparse else piece.X
    for band in _BANDS:
        on = np.abs(1.0 - margins) <= band
        count = int(on.sum())
        if count == tried or count > _MOST:
            continue
        tried = count
        a = np.where(margins < 1.0, piece.weight, 0.0)
        if count:
            start = np.clip(best[on], 0.0, piece.weight)
            a[on] = 0.0
            rest = 2.0 * piece.penalty * w - piece.X.T @ (a * piece.y)
            near, signs = rows[np.flatnonzero(on)], piece.y[on]
            products = near @ near.T
            gram = np.asarray(products.toarray() if piece.is_sparse else products) * np.outer(signs, signs)
            a[on] = box_minimum(gram, signs * (near @ rest), piece.weight, start)
        G = piece.X.T @ (a * piece.y)
        value = float(a.sum()) - float(G @ G) / (4.0 * piece.penalty)
        if value > best_value:
            best, best_value = a, value
        if best_value >= objective * (1.0 - _CLOSED):
            break
    return np.asarray(best * piece.y)


def box_minimum(gram: Array, linear: Array, upper: float, start: Array) -> Array:
    """Return argmin_a 1/2 a.gram a - linear.a  subject to  0 <= a <= upper, by Newton's method on the free entries, projected.

    Parameters
    ----------
    gram : k x k, positive semidefinite
    linear : k
    start : k, within the bounds

    References
    ----------
    Bertsekas, SIAM Journal on Control and Optimization 20, 1982.
    """
    a = start.copy()
    ridge = _RIDGE * float(np.max(np.diag(gram), initial=0.0))
    size = float(np.max(np.abs(linear), initial=0.0))

    def value(point: Array) -> float:
        return 0.5 * float(point @ (gram @ point)) - float(linear @ point)

    known = value(a)
    for _ in range(_MOST_STEPS):
        gradient = gram @ a - linear
        free = ~(((a <= 0.0) & (gradient >= 0.0)) | ((a >= upper) & (gradient <= 0.0)))
        if not free.any() or np.abs(gradient[free]).max() <= _ROUNDING * size:
            break
        step = solved(gram[np.ix_(free, free)], gradient[free], ridge)
        if step is None:  # for rounding
            step = gradient[free] / (np.diagonal(gram)[free].sum() or 1.0)
        share = 1.0
        for _ in range(_MOST_HALVINGS):
            tried = a.copy()
            tried[free] = np.clip(a[free] - share * step, 0.0, upper)
            if (new := value(tried)) < known:
                break
            share *= 0.5
        else:
            break
        a, known = tried, new
    return a
