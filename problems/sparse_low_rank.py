"""Multi-task regression or classification with a sparse and a low-rank part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.model.fit_problem import StackedFitProblem
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import SMOOTH_LOSSES, loss_named
from bench_mtl.model.norms import L1, Trace
from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
from bench_mtl.model.task_data import TaskData, number_or_truth
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data, weighted


class SparseLowRank(StackedFitProblem):
    """Least squares or logistic regression for m tasks whose coefficients are a sparse plus a low-rank matrix.

    ::

        min_{P,Q}  sum_k sum_i loss(x_ki.(p_k + q_k), y_ki) + penalty sum_jk |P_jk|   subject to  ||Q||_* <= radius

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    A point is the stack (P, Q), 2 x d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the
    loss, which is the residual y - t, or y / (1 + exp(y t)). With G = (X_k^T r_k)_k the bounds are, for the best
    c in [0, penalty / max |G|],

        squared:   D(c) = c (<r, y> - radius ||G||_2) - c^2/2 ||r||^2
        logistic:  D(c) = sum_ki H(c a_ki) - c radius ||G||_2,  a = r y clipped to [0, 1], c <= 1, H(p) = -p log p - (1-p) log(1-p)

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    penalty : weight of the l1 norm of P, above 0 (with 0 the bound is void); gamma in the paper
    radius : radius of the trace norm of Q, at least 0, tau in the paper; "truth" takes the trace norm of the generator's own Q
    loss : "squared", "logistic" or "huber" ("huber:0.5" for the one with delta = 0.5, which is 1 otherwise)
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : penalty not positive, radius negative, an unknown loss, labels other than -1/+1 or 0/1 for the logistic one.

    References
    ----------
    Chen, Liu, Ye, ACM TKDD 5(4), 2012, equation 45; equation 6 for any smooth convex loss.
    """

    name = "sparse_low_rank"
    takes_weights = True
    aliases: ClassVar[Mapping[str, str]] = {"gamma": "penalty", "tau": "radius"}
    conic_forms = Trace.models

    def __init__(self, data: TaskData, *, penalty: float, radius: float | str, loss: str = "squared", intercept: bool = False) -> None:
        super().__init__(data, loss_named(loss, SMOOTH_LOSSES), example_weights(data.design, "sum", data.weights), intercept=intercept)
        self.penalty = real_number("penalty", penalty, strict=True)
        self.radius = number_or_truth("radius", radius, data, "Q", Trace().value)
        self.regularise(Stacked((Penalty(L1(), self.penalty), Constraint(Trace(), self.radius))))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        P = rng.standard_normal((FEATURES, TASKS)) * (rng.random((FEATURES, TASKS)) < 0.3)
        data = tiny_data(rng, P + np.outer(rng.standard_normal(FEATURES), rng.standard_normal(TASKS)), 0.1)
        labelled = data.labelled()
        yield cls(data.shared, penalty=1.0, radius=2.0)
        yield cls(weighted(data.per_task), penalty=0.5, radius=1.0)
        yield cls(data.shared_csr, penalty=2.0, radius=0.5)
        yield cls(data.per_task_csr, penalty=1.0, radius=1.5)
        yield cls(labelled.shared, penalty=0.5, radius=2.0, loss="logistic")
        yield cls(labelled.per_task, penalty=0.5, radius=0.7, loss="logistic")
        yield cls(data.shared_csr, penalty=1.0, radius=0.8, intercept=True)
        yield cls(weighted(labelled.per_task), penalty=0.6, radius=0.5, loss="logistic", intercept=True)
        yield cls(data.shared, penalty=0.5, radius=0.7, loss="huber")
