"""Losses of multiclass margins, with the duals that prove bounds: those of pairs of classes, and the hinge of the largest violation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError, unknown
from bench_mtl.core.types import Array
from bench_mtl.model.losses import binary_entropies, entropy, highest_on_segment, hinge, logistic_dual
from bench_mtl.projections import project_simplex

_TINY = float(np.finfo(np.float64).tiny)

#: What stands for entries of dual points that overflow.
_HUGE = 1e300

#: Multiples of a dual point that are tried at most, where nothing else limits them: it is normalised to a largest entry of 1.
_LARGEST_MULTIPLE = 1e6


class MarginLoss(ABC):
    """A smooth convex loss l of a margin, with its conjugate::

        l(rho) = max_u  gain(u) - u rho,      gain(u) = -l*(-u),      attained at  u = -l'(rho)

    A loss of one's own is a class below this one; `group_boosting` takes it in place of a name.
    """

    name: ClassVar[str]
    curvature: ClassVar[float | None]
    """The largest second derivative; None where there is none."""
    lower: ClassVar[float] = 0.0
    """The smallest u with a finite gain: 0 for a loss that never rises. At most 0."""
    upper: ClassVar[float] = np.inf
    """The largest u with a finite gain."""
    cones: ClassVar[frozenset[str]] = frozenset()
    """What `model` needs, as in `Problem.conic_forms`; empty where there is no model."""

    @abstractmethod
    def value(self, margins: Array) -> Array:
        """l, entry by entry."""

    @abstractmethod
    def dual(self, margins: Array) -> Array:
        """-l', entry by entry."""

    def second(self, margins: Array) -> Array:
        """l'', entry by entry, for methods of second order; one of its values where it jumps. Here by differences of `dual`."""
        step = 1e-5 * (1.0 + np.abs(margins))
        return np.maximum((self.dual(margins - step) - self.dual(margins + step)) / (2.0 * step), 0.0)

    @abstractmethod
    def gain(self, u: Array) -> Array:
        """-l*(-u), entry by entry, for u from `lower` to `upper`; finite at 0."""

    @abstractmethod
    def gain_slope(self, u: Array) -> Array:
        """The derivative of `gain`: the margin at which u = -l'. At the ends of the interval any finite number of the right sign."""

    def model(self, margins: Any) -> Any:
        """The sum of l over the entries of a CVXPY expression."""
        raise NotImplementedError


@final
class Logistic(MarginLoss):
    """log(1 + exp(-rho)); gain(u) = -u log u - (1 - u) log(1 - u)."""

    name: ClassVar[str] = "logistic"
    curvature: ClassVar[float | None] = 0.25
    upper: ClassVar[float] = 1.0
    cones: ClassVar[frozenset[str]] = frozenset({"exponential"})

    def value(self, margins: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -margins))

    def dual(self, margins: Array) -> Array:
        return logistic_dual(margins)

    def second(self, margins: Array) -> Array:
        u = logistic_dual(margins)
        return u * (1.0 - u)

    def gain(self, u: Array) -> Array:
        return binary_entropies(u)

    def gain_slope(self, u: Array) -> Array:
        return np.asarray(np.log(np.maximum(1.0 - u, _TINY)) - np.log(np.maximum(u, _TINY)))

    def model(self, margins: Any) -> Any:
        import cvxpy as cp

        return cp.sum(cp.logistic(-margins))


@final
class SquaredHinge(MarginLoss):
    """max(0, 1 - rho)^2; gain(u) = u - u^2 / 4."""

    name: ClassVar[str] = "squared_hinge"
    curvature: ClassVar[float | None] = 2.0
    cones: ClassVar[frozenset[str]] = frozenset({"quadratic"})

    def value(self, margins: Array) -> Array:
        return hinge(margins) ** 2

    def dual(self, margins: Array) -> Array:
        return 2.0 * hinge(margins)

    def second(self, margins: Array) -> Array:
        return np.asarray(2.0 * (margins < 1.0))

    def gain(self, u: Array) -> Array:
        return u - 0.25 * u * u

    def gain_slope(self, u: Array) -> Array:
        return 1.0 - 0.5 * u

    def model(self, margins: Any) -> Any:
        import cvxpy as cp

        return cp.sum_squares(cp.pos(1.0 - margins))


@final
class Exponential(MarginLoss):
    """exp(-rho), without a bound on its curvature; gain(u) = u - u log u."""

    name: ClassVar[str] = "exponential"
    curvature: ClassVar[float | None] = None
    cones: ClassVar[frozenset[str]] = frozenset({"exponential"})

    def value(self, margins: Array) -> Array:
        return self.dual(margins)

    def dual(self, margins: Array) -> Array:
        with np.errstate(over="ignore"):  # infinite where it overflows: a step that goes there is refused by who took it
            return np.exp(-margins)

    def second(self, margins: Array) -> Array:
        return self.dual(margins)

    def gain(self, u: Array) -> Array:
        return u + entropy(u)

    def gain_slope(self, u: Array) -> Array:
        return np.asarray(-np.log(np.maximum(u, _TINY)))

    def model(self, margins: Any) -> Any:
        import cvxpy as cp

        return cp.sum(cp.exp(-margins))


#: Losses of pairs by name; the other one, "hinge", is of whole rows.
PAIRWISE: dict[str, MarginLoss] = {loss.name: loss for loss in (Logistic(), SquaredHinge(), Exponential())}
LOSSES = (*PAIRWISE, "hinge")


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
    def best_gain(self, dual: Array, limit: float) -> float:
        """max gain(c U) over 0 <= c <= limit of an admissible and normalised U."""

    def restricted(self, design: Design) -> MulticlassFit:
        """The same loss of the scores of another design of the same examples."""
        return replace(self, design=design)

    def residuals(self, dual: Array) -> Array:
        """R(U)."""
        return multiclass_residuals(dual, self.classes)

    def slopes(self, scores: Array) -> Array:
        """The derivative of f in the scores (of the hinge, one of its subgradients)."""
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
        u = np.clip(dual / self._weight, self.loss.lower, self.loss.upper)
        return self._constant + self._weight * self._sum(self.loss.gain(u))

    def admissible(self, dual: Array) -> Array:
        return self._without_labels(np.clip(_finite(dual), self._weight * self.loss.lower, self._weight * self.loss.upper))

    def normalised(self, dual: Array) -> Array:
        largest = float(np.abs(dual).max(initial=0.0))
        return dual / largest * self._weight if largest > 0.0 else dual

    def best_gain(self, dual: Array, limit: float) -> float:
        u, loss = dual / self._weight, self.loss
        within = [bound / extreme for bound, extreme in ((loss.upper, u.max(initial=0.0)), (loss.lower, u.min(initial=0.0))) if extreme]
        limit = min(limit, _LARGEST_MULTIPLE, *within)
        base = self._sum(loss.gain(np.zeros_like(u)))
        rise = highest_on_segment(
            lambda c: self._sum(loss.gain(np.clip(c * u, loss.lower, loss.upper))) - base,
            lambda c: float(np.vdot(u, loss.gain_slope(c * u))),
            limit,
        )
        return self._constant + self._weight * (base + rise)

    def _sum(self, gains: Array) -> float:
        """Over the margins that are not constant."""
        return float(gains.sum() - gains[np.arange(len(gains)), self.classes].sum())

    @property
    def _weight(self) -> float:
        return 1.0 / (len(self.classes) * self.design.n_tasks)

    @property
    def _constant(self) -> float:
        """What the margins of the labels with themselves add."""
        return float(self.loss.value(np.zeros(1))[0]) / self.design.n_tasks


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

    def best_gain(self, dual: Array, limit: float) -> float:
        return min(limit, 1.0) * self.gain(dual)

    def _losses(self, scores: Array) -> Array:
        """1[r != y_i] - rho_ir."""
        return self._without_labels(1.0 - self.margins(scores))

    @property
    def _mass(self) -> float:
        return 1.0 / len(self.classes)


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=0.0, posinf=_HUGE, neginf=-_HUGE)


def multiclass_fit(design: Design, classes: NDArray[np.intp], loss: str | MarginLoss) -> MulticlassFit:
    """The loss by its name, one of `LOSSES`, or by its conjugate.

    Raises
    ------
    InputError : an unknown name, or neither a name nor a `MarginLoss`.
    """
    if isinstance(loss, MarginLoss):
        return PairwiseFit(design, classes, loss)
    if not isinstance(loss, str):
        raise InputError(f"loss must be one of {', '.join(LOSSES)} or a MarginLoss, not {loss!r}")
    if loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    return HingeFit(design, classes) if loss == "hinge" else PairwiseFit(design, classes, PAIRWISE[loss])
