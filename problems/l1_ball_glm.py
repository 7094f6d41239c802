"""Regression and classification by linear models with an l1 constraint or penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of, true_or_false
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import LinearForm, SimplexForm
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.losses import SMOOTH_LOSSES, Loss, loss_named
from bench_mtl.model.norms import L1
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Capability, Form
from bench_mtl.model.regularisers import Constraint, Extras
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, one_task, signs_of, tiny_data, weighted

LOSSES = (*SMOOTH_LOSSES, "multiclass")

BALLS = ("task", "all")


class L1BallGLM(FitProblem):
    """Generalised linear models with an l1 constraint or penalty, for one or many tasks.

    ::

        min_W  sum_k s_k sum_i loss(x_ki.w_k, y_ki)
               subject to  ||w_k||_1 <= radius for every task k  (balls = "task"),  or  sum_k ||w_k||_1 <= radius  (balls = "all"),
               or with  + penalty sum_jk |W_jk|  instead;   and W >= 0 if `nonneg`

        squared:     loss(t, y) = 1/2 (y - t)^2,                        s_k = 1
        logistic:    loss(t, y) = log(1 + exp(-y t)),                   s_k = 1/n_k
        multiclass:  sum_k loss = log sum_r exp(t_ir - t_i,y_i),        s = 1/n, a class a task

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the
    predictions t, s included. With G = (X_k^T r_k)_k, S(G) = sum_k max_j |G_jk| (or max_jk |G_jk| for balls = "all" and penalties; without
    the bars where W >= 0) the bounds are, for the best c >= 0,

        squared:     D(c) = c <r, y> - c^2/2 ||r||^2 - c radius S(G)
        logistic:    D(c) = sum_ki s_k H(c a_ki / s_k) - c radius S(G),   c <= 1,  H(p) = -p log p - (1-p) log(1-p)
        multiclass:  D(c) = s sum_i H(y_i - c r_i / s) - c radius S(G),   c <= 1,  H(p) = - sum_r p_r log p_r

    where a = r y is clipped to [0, s_k], and y_i - r_i / s is made probabilities. With a penalty the same without S(G), for
    c <= penalty / S(G).

    Parameters
    ----------
    data : TaskData with real targets (squared), labels -1/+1 (logistic), or labels with one +1 a row of a shared design (multiclass);
        labels 0/1 are converted, with a warning. Its `orientation`, if any, turns W >= 0 into W_jk orientation_jk >= 0.
    loss : "squared", "logistic", "multiclass" or "huber" ("huber:0.5" for the one with delta = 0.5, which is 1 otherwise)
    radius : at least 0; "truth" takes the largest l1 norm of a column of the generator's own W (of the whole for balls = "all").
        Exactly one of `radius` and `penalty` is given.
    penalty : at least 0; or "0.1 max", a share of the smallest penalty that gives W = 0
    balls : "task" for a ball for every task, "all" for one in all
    nonneg : whether W >= 0
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`; not with the multiclass loss
    feature_factors, ridge : as in `l1inf_glm`, with a penalty

    Raises
    ------
    InputError : other labels, a class that is missing or double in a row, a multiclass loss of designs that are not shared, a negative or
        missing radius or penalty, both given, an unknown loss.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, section 7; Singer's slides on the same work, MMDS 2008.
    """

    name = "l1_ball_glm"
    takes_weights = True
    offers = FitProblem.offers | {Capability.LMO}
    forms = (LinearForm, SimplexForm)
    conic_forms = L1.models
    aliases: ClassVar[Mapping[str, str]] = {"nonnegative": "nonneg"}

    def __init__(
        self,
        data: TaskData,
        *,
        loss: str = "squared",
        radius: float | str | None = None,
        penalty: float | str | None = None,
        balls: str = "task",
        nonneg: bool = False,
        intercept: bool = False,
        feature_factors: Sequence[float] | Array | None = None,
        ridge: float = 0.0,
    ) -> None:
        self.nonneg, extras = true_or_false("nonneg", nonneg), Extras.of(feature_factors, False, ridge)
        self.feature_factors, self.ridge = extras.feature_factors, extras.ridge
        self.balls, chosen = one_of("balls", balls, BALLS), loss_named(loss, LOSSES)
        super().__init__(data, chosen, _weights(data, chosen), intercept=intercept)
        orientation = data.orientation if nonneg else None
        norm = L1("all" if radius is None else balls, nonneg, orientation)
        self.radius, self.penalty = self.constrain_or_penalise(norm, data, radius, penalty, extras)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        shape = FEATURES, TASKS
        data = tiny_data(rng, rng.standard_normal(shape) * (rng.random(shape) < 0.5))
        labelled, classes = data.labelled(), data.of_classes()
        oriented = replace(classes.shared, name="tiny oriented", orientation=signs_of(rng.standard_normal(shape)))
        yield cls(one_task(data.shared), radius=0.7)
        yield cls(data.per_task, radius=0.6, balls="all")
        yield cls(data.shared_csr, penalty=0.8)
        yield cls(replace(data.shared, targets=frozen(np.abs(data.shared.targets)), name="tiny nonneg"), radius=0.5, nonneg=True)
        yield cls(one_task(labelled.shared), loss="logistic", radius=1.0)
        yield cls(labelled.shared_csr, loss="logistic", penalty=0.05, nonneg=True)
        yield cls(weighted(labelled.per_task), loss="logistic", radius=1.5)
        yield cls(classes.shared, loss="multiclass", radius=1.0)
        yield cls(classes.shared_csr, loss="multiclass", radius=2.0, balls="all")
        yield cls(weighted(classes.shared, alike=True), loss="multiclass", penalty=0.05)
        yield cls(oriented, loss="multiclass", radius=1.0, nonneg=True)
        yield cls(weighted(data.per_task), radius=0.6, intercept=True)
        yield cls(labelled.shared_csr, loss="logistic", penalty=0.05, intercept=True)
        yield cls(data.shared_csr, loss="huber", radius=0.7)
        yield cls(weighted(data.per_task), penalty=0.5, nonneg=True, feature_factors=np.linspace(0.0, 2.0, FEATURES), ridge=0.1)

    @property
    def dimensions(self) -> Mapping[str, int]:
        n = self.design.sizes[0] if self.fit.loss.couples_tasks else self.design.n_examples  # one example, a prediction for every class
        return {"n": n, "d": self.design.n_features, "m": self.design.n_tasks}

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest; on held-out examples the share of errors (squared loss: of squares not explained)."""
        size = np.abs(point)
        return {"non-zeros": float(np.count_nonzero(size > NEGLIGIBLE_ENTRY * size.max()))} | self.held_out_error(point)

    def make_forms(self) -> tuple[Form, ...]:
        """With a radius, and no free intercept, the feasible set is made of simplices too."""
        forms = super().make_forms()
        if self.fit.intercept or self.radius is None:
            return forms
        assert isinstance(self.regulariser, Constraint)
        norm = self.regulariser.norm
        assert isinstance(norm, L1)
        return (*forms, SimplexForm(self.radius, not norm.nonneg, True, norm.balls, norm.orientation))


def _weights(data: TaskData, loss: Loss) -> Array:
    weights = example_weights(data.design, "mean" if loss.is_of_labels else "sum", data.weights)
    if not loss.couples_tasks or not data.design.is_shared:  # which the loss refuses
        return weights
    if data.weights is not None and np.any(weights != weights[:, :1]):
        raise InputError(f"weights of examples must be the same for all classes with the loss '{loss.name}'")
    return frozen(weights[:, :1].copy())
