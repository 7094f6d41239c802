"""Multi-task regression or classification with a row-sparse part that tasks share and a sparse part of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import number_or_share, one_of
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import StackedFitProblem
from bench_mtl.model.linear_loss import REDUCTIONS, example_weights
from bench_mtl.model.losses import SMOOTH_LOSSES, loss_named
from bench_mtl.model.norms import L1, L1Inf
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.regularisers import Penalty, Stacked
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data, weighted


class DirtyModel(StackedFitProblem):
    """Least squares or logistic regression for m tasks that share some of their features: coefficients B + S, B with few rows, S sparse.

    ::

        min_{B,S}  sum_k s_k sum_i loss(x_ki.(b_k + s_k), y_ki) + row_penalty sum_j max_k |B_jk| + entry_penalty sum_jk |S_jk|

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``). S = 0 at some optimum if row_penalty <= entry_penalty, and B = 0 if
    row_penalty >= m entry_penalty.

    A point is the stack (B, S), 2 x d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss
    in the predictions, s_k included. With G = (X_k^T r_k)_k the bounds are, for the best c >= 0 with
    c max_j sum_k |G_jk| <= row_penalty and c max_jk |G_jk| <= entry_penalty,

        squared:   D(c) = c <r, y> - c^2/2 sum_ki r_ki^2 / s_k
        logistic:  D(c) = sum_ki s_k H(c a_ki / s_k),   a = r y clipped to [0, s_k],   c <= 1,   H(p) = -p log p - (1-p) log(1-p)

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    row_penalty : weight of the l1,inf norm of B, at least 0 (with 0 the bound is void), lambda_b in the paper; or "0.1 max", a
        share of max_j sum_k |G_jk| of the residuals at B = S = 0
    entry_penalty : weight of the l1 norm of S, at least 0 (with 0 the bound is void), lambda_s in the paper; or "0.1 max", a share of
        max_jk |G_jk| likewise. B = S = 0 is optimal just where both weights are at least the whole.
    loss : "squared", "logistic" or "huber" ("huber:0.5" for the one with delta = 0.5, which is 1 otherwise)
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : a negative weight, labels other than -1/+1 or 0/1 for the logistic loss, an unknown loss or reduction.

    References
    ----------
    Jalali, Ravikumar, Sanghavi, Ruan, "A dirty model for multi-task learning", NIPS 2010 (least squares, means).
    """

    name = "dirty_model"
    takes_weights = True
    aliases: ClassVar[Mapping[str, str]] = {"lambda_b": "row_penalty", "lambda_s": "entry_penalty"}
    conic_forms = L1.models

    def __init__(
        self,
        data: TaskData,
        *,
        row_penalty: float | str,
        entry_penalty: float | str,
        loss: str = "squared",
        reduction: str = "mean",
        intercept: bool = False,
    ) -> None:
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        super().__init__(data, loss_named(loss, SMOOTH_LOSSES), example_weights(data.design, reduction, data.weights), intercept=intercept)
        self.row_penalty = number_or_share("row_penalty", row_penalty, lambda: self.largest_penalty(L1Inf()))
        self.entry_penalty = number_or_share("entry_penalty", entry_penalty, lambda: self.largest_penalty(L1()))
        self.regularise(Stacked((Penalty(L1Inf(), self.row_penalty), Penalty(L1(), self.entry_penalty))))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        used = (rng.random((FEATURES, 1)) < 0.4) | (rng.random((FEATURES, TASKS)) < 0.2)
        data = tiny_data(rng, rng.standard_normal((FEATURES, TASKS)) * used)
        labelled = data.labelled()
        yield cls(data.shared, row_penalty=0.3, entry_penalty=0.2)
        yield cls(data.per_task, row_penalty="0.2 max", entry_penalty="0.2 max")
        yield cls(data.shared_csr, row_penalty=2.0, entry_penalty=1.2, reduction="sum")
        yield cls(data.per_task_csr, row_penalty=1.0, entry_penalty=0.6, reduction="sum")
        shares: dict[str, Any] = {"row_penalty": "0.15 max", "entry_penalty": "0.2 max", "loss": "logistic"}
        yield cls(labelled.shared, **shares)
        yield cls(weighted(labelled.per_task), **shares)
        yield cls(labelled.shared_csr, **shares, reduction="sum")
        yield cls(labelled.per_task_csr, **shares, reduction="sum")
        yield cls(weighted(data.per_task), row_penalty="0.2 max", entry_penalty="0.2 max", intercept=True)
        yield cls(labelled.shared, **shares, intercept=True)
        yield cls(data.per_task, row_penalty="0.2 max", entry_penalty="0.2 max", loss="huber:0.5")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("B", "S")

    def measures(self, point: Array) -> Mapping[str, float]:
        """Of entries above a millionth of the largest of their part: rows of B and entries of S that have one, and features that either
        uses; on held-out examples the share of errors (squared loss: of squares not explained)."""
        sizes = np.abs(point)
        used = sizes > NEGLIGIBLE_ENTRY * sizes.max(axis=(1, 2), keepdims=True)
        found = {
            "rows of B": float(np.count_nonzero(used[0].any(axis=1))),
            "non-zeros of S": float(np.count_nonzero(used[1])),
            "features used": float(np.count_nonzero(used.any(axis=(0, 2)))),
        }
        return found | self.held_out_error(point)
