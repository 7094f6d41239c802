"""Forms of weighted hinges: under an l1,inf norm, and with a norm ball for every task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.rounding import TINIEST, UNIT, Interval, gamma
from bench_mtl.core.types import Array
from bench_mtl.model.intercepts import centred_norms, exactly_balanced, hinge_actives, hinge_intercepts, root_of_falling, scaled_to_balance
from bench_mtl.model.losses import hinge, hinge_dual
from bench_mtl.model.protocols import ObjectiveForm, Problem
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.projections import norm_l1inf, norm_linf1


@dataclass(frozen=True)
class Hinges:
    """Weighted hinges f(W) = sum_k sum_i weights_ki max(0, 1 - labels_ki x_ki.w_k) = max_{0 <= a <= weights} sum a - <a, K W>.

    K W are the margins labels_ki x_ki.w_k. With `intercept` f(W) is the least of this over numbers b_k that are added to all x_ki.w_k, and
    the a of every task have sum_i a_ki labels_ki = 0.
    """

    design: Design
    labels: Array
    """-1 or +1, in the output shape of the design."""
    weights: Array
    """At least 0, shaped like the labels; the same for all examples of a task."""
    intercept: bool = field(default=False, kw_only=True)

    @property
    def has_intercept(self) -> bool:
        return self.intercept

    def margins(self, W: Array) -> Array:
        """K W, of the predictions with their best intercepts."""
        return np.asarray(self.labels * self.shifted(self.design.forward(W)))

    def intercepts(self, predictions: Array) -> Array:
        """Return the best intercepts to predictions, m numbers; zeros where there are none."""
        return hinge_intercepts(predictions, self.labels, self.design) if self.intercept else np.zeros(self.design.n_tasks)

    def shifted(self, predictions: Array) -> Array:
        """Return predictions with their best intercepts."""
        return predictions + self.design.per_example(self.intercepts(predictions)) if self.intercept else predictions

    def admissible(self, dual: Array) -> Array:
        """Return a dual point near any array: in its box, and with intercepts of a signed sum that is exactly 0 in every task."""
        a = np.clip(dual, 0.0, self.weights)
        return np.asarray(self.labels * exactly_balanced(self.labels * a, self.design)) if self.intercept else a

    def adjoint(self, dual: Array) -> Array:
        """K^T a, the d x m matrix G_jk = sum_i a_ki labels_ki x_ki,j."""
        return self.design.adjoint(dual * self.labels)

    def dual_at_zero(self) -> Array:
        """Return a dual point that belongs to W = 0, the same for examples with one label.

        All hinges are active there; with intercepts, at which the label of fewer examples has active ones alone, those of the other have as
        much together.
        """
        return np.asarray(self.labels * scaled_to_balance(self.labels * self.weights, self.design)) if self.intercept else self.weights

    def loss(self, margins: Array) -> float:
        """f at these margins."""
        return float(np.vdot(self.weights, hinge(margins)))

    def enclose_loss(self, predictions: Array, error: Array) -> Interval:
        """Return f between bounds that hold in exact arithmetic, at predictions that are known up to an error."""
        if self.intercept:
            shifted = self.shifted(predictions)
            predictions, error = shifted, error + 2.0 * UNIT * np.abs(shifted)
        slack = 1.0 - self.labels * predictions  # one rounding, relative to what is left
        low, high = (float(np.vdot(self.weights, np.maximum(end, 0.0))) for end in (slack - error, slack + error))
        share = 2.0 * gamma(error.size + 8)
        return Interval(low * (1.0 - share), high * (1.0 + share) + (error.size * TINIEST if high > 0.0 else 0.0))

    def duals(self, margins: Array) -> Array:
        """Return a dual point a with f = sum a (1 - margin); minus `adjoint` of it is a subgradient of f."""
        if self.intercept:
            return np.asarray(self.weights * hinge_actives(self.labels * margins, self.labels, self.design))
        return np.asarray(self.weights * hinge_dual(margins))

    def smoothed(self, margins: Array, smoothing: float) -> tuple[float, Array]:
        """max over 0 <= a <= s of sum a (1 - margin) - smoothing/2 sum a^2 / s, and this a: at most smoothing/2 sum s below f."""
        slack = 1.0 - (self._smoothly_shifted(margins, smoothing) if self.intercept else margins)
        share = np.clip(slack / smoothing, 0.0, 1.0)
        a = self.weights * share
        return float(np.vdot(a, slack)) - 0.5 * smoothing * float(np.vdot(a, share)), a

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
        norms = centred_norms(self.design) if self.intercept else self.design.norms()
        return float((per_task * norms**2).max()) / smoothing


@dataclass(frozen=True)
class HingeForm(Hinges, ObjectiveForm):
    """Weighted hinges under an l1,inf norm, f the function of `Hinges`::

    radius given:   min_W  f(W)  subject to  sum_j max_k |W_jk| <= radius
    penalty given:  min_W  f(W) + penalty * sum_j max_k |W_jk|
    """

    radius: float | None
    penalty: float | None

    def objective(self, point: Array, predictions: Array | None = None) -> float:
        """Return F at a feasible point, W; its `predictions` X_k w_k save half a pass over the data where they are known."""
        value = self.loss(self.margins(point) if predictions is None else self.labels * self.shifted(predictions))
        return value if self.penalty is None else value + self.penalty * norm_l1inf(point)

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives; the form has either a radius or a penalty."""
        super().check(problem, rng)
        assert (self.radius is None) != (self.penalty is None), "a form has either a radius or a penalty"

    def restricted(self, features: NDArray[np.intp]) -> HingeForm:
        """Return the form of the problem in which all rows of W but these are zero."""
        return replace(self, design=self.design.restricted(features))

    def bound(self, dual: Array, G: Array) -> float:
        """What a dual point a in its box proves, with G its `adjoint`, by its sum and the norm max_j sum_k |G_jk|.

        With a radius sum a - radius * norm, or 0, which a = 0 proves; with a penalty the sum of a scaled until its norm is at most that.
        """
        total, norm = float(dual.sum()), norm_linf1(G)
        if self.radius is not None:
            return max(0.0, total - self.radius * norm)
        assert self.penalty is not None
        return total * min(1.0, self.penalty / norm) if norm > 0.0 else total

    def enclose_bound(self, dual: Array) -> Interval:
        """Return `bound` between bounds that hold in exact arithmetic."""
        total, (G, errors) = Interval.of_sum(dual), self.design.adjoint_with_row_errors(dual * self.labels)
        sums = np.abs(G).sum(axis=1)
        slack = gamma(2 * G.shape[1] + 8)
        norm = Interval(max(0.0, float((sums - errors).max()) * (1.0 - slack)), float((sums + errors).max()) * (1.0 + slack))
        if self.radius is not None:
            return (total - norm * self.radius).positive_part()
        assert self.penalty is not None
        if self.penalty > 0.0:
            share = Interval.exact(self.penalty) / norm.at_least(self.penalty)
        else:
            share = Interval(float(norm.upper == 0.0), float(norm.lower == 0.0))
        return (total * share).positive_part()

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """A point along G = K^T a of the size to expect of a solution: as far as the loss may fall, but within the radius.

        `total` is f at 0, which bounds the penalty at the optimum.
        """
        radius = self.radius if self.radius is not None else total / self.penalty if self.penalty else np.inf
        largest = float(np.abs(G).max(axis=1).sum())
        return G * (min(radius, largest / curvature) / largest) if largest > 0.0 else G


@dataclass(frozen=True)
class BallForm(Hinges, ObjectiveForm):
    """Weighted hinges with a ball for every task, f the function of `Hinges`::

    min_W  f(W)  subject to  ||w_k|| <= radii_k for every task k
    """

    balls: TaskBalls

    def objective(self, point: Array, predictions: Array | None = None) -> float:
        """Return F at a feasible point, W; its `predictions` as for `HingeForm`."""
        return self.loss(self.margins(point) if predictions is None else self.labels * self.shifted(predictions))

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives; the balls are the feasible set, and inside them no dual norm is exceeded."""
        super().check(problem, rng)
        far = 10.0 * rng.standard_normal(problem.point_shape)
        point, sizes = problem.repair(far), self.balls.norms(far)
        assert np.isclose(problem.infeasibility(far), self.balls.excess(far), rtol=1e-12), "the balls are not the feasible set"
        assert np.all(self.balls.norms(point) <= np.minimum(sizes, self.balls.radii) * (1 + 1e-9)), "repair leaves the balls"
        vertex, heights = self.balls.vertex(far), self.balls.radii * self.balls.dual_norms(far)
        assert np.allclose((far * vertex).sum(axis=0), -heights), "the vertex does not attain the dual norm"
        assert np.all(np.abs((far * point).sum(axis=0)) <= heights * (1 + 1e-9)), "a dual norm is exceeded"

    def bound(self, dual: Array, G: Array) -> float:
        """The bound that a dual point a in its box gives, with G its `adjoint`: sum_k max(0, sum_i a_ki - radii_k ||g_k||_dual)."""
        totals = self.design.task_sums(dual)
        return float(np.maximum(totals - self.balls.radii * self.balls.dual_norms(G), 0.0).sum())

    def enclose_bound(self, dual: Array) -> Interval:
        """Return `bound` between bounds that hold in exact arithmetic."""
        totals, G = self.design.enclose_task_sums(dual), self.design.enclose_adjoint(dual * self.labels)
        return (totals - self.balls.enclose_dual_norms(G) * self.balls.radii).positive_part().sum()

    def of_tasks(self) -> list[HingeForm]:
        """Return the problem of every task in an l1 ball: in one column an l1,inf norm is the l1 norm."""
        forms = []
        for k, radius in enumerate(self.balls.radii):
            labels, weights = (self.design.task_outputs(each, k)[:, None] for each in (self.labels, self.weights))
            forms.append(HingeForm(self.design.of_task(k), labels, weights, float(radius), None, intercept=self.intercept))
        return forms

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """As of `HingeForm`, task by task."""
        norms = self.balls.norms(G)
        return np.asarray(G * (np.minimum(self.balls.radii, norms / curvature) / np.where(norms > 0.0, norms, 1.0)))
