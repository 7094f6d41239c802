"""Multi-task regression or classification with an l1,inf constraint or penalty: smooth losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import L1InfForm
from bench_mtl.model.linear_loss import REDUCTIONS, example_weights
from bench_mtl.model.losses import loss_named
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.patterns import features_used
from bench_mtl.model.protocols import Capability, Form
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data

LOSSES = ("squared", "logistic")


class L1InfGLM(FitProblem):
    """Least squares or logistic regression for m tasks that select their features together.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)   subject to  sum_j max_k |W_jk| <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki) + lambda sum_j max_k |W_jk|

        squared:   loss(t, y) = 1/2 (y - t)^2
        logistic:  loss(t, y) = log(1 + exp(-y t))

    where s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``). With ``intercept`` the first sum is the least over numbers b_k that
    are added to all x_ki.w_k; the r of every task add up to 0 then.

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the predictions,
    s_k included. With G = (X_k^T r_k)_k and ||G||_{inf,1} = max_j sum_k |G_jk| the bounds are, for the best c >= 0,

        squared:   D(c) = c <r, y> - c^2/2 sum_ki r_ki^2 / s_k - c C ||G||_{inf,1}
        logistic:  D(c) = sum_ki s_k H(c a_ki / s_k) - c C ||G||_{inf,1},   c <= 1,   H(p) = -p log p - (1-p) log(1-p)

    with a = r y clipped to [0, s_k]. With a penalty the same without the last term, for c <= lambda / ||G||_{inf,1} (so it is void for
    lambda = 0).

    Parameters
    ----------
    data : TaskData with real targets; for the logistic loss with labels -1/+1, where labels 0/1 are converted, with a warning
    loss : "squared" or "logistic"
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0; or "0.1 max", a share of the smallest lambda that gives W = 0, ||G||_{inf,1} of the residuals at W = 0
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1 for the logistic loss, a negative or missing radius or penalty, both given, an unknown loss
        or reduction.

    References
    ----------
    Turlach, Venables, Wright, Technometrics 47(3), 2005 (least squares, constrained); Quattoni, Carreras, Collins, Darrell, ICML 2009,
    section 2 (any convex loss); Negahban, Wainwright, IEEE Transactions on Information Theory 57(6), 2011 (least squares, penalised).
    """

    name: ClassVar[str] = "l1inf_glm"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (L1InfForm,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": frozenset({"linear", "squares"})}

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
        self.radius, self.penalty = self.constrain_or_penalise(L1Inf(), data, radius, penalty)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = tiny_data(rng, rng.standard_normal((FEATURES, TASKS)) * (rng.random((FEATURES, 1)) < 0.5))
        labelled = data.labelled()
        yield cls(data.shared, radius=1.0)
        yield cls(data.per_task, penalty="0.3 max")
        yield cls(data.shared_csr, penalty=2.0, reduction="sum")
        yield cls(data.per_task_csr, radius=0.5, reduction="sum")
        yield cls(labelled.shared, loss="logistic", radius=1.5)
        yield cls(labelled.per_task, loss="logistic", penalty="0.2 max")
        yield cls(labelled.shared_csr, loss="logistic", penalty=1.0, reduction="sum")
        yield cls(labelled.per_task_csr, loss="logistic", radius=0.7, reduction="sum")
        yield cls(data.per_task, penalty="0.3 max", intercept=True)
        yield cls(labelled.shared, loss="logistic", radius=1.2, intercept=True)

    def make_forms(self) -> tuple[Form, ...]:
        return (L1InfForm(self.fit, self.radius, self.penalty),)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest, and the rows (features) that have one; on held-out examples the share of errors
        (squared loss: of squares not explained)."""
        return features_used(point) | self.held_out_error(point)
