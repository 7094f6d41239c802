"""Multi-task regression or classification with coefficients of low rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import SMOOTH_LOSSES, loss_named
from bench_mtl.model.norms import Trace
from bench_mtl.model.protocols import Capability
from bench_mtl.model.regularisers import Extras
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data, weighted


class TraceNormGLM(FitProblem):
    """Least squares or logistic regression for m tasks whose coefficients have a small trace norm.

    ::

        min_W  sum_k sum_i loss(x_ki.w_k, y_ki)   subject to  ||W||_* <= radius,   or with  + penalty ||W||_*  instead

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss, which is the
    residual y - t, or y / (1 + exp(y t)). With G = (X_k^T r_k)_k the bounds are, for the best c >= 0,

        squared:   D(c) = c (<r, y> - radius ||G||_2) - c^2/2 ||r||^2
        logistic:  D(c) = sum_ki H(c a_ki) - c radius ||G||_2,  a = r y clipped to [0, 1], c <= 1, H(p) = -p log p - (1-p) log(1-p)

    and with a penalty the same without ||G||_2, for c <= penalty / ||G||_2.

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    radius : trace-norm radius, at least 0; "truth" takes the trace norm of the generator's own W (or P + Q). Exactly one of `radius`
        and `penalty` is given.
    penalty : at least 0; or "0.1 max", a share of ||G||_2 of the residuals at W = 0, from which on W = 0 is optimal
    loss : "squared", "logistic" or "huber" ("huber:0.5" for the one with delta = 0.5, which is 1 otherwise)
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`
    ridge : at least 0, with a penalty: ridge/2 ||W||_F^2 is added

    Raises
    ------
    InputError : radius or penalty negative or missing, both given, an unknown loss, labels other than -1/+1 or 0/1 for the logistic one.

    References
    ----------
    Ji, Ye, ICML 2009 (penalty); Chen, Liu, Ye, ACM TKDD 5(4), 2012, equation 45 without its sparse part ("TraceNorm" of section 7).
    """

    name = "trace_norm_glm"
    takes_weights = True
    offers = FitProblem.offers | {Capability.LMO}
    aliases: ClassVar[Mapping[str, str]] = {"tau": "radius"}
    conic_forms = Trace.models

    def __init__(
        self,
        data: TaskData,
        *,
        radius: float | str | None = None,
        penalty: float | str | None = None,
        loss: str = "squared",
        intercept: bool = False,
        ridge: float = 0.0,
    ) -> None:
        super().__init__(data, loss_named(loss, SMOOTH_LOSSES), example_weights(data.design, "sum", data.weights), intercept=intercept)
        extras = Extras.of(None, False, ridge)
        self.ridge = extras.ridge
        self.radius, self.penalty = self.constrain_or_penalise(Trace(), data, radius, penalty, extras)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = tiny_data(rng, np.outer(rng.standard_normal(FEATURES), rng.standard_normal(TASKS)))
        labelled = data.labelled()
        yield cls(data.shared, radius=2.0)
        yield cls(data.per_task, penalty=1.0)
        yield cls(data.shared_csr, penalty="0.2 max")
        yield cls(data.per_task_csr, radius=1.5)
        yield cls(labelled.shared, radius=2.0, loss="logistic")
        yield cls(weighted(labelled.per_task), penalty=0.7, loss="logistic")
        yield cls(weighted(data.shared), radius=1.5, intercept=True)
        yield cls(labelled.shared, radius=1.0, loss="logistic", intercept=True)
        yield cls(data.per_task_csr, penalty=0.5, loss="huber:0.5")
        yield cls(data.shared, penalty=0.5, ridge=0.2)
