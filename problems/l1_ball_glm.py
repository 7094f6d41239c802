"""Regression and classification by linear models with an l1 constraint or penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import Design, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import L1Form, SimplexForm
from bench_mtl.model.linear_loss import LinearFit, example_weights
from bench_mtl.model.losses import Loss, Squared, loss_named
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Capability, ConicModel, Form, NotOfferedError
from bench_mtl.model.task_data import TaskData, number_or_truth

LOSSES = ("squared", "logistic", "multiclass")

BALLS = ("task", "all")

_CONES = {
    "squared": frozenset({"linear", "quadratic"}),
    "logistic": frozenset({"linear", "exponential"}),
    "multiclass": frozenset({"linear", "exponential"}),
}


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
    loss : "squared", "logistic" or "multiclass"
    radius : at least 0; "truth" takes the largest l1 norm of a column of the generator's own W (of the whole for balls = "all").
        Exactly one of `radius` and `penalty` is given.
    penalty : at least 0
    balls : "task" for a ball for every task, "all" for one in all
    nonneg : whether W >= 0

    Raises
    ------
    InputError : other labels, a class that is missing or double in a row, a multiclass loss of designs that are not shared, a negative or
        missing radius or penalty, both given, an unknown loss.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, section 7; Singer's slides on the same work, MMDS 2008.
    """

    name: ClassVar[str] = "l1_ball_glm"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (L1Form, SimplexForm)
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": _CONES["squared"]}

    def __init__(
        self,
        data: TaskData,
        *,
        loss: str = "squared",
        radius: float | str | None = None,
        penalty: float | None = None,
        balls: str = "task",
        nonneg: bool = False,
    ) -> None:
        if (radius is None) == (penalty is None):
            raise InputError("give exactly one of radius (constrained) and penalty (penalised)")
        if not isinstance(nonneg, bool):
            raise InputError(f"nonneg must be true or false, not {nonneg!r}")
        self.loss = loss_named(loss, LOSSES)
        self.balls = one_of("balls", balls, BALLS)
        self.radius = None if radius is None else number_or_truth("radius", radius, data, "W", self._largest_norm)
        self.penalty = None if penalty is None else real_number("penalty", penalty)
        self.design: Design = data.design
        self.conic_forms = {"epigraph": _CONES[self.loss.name]}  # type: ignore[misc] # those of the class are of the squared loss
        targets, self.notes = self.loss.targets(data)
        orientation = data.orientation if nonneg else None
        self.fit = LinearFit(data.design, frozen(targets), self.loss, _weights(data.design, self.loss))
        self._form = L1Form(self.fit, self.radius, self.penalty, balls, nonneg, orientation)
        self._held_out = None if data.held_out is None else (data.held_out.design, frozen(self.loss.targets(data.held_out)[0]))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        d, m, n = 6, 3, 12
        W = rng.standard_normal((d, m)) * (rng.random((d, m)) < 0.5)
        X = rng.standard_normal((n, d))
        sparse = sp.csr_array(X * (rng.random((n, d)) < 0.5))
        Y = X @ W + 0.3 * rng.standard_normal((n, m))
        Xs = [rng.standard_normal((size, d)) for size in (5, 9, 7)]
        ys = [Xk @ W[:, k] + 0.3 * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
        labels = np.where(Y > 0.0, 1.0, -1.0)
        classes = np.where(np.arange(m) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
        orientation = np.where(rng.random((d, m)) < 0.5, 1.0, -1.0)
        oriented = TaskData(TaskData.shared(X, classes).design, frozen(classes), "tiny oriented", orientation=frozen(orientation))
        yield cls(TaskData.shared(X, Y[:, 0], name="tiny"), radius=0.7)
        yield cls(TaskData.per_task(Xs, ys, name="tiny per task"), radius=0.6, balls="all")
        yield cls(TaskData.shared(sparse, Y, name="tiny CSR"), penalty=0.8)
        yield cls(TaskData.shared(X, np.abs(Y), name="tiny nonneg"), radius=0.5, nonneg=True)
        yield cls(TaskData.shared(X, labels[:, 0], name="tiny labels"), loss="logistic", radius=1.0)
        yield cls(TaskData.shared(sparse, labels, name="tiny labels CSR"), loss="logistic", penalty=0.05, nonneg=True)
        yield cls(
            TaskData.per_task(Xs, [np.where(y > 0.0, 1.0, -1.0) for y in ys], name="tiny labels per task"), loss="logistic", radius=1.5
        )
        yield cls(TaskData.shared(X, classes, name="tiny classes"), loss="multiclass", radius=1.0)
        yield cls(TaskData.shared(sparse, classes, name="tiny classes CSR"), loss="multiclass", radius=2.0, balls="all")
        yield cls(TaskData.shared(X, classes, name="tiny classes penalised"), loss="multiclass", penalty=0.05)
        yield cls(oriented, loss="multiclass", radius=1.0, nonneg=True)

    @property
    def dimensions(self) -> Mapping[str, int]:
        n = self.design.sizes[0] if self.loss.couples_tasks else self.design.n_examples  # an example has a prediction for every class
        return {"n": n, "d": self.design.n_features, "m": self.design.n_tasks}

    def repair(self, point: Array) -> Array:
        return self._form.project(point)

    def infeasibility(self, point: Array) -> float:
        negative = max(0.0, -float(self._form.oriented(point).min())) if self._form.nonneg else 0.0
        if self.radius is None:
            return negative
        return max(negative, self._largest_norm(point) - self.radius, 0.0) / (self.radius or 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self._form.bound(self.dual_at(point, dual))

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest; on held-out examples the share of errors (squared loss: of squares not explained)."""
        size = np.abs(point)
        found = {"non-zeros": float(np.count_nonzero(size > NEGLIGIBLE_ENTRY * size.max()))}
        if self._held_out is not None:
            design, targets = self._held_out
            found["held-out error"] = self.loss.error(design.forward(point), targets)
        return found

    def prox(self, point: Array, step_size: float) -> Array:
        """Projection onto the l1 balls, or the soft threshold at step_size * penalty."""
        return self._form.prox(point, step_size)

    def prox_value(self, point: Array) -> float:
        return 0.0 if self.penalty is None else self.penalty * float(np.abs(point).sum())

    def lmo(self, direction: Array) -> Array:
        """Of every ball the entry of `direction` that is largest in magnitude: -radius times its sign there, all else 0."""
        if self.radius is None:
            raise NotOfferedError(self, Capability.LMO)
        return self._form.vertex(direction)

    def make_forms(self) -> tuple[Form, ...]:
        """With a radius, the feasible set is made of simplices too."""
        if self.radius is None:
            return (self._form,)
        return (self._form, SimplexForm(self.radius, not self._form.nonneg, True, self.balls, self._form.orientation))

    def to_cvxpy(self, form: str = "epigraph") -> ConicModel:
        """The problem with residuals, margins or predictions, and bounds mu >= |W|, as variables."""
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        W = cp.Variable(self.point_shape)
        loss, fit, as_dual = self.fit.model(cp.vec(W, order="F"))
        constraints = [fit]
        if self._form.nonneg:
            mu = W if self._form.orientation is None else cp.multiply(self._form.orientation, W)
            constraints.append(mu >= 0.0)
        else:
            mu = cp.Variable(self.point_shape)
            constraints += [mu >= W, mu >= -W]
        if self.radius is None:
            loss = loss + self.penalty * cp.sum(mu)
        else:
            constraints.append(cp.sum(mu, axis=0 if self.balls == "task" else None) <= self.radius)

        def recover() -> tuple[Array, Array | None]:
            return np.asarray(W.value), None if fit.dual_value is None else as_dual(np.asarray(fit.dual_value))

        return ConicModel(cp.Problem(cp.Minimize(loss), constraints), recover)

    def _largest_norm(self, W: Array) -> float:
        return float(np.abs(W).sum(axis=0 if self.balls == "task" else None).max())


def _weights(design: Design, loss: Loss) -> Array:
    shape = design.output_shape
    if loss.couples_tasks:
        return frozen(np.full((shape[0], 1), 1.0 / shape[0]))
    return example_weights(design, "sum" if isinstance(loss, Squared) else "mean")
