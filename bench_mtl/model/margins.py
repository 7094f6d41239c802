"""Losses of multiclass margins, with the duals that prove bounds: those of pairs of classes, and the hinge of the largest violation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError, unknown
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.losses import LOSSES, MarginLoss
from bench_mtl.projections import project_simplex

#: What stands for entries of dual points that overflow.
_HUGE = 1e300
#: Losses of pairs by name; the other one, "hinge", is of whole rows.
PAIRWISE: dict[str, MarginLoss] = {name: loss for name, loss in LOSSES.items() if isinstance(loss, MarginLoss) and loss.is_smooth}
MULTICLASS_LOSSES = (*PAIRWISE, "hinge")


def multiclass_residuals(dual: Array, classes: NDArray[np.intp]) -> Array:
    """R (n x K) of a dual point U (n x K): R_ir = -U_ir, and R_i,y_i = sum_{r != y_i} U_ir, whatever U has at the labels."""
    R = -dual
    rows = np.arange(len(R))
    R[rows, classes] = 0.0
    R[rows, classes] = -R.sum(axis=1)
    return R


@dataclass(frozen=True)
class MulticlassFit(ABC):
    """A loss f of the scores S = H W of n examples in K classes, through the margins rho_ir = S_i,y_i - S_ir.

    A dual point is U >= 0, n x K, with zeros at the labels: how much each margin is worth. It has the residuals R, which at the optimum
    are minus the derivative of f in the scores, R_ir = -U_ir off the labels and R_i,y_i = sum_r U_ir.
    """

    design: Design
    """Shared, H."""
    classes: NDArray[np.intp]
    """y, n numbers from 0 to K - 1."""

    @abstractmethod
    def value(self, scores: Array) -> float:
        """f."""

    @abstractmethod
    def duals(self, scores: Array) -> Array:
        """The U that attains f(S) = max_U gain(U) - <R(U), S>: unique where f is smooth."""

    @abstractmethod
    def gain(self, dual: Array) -> float:
        """-f*(-R(U)) of an admissible U, so that gain(U) - <R(U), S> <= f(S) at all S."""

    @abstractmethod
    def admissible(self, dual: Array) -> Array:
        """A dual point near any array n x K, also one with inf or NaN: one with a finite gain, and zeros at the labels."""

    @abstractmethod
    def normalised(self, dual: Array) -> Array:
        """The multiple of an admissible dual point that is as large as one is in general, so that products with it keep their digits."""

    @abstractmethod
    def enclose_value(self, scores: Interval) -> Interval:
        """f between bounds that hold in exact arithmetic, at scores that are known between bounds."""

    @abstractmethod
    def enclose_gain(self, dual: Array, limit: float) -> Interval:
        """gain(c U) between bounds that hold in exact arithmetic, of an admissible and normalised U at about the best c from 0 to limit."""

    def residuals(self, dual: Array) -> Array:
        """R(U)."""
        return multiclass_residuals(dual, self.classes)

    def enclose_residuals(self, dual: Array) -> Interval:
        """R(U) between bounds that hold in exact arithmetic: the entries at labels are sums."""
        lower, upper = -dual, -dual
        sums, rows = Interval.exact(self._without_labels(dual.copy())).sum(axis=1), np.arange(len(dual))
        lower[rows, self.classes], upper[rows, self.classes] = sums.lower, sums.upper
        return Interval(lower, upper)

    def enclose_margins(self, scores: Interval) -> Interval:
        """Rho between bounds that hold in exact arithmetic, with zeros at the labels."""
        rho = scores[np.arange(len(self.classes)), self.classes].reshape(-1, 1) - scores
        return Interval(self._without_labels(rho.lower), self._without_labels(rho.upper))

    def derivatives(self, scores: Array) -> Array:
        """Return the derivative of f in the scores (of the hinge, one of its subgradients)."""
        return -self.residuals(self.duals(scores))

    def margins(self, scores: Array) -> Array:
        """rho, n x K, with zeros at the labels."""
        return np.asarray(scores[np.arange(len(scores)), self.classes][:, None] - scores)

    def _without_labels(self, values: Array) -> Array:
        values[np.arange(len(values)), self.classes] = 0.0
        return values


@final
@dataclass(frozen=True)
class PairwiseFit(MulticlassFit):
    """f(S) = 1/(n K) sum_i sum_r l(rho_ir), the label's own constant l(0) included."""

    loss: MarginLoss

    def value(self, scores: Array) -> float:
        return float(self.loss.value(self.margins(scores)).mean())

    def duals(self, scores: Array) -> Array:
        return self._without_labels(self._weight * self.loss.dual(self.margins(scores)))

    def gain(self, dual: Array) -> float:
        gains = self.loss.gain(np.clip(dual / self._weight, self.loss.lower, self.loss.upper))
        constant = float(self.loss.value(np.zeros(1))[0]) / self.design.n_tasks  # what the margins of the labels with themselves add
        return constant + self._weight * float(gains.sum() - gains[np.arange(len(gains)), self.classes].sum())

    def admissible(self, dual: Array) -> Array:
        return self._without_labels(np.clip(_finite(dual), self._weight * self.loss.lower, self._weight * self.loss.upper))

    def normalised(self, dual: Array) -> Array:
        largest = float(np.abs(dual).max(initial=0.0))
        return dual / largest * self._weight if largest > 0.0 else dual

    def enclose_value(self, scores: Interval) -> Interval:
        margins = self.enclose_margins(scores)
        return self.loss.enclose_value(margins).sum() / float(np.size(margins.lower))

    def enclose_gain(self, dual: Array, limit: float) -> Interval:
        """At least that of U = 0."""
        counted = self._without_labels(np.ones(dual.shape))  # the margins of labels with themselves are constant
        c = self.loss.best_multiple(dual / self._weight, counted, 0.0, limit)
        size, K = float(dual.size), self.design.n_tasks
        constant = self.loss.enclose_value(Interval.exact(np.zeros(1))).sum() / float(K)
        least = constant + self.loss.enclose_gain(Interval.exact(np.zeros(1))).sum() * float(dual.size - len(dual)) / size
        if not 0.0 < c < np.inf:
            return least
        u = (Interval.exact(dual) * size * c).at_least(self.loss.lower).at_most(self.loss.upper)
        found = constant + (self.loss.enclose_gain(u) * counted).sum() / size
        return Interval(np.fmax(least.lower, found.lower), np.maximum(least.upper, found.upper))

    @property
    def _weight(self) -> float:
        return 1.0 / (len(self.classes) * self.design.n_tasks)


@final
@dataclass(frozen=True)
class HingeFit(MulticlassFit):
    """f(S) = 1/n sum_i max_r (1[r != y_i] - rho_ir), the hinge of Crammer and Singer; its U has rows of sum at most 1/n."""

    def value(self, scores: Array) -> float:
        return float(self._losses(scores).max(axis=1).mean())

    def duals(self, scores: Array) -> Array:
        """1/n at the largest loss of every row; evenly among equal ones, as all classes but the label have at W = 0."""
        losses = self._losses(scores)
        largest = losses == losses.max(axis=1, keepdims=True)
        return self._without_labels(largest * (self._mass / largest.sum(axis=1, keepdims=True)))

    def smoothed(self, scores: Array, smoothing: float) -> tuple[float, Array]:
        """f with - smoothing/2 ||p||^2 in max_p <p, losses> over the simplex of every row, and the U that attains it.

        Below f by at most smoothing / 2.
        """
        losses = self._losses(scores)
        p = project_simplex(losses / smoothing, axis=1)
        value = self._mass * float((p * losses).sum() - 0.5 * smoothing * (p * p).sum())
        return value, self._without_labels(self._mass * p)

    def prox(self, scores: Array, step_size: float) -> tuple[Array, Array]:
        """argmin_S 1/2 ||S - scores||^2 + step_size f(S), and the U that attains f there."""
        step = step_size * self._mass
        rows = np.arange(len(scores))
        towards = np.array(scores)
        towards[rows, self.classes] += step
        losses = 1.0 + towards
        losses[rows, self.classes] -= 1.0
        p = project_simplex(losses / step, axis=1)
        return towards - step * p, self._without_labels(self._mass * p)

    def gain(self, dual: Array) -> float:
        return float(dual.sum())

    def admissible(self, dual: Array) -> Array:
        U = self._without_labels(np.clip(_finite(dual), 0.0, self._mass))
        sums = U.sum(axis=1, keepdims=True)
        return np.asarray(np.where(sums > self._mass, U * (self._mass / np.maximum(sums, self._mass)), U))

    def normalised(self, dual: Array) -> Array:
        largest = float(dual.max(initial=0.0))
        if largest == 0.0:
            return dual
        scaled = dual / largest
        return scaled * (self._mass / float(scaled.sum(axis=1).max()))

    def enclose_value(self, scores: Interval) -> Interval:
        losses = 1.0 - self.enclose_margins(scores)
        losses = Interval(self._without_labels(losses.lower), self._without_labels(losses.upper))
        return losses.largest(axis=1).sum() / float(len(self.classes))

    def enclose_gain(self, dual: Array, limit: float) -> Interval:
        """Of at most the multiple whose rows add up to no more than 1/n in exact arithmetic."""
        heaviest = float(Interval.of_sum(dual, axis=1).upper.max())
        if heaviest == 0.0:
            return Interval(0.0, 0.0)
        largest = float((Interval.exact(1.0) / (Interval.exact(heaviest) * float(len(self.classes)))).lower)
        return (Interval.of_sum(dual) * min(limit, max(0.0, largest))).positive_part()

    def _losses(self, scores: Array) -> Array:
        """1[r != y_i] - rho_ir."""
        return self._without_labels(1.0 - self.margins(scores))

    @property
    def _mass(self) -> float:
        return 1.0 / len(self.classes)


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=0.0, posinf=_HUGE, neginf=-_HUGE)


def multiclass_fit(design: Design, classes: NDArray[np.intp], loss: str | MarginLoss) -> MulticlassFit:
    """The loss by its name, one of `MULTICLASS_LOSSES`, or by its conjugate.

    Raises InputError: an unknown name, or neither a name nor a smooth `MarginLoss`.
    """
    if isinstance(loss, MarginLoss) and loss.is_smooth:
        return PairwiseFit(design, classes, loss)
    if not isinstance(loss, str):
        raise InputError("loss", loss, f"one of {', '.join(MULTICLASS_LOSSES)} or a MarginLoss that is smooth")
    if loss not in MULTICLASS_LOSSES:
        raise unknown("loss", loss, MULTICLASS_LOSSES)
    return HingeFit(design, classes) if loss == "hinge" else PairwiseFit(design, classes, PAIRWISE[loss])
