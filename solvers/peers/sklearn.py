"""scikit-learn: coordinate descent for the lasso, liblinear and SAGA for classifiers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.model.forms import RIDGE_HINGES
from bench_mtl.solvers.peers.hinge_duals import hinge_dual_of
from bench_mtl.solvers.peers.peer import MANY_ITERATIONS, Fitted, L1Peer
from bench_mtl.solvers.peers.pieces import Layout, Piece, by_columns, by_rows


@dataclass(frozen=True)
class Sklearn(L1Peer):
    """scikit-learn's `Lasso`, also with w >= 0, its l1-penalised `LogisticRegression`, and its `LinearSVC`, for every task alone.

    Its objectives are, for n examples, 1/(2n) ||y - X w||^2 + alpha ||w||_1; ||w||_1 + C sum_i log(1 + exp(-y_i x_i.w)); and
    1/2 ||w||^2 + C sum_i max(0, 1 - y_i x_i.w), by dual coordinate descent. Its tolerances are of the duality gap relative to ||y||^2
    (`Lasso`), of the violation of the optimality conditions (liblinear), and of the change of w (saga).

    `LinearSVC` keeps its dual variables to itself: they are found again from its w as in `hinge_dual_of`, off its clock.

    Parameters
    ----------
    method : of `LogisticRegression`: "liblinear" by default, or "saga", which is for the logistic loss only

    References
    ----------
    Fan, Chang, Hsieh, Wang, Lin, JMLR 9, 2008 (liblinear); Defazio, Bach, Lacoste-Julien, NIPS 2014 (SAGA).
    """

    method: str = "liblinear"

    name: ClassVar[str] = "peer_sklearn"
    takes = (*L1Peer.takes, RIDGE_HINGES)
    package: ClassVar[str] = "sklearn"
    module: ClassVar[str] = "sklearn.linear_model"
    most_iterations: ClassVar[int] = MANY_ITERATIONS
    distribution: ClassVar[str] = "scikit-learn"
    extra: ClassVar[str | None] = None
    methods: ClassVar[tuple[str, ...]] = ("liblinear", "saga")

    def warm_up(self) -> None:
        import sklearn.linear_model
        import sklearn.svm  # noqa: F401

        for X in (np.eye(2), sp.csr_matrix(np.eye(2))):
            hinge_dual_of(Piece(X, np.array([1.0, -1.0]), "hinge", "ridge", 0.5, None, 1.0), np.zeros(2))

    def layout(self, piece: Piece) -> Layout:
        return by_columns if piece.loss == "squared" else by_rows

    def refusal(self, piece: Piece) -> str | None:
        if self.method != "liblinear" and piece.loss != "logistic":
            return f"its {self.method} is for the logistic loss, not the {piece.loss} one"
        if piece.norm == "ridge":
            return None
        return super().refusal(piece)

    def fit(self, piece: Piece, tolerance: float) -> Fitted:
        if piece.norm != "ridge":
            return super().fit(piece, tolerance)
        from sklearn.svm import LinearSVC

        given = {"C": 0.5 / piece.relative_penalty, "loss": "hinge", "dual": True, "random_state": 0, "fit_intercept": False}
        model = LinearSVC(**{**given, "tol": tolerance, "max_iter": self.most_iterations, **self.options}).fit(piece.X, piece.y)
        w = np.ravel(model.coef_)
        return Fitted(w, int(np.max(model.n_iter_)), find_dual=partial(hinge_dual_of, piece, w))

    def logistic(self, library: Any, piece: Piece, options: dict[str, Any]) -> Any:
        """Return `LogisticRegression` with an l1 penalty, which 1.8 asks for by another name."""
        import sklearn

        numbers = [int(number) for number in re.findall(r"\d+", sklearn.__version__)[:2]]  # of 1.8rc1 too
        penalty: dict[str, Any] = {"l1_ratio": 1.0} if numbers >= [1, 8] else {"penalty": "l1"}
        given = {**penalty, "C": 1.0 / piece.relative_penalty, "solver": self.method, "random_state": 0}
        return library.LogisticRegression(**{**given, **options})
