"""SPAMS: FISTA and the homotopy method (LARS), in C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.threads import pinned_thread_count
from bench_mtl.model.forms import loss_under
from bench_mtl.model.norms import L1, L1Inf
from bench_mtl.solvers.peers.peer import MANY_ITERATIONS, Fitted, Peer
from bench_mtl.solvers.peers.pieces import Piece


@dataclass(frozen=True)
class Spams(Peer):
    """SPAMS's `fistaFlat` with an l1 penalty, also with w >= 0, or the l1,inf penalty of all tasks; and its `lasso`, the homotopy method.

    `fistaFlat` minimises 1/2 ||y - X w||^2 + lambda ||w||. Its tolerance is of its own duality gap, relative to the objective. `lasso`
    (method "lars") is for dense X, with a penalty or in an l1 ball, follows the path of solutions to its end, and has no tolerance: there
    is one tolerance.

    Parameters
    ----------
    method : "fista" or "lars"

    References
    ----------
    Mairal, Bach, Ponce, Sapiro, JMLR 11, 2010; Mairal, Jenatton, Obozinski, Bach, JMLR 12, 2011.
    """

    method: str = "fista"

    name: ClassVar[str] = "peer_spams"
    takes = (loss_under("smooth", L1), loss_under("smooth", L1Inf))
    package: ClassVar[str] = "spams"
    distribution: ClassVar[str] = "spams-bin"
    extra: ClassVar[str | None] = "peers-gpl"
    methods: ClassVar[tuple[str, ...]] = ("fista", "lars")

    @property
    def tolerances(self) -> tuple[float, ...]:
        return super().tolerances if self.method == "fista" else super().tolerances[-1:]

    def refusal(self, piece: Piece) -> str | None:
        if self.method == "lars":
            if piece.loss != "squared" or piece.norm != "l1":
                return "its lasso is for the squared loss with an l1 norm"
            return "its lasso is for dense X" if piece.is_sparse else None
        if piece.loss == "logistic":
            return "with its logistic loss it ends at gaps of 1e-5, whatever the tolerance"
        if piece.loss != "squared":
            return f"it has no {piece.loss} loss"
        if piece.radius is not None:
            return "its FISTA has penalties, and no constraint"
        if piece.norm == "l1inf" and piece.is_sparse:
            return "with an l1,inf penalty and sparse X it stops at W = 0, whatever the optimum"
        return None

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        import spams

        X, Y = piece.X, np.asfortranarray(piece.y.reshape(piece.n, -1))
        if self.method == "lars":
            is_ball = piece.radius is not None
            options: dict[str, Any] = {"mode": 0 if is_ball else 2, "lambda1": piece.radius if is_ball else piece.relative_penalty}
            options |= {"pos": piece.nonneg, "numThreads": pinned_thread_count(), **self.options}
            return Fitted(np.ravel(spams.lasso(Y, D=X, **options).todense()), 0)
        options = {"lambda1": piece.relative_penalty, "tol": tolerance, "max_it": MANY_ITERATIONS, "it0": 10, "pos": piece.nonneg}
        options |= {"loss": "square", "regul": "l1linf" if piece.norm == "l1inf" else "l1"}
        options |= {"numThreads": pinned_thread_count(), **self.options}
        W0 = np.zeros((piece.d, Y.shape[1]), order="F")
        W, info = spams.fistaFlat(Y, X, W0, return_optim_info=True, **options)
        steps = int(np.max(np.atleast_2d(info.T)[:, -1]))
        complaint = "the limit of its iterations is met" if steps >= options["max_it"] else ""
        return Fitted(W, steps, complaint)
