"""Hinge classification with a norm ball for every task: the rivals of joint feature selection that learn each task by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.forms import BallForm
from bench_mtl.model.hinge_problem import HingeProblem, hinge_model, hinges_of
from bench_mtl.model.linear_loss import REDUCTIONS
from bench_mtl.model.protocols import Capability, ConicModel, Form
from bench_mtl.model.task_balls import NORMS, TaskBalls
from bench_mtl.model.task_data import TaskData

_FORMS = {"l1": {"lp": frozenset({"linear"})}, "l2": {"socp": frozenset({"linear", "quadratic"})}}


class BallHinge(HingeProblem):
    """m classification tasks, each with a ball of its own::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  ||w_k|| <= C_k for every task k

    where ||.|| is the l1 or the l2 norm, and s_k = 1/n_k (``loss="mean"``) or 1 (``loss="sum"``).

    A point is W, d x m. A dual point is a, shaped like the labels, with a_ki in [0, s_k]; anything else is clipped.
    With g_k = sum_i a_ki y_ki x_ki and the dual norm ||.||' (the largest entry for l1, the length for l2) the bound is

        D(a) = sum_k max(0, sum_i a_ki - C_k ||g_k||')

    Parameters
    ----------
    data : TaskData with labels -1/+1; labels 0/1 are converted, with a warning
    radius : C_k >= 0: one number for all tasks, a list with one a task, or "truth", the norms of the columns of the generator's own W
    norm : "l1" or "l2"
    loss : "mean" or "sum" over the examples of a task

    Raises
    ------
    InputError : other labels, a negative radius, not as many radii as tasks, an unknown norm or loss.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, ICML 2009, section 5 (independent l1 and l2 projections, C_k the norm of the true w_k).
    """

    name: ClassVar[str] = "ball_hinge"
    hinges: BallForm
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
    forms: ClassVar[tuple[type[Form], ...]] = (BallForm,)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = _FORMS["l1"]

    def __init__(self, data: TaskData, *, radius: float | Sequence[float] | str, norm: str = "l1", loss: str = "mean") -> None:
        self.norm, self.loss = one_of("norm", norm, NORMS), one_of("loss", loss, REDUCTIONS)
        hinges, self.notes = hinges_of(data, loss)
        self.balls = TaskBalls(norm, frozen(_radii(radius, data, norm)))
        self.hinges = BallForm(hinges.design, hinges.labels, hinges.weights, self.balls)
        self.conic_forms = _FORMS[norm]  # type: ignore[misc] # those of the class are of the l1 norm

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = rng.standard_normal((d, m))
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = np.where(X @ W + 0.5 * rng.standard_normal((n, m)) >= 0.0, 1.0, -1.0)
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [np.where(Xk @ W[:, k] + 0.5 * rng.standard_normal(len(Xk)) >= 0.0, 1.0, -1.0) for k, Xk in enumerate(Xs)]
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), radius=0.8)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task", truth={"W": 0.3 * W}), radius="truth", norm="l2")
        yield cls(TaskData.shared(X, Y, name="tiny shared"), radius=[0.5, 0.9, 0.0], loss="sum")
        yield cls(TaskData.shared(X, Y, name="tiny shared"), radius=0.4, norm="l2")
        yield cls(TaskData.shared(sparse, Y, name="tiny shared CSR"), radius=[0.5, 0.3, 0.7], norm="l2", loss="sum")
        yield cls(TaskData.per_task([sp.csr_array(Xk) for Xk in Xs], ys, name="tiny per task CSR"), radius=0.9)

    def repair(self, point: Array) -> Array:
        return self.balls.project(point)

    def infeasibility(self, point: Array) -> float:
        return self.balls.excess(point)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        a = self.box_dual(point, dual)
        return self.hinges.bound(a, self.hinges.adjoint(a))

    def prox(self, point: Array, step_size: float) -> Array:
        """The projection onto the balls."""
        return self.balls.project(point)

    def prox_value(self, point: Array) -> float:
        return 0.0

    def lmo(self, direction: Array) -> Array:
        """In every column C_k at the largest entry (l1), or along all of it (l2), against `direction`."""
        return self.balls.vertex(direction)

    def make_forms(self) -> tuple[Form, ...]:
        return (self.hinges,)

    def to_cvxpy(self, form: str | None = None) -> ConicModel:
        """The linear programme (l1) or second-order cone programme (l2) with explicit slacks xi.

        minimise s.xi  subject to  xi >= 1 - y x.w,  xi >= 0,  and  -M <= W <= M, sum_j M_jk <= C_k  or  ||w_k||_2 <= C_k
        """
        import cvxpy as cp

        one_of("form", form or next(iter(self.conic_forms)), tuple(self.conic_forms))
        W, radii = cp.Variable(self.point_shape), self.balls.radii
        model = hinge_model(self.hinges, W)
        constraints = [model.margin]
        if self.norm == "l1":
            M = cp.Variable(self.point_shape)
            constraints += [W <= M, -M <= W, cp.sum(M, axis=0) <= radii]
        else:
            constraints.append(cp.norm(W, 2, axis=0) <= radii)
        return ConicModel(cp.Problem(cp.Minimize(model.loss), constraints), model.recover)


def _radii(radius: Any, data: TaskData, norm: str) -> Array:
    m = data.design.n_tasks
    if isinstance(radius, str):
        if radius != "truth":
            raise InputError(f"radius must be a number, a list with one a task, or 'truth', not {radius!r}")
        if "W" not in data.truth:
            raise InputError(f"radius 'truth' needs data that know their true W, which '{data.name}' do not: give a number")
        return TaskBalls(norm, np.zeros(m)).norms(data.truth["W"])
    if not isinstance(radius, (list, tuple, np.ndarray)):
        return np.full(m, real_number("radius", radius))
    if len(radius) != m:
        raise InputError(f"radius must have one number a task, {m}, but has {len(radius)}")
    return np.array([real_number(f"radius of task {k}", each) for k, each in enumerate(radius)])
