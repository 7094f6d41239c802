"""Forms of a loss of linear predictions: under an l1 or an l1,inf norm, squared norms, and of a sparse plus a low-rank matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import ObjectiveForm, Problem
from bench_mtl.model.regularisers import Constraint, Penalty
from bench_mtl.projections import norm_l1inf, norm_linf1


@dataclass(frozen=True)
class L1Form(ObjectiveForm):
    """A loss of linear predictions under an l1 norm, f the function of a `LinearFit`::

        radius given:   min_W  f(W)  subject to  sum_j |W_jk| <= radius for every task k (balls "task")
                                     or          sum_jk |W_jk| <= radius                 (balls "all")
        penalty given:  min_W  f(W) + penalty sum_jk |W_jk|

    and, with `nonneg`, W_jk orientation_jk >= 0 besides (W >= 0 where `orientation` is None).
    """

    fit: LinearFit
    radius: float | None
    penalty: float | None
    balls: str = "task"
    nonneg: bool = False
    orientation: Array | None = None
    """Signs, d x m; only with `nonneg`."""

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + (self.penalty or 0.0) * float(np.abs(point).sum())

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives, and the derivatives of the loss with its values; the form has either a radius or a penalty."""
        super().check(problem, rng)
        assert (self.radius is None) != (self.penalty is None), "a form has either a radius or a penalty"
        self.fit.check_derivatives(rng)

    @property
    def norm(self) -> L1:
        """The norm, of matrices that point the right way."""
        return L1("all" if self.radius is None else self.balls, self.nonneg, self.orientation)

    @property
    def regulariser(self) -> Constraint | Penalty:
        if self.radius is not None:
            return Constraint(self.norm, self.radius)
        assert self.penalty is not None
        return Penalty(self.norm, self.penalty)

    def project(self, W: Array, *, method: str = "newton") -> Array:
        """Return argmin_V 1/2 ||V - W||^2 over the feasible set; `method` as in `project_l1_ball`."""
        return self.norm.to_cone(W) if self.radius is None else self.norm.project(W, self.radius, method=method)

    def prox(self, W: Array, step_size: float, *, method: str = "newton") -> Array:
        """Return `project` with a radius; with a penalty argmin_V 1/2 ||V - W||^2 + step_size penalty sum |V| over the feasible set."""
        return self.regulariser.prox(W, step_size) if self.radius is None else self.project(W, method=method)

    def support(self, G: Array) -> float:
        """Return max <G, W> over the set with radius 1; the dual norm of the penalty (0 where only W = 0 attains it, with `nonneg`)."""
        return self.norm.dual(G)

    def bound(self, dual: Array) -> float:
        """Return a proven lower bound on the optimum, from any dual point."""
        return max(0.0, self.fit.enclose_bound(dual, self.regulariser).ends[0])

    def vertex(self, direction: Array) -> Array:
        """Return argmin <direction, W> over the feasible set of a form with a radius: at most one entry a ball."""
        assert self.radius is not None
        return self.norm.vertex(direction, self.radius)

    def oriented(self, W: Array) -> Array:
        """Return W in coordinates in which what may not be negative is W itself, and back."""
        return self.norm.oriented(W)


@dataclass(frozen=True)
class L1InfForm(ObjectiveForm):
    """A loss of linear predictions under an l1,inf norm, f the function of a `LinearFit`::

    radius given:   min_W  f(W)  subject to  sum_j max_k |W_jk| <= radius
    penalty given:  min_W  f(W) + penalty sum_j max_k |W_jk|
    """

    fit: LinearFit
    radius: float | None
    penalty: float | None

    @property
    def design(self) -> Design:
        return self.fit.design

    @property
    def has_intercept(self) -> bool:
        return self.fit.intercept

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + (self.penalty or 0.0) * norm_l1inf(point)

    def restricted(self, features: NDArray[np.intp]) -> L1InfForm:
        """Return the form of the problem in which all rows of W but these are zero."""
        return replace(self, fit=replace(self.fit, design=self.design.restricted(features)))

    def dual_at_zero(self) -> Array:
        """Return minus the derivatives of the loss at W = 0, a dual point."""
        return -self.fit.derivatives(np.zeros(self.fit.targets.shape))

    def adjoint(self, dual: Array) -> Array:
        """Return X^T r, d x m."""
        return self.design.adjoint(dual)

    def bound(self, dual: Array, G: Array) -> float:
        """Return about what an admissible dual point proves, scaled into the penalty, with G its `adjoint`: to steer by, and no proof."""
        norm = norm_linf1(G)
        if self.radius is not None:
            return max(0.0, self.fit.conjugate_gain(dual) - self.radius * norm)
        assert self.penalty is not None
        return max(0.0, self.fit.conjugate_gain(dual if norm <= self.penalty else self.penalty / norm * dual))


@dataclass(frozen=True)
class RidgeForm(ObjectiveForm):
    """min_W  f(W) + ridge ||W||_F^2, f the function of a `LinearFit`."""

    fit: LinearFit
    ridge: float

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + self.ridge * float((point**2).sum())


@dataclass(frozen=True)
class RelationshipForm(ObjectiveForm):
    """Squared norms of coefficients under a loss, f the function of a `LinearFit`::

        min_W  f(W) + ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2

    where ||W||_*^2 = min tr(W Omega^-1 W^T) over relationships of the tasks: Omega, m x m, positive semidefinite, tr Omega = 1.
    """

    fit: LinearFit
    ridge: float
    coupling: float

    def objective(self, point: Array) -> float:
        values = np.linalg.svd(point, compute_uv=False)
        penalties = self.ridge * float(values @ values) + self.coupling * float(values.sum()) ** 2
        return self.fit.smooth_value(point) + 0.5 * penalties


@dataclass(frozen=True)
class SplitForm(ObjectiveForm):
    """A loss of one linear prediction by a sparse plus a low-rank matrix.

    ::

        min_{P,Q}  sum_k sum_i loss(x_ki.(p_k + q_k), targets_ki) + penalty sum |P|   subject to  ||Q||_* <= radius
    """

    design: Design
    targets: Array
    """In the output shape of the design: real for the squared loss, -1 or +1 for the logistic one."""
    loss: Loss
    """`Squared` or `Logistic`."""
    penalty: float
    radius: float

    def objective(self, point: Array) -> float:
        predictions = self.design.forward(point[0] + point[1])
        return float(self.loss.values(predictions, self.targets).sum()) + self.penalty * float(np.abs(point[0]).sum())
