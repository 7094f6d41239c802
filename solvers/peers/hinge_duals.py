"""The dual variables of a support vector machine, from its coefficients."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import PerTaskDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.solvers.dual_coordinate_ascent.solver import DualCoordinateAscent, Passes
from bench_mtl.solvers.peers.pieces import Piece

#: A dual point is enough if its own gap is below this share of what it proves of w, or below the second number, which is rounding.
_SHARE, _ROUNDING = 0.02, 1e-14
#: Passes over the data at most.
_MOST_PASSES = 5000


def hinge_dual_of(piece: Piece, w: Array) -> Array:
    """Return a dual point r = a y of min_w weight sum_i max(0, 1 - y_i x_i.w) + penalty ||w||^2 that proves of w nearly all there is to.

    A library that hands over w alone is owed a bound that is as good as its w: dual coordinate ascent begins where a_i is `weight` on the
    wrong side of the margin and 0 on the right side, and ends near the dual optimum.
    """
    assert piece.penalty is not None
    margins = piece.y * (piece.X @ w)
    objective = piece.weight * float(np.maximum(0.0, 1.0 - margins).sum()) + piece.penalty * float(w @ w)
    design = PerTaskDesign([sp.csr_array(piece.X) if piece.is_sparse else piece.X])
    fit = LinearFit(design, piece.y, Hinge(), np.full(piece.n, piece.weight))
    passes = Passes(DualCoordinateAscent(aim=0.1), Hinges(fit, SquaredNorms(piece.penalty, half=1.0)))
    now: Passes | None = passes.start(Iterate(w[:, None], np.where(margins < 1.0, piece.weight, 0.0) * piece.y))
    while True:
        last = passes.iterate(passes)
        assert last.dual is not None
        assert last.claim is not None
        G = piece.X.T @ last.dual
        proven = float(last.dual @ piece.y) - float(G @ G) / (4.0 * piece.penalty)
        is_enough = last.claim <= max(_SHARE * (1.0 - proven / objective), _ROUNDING)
        if is_enough or now is None or last.step >= _MOST_PASSES:
            return np.asarray(last.dual)
        now = passes.step(passes)
