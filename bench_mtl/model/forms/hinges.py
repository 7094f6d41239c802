"""The form of weighted hinges and a regulariser, whose dual points are those of the margins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Array, gap_up_to_rounding
from bench_mtl.model.forms.linear import LinearForm, are_of, name_under
from bench_mtl.model.intercepts import exactly_balanced
from bench_mtl.model.losses import hinge_dual
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import Kind
from bench_mtl.model.regularisers import Constraint, Penalty
from bench_mtl.model.task_balls import L1TaskBalls, TaskBalls


@dataclass(frozen=True)
class Hinges(LinearForm):
    """Weighted hinges f(W) = sum_k sum_i weights_ki max(0, 1 - labels_ki x_ki.w_k) = max_{0 <= a <= weights} sum a - <a, K W>, and R(W).

    K W are the margins labels_ki x_ki.w_k, and a the dual points: the labels times those of the loss, `LinearFit` with `Hinge`. With an
    intercept f(W) is the least of this over numbers b_k that are added to all x_ki.w_k, and the a of every task have
    sum_i a_ki labels_ki = 0.
    """

    @property
    def labels(self) -> Array:
        """-1 or +1, in the output shape of the design."""
        return self.fit.targets

    @property
    def weights(self) -> Array:
        """Above 0, shaped like the labels."""
        return self.fit.weights

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
            return np.asarray(-self.labels * self.fit.derivatives(self.labels * margins))
        return np.asarray(self.weights * hinge_dual(margins))

    def bound(self, dual: Array, G: Array) -> float:
        """Return what a dual point a in its box proves, up to rounding, with G its `adjoint` and ||.||' the dual norm.

        With a radius sum a - radius ||G||', or 0, which a = 0 proves, task by task where each has a ball; with a penalty the sum of a,
        scaled until ||G||' is at most that.
        """
        if isinstance(self.regulariser, TaskBalls):
            supports = self.regulariser.radii * self.regulariser.dual_norms(G)
            return float(np.maximum(self.design.task_sums(dual) - supports, 0.0).sum())
        total, norm = float(dual.sum()), self.norm.dual(G)
        if isinstance(self.regulariser, Constraint):
            return max(0.0, total - self.regulariser.radius * norm)
        assert isinstance(self.regulariser, Penalty)
        return total * min(1.0, self.regulariser.weight / norm) if norm > 0.0 else total

    def enclose_bound(self, dual: Array) -> Interval:
        """Return `bound` of any array, made admissible, between bounds that hold in exact arithmetic."""
        if not isinstance(self.regulariser, TaskBalls):
            return self.fit.enclose_bound(self.labels * dual, self.regulariser)
        a = self.admissible(dual)
        totals, G = self.design.enclose_task_sums(a), self.design.enclose_adjoint(a * self.labels)
        return (totals - self.regulariser.enclose_dual_norms(G) * self.regulariser.radii).positive_part().sum()

    def relative_gap(self, point: Array, dual: Array) -> float:
        """Return the relative gap of a feasible point and any dual array, up to rounding; relative to a share of f at 0 if it is less."""
        a = self.admissible(dual)
        return gap_up_to_rounding(self.objective(point), self.bound(a, self.adjoint(a)), NEGLIGIBLE_SHARE * float(self.weights.sum()))

    def far_point(self, G: Array, total: float, curvature: float) -> Array:
        """A point along G = K^T a of the size to expect of a solution: as far as the loss may fall, but within the radius of a ball.

        `total` is f at 0, which bounds the penalty at the optimum.
        """
        if isinstance(self.regulariser, TaskBalls):
            norms = self.regulariser.norms(G)
            return np.asarray(G * (np.minimum(self.regulariser.radii, norms / curvature) / np.where(norms > 0.0, norms, 1.0)))
        radius = self.radius if self.radius is not None else total / self.penalty if self.penalty else np.inf
        largest = self.norm.value(G)
        return G * (min(radius, largest / curvature) / largest) if largest > 0.0 else G

    def of_tasks(self) -> list[Hinges]:
        """Return the problem of every task in an l1 ball, where each has one: in one column an l1,inf norm is the l1 norm."""
        assert isinstance(self.regulariser, L1TaskBalls)
        forms = []
        for k, radius in enumerate(self.regulariser.radii):
            labels, weights = (self.design.task_outputs(each, k)[:, None] for each in (self.labels, self.weights))
            fit = replace(self.fit, design=self.design.of_task(k), targets=labels, weights=weights)
            forms.append(Hinges(fit, Constraint(L1Inf(), float(radius))))
        return forms


def hinges_under(*terms: type) -> Kind[Hinges]:
    """Return the kind of hinges under this norm or regulariser."""
    return Kind(name_under("hinge loss", terms), Hinges, lambda form: are_of(form.regulariser, terms))
