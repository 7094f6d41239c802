"""skglm: working sets around Anderson-accelerated coordinate descent, or proximal Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.solvers.peers.peer import L1Peer
from bench_mtl.solvers.peers.pieces import Piece, Pieces


@dataclass(frozen=True)
class Skglm(L1Peer):
    """skglm's `Lasso` (solver `AndersonCD`), also with w >= 0, and its `SparseLogisticRegression` (`ProxNewton`), for every task alone.

    Its objectives are, for n examples, 1/(2n) ||y - X w||^2 + alpha ||w||_1, and 1/n sum_i log(1 + exp(-y_i x_i.w)) + alpha ||w||_1. Its
    tolerance is absolute, of the largest violation of an optimality condition of these.

    References
    ----------
    Bertrand, Klopfenstein, Bannier, Gidel, Massias, NeurIPS 2022; Moufad, Bannier, Bertrand, Klopfenstein, Massias, JMLR 25, 2024.
    """

    name: ClassVar[str] = "peer_skglm"
    package: ClassVar[str] = "skglm"

    def compile(self, model: Pieces) -> Pieces:
        """Have the library compile what it compiles in every process anew, for one loss and layout: some ten seconds."""
        piece = model.pieces[0]
        _compile(piece.loss, piece.is_sparse)
        return model

    def logistic(self, library: Any, piece: Piece, options: dict[str, Any]) -> Any:
        return library.SparseLogisticRegression(alpha=piece.relative_penalty / piece.n, **options)


@cache
def _compile(loss: str, is_sparse: bool) -> None:
    """Fit a tiny piece of the same kind."""
    X, y = np.asfortranarray([[1.0, 0.5], [-1.0, 0.2], [0.3, -1.0]]), np.array([1.0, -1.0, 1.0])
    Skglm().fit(Piece(sp.csc_matrix(X) if is_sparse else X, y, loss, "l1", 1.0, None, 0.1), 1e-3)
