"""The form of a loss of scores of classes under a sum of norms of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.rounding import Interval, quotient
from bench_mtl.core.types import Array
from bench_mtl.model.margins import MulticlassFit
from bench_mtl.model.norms import L1, L12, L1Inf, Norm, lengths
from bench_mtl.model.protocols import ObjectiveForm, Problem

#: Norms of a matrix W >= 0 that add up norms of its rows, l2, l-infinity and l1.
_NORMS: dict[str, Norm] = {"l12": L12(), "l1inf": L1Inf(), "l1": L1(nonneg=True)}
ROW_NORMS = tuple(_NORMS)


def positive_dual_norms(G: Array, norm: str) -> Array:
    """||max(G_j, 0)||_* of every row of G (J x K), J numbers: the largest <G_j, w> over w >= 0 with ||w|| <= 1 in this one of `ROW_NORMS`.

    The dual norms are l2 ("l12"), l1 ("l1inf") and l-infinity ("l1").
    """
    above = np.maximum(G, 0.0)
    if norm == "l12":
        return lengths(above.T)
    return np.asarray(above.sum(axis=1) if norm == "l1inf" else above.max(axis=1, initial=0.0))


@dataclass(frozen=True)
class GroupForm(ObjectiveForm):
    """A loss of the scores of classes under a sum of norms of rows, f the function of a `MulticlassFit`::

    min_W  f(H W) + nu sum_j ||W_j||   subject to  W >= 0

    with the l2 norm of a row ("l12"), its largest entry ("l1inf") or its sum ("l1").
    """

    fit: MulticlassFit
    nu: float
    norm: str

    def objective(self, point: Array) -> float:
        return self.fit.value(self.fit.design.forward(point)) + self.penalty(point)

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives; slopes are those of the loss, and the duals of scores attain what no dual point exceeds."""
        super().check(problem, rng)
        fit, point = self.fit, problem.repair(rng.standard_normal(problem.point_shape))
        scores = fit.design.forward(point)
        value, duals = fit.value(scores), fit.duals(scores)
        assert np.allclose(fit.admissible(duals), duals, rtol=1e-12), "the duals of scores are not admissible"
        attained = fit.gain(duals) - float((fit.residuals(duals) * scores).sum())
        assert np.isclose(attained, value, rtol=1e-9), f"the duals attain {attained:g}, the loss is {value:g}"
        for _ in range(5):
            other = fit.admissible(duals + 0.1 * duals.max() * rng.standard_normal(duals.shape))
            below = fit.gain(other) - float((fit.residuals(other) * scores).sum())
            assert below <= value + 1e-9 * (1 + abs(value)), f"a dual point gives {below:g}, above the loss {value:g}"
        change = rng.standard_normal(scores.shape)
        plane = value + float((fit.derivatives(scores) * change).sum())
        assert plane <= fit.value(scores + change) + 1e-9 * (1 + abs(plane)), "the slopes give no plane below the loss"
        G = rng.standard_normal(problem.point_shape)
        best = self.prox(1e3 * G, 1e3)
        assert float((G * best).sum()) <= self.penalty(best) / self.nu * self.dual_norms(G).max() * (1 + 1e-9), "a dual norm is exceeded"

    def penalty(self, W: Array) -> float:
        """nu sum_j ||W_j||, W >= 0."""
        return self.nu * _NORMS[self.norm].value(W)

    def prox(self, W: Array, step_size: float) -> Array:
        """argmin_V 1/2 ||V - W||^2 + step_size nu sum_j ||V_j|| subject to V >= 0."""
        return _NORMS[self.norm].prox(np.maximum(W, 0.0), step_size * self.nu)

    def dual_norms(self, G: Array) -> Array:
        """`positive_dual_norms` of this norm."""
        return positive_dual_norms(G, self.norm)

    def violations(self, dual: Array) -> Array:
        """`dual_norms` of G = H^T R(U), J numbers: at the optimum none above nu, and nu where W_j != 0."""
        return self.dual_norms(self.fit.design.adjoint(self.fit.residuals(dual)))

    def bound(self, dual: Array, others: Callable[[Array], float] | None = None) -> float:
        """A proven lower bound on the optimum, from any dual point: the lower end of `enclose_bound`."""
        with np.errstate(all="ignore"):
            return self.enclose_bound(dual, others).ends[0]

    def enclose_bound(self, dual: Array, others: Callable[[Array], float] | None = None) -> Interval:
        """What any dual point proves of the optimum, between bounds that hold in exact arithmetic.

        With `others`, the largest violation among weak learners outside H for given residuals, it holds for the problem over all of them,
        as far as this function does not round.
        """
        U = self.fit.normalised(self.fit.admissible(dual))
        R = self.fit.enclose_residuals(U)
        largest = _NORMS[self.norm].enclose_dual(self.fit.design.enclose_adjoint(R).positive_part()).ends[1]
        if others is not None:
            largest = float(np.maximum(largest, others(self.fit.residuals(U))))
        return self.fit.enclose_gain(U, quotient(self.nu, Interval.exact(largest)).lower)

    def enclose_objective(self, W: Array, scores: Interval) -> Interval:
        """F between bounds that hold in exact arithmetic, at scores H W that are known between bounds."""
        return self.fit.enclose_value(scores) + _NORMS[self.norm].enclose(W) * self.nu
