"""Cyanure: accelerated and stochastic gradient methods with quasi-Newton steps, in C++."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.threads import pinned_thread_count
from bench_mtl.model.forms import loss_under
from bench_mtl.model.norms import L1, L1Inf
from bench_mtl.solvers.peers.peer import MANY_ITERATIONS, Fitted, Peer
from bench_mtl.solvers.peers.pieces import Layout, Piece, by_rows


@dataclass(frozen=True)
class Cyanure(Peer):
    """Cyanure's `Regression` with the l1 penalty, the l1 ball, and the l1,inf penalty of all tasks; its `Classifier` with the first two.

    Its objectives are, for n examples, 1/n sum_i loss_i + lambda ||w||, and 1/n sum_i loss_i in the ball. Its tolerance is of its own
    duality gap, relative to the objective. Its `Lasso` and `L1Logistic` are these with sets of features chosen in another process, on all
    threads, and are left out.

    References
    ----------
    Mairal, arXiv 1912.08165, 2019.
    """

    name: ClassVar[str] = "peer_cyanure"
    takes = (loss_under("smooth", L1), loss_under("smooth", L1Inf))
    package: ClassVar[str] = "cyanure"

    def warm_up(self) -> None:
        _estimators()

    def layout(self, piece: Piece) -> Layout:
        return by_rows

    def refusal(self, piece: Piece) -> str | None:
        if piece.nonneg:
            return "it has no sign constraint"
        if piece.norm == "l1inf" and piece.radius is not None:
            return "it has an l1,inf penalty, and no such constraint"
        if piece.norm == "l1inf" and piece.loss != "squared":
            return f"it has no {piece.loss} loss of several tasks with a penalty for all"
        if piece.radius == 0.0:
            return "it needs a radius above 0"
        return None if piece.loss in ("squared", "logistic") else f"it has no {piece.loss} loss"

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        estimators = _estimators()
        norm = "l1linf" if piece.norm == "l1inf" else "l1" if piece.radius is None else "l1-ball"
        size = piece.relative_penalty / piece.n if piece.radius is None else piece.radius
        options: dict[str, Any] = {"fit_intercept": False, "tol": tolerance, "max_iter": MANY_ITERATIONS, "verbose": False}
        options |= {"penalty": norm, "lambda_1": size, "n_threads": pinned_thread_count(), **self.options}
        model = estimators.Regression(**options) if piece.loss == "squared" else estimators.Classifier(loss="logistic", **options)
        model.fit(piece.X, piece.y)
        return Fitted(np.asarray(model.coef_).reshape(piece.d, -1), int(np.max(model.n_iter_)))


def _estimators() -> Any:
    """Return the module with the estimators, which says nothing on its own any more: it would log what it converts."""
    from cyanure import data_processing, estimators

    for module in (data_processing, estimators):
        module.logger.setLevel(logging.WARNING)
    return estimators
