"""skglm: working sets around Anderson-accelerated coordinate descent, or proximal Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bench_mtl.solvers.peers.peer import L1Peer
from bench_mtl.solvers.peers.pieces import Piece


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

    def logistic(self, library: Any, piece: Piece, options: dict[str, Any]) -> Any:
        return library.SparseLogisticRegression(alpha=piece.relative_penalty / piece.n, **options)
