"""Multi-task hinge classification with an l1,inf constraint or penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.forms import HingeForm
from bench_mtl.model.hinge_problem import HingeProblem, hinge_model, hinges_of
from bench_mtl.model.linear_loss import REDUCTIONS
from bench_mtl.model.norms import l1inf_vertex
from bench_mtl.model.protocols import Capability, ConicModel, Form, NotOfferedError
from bench_mtl.model.task_data import TaskData, number_or_truth
from bench_mtl.projections import norm_l1inf, project_l1inf_ball, prox_l1inf


class L1InfHinge(HingeProblem):
    """Joint feature selection for m classification tasks.

    Constrained, with a radius C::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  sum_j max_k |W_jk| <= C

    penalised, with a weight lambda::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k) + lambda sum_j max_k |W_jk|

    where s_k = 1/n_k (``loss="mean"``) or 1 (``loss="sum"``).

    A point is W, d x m. A dual point is a, shaped like the labels, with a_ki in [0, s_k]; anything else is clipped.
    With G = sum_i a_ki y_ki x_ki (d x m) the bound is

        constrained:  D(a) = sum a - C ||G||_{inf,1}
        penalised:    D(a) = sum a, after scaling a by min(1, lambda / ||G||_{inf,1})

    Parameters
    ----------
    data : TaskData with labels -1/+1; labels 0/1 are converted, with a warning
    radius : C >= 0; "truth" takes the norm of the generator's own W. Exactly one of `radius` and `penalty` is given.
    penalty : lambda >= 0
    loss : "mean" or "sum" over the examples of a task

    Raises
    ------
    InputError : other labels, a negative or missing radius or penalty, both given, an unknown loss.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, ICML 2009, section 2 (mean loss, constrained).
    """

    name: ClassVar[str] = "l1inf_hinge"
    hinges: HingeForm
    offers: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SUBGRADIENT,
            Capability.PROX,
            Capability.SADDLE,
            Capability.SMOOTHED,
            Capability.LMO,
            Capability.CONIC,
        }
    )
    forms: ClassVar[tuple[type[Form], ...]] = (HingeForm,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"lp": frozenset({"linear"})}

    def __init__(self, data: TaskData, *, radius: float | str | None = None, penalty: float | None = None, loss: str = "mean") -> None:
        if (radius is None) == (penalty is None):
            raise InputError("give exactly one of radius (constrained) and penalty (penalised)")
        hinges, self.notes = hinges_of(data, loss := one_of("loss", loss, REDUCTIONS))
        self.radius = None if radius is None else number_or_truth("radius", radius, data, "W", norm_l1inf)
        self.penalty = None if penalty is None else real_number("penalty", penalty)
        self.loss, self.design, self.labels, self.weights = loss, hinges.design, hinges.labels, hinges.weights
        self.hinges = HingeForm(hinges.design, hinges.labels, hinges.weights, self.radius, self.penalty)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.5)
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = np.where(X @ W + 0.3 * rng.standard_normal((n, m)) >= 0, 1.0, -1.0)
        sizes = (5, 9, 7)
        Xs = [rng.standard_normal((size, d)) for size in sizes]
        ys = [np.where(Xk @ W[:, k] + 0.3 * rng.standard_normal(len(Xk)) >= 0, 1.0, -1.0) for k, Xk in enumerate(Xs)]
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), radius=1.5)
        yield cls(TaskData.shared(X, Y, name="tiny shared"), radius=1.0, loss="sum")
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), penalty=0.1)
        yield cls(TaskData.per_task([sp.csr_array(Xk) for Xk in Xs], ys, name="tiny per task CSR"), penalty=1.0, loss="sum")
        yield cls(TaskData.per_task([Xk[:4] for Xk in Xs], [y[:4] for y in ys], name="tiny equal sizes"), radius=0.7)

    def repair(self, point: Array) -> Array:
        return point if self.radius is None else project_l1inf_ball(point, self.radius)

    def infeasibility(self, point: Array) -> float:
        if self.radius is None:
            return 0.0
        return max(0.0, norm_l1inf(point) - self.radius) / (self.radius or 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        a = self.box_dual(point, dual)
        return self.hinges.bound(a, self.hinges.adjoint(a))

    def prox(self, point: Array, step_size: float) -> Array:
        if self.radius is not None:
            return project_l1inf_ball(point, self.radius)
        assert self.penalty is not None
        return prox_l1inf(point, step_size * self.penalty)

    def prox_value(self, point: Array) -> float:
        return 0.0 if self.penalty is None else self.penalty * norm_l1inf(point)

    def lmo(self, direction: Array) -> Array:
        """The row of `direction` with the largest l1 norm, j: W_j = -radius * sign(direction_j), all else 0."""
        if self.radius is None:
            raise NotOfferedError(self, Capability.LMO)
        return l1inf_vertex(direction, self.radius)

    def make_forms(self) -> tuple[Form, ...]:
        return (self.hinges,)

    def to_cvxpy(self, form: str = "lp") -> ConicModel:
        """The linear programme with explicit slacks xi and row bounds mu (Quattoni et al. 2008).

        minimise s.xi (+ lambda sum mu)  subject to  xi >= 1 - y x.w,  xi >= 0,  -mu_j <= W_jk <= mu_j  (, sum mu <= C)
        """
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        d, m = self.point_shape
        W, mu = cp.Variable((d, m)), cp.Variable(d)
        model = hinge_model(self.hinges, W)
        rows = cp.reshape(mu, (d, 1), order="C") @ np.ones((1, m))
        constraints = [model.margin, rows >= W, rows >= -W]
        objective = model.loss
        if self.radius is not None:
            constraints.append(cp.sum(mu) <= self.radius)
        else:
            objective = objective + self.penalty * cp.sum(mu)
        return ConicModel(cp.Problem(cp.Minimize(objective), constraints), model.recover)
