"""Forms of weighted hinges: under an l1,inf norm, under another norm, and with a norm ball for every task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.intercepts import centred_norms, exactly_balanced, hinge_actives, root_of_falling
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import hinge_dual
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import ObjectiveForm, Problem
from bench_mtl.model.regularisers import Constraint, Penalty, Regulariser
from bench_mtl.model.task_balls import TaskBalls


@dataclass(frozen=True)
class Hinges(ObjectiveForm):
    """Weighted hinges f(W) = sum_k sum_i weights_ki max(0, 1 - labels_ki x_ki.w_k) = max_{0 <= a <= weights} sum a - <a, K W>, and R(W).

    K W are the margins labels_ki x_ki.w_k, and a the dual points: the labels times those of the loss, `LinearFit` with `Hinge`. With an
    intercept f(W) is the least of this over numbers b_k that are added to all x_ki.w_k, and the a of every task have
    sum_i a_ki labels_ki = 0.
    """

    fit: LinearFit
    regulariser: Regulariser

    @property
    def design(self) -> Design:
        return self.fit.design

    @property
    def labels(self) -> Array:
        """-1 or +1, in the output shape of the design."""
        return self.fit.targets

    @property
    def weights(self) -> Array:
        """At least 0, shaped like the labels; the same for all examples of a task."""
        return self.fit.weights

    @property
    def has_intercept(self) -> bool:
        return self.fit.intercept

    @property
    def radius(self) -> float | None:
        return self.regulariser.radius if isinstance(self.regulariser, Constraint) else None

    @property
    def penalty(self) -> float | None:
        return self.regulariser.weight if isinstance(self.regulariser, Penalty) else None

    def objective(self, point: Array, predictions: Array | None = None) -> float:
        """Return F at a feasible point, W; its `predictions` X_k w_k save half a pass over the data where they are known."""
        return self.fit.value(self.design.forward(point) if predictions is None else predictions) + self.regulariser.value(point)

    def margins(self, W: Array) -> Array:
        """K W, of the predictions with their best intercepts."""
        return np.asarray(self.labels * self.fit.shifted(self.design.forward(W)))

    def loss(self, margins: Array) -> float:
        """f at these margins."""
        return self.fit.loss.total(self.labels * margins, self.labels, self.weights)

    def admissible(self, dual: Array) -> Array:
        """Return a dual point near any array: in its box, and with intercepts of a signed sum that is exactly 0 in every task."""
        a = np.clip(dual, 0.0, self.weights)
        return np.asarray(self.labels * exactly_balanced(self.labels * a, self.design)) if self.has_intercept else a

    def adjoint(self, dual: Array) -> Array:
        """K^T a, the d x m matrix G_jk = sum_i a_ki labels_ki x_ki,j."""
        return self.design.adjoint(dual * self.labels)

    def dual_at_zero(self) -> Array:
        """`LinearFit.dual_at_zero` as an a."""
        return np.asarray(self.labels * self.fit.dual_at_zero())

    def duals(self, margins: Array) -> Array:
        """Return a dual point a with f = sum a (1 - margin); minus `adjoint` of it is a subgradient of f."""
        if self.has_intercept:
            return np.asarray(self.weights * hinge_actives(self.labels * margins, self.labels, self.design))
        return np.asarray(self.weights * hinge_dual(margins))

    def smoothed(self, margins: Array, smoothing: float) -> tuple[float, Array]:
        """max over 0 <= a <= s of sum a (1 - margin) - smoothing/2 sum a^2 / s, and this a: at most smoothing/2 sum s below f."""
        t = self.labels * (self._smoothly_shifted(margins, smoothing) if self.has_intercept else margins)
        value, derivatives = self.fit.loss.smoothed(t, self.labels, self.weights, smoothing)
        return value, np.asarray(-self.labels * derivatives)

    def _smoothly_shifted(self, margins: Array, smoothing: float) -> Array:
        """Return the margins at the intercepts that are best for smoothed hinges."""
        design, y = self.design, self.labels
        predictions = y * margins
        reach = np.full(design.n_tasks, float(np.abs(predictions).max(initial=0.0)) + 1.0 + smoothing)

        def value_and_slope(b: Array) -> tuple[Array, Array]:
            rise = (1.0 - y * (predictions + design.per_example(b))) / smoothing
            return design.task_sums(y * np.clip(rise, 0.0, 1.0)), design.task_sums(((rise > 0.0) & (rise < 1.0)) / smoothing)

        b = root_of_falling(value_and_slope, -reach, reach, np.asarray(design.sizes, dtype=np.float64))
        return np.asarray(y * (predictions + design.per_example(b)))

    def smoothed_lipschitz(self, smoothing: float) -> float:
        """max_k s_k sigma_max(X_k)^2 / smoothing, a Lipschitz constant of the gradient of `smoothed` in W."""
        per_task = np.array([self.design.task_outputs(self.weights, k)[0] for k in range(self.design.n_tasks)])
        norms = centred_norms(self.design) if self.has_intercept else self.design.norms()
        return float((per_task * norms**2).max()) / smoothing

    def bound(self, dual: Array, G: Array) -> float:
        """Return what a dual point a in its box proves, up to rounding, with G its `adjoint` and ||.||' the dual norm.

        With a radius sum a - radius ||G||', or 0, which a = 0 proves; with a penalty the sum of a scaled until ||G||' is at most that.
        """
        assert isinstance(self.regulariser, (Constraint, Penalty))
        total, norm = float(dual.sum()), self.regulariser.norm.dual(G)
        if isinstance(self.regulariser, Constraint):
            return max(0.0, total - self.regulariser.radius * norm)
        return total * min(1.0, self.regulariser.weight / norm) if norm > 0.0 else total

    def enclose_bound(self, dual: Array) -> Interval:
        """Return `bound` of any array, made admissible, between bounds that hold in exact arithmetic."""
        return self.fit.enclose_bound(self.labels * dual, self.regulariser)

    def relative_gap(self, point: Array, dual: Array) -> float:
        """Return the relative gap of a feasible point and any dual array, up to rounding."""
        value, a = self.objective(point), self.admissible(dual)
        return max(0.0, value - self.bound(a, self.adjoint(a))) / value if value > 0.0 else 0.0

    def restricted(self, features: NDArray[np.intp]) -> Self:
        """Return the form of the problem in which all rows of W but these are zero."""
        return replace(self, fit=replace(self.fit, design=self.design.restricted(features)))

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """A point along G = K^T a of the size to expect of a solution: as far as the loss may fall, but within the radius.

        `total` is f at 0, which bounds the penalty at the optimum.
        """
        assert isinstance(self.regulariser, (Constraint, Penalty))
        radius = self.radius if self.radius is not None else total / self.penalty if self.penalty else np.inf
        largest = self.regulariser.norm.value(G)
        return G * (min(radius, largest / curvature) / largest) if largest > 0.0 else G


@dataclass(frozen=True)
class HingeForm(Hinges):
    """Weighted hinges under an l1,inf norm, f the function of `Hinges`::

    Constraint:  min_W  f(W)  subject to  sum_j max_k |W_jk| <= radius
    Penalty:     min_W  f(W) + weight * sum_j max_k |W_jk|
    """

    regulariser: Constraint | Penalty


@dataclass(frozen=True)
class NormHingeForm(Hinges):
    """Weighted hinges under another norm, as a constraint or a penalty."""

    regulariser: Constraint | Penalty


@dataclass(frozen=True)
class BallForm(Hinges):
    """Weighted hinges with a ball for every task, f the function of `Hinges`::

    min_W  f(W)  subject to  ||w_k|| <= radii_k for every task k
    """

    regulariser: TaskBalls

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives; the balls are the feasible set, and inside them no dual norm is exceeded."""
        super().check(problem, rng)
        far, balls = 10.0 * rng.standard_normal(problem.point_shape), self.regulariser
        point, sizes = problem.repair(far), balls.norms(far)
        assert np.isclose(problem.infeasibility(far), balls.excess(far), rtol=1e-12), "the balls are not the feasible set"
        assert np.all(balls.norms(point) <= np.minimum(sizes, balls.radii) * (1 + 1e-9)), "repair leaves the balls"
        vertex, heights = balls.vertex(far), balls.radii * balls.dual_norms(far)
        assert np.allclose((far * vertex).sum(axis=0), -heights), "the vertex does not attain the dual norm"
        assert np.all(np.abs((far * point).sum(axis=0)) <= heights * (1 + 1e-9)), "a dual norm is exceeded"

    def bound(self, dual: Array, G: Array) -> float:
        """The bound that a dual point a in its box gives, with G its `adjoint`: sum_k max(0, sum_i a_ki - radii_k ||g_k||_dual)."""
        balls = self.regulariser
        return float(np.maximum(self.design.task_sums(dual) - balls.radii * balls.dual_norms(G), 0.0).sum())

    def enclose_bound(self, dual: Array) -> Interval:
        a = self.admissible(dual)
        totals, G = self.design.enclose_task_sums(a), self.design.enclose_adjoint(a * self.labels)
        return (totals - self.regulariser.enclose_dual_norms(G) * self.regulariser.radii).positive_part().sum()

    def of_tasks(self) -> list[HingeForm]:
        """Return the problem of every task in an l1 ball: in one column an l1,inf norm is the l1 norm."""
        forms = []
        for k, radius in enumerate(self.regulariser.radii):
            labels, weights = (self.design.task_outputs(each, k)[:, None] for each in (self.labels, self.weights))
            fit = replace(self.fit, design=self.design.of_task(k), targets=labels, weights=weights)
            forms.append(HingeForm(fit, Constraint(L1Inf(), float(radius))))
        return forms

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """As of `Hinges`, task by task."""
        norms = self.regulariser.norms(G)
        return np.asarray(G * (np.minimum(self.regulariser.radii, norms / curvature) / np.where(norms > 0.0, norms, 1.0)))
