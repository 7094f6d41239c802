"""celer: working sets with dual extrapolation, around coordinate descent or Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_mtl.model.forms import loss_under
from bench_mtl.model.norms import L1
from bench_mtl.solvers.peers.peer import Fitted, Peer
from bench_mtl.solvers.peers.pieces import Piece

#: Working sets at most; the library's own limits, of 50 and 100, end fits to tight tolerances too early.
_WORKING_SETS = 1000


@dataclass(frozen=True)
class Celer(Peer):
    """celer's `Lasso`, also with w >= 0, and its `LogisticRegression`, for every task alone.

    Its objectives are, for n examples, 1/(2n) ||y - X w||^2 + alpha ||w||_1, and ||w||_1 + C sum_i log(1 + exp(-y_i x_i.w)). Its tolerance
    is one of its own duality gap, relative to the objective at 0.

    References
    ----------
    Massias, Gramfort, Salmon, ICML 2018; Massias, Vaiter, Gramfort, Salmon, JMLR 21, 2020.
    """

    name: ClassVar[str] = "peer_celer"
    takes = (loss_under("smooth", L1),)
    package: ClassVar[str] = "celer"

    def refusal(self, piece: Piece) -> str | None:
        return refusal_of_penalties(piece)

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        import celer

        options: dict[str, Any] = {"fit_intercept": False, "tol": tolerance, "max_iter": _WORKING_SETS, **self.options}
        if piece.loss == "squared":
            model = celer.Lasso(alpha=piece.relative_penalty / piece.n, positive=piece.nonneg, **options)
        else:
            model = celer.LogisticRegression(C=1.0 / piece.relative_penalty, **options)
        model.fit(piece.X, piece.y)
        return Fitted(np.ravel(model.coef_), int(np.max(getattr(model, "n_iter_", 0))))  # its LogisticRegression does not say


def refusal_of_penalties(piece: Piece) -> str | None:
    """Why a library with an l1 penalty under the squared loss, also with w >= 0, and the logistic loss does not take a piece."""
    if piece.loss not in ("squared", "logistic"):
        return f"it has no {piece.loss} loss"
    if piece.radius is not None:
        return "it has a penalty, and no constraint"
    if piece.nonneg and piece.loss != "squared":
        return f"it has no sign constraint with the {piece.loss} loss"
    return None
