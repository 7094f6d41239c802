"""celer: working sets with dual extrapolation, around coordinate descent or Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bench_mtl.solvers.peers.peer import L1Peer
from bench_mtl.solvers.peers.pieces import Layout, Piece, by_columns, by_rows


@dataclass(frozen=True)
class Celer(L1Peer):
    """celer's `Lasso`, also with w >= 0, and its `LogisticRegression`, for every task alone.

    Its objectives are, for n examples, 1/(2n) ||y - X w||^2 + alpha ||w||_1, and ||w||_1 + C sum_i log(1 + exp(-y_i x_i.w)). Its tolerance
    is one of its own duality gap, relative to the objective at 0.

    References
    ----------
    Massias, Gramfort, Salmon, ICML 2018; Massias, Vaiter, Gramfort, Salmon, JMLR 21, 2020.
    """

    name: ClassVar[str] = "peer_celer"
    package: ClassVar[str] = "celer"

    def layout(self, piece: Piece) -> Layout:
        return by_rows if piece.loss == "logistic" else by_columns  # `LogisticRegression` first makes rows of any X

    def logistic(self, library: Any, piece: Piece, options: dict[str, Any]) -> Any:
        return library.LogisticRegression(C=1.0 / piece.relative_penalty, **options)
