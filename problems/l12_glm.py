"""Multi-task regression or classification with an l1,2 constraint or penalty: smooth losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import NormForm
from bench_mtl.model.linear_loss import REDUCTIONS, LinearFit, example_weights
from bench_mtl.model.losses import loss_named
from bench_mtl.model.norms import L12
from bench_mtl.model.patterns import features_used
from bench_mtl.model.protocols import Capability, Form
from bench_mtl.model.regularisers import Constraint, Penalty
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data

LOSSES = ("squared", "logistic")


class L12GLM(FitProblem):
    """Least squares or logistic regression for m tasks that select their features together by the l1,2 norm, the group lasso's.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j ||W_j||_2 <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki) + lambda sum_j ||W_j||_2

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where W_j is a row (a feature's coefficients in all tasks) and s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``).

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the predictions,
    s_k included. With G = (X_k^T r_k)_k and its longest row ||G||_{inf,2} = max_j ||G_j||_2 the bounds are those of `l1inf_glm` with this
    norm in place of ||G||_{inf,1}.

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    loss : "squared" or "logistic"
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0, ||G||_{inf,2} of the residuals at W = 0
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1 for the logistic loss, a negative or missing radius or penalty, both given, an unknown loss
        or reduction.

    References
    ----------
    Yuan, Lin, Journal of the Royal Statistical Society B 68(1), 2006 (group lasso); Meier, van de Geer, Buhlmann, the same journal 70(1),
    2008 (logistic loss); Obozinski, Taskar, Jordan, Statistics and Computing 20(2), 2010 (for many tasks).
    """

    name: ClassVar[str] = "l12_glm"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (NormForm, LinearFit)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {form: cones | {"squares"} for form, cones in L12.models.items()}
    regulariser: Constraint | Penalty

    def __init__(
        self,
        data: TaskData,
        *,
        loss: str = "squared",
        radius: float | str | None = None,
        penalty: float | str | None = None,
        reduction: str = "mean",
        intercept: bool = False,
    ) -> None:
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        super().__init__(data, loss_named(loss, LOSSES), example_weights(data.design, reduction), intercept=intercept)
        self.radius, self.penalty = self.constrain_or_penalise(L12(), data, radius, penalty)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = tiny_data(rng, rng.standard_normal((FEATURES, TASKS)) * (rng.random((FEATURES, 1)) < 0.5))
        labelled = data.labelled()
        yield cls(data.shared, radius=1.0)
        yield cls(data.per_task, penalty="0.3 max")
        yield cls(data.shared_csr, penalty=2.0, reduction="sum")
        yield cls(data.per_task_csr, radius=0.5, reduction="sum")
        yield cls(labelled.shared, loss="logistic", radius=1.5)
        yield cls(labelled.per_task_csr, loss="logistic", penalty="0.2 max")
        yield cls(data.per_task, penalty="0.3 max", intercept=True)
        yield cls(labelled.shared, loss="logistic", radius=1.2, intercept=True)

    def make_forms(self) -> tuple[Form, ...]:
        form = NormForm(self.fit, self.regulariser)
        return (form,) if self.fit.intercept else (form, self.fit)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest, and the rows (features) that have one; on held-out examples the share of errors
        (squared loss: of squares not explained)."""
        return features_used(point) | self.held_out_error(point)
