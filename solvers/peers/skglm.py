"""skglm: working sets around Anderson-accelerated coordinate descent, or proximal Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.model.forms import loss_under
from bench_mtl.model.norms import L1
from bench_mtl.solvers.peers.celer import refusal_of_penalties
from bench_mtl.solvers.peers.peer import Fitted, Peer
from bench_mtl.solvers.peers.pieces import Piece, Pieces

#: Working sets at most; the library's own limits, of 20 and 50, end fits to tight tolerances too early.
_WORKING_SETS = 1000


@dataclass(frozen=True)
class Skglm(Peer):
    """skglm's `Lasso` (solver `AndersonCD`), also with w >= 0, and its `SparseLogisticRegression` (`ProxNewton`), for every task alone.

    Its objectives are, for n examples, 1/(2n) ||y - X w||^2 + alpha ||w||_1, and 1/n sum_i log(1 + exp(-y_i x_i.w)) + alpha ||w||_1. Its
    tolerance is absolute, of the largest violation of an optimality condition of these.

    References
    ----------
    Bertrand, Klopfenstein, Bannier, Gidel, Massias, NeurIPS 2022; Moufad, Bannier, Bertrand, Klopfenstein, Massias, JMLR 25, 2024.
    """

    name: ClassVar[str] = "peer_skglm"
    takes = (loss_under("smooth", L1),)
    package: ClassVar[str] = "skglm"

    def compile(self, model: Pieces) -> Pieces:
        """Have the library compile what it compiles in every process anew, for one loss and layout: some ten seconds."""
        piece = model.pieces[0]
        _compile(piece.loss, piece.is_sparse)
        return model

    def refusal(self, piece: Piece) -> str | None:
        return refusal_of_penalties(piece)

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        import skglm

        options: dict[str, Any] = {"fit_intercept": False, "tol": tolerance, "max_iter": _WORKING_SETS, **self.options}
        alpha = piece.relative_penalty / piece.n
        if piece.loss == "squared":
            model = skglm.Lasso(alpha=alpha, positive=piece.nonneg, **options)
        else:
            model = skglm.SparseLogisticRegression(alpha=alpha, **options)
        model.fit(piece.X, piece.y)
        return Fitted(np.ravel(model.coef_), int(np.max(model.n_iter_)))


@cache
def _compile(loss: str, is_sparse: bool) -> None:
    """Fit a tiny piece of the same kind."""
    X, y = np.asfortranarray([[1.0, 0.5], [-1.0, 0.2], [0.3, -1.0]]), np.array([1.0, -1.0, 1.0])
    Skglm().fit(Piece(sp.csc_matrix(X) if is_sparse else X, y, loss, "l1", 1.0, None, 0.1), 1e-3)
