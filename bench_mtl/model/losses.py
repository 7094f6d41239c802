"""Convex losses of linear predictions, a class for each: values, derivatives, and the conjugates that prove lower bounds.

The smooth ones of a margin are also what multiclass losses of pairs of classes are made of, see `bench_mtl.model.margins`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, final

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import TINIEST, UNIT, Interval, down, enclose_dot, entropies, entropy, gamma, soft_plus, up
from bench_mtl.core.types import Array
from bench_mtl.model.intercepts import kinked_intercepts, root_of_falling
from bench_mtl.model.task_data import TaskData, binary_labels, class_indicators

#: Multiples of a dual point that are tried at most, where nothing else limits them: it is normalised to a largest entry of 1.
_LARGEST_MULTIPLE = 1e6
#: The multiples of a dual point for which sums over examples give the gain, so that the best multiple need not be known before them.
GAIN_SHARES = (1.0, 1.0 - 2.0**-7)
#: Multiples that are tried where it is all the same to a sum which one is.
_TRIED_SHARES = (*GAIN_SHARES, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)
#: Relative accuracy of a multiple near the best one: what it proves is off by the square of that.
_OF_ROOT = 1e-9
#: How far -p log p may be apart for p that are two roundings apart, the errors of the library included.
_CLOSE_ENTROPIES = 128.0 * UNIT
#: A margin at which nothing is left of a smooth loss.
_FAR_MARGIN = 100.0


def hinge(margins: Array) -> Array:
    """Return max(0, 1 - margin), entry by entry."""
    return np.maximum(0.0, 1.0 - margins)


def hinge_dual(margins: Array) -> Array:
    """Return the a in [0, 1] with hinge(t) = max_a a (1 - t) attained at t = margin: 1 below margin 1, else 0.

    Minus this is a subgradient of the hinge. The conjugate term of the saddle form is sum(a) on the box [0, 1].
    """
    return np.asarray(margins < 1.0, dtype=np.float64)


def logistic_dual(margins: Array) -> Array:
    """Return 1 / (1 + exp(margin)), minus the derivative of the logistic loss: the a in [0, 1] with log(1 + exp(-t)) = max_a H(a) - a t."""
    return np.exp(-np.logaddexp(0.0, margins))


def best_on_segment(derivative: Callable[[float], float], limit: float) -> float:
    """Return a c in [0, limit] near the largest value of a concave function with this derivative; 0 where it does not rise.

    Where the value is a lower bound for every c, any c gives one; the root of the derivative is only the best.
    """
    from scipy.optimize import brentq

    low = limit * 1e-12
    if not limit > 0.0:
        return 0.0
    if derivative(limit) >= 0.0:
        return limit
    return float(brentq(derivative, low, limit, xtol=1e-14 * limit, rtol=_OF_ROOT)) if derivative(low) > 0.0 else 0.0


class WeightedTargets(Protocol):
    """What a loss is summed over; a `LinearFit` is one."""

    @property
    def design(self) -> Design: ...
    @property
    def targets(self) -> Array: ...
    @property
    def weights(self) -> Array: ...


def _chord(gains: tuple[Interval, ...], c: float) -> Interval:
    """Return the chord at c of the gain, between bounds: by its values at `GAIN_SHARES`, and 0 at 0. The gain is above it."""
    whole, most = gains
    share = GAIN_SHARES[1]
    if c <= share:
        return most * Interval(down(c / share), up(c / share))
    part = (Interval.exact(c) - share) / Interval.exact(1.0 - share)  # 1 - share is exact
    return whole * part + most * (1.0 - part)


class Loss(ABC):
    """A convex loss of a prediction t and its target y, entry by entry: what a `LinearFit` adds up with weights.

    Methods take predictions t, targets y and weights w in the output shape of a design. A dual point r of the weighted loss f is in the
    same shape: at the optimum minus the derivative of f in the predictions.
    """

    #: One object of each loss, and of each of its parameters, serves all problems: it has no attributes that anybody could set.
    __slots__ = ()

    name: ClassVar[str]
    code: ClassVar[int | None] = None
    """The number by which compiled loops know it; None where they do not."""
    curvature: ClassVar[float | None]
    """The largest second derivative; None where there is none."""
    largest_derivative: ClassVar[float | None] = None
    """A bound on the Euclidean norm of the derivative in the predictions of an example; None where there is none."""
    largest_multiple: ClassVar[float] = np.inf
    """The largest c for which c times a dual point that is `normalised` may be admissible."""
    cones: ClassVar[frozenset[str]] = frozenset()
    """What `model` needs besides "linear", as in `Problem.conic_forms`."""
    is_smooth: ClassVar[bool] = True
    is_of_labels: ClassVar[bool] = True
    """Whether targets are labels; else they are real numbers."""
    couples_tasks: ClassVar[bool] = False
    """Whether the predictions of all tasks for an example have one loss together."""

    def targets(self, data: TaskData) -> tuple[Array, tuple[str, ...]]:
        """Return the targets of the data as this loss wants them, and the notes of the data: labels -1/+1, read-only.

        Raises InputError: targets that are not of this kind.
        """
        return binary_labels(data)

    def total(self, t: Array, y: Array, w: Array) -> float:
        """Return f, the sum of the weighted values."""
        return float((w * self.values(t, y)).sum())

    def total_and_derivatives(self, t: Array, y: Array, w: Array) -> tuple[float, Array]:
        """Return `total`, and the derivative of f in every prediction; what both need is computed once."""
        return self.total(t, y, w), np.asarray(w * self.derivatives(t, y))

    @abstractmethod
    def values(self, t: Array, y: Array) -> Array:
        """Return the loss of every prediction; of every row, as a column, where it couples tasks."""

    @abstractmethod
    def derivatives(self, t: Array, y: Array) -> Array:
        """Return the derivative in every prediction (a subgradient where there is none)."""

    def smoothed(self, t: Array, y: Array, w: Array, smoothing: float) -> tuple[float, Array]:
        """Return `total_and_derivatives` of a smooth loss at most a share of `smoothing` below; with 0 those of the loss itself."""
        return self.total_and_derivatives(t, y, w)

    def curvatures(self, t: Array, y: Array) -> Array:
        """Return the second derivative in every prediction. Raises InputError: there is none, or it couples predictions."""
        raise InputError(f"loss '{self.name}' has no second derivatives of single predictions")

    @abstractmethod
    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        """Return the nearest dual point (or one near it) at which the conjugate of f is finite; unchanged where it is already."""

    def normalised(self, dual: Array, y: Array, w: Array) -> Array:
        """Return the largest admissible multiple of an admissible dual point; where all are, the one with a largest entry of 1.

        So the best multiple of it is found among the smaller ones, and products with it are not lost among the smallest doubles, where
        they would prove more than is true, nor beyond the largest.
        """
        top = self._extent(dual, y, w)
        return dual / top if top > 0.0 else dual

    @abstractmethod
    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        """Return what `normalised` divides by."""

    @abstractmethod
    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        """Return f of predictions that are known between bounds, between bounds that hold in exact arithmetic."""

    def conjugate_gain(self, dual: Array, y: Array, w: Array) -> float:
        """Return -f*(-dual) of an admissible dual point, f* the conjugate of f, up to rounding: to steer by, and no proof.

        Raises InputError: there is none here.
        """
        raise InputError(f"loss '{self.name}' has no conjugate of single predictions")

    def enclose_admissible(self, dual: Array, y: Array, w: Array) -> Array | Interval:
        """Return the dual point at which the conjugate is finite in exact arithmetic: `dual`, or one that rounding hides beside it."""
        return dual

    def enclose_gains(self, dual: Array, y: Array, w: Array) -> tuple[Interval, ...]:
        """Return of some examples what `enclose_bound_of` wants, added up over all of them; `dual` is admissible.

        Here -f*(-c dual) for the c of `GAIN_SHARES`.
        """
        return tuple(self._enclose_gain(dual, y, w, c) for c in GAIN_SHARES)

    def _enclose_gain(self, dual: Array, y: Array, w: Array, c: float) -> Interval:
        """Return -f*(-c dual) between bounds that hold in exact arithmetic."""
        raise InputError(f"loss '{self.name}' has no bounds that are sums over examples")

    def enclose_bound_of(self, gains: tuple[Interval, ...], support: Interval, limit: float) -> Interval:
        """Return -f*(-c dual) - c support, or less, at about the best c from 0 to the limit, as `enclose_bound` does.

        Here with c <= 1: the dual points that residuals give need no larger one near an optimum.
        """
        if not limit > 0.0:
            return Interval(0.0, 0.0)
        tried = [min(limit, 1.0), *(c for c in _TRIED_SHARES if c < limit)]
        found = [self._enclose_lower_gain(gains, c) - support * c for c in tried]
        return max(found, key=lambda bound: float(bound.lower)).positive_part()

    def _enclose_lower_gain(self, gains: tuple[Interval, ...], c: float) -> Interval:
        """Return what -f*(-c dual) is no less than, between bounds; here its chord, since it is concave in c and at least 0 at 0."""
        return _chord(gains, c)

    @abstractmethod
    def enclose_bound(self, dual: Array, y: Array, w: Array, support: Interval, limit: float) -> Interval:
        """Return -f*(-c dual) - c support between bounds that hold in exact arithmetic, at about the best c from 0 to the limit.

        `dual` is admissible, normalised and not 0; it represents `enclose_admissible` of it. At least 0, which c = 0 proves (of a loss
        that is never below 0).
        """

    @final
    @np.errstate(all="ignore")
    def bound(self, dual: Array, y: Array, w: Array, support: float, limit: float) -> float:
        """Return the lower end of `enclose_bound` of a support that is known."""
        return max(0.0, self.enclose_bound(dual, y, w, Interval.exact(support), limit).ends[0])

    def intercepts(self, t: Array, y: Array, w: Array, design: Design) -> Array:
        """Return the b_k that minimise f of the predictions t + b, m numbers. Raises InputError: a loss that has none here."""
        return kinked_intercepts(y - t, w, self.rises(y), design)

    def rises(self, y: Array) -> Array:
        """Return h of every target, of a loss that is max(h (y - t), (h - 1) (y - t)): all that intercepts of kinks need.

        Raises InputError: the loss is no such one.
        """
        raise InputError(f"loss '{self.name}' has no free intercept here")

    def error(self, t: Array, y: Array) -> float:
        """Return the share of examples that are predicted wrongly (a prediction of 0 is)."""
        return float(np.mean(t * y <= 0.0))

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """Return f in CVXPY, see `LinearFit.model`. Raises InputError: there is no model of this loss."""
        raise InputError(f"loss '{self.name}' has no model here")


class _OfResiduals(Loss):
    """A loss of the residual y - t of real targets, here with the conjugate f*(-r) = sum r^2 / (2 w) - <r, y> where that is finite."""

    __slots__ = ()

    is_of_labels: ClassVar[bool] = False
    cones: ClassVar[frozenset[str]] = frozenset({"squares"})

    def targets(self, data: TaskData) -> tuple[Array, tuple[str, ...]]:
        return data.targets, data.notes

    def normalised(self, dual: Array, y: Array, w: Array) -> Array:
        """Among the smallest doubles what it divides by has few digits, so that the multiple could leave the box."""
        return self.admissible(super().normalised(dual, y, w), y, w)

    def conjugate_gain(self, dual: Array, y: Array, w: Array) -> float:
        return float(np.vdot(dual, y)) - 0.5 * float((dual * dual / w).sum())

    def enclose_gains(self, dual: Array, y: Array, w: Array) -> tuple[Interval, ...]:
        """<dual, y> and the weighted square of `dual`, which give the gain for any c."""
        return enclose_dot(dual, y), enclose_dot(dual, dual) if np.all(w == 1.0) else (Interval.exact(dual).square() / w).sum()

    def enclose_bound(self, dual: Array, y: Array, w: Array, support: Interval, limit: float) -> Interval:
        return self.enclose_bound_of(self.enclose_gains(dual, y, w), support, limit)

    def enclose_bound_of(self, gains: tuple[Interval, ...], support: Interval, limit: float) -> Interval:
        along, squares = gains
        rise = along - support
        if not float(squares.middle) > 0.0:
            return Interval(0.0, 0.0)
        c = min(max(float(rise.middle) / float(squares.middle), 0.0), limit, self.largest_multiple)
        if not 0.0 < c < np.inf:  # NaN where the support is infinite
            return Interval(0.0, 0.0)
        return ((rise - squares * (0.5 * c)) * c).positive_part()  # of which no part overflows before the whole does

    def error(self, t: Array, y: Array) -> float:
        """Return the share of the squares of the targets that is not explained."""
        total = float((y**2).sum())
        return float(((y - t) ** 2).sum()) / total if total > 0.0 else 0.0


@final
class Squared(_OfResiduals):
    """loss(t, y) = 1/2 (y - t)^2, of real targets."""

    __slots__ = ()

    name: ClassVar[str] = "squared"
    code: ClassVar[int | None] = 0
    curvature: ClassVar[float | None] = 1.0

    def total(self, t: Array, y: Array, w: Array) -> float:
        return 0.5 * float((w * (y - t) ** 2).sum())

    def values(self, t: Array, y: Array) -> Array:
        return 0.5 * (y - t) ** 2

    def derivatives(self, t: Array, y: Array) -> Array:
        return t - y

    def curvatures(self, t: Array, y: Array) -> Array:
        return np.broadcast_to(1.0, t.shape)

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        return dual

    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        return float(np.abs(dual).max(initial=0.0))

    def intercepts(self, t: Array, y: Array, w: Array, design: Design) -> Array:
        return np.asarray(design.task_sums(w * (y - t)) / design.task_sums(np.broadcast_to(w, y.shape)))

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        return ((y - t).square() * w).sum() * 0.5

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The residuals are variables.

        A tall dense X of all tasks enters through its QR factors, ||Y - X W||^2 = ||Q^T Y - R W||^2 + const, where the weights of a task
        are all the same: that makes the model smaller and changes nothing else.
        """
        import cvxpy as cp

        X, y, outside, as_dual = _least_squares(fit)
        r, rest = cp.Variable(len(y)), outside.ravel()
        return 0.5 * float(rest @ rest) + 0.5 * cp.sum_squares(r), r == y - X @ coefficients, as_dual


@final
class Huber(_OfResiduals):
    """loss(t, y) = 1/2 (y - t)^2 where |y - t| <= delta, and delta |y - t| - delta^2 / 2 beyond, of real targets.

    P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35 (1964). The conjugate is that of the squared loss where
    |r| <= delta w, and infinite elsewhere.
    """

    __slots__ = ("delta",)

    name: ClassVar[str] = "huber"
    curvature: ClassVar[float | None] = 1.0
    largest_multiple: ClassVar[float] = 1.0 - 8.0 * UNIT  # so that no |r| is above delta w by rounding

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = real_number("delta of the huber loss", delta, strict=True)

    def values(self, t: Array, y: Array) -> Array:
        size = np.abs(y - t)
        inner = np.minimum(size, self.delta)
        return np.asarray(0.5 * inner * inner + self.delta * (size - inner))

    def derivatives(self, t: Array, y: Array) -> Array:
        return np.clip(t - y, -self.delta, self.delta)

    def curvatures(self, t: Array, y: Array) -> Array:
        return np.asarray(np.abs(y - t) <= self.delta, dtype=np.float64)

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        return np.clip(dual, -self.delta * w, self.delta * w)

    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        return float((np.abs(dual) / (self.delta * w)).max(initial=0.0))

    def intercepts(self, t: Array, y: Array, w: Array, design: Design) -> Array:
        rest, w = y - t, np.broadcast_to(w, y.shape)
        reach = np.full(design.n_tasks, float(np.abs(rest).max(initial=0.0)) + self.delta)

        def value_and_slope(b: Array) -> tuple[Array, Array]:
            left = rest - design.per_example(b)
            return design.task_sums(w * np.clip(left, -self.delta, self.delta)), design.task_sums(w * (np.abs(left) <= self.delta))

        return root_of_falling(value_and_slope, -reach, reach, self.delta * design.task_sums(w))

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        size = (y - t).magnitude()
        low, high = (self._enclosed(np.asarray(end)) for end in (size.lower, size.upper))  # it rises with the modulus
        return (Interval(low.lower, high.upper) * w).sum()

    def _enclosed(self, size: Array) -> Interval:
        inner = np.minimum(size, self.delta)
        return Interval.exact(inner).square() * 0.5 + (Interval.exact(size) - inner) * self.delta

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The residuals are variables."""
        import cvxpy as cp

        design = fit.design
        y = design.stack(fit.targets)
        r = cp.Variable(len(y))
        value = 0.5 * design.stack(fit.weights) @ cp.huber(r, self.delta)
        return value, r == y - design.stacked() @ coefficients, lambda multiplier: -design.unstack(multiplier)


@final
class Quantile(_OfResiduals):
    """loss(t, y) = max(tau (y - t), (tau - 1) (y - t)), of real targets: the best constant t is their tau-quantile.

    Koenker, Bassett, "Regression quantiles", Econometrica 46 (1978). The conjugate is f*(-r) = -<r, y> where
    (tau - 1) w <= r <= tau w, and infinite elsewhere.
    """

    __slots__ = ("tau",)

    name: ClassVar[str] = "quantile"
    curvature: ClassVar[float | None] = None
    largest_multiple: ClassVar[float] = 1.0 - 8.0 * UNIT  # so that no r leaves its box by rounding
    cones: ClassVar[frozenset[str]] = frozenset()
    is_smooth: ClassVar[bool] = False

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = real_number("tau of the quantile loss", tau, strict=True, below=1.0)

    def values(self, t: Array, y: Array) -> Array:
        return np.maximum(self.tau * (y - t), (self.tau - 1.0) * (y - t))

    def derivatives(self, t: Array, y: Array) -> Array:
        return np.asarray((y < t) * (1.0 - self.tau) - (y > t) * self.tau)

    def rises(self, y: Array) -> Array:
        return np.full(y.shape, self.tau)

    def smoothed(self, t: Array, y: Array, w: Array, smoothing: float) -> tuple[float, Array]:
        """max over the r of the box of <r, y - t> - smoothing/2 sum r^2 / w, and -r: at most smoothing/2 sum w below."""
        if smoothing == 0.0:
            return self.total_and_derivatives(t, y, w)
        rest = y - t
        share = np.clip(rest / smoothing, self.tau - 1.0, self.tau)
        r = w * share
        return float(np.vdot(r, rest)) - 0.5 * smoothing * float(np.vdot(r, share)), -r

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        return np.clip(dual, (self.tau - 1.0) * w, self.tau * w)

    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        return float(np.maximum(dual / (self.tau * w), dual / ((self.tau - 1.0) * w)).max(initial=0.0))

    def conjugate_gain(self, dual: Array, y: Array, w: Array) -> float:
        return float(np.vdot(dual, y))

    def enclose_gains(self, dual: Array, y: Array, w: Array) -> tuple[Interval, ...]:
        return (enclose_dot(dual, y),)

    def enclose_bound_of(self, gains: tuple[Interval, ...], support: Interval, limit: float) -> Interval:
        return ((gains[0] - support) * min(limit, self.largest_multiple)).positive_part()

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        rest = y - t
        return ((rest.positive_part() * self.tau + (-rest).positive_part() * (1.0 - Interval.exact(self.tau))) * w).sum()

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The residuals are differences of variables p, q >= 0."""
        import cvxpy as cp

        design = fit.design
        y, w = design.stack(fit.targets), design.stack(fit.weights)
        p, q = cp.Variable(len(y), nonneg=True), cp.Variable(len(y), nonneg=True)
        value = self.tau * (w @ p) + (1.0 - self.tau) * (w @ q)
        return value, p - q == y - design.stacked() @ coefficients, lambda multiplier: -design.unstack(multiplier)


class MarginLoss(Loss):
    """A convex loss l of a margin rho = y t, of labels -1/+1, with its conjugate::

        l(rho) = max_u  gain(u) - u rho,      gain(u) = -l*(-u),      attained at  u = -l'(rho)

    A user's smooth loss is a class below this one; `group_boosting` takes it in place of a name.
    """

    __slots__ = ()

    lower: ClassVar[float] = 0.0
    """The smallest u with a finite gain: 0 for a loss that never rises. At most 0."""
    upper: ClassVar[float] = np.inf
    """The largest u with a finite gain."""

    @abstractmethod
    def value(self, margins: Array) -> Array:
        """Return l, entry by entry."""

    @abstractmethod
    def dual(self, margins: Array) -> Array:
        """Return -l', entry by entry."""

    def second(self, margins: Array) -> Array:
        """Return l'', entry by entry, for methods of second order; one of its values where it jumps. Here by differences of `dual`."""
        step = 1e-5 * (1.0 + np.abs(margins))
        return np.maximum((self.dual(margins - step) - self.dual(margins + step)) / (2.0 * step), 0.0)

    def dual_and_second(self, margins: Array) -> tuple[Array, Array]:
        """Return `dual` and `second` at once."""
        return self.dual(margins), self.second(margins)

    @abstractmethod
    def gain(self, u: Array) -> Array:
        """Return -l*(-u), entry by entry, for u from `lower` to `upper`; finite at 0."""

    @abstractmethod
    def gain_derivative(self, u: Array) -> Array:
        """Return the derivative of `gain`: the margin at which u = -l'. At the ends of the interval any finite number of the right sign."""

    def enclose_value(self, margins: Interval) -> Interval:
        """Return l of margins that are known between bounds, between bounds that hold in exact arithmetic.

        Here for a convex l that `value` gives up to sixteen roundings.
        """
        ends = np.stack([self.value(np.asarray(end)) for end in (margins.lower, margins.upper)])
        lowest = np.minimum(self.value(np.asarray(margins.middle)), ends.min(axis=0))
        # Between its ends a convex function is below their chord, and above its tangent in the middle.
        depth = np.abs(self.dual(np.asarray(margins.middle))) * margins.width
        slack = 16.0 * UNIT
        return Interval(lowest - depth - (slack * np.abs(lowest) + TINIEST), ends.max(axis=0) * (1.0 + slack) + TINIEST)

    def enclose_gain(self, u: Interval) -> Interval:
        """Return `gain` of what is known between bounds, between bounds that hold in exact arithmetic.

        Here for a concave gain that the method gives up to sixteen roundings.
        """
        low, high = (np.clip(end, self.lower, self.upper) for end in (u.lower, u.upper))
        ends = np.stack([self.gain(low), self.gain(high)])
        slope = np.maximum(np.abs(self.gain_derivative(low)), np.abs(self.gain_derivative(high)))
        slack = 16.0 * UNIT * (np.abs(ends).max(axis=0) + np.abs(high)) + TINIEST
        return Interval(ends.min(axis=0) - slack, ends.max(axis=0) + slope * u.width + slack)

    def gain_curvature(self, u: Array) -> Array:
        """Return minus the second derivative of `gain`, that of the conjugate: one over l'' at the margin with u = -l'."""
        return np.asarray(1.0 / np.maximum(self.second(self.gain_derivative(u)), TINIEST))

    def margin_model(self, margins: Any, weights: Any = None) -> Any:
        """Return the (weighted) sum of l over the entries of a CVXPY vector."""
        raise NotImplementedError

    def best_multiple(self, u: Array, w: Array, support: float, limit: float) -> float:
        """Return a c in [0, limit] near the best one of sum w gain(c u) - c support, of u from `lower` to `upper`, where c u stays too."""
        within = [bound / extreme for bound, extreme in ((self.upper, u.max(initial=0.0)), (self.lower, u.min(initial=0.0))) if extreme]
        longest = min([_LARGEST_MULTIPLE, *within]) * (1.0 - 8.0 * UNIT)  # so that no c u leaves the interval by rounding
        return best_on_segment(lambda c: float((w * u * self.gain_derivative(c * u)).sum()) - support, min(limit, longest))

    def values(self, t: Array, y: Array) -> Array:
        return self.value(y * t)

    def derivatives(self, t: Array, y: Array) -> Array:
        return np.asarray(-y * self.dual(y * t))

    def curvatures(self, t: Array, y: Array) -> Array:
        return self.second(y * t) if self.is_smooth else super().curvatures(t, y)

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        return np.asarray(y * np.clip(y * dual, self.lower * w, self.upper * w))

    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        u = y * dual / w
        ends = (u.max(initial=0.0) / self.upper, u.min(initial=0.0) / self.lower if self.lower < 0.0 else 0.0)
        return float(max(ends)) or float(np.abs(u).max(initial=0.0))

    def conjugate_gain(self, dual: Array, y: Array, w: Array) -> float:
        return float((w * self.gain(np.clip(y * dual / w, self.lower, self.upper))).sum())

    def intercepts(self, t: Array, y: Array, w: Array, design: Design) -> Array:
        """Where all labels of a task are the same the loss falls for ever, and a b is returned at which nothing of it is left."""
        if not self.is_smooth:
            return super().intercepts(t, y, w, design)
        reach = float(np.abs(t).max(initial=0.0)) + _FAR_MARGIN
        has_root = [(design.task_sums(y == label) > 0.0) | (self.lower < 0.0) for label in (-1.0, 1.0)]
        low, high = np.where(has_root[0], -reach, reach), np.where(has_root[1], reach, -reach)

        def value_and_slope(b: Array) -> tuple[Array, Array]:
            first, second = self.dual_and_second(y * (t + design.per_example(b)))
            return design.task_sums(w * y * first), design.task_sums(w * second)

        return root_of_falling(value_and_slope, low, high, design.task_sums(w))

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        return (self.enclose_value(t.signed(y)) * w).sum()

    def enclose_bound(self, dual: Array, y: Array, w: Array, support: Interval, limit: float) -> Interval:
        u = y * dual
        c = self.best_multiple(u / w, w, float(support.middle), limit)
        if not 0.0 < c < np.inf:
            return Interval(0.0, 0.0)
        return (self._enclose_gain(dual, y, w, c) - support * c).positive_part()

    def _enclose_gain(self, dual: Array, y: Array, w: Array, c: float) -> Interval:
        shares = (Interval.exact(y * dual) / w * c).at_least(self.lower).at_most(self.upper)
        return (self.enclose_gain(shares) * w).sum()

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The margins are variables: stationarity in one of them gives the multiplier weight u."""
        import cvxpy as cp

        if not self.cones:
            return super().model(fit, coefficients)
        design = fit.design
        y = design.stack(fit.targets)
        margins = cp.Variable(len(y))
        constraint = margins == cp.multiply(y, design.stacked() @ coefficients)
        value = self.margin_model(margins, design.stack(fit.weights))
        return value, constraint, lambda multiplier: design.unstack(multiplier * y)


@final
class Logistic(MarginLoss):
    """log(1 + exp(-rho)); gain(u) = -u log u - (1 - u) log(1 - u)."""

    __slots__ = ()

    name: ClassVar[str] = "logistic"
    code: ClassVar[int | None] = 1
    largest_multiple: ClassVar[float] = 1.0
    curvature: ClassVar[float | None] = 0.25
    largest_derivative: ClassVar[float | None] = 1.0
    upper: ClassVar[float] = 1.0
    cones: ClassVar[frozenset[str]] = frozenset({"exponential"})

    def value(self, margins: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -margins))

    def total_and_derivatives(self, t: Array, y: Array, w: Array) -> tuple[float, Array]:
        """Of NumPy's exp and log alone, which use vector instructions; what is left of a small value has fewer digits than in `value`."""
        margins = y * t
        power = np.exp(-np.abs(margins))
        whole = 1.0 + power
        values = np.log(whole)
        values += np.maximum(-margins, 0.0)
        slopes = np.where(margins > 0.0, power, 1.0) / whole
        slopes *= -y
        return float((w * values).sum()), w * slopes

    def enclose_value(self, margins: Interval) -> Interval:
        return soft_plus(-margins)

    def enclose_gain(self, u: Interval) -> Interval:
        return entropies(u) + entropies(1.0 - u)

    def enclose_gains(self, dual: Array, y: Array, w: Array) -> tuple[Interval, ...]:
        """The sums of -u log u, of u, and of -(1 - c u) log(1 - c u) for the c of `GAIN_SHARES`."""
        u = np.clip(y * dual / w, 0.0, 1.0)
        # |h(p) - h(q)| <= h(|p - q|) for h(p) = -p log p and close p, q; both u and 1 - c u are known up to two roundings.
        slack = _CLOSE_ENTROPIES * Interval.of_sum(np.broadcast_to(w, u.shape)).upper

        def total(values: Array) -> Interval:
            found = Interval.of_sum(w * values)
            return Interval(down(found.lower - slack), up(found.upper + slack))

        return total(entropy(u)), total(u), *(total(entropy(1.0 - c * u)) for c in GAIN_SHARES)

    def _enclose_lower_gain(self, gains: tuple[Interval, ...], c: float) -> Interval:
        """-c u log(c u) = -c u log u - c u log c, and for the other part the chord."""
        of_u, of_all, *rest = gains
        exact = Interval.exact(c)
        return (of_u - of_all * exact.log()) * exact + _chord(tuple(rest), c)

    def dual(self, margins: Array) -> Array:
        return logistic_dual(margins)

    def second(self, margins: Array) -> Array:
        return self.dual_and_second(margins)[1]

    def dual_and_second(self, margins: Array) -> tuple[Array, Array]:
        """Of NumPy's exp alone, which uses vector instructions."""
        power = np.exp(-np.abs(margins))
        scale = 1.0 / (1.0 + power)
        return np.where(margins > 0.0, power, 1.0) * scale, power * scale * scale

    def gain(self, u: Array) -> Array:
        return entropy(u) + entropy(1.0 - u)

    def gain_derivative(self, u: Array) -> Array:
        return np.asarray(np.log(np.maximum(1.0 - u, TINIEST)) - np.log(np.maximum(u, TINIEST)))

    def gain_curvature(self, u: Array) -> Array:
        return np.asarray(1.0 / np.maximum(u * (1.0 - u), TINIEST))

    def margin_model(self, margins: Any, weights: Any = None) -> Any:
        import cvxpy as cp

        return cp.sum(cp.logistic(-margins)) if weights is None else weights @ cp.logistic(-margins)


@final
class SquaredHinge(MarginLoss):
    """max(0, 1 - rho)^2; gain(u) = u - u^2 / 4."""

    __slots__ = ()

    name: ClassVar[str] = "squared_hinge"
    curvature: ClassVar[float | None] = 2.0
    cones: ClassVar[frozenset[str]] = frozenset({"squares"})

    def value(self, margins: Array) -> Array:
        return hinge(margins) ** 2

    def enclose_value(self, margins: Interval) -> Interval:
        return (1.0 - margins).positive_part().square()

    def enclose_gain(self, u: Interval) -> Interval:
        return u - u.square() * 0.25

    def dual(self, margins: Array) -> Array:
        return 2.0 * hinge(margins)

    def second(self, margins: Array) -> Array:
        return np.asarray(2.0 * (margins < 1.0))

    def gain(self, u: Array) -> Array:
        return u - 0.25 * u * u

    def gain_derivative(self, u: Array) -> Array:
        return 1.0 - 0.5 * u

    def margin_model(self, margins: Any, weights: Any = None) -> Any:
        import cvxpy as cp

        below = cp.pos(1.0 - margins)
        return cp.sum_squares(below if weights is None else cp.multiply(np.sqrt(weights), below))


@final
class Exponential(MarginLoss):
    """exp(-rho), without a bound on its curvature; gain(u) = u - u log u."""

    __slots__ = ()

    name: ClassVar[str] = "exponential"
    curvature: ClassVar[float | None] = None
    cones: ClassVar[frozenset[str]] = frozenset({"exponential"})

    def value(self, margins: Array) -> Array:
        return self.dual(margins)

    def enclose_value(self, margins: Interval) -> Interval:
        return (-margins).exp()

    def enclose_gain(self, u: Interval) -> Interval:
        return u + entropies(u)

    def dual(self, margins: Array) -> Array:
        with np.errstate(over="ignore"):  # infinite where it overflows: a step that goes there is refused by who took it
            return np.exp(-margins)

    def second(self, margins: Array) -> Array:
        return self.dual(margins)

    def gain(self, u: Array) -> Array:
        return u + entropy(u)

    def gain_derivative(self, u: Array) -> Array:
        return np.asarray(-np.log(np.maximum(u, TINIEST)))

    def margin_model(self, margins: Any, weights: Any = None) -> Any:
        import cvxpy as cp

        return cp.sum(cp.exp(-margins)) if weights is None else weights @ cp.exp(-margins)


@final
class Hinge(MarginLoss):
    """max(0, 1 - rho), which is not smooth; gain(u) = u on [0, 1]."""

    __slots__ = ()

    name: ClassVar[str] = "hinge"
    code: ClassVar[int | None] = 2
    largest_multiple: ClassVar[float] = 1.0
    curvature: ClassVar[float | None] = None
    largest_derivative: ClassVar[float | None] = 1.0
    is_smooth: ClassVar[bool] = False
    upper: ClassVar[float] = 1.0

    def value(self, margins: Array) -> Array:
        return hinge(margins)

    def dual(self, margins: Array) -> Array:
        return hinge_dual(margins)

    def gain(self, u: Array) -> Array:
        return u

    def gain_derivative(self, u: Array) -> Array:
        return np.ones_like(u)

    def enclose_value(self, margins: Interval) -> Interval:
        return (1.0 - margins).positive_part()

    def enclose_gain(self, u: Interval) -> Interval:
        return u

    def total(self, t: Array, y: Array, w: Array) -> float:
        return float(np.vdot(w, hinge(y * t)))

    def smoothed(self, t: Array, y: Array, w: Array, smoothing: float) -> tuple[float, Array]:
        """max over 0 <= a <= w of sum a (1 - y t) - smoothing/2 sum a^2 / w, and -y a: at most smoothing/2 sum w below."""
        if smoothing == 0.0:
            return self.total_and_derivatives(t, y, w)
        slack = 1.0 - y * t
        share = np.clip(slack / smoothing, 0.0, 1.0)
        a = w * share
        return float(np.vdot(a, slack)) - 0.5 * smoothing * float(np.vdot(a, share)), -y * a

    def rises(self, y: Array) -> Array:
        return np.asarray(y > 0.0, dtype=np.float64)

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        margins = t.signed(y)
        low, high = (float(np.vdot(w, hinge(np.asarray(end)))) for end in (margins.upper, margins.lower))
        share = 2.0 * gamma(y.size + 8)
        lost = y.size * TINIEST if hinge(np.asarray(margins.lower)).any() else 0.0  # also where products with weights vanish
        return Interval(low * (1.0 - share), high * (1.0 + share) + lost)

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        return np.asarray(y * np.minimum(np.maximum(y * dual, 0.0), w))

    def normalised(self, dual: Array, y: Array, w: Array) -> Array:
        """Return the dual point: near an optimum the best multiple is 1, and what is in its box exactly proves exactly."""
        return dual

    def enclose_gains(self, dual: Array, y: Array, w: Array) -> tuple[Interval, ...]:
        return (Interval.of_sum(y * dual),)

    def enclose_bound_of(self, gains: tuple[Interval, ...], support: Interval, limit: float) -> Interval:
        return ((gains[0] - support) * min(limit, 1.0)).positive_part()

    def enclose_bound(self, dual: Array, y: Array, w: Array, support: Interval, limit: float) -> Interval:
        return self.enclose_bound_of(self.enclose_gains(dual, y, w), support, limit)

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The slacks xi are variables: w.xi subject to xi >= 1 - y x.w, xi >= 0.

        They are, because CVXPY 1.9 can take ``pos(1 - multiply(y, X @ w))`` to a wrong answer.
        """
        import cvxpy as cp

        design = fit.design
        y = design.stack(fit.targets)
        slack = cp.Variable(len(y), nonneg=True)
        constraint = slack >= 1.0 - sp.csr_array(design.stacked() * y[:, None]) @ coefficients
        return design.stack(fit.weights) @ slack, constraint, lambda multiplier: design.unstack(multiplier * y)


@final
class Multiclass(Loss):
    """loss(t, y) = log sum_r exp(t_r) - y.t, of a row of predictions of a shared design; y is the indicator of a class, w a column."""

    __slots__ = ()

    name: ClassVar[str] = "multiclass"
    code: ClassVar[int | None] = 3
    largest_multiple: ClassVar[float] = 1.0
    curvature: ClassVar[float | None] = 0.5
    largest_derivative: ClassVar[float | None] = 2.0**0.5
    cones: ClassVar[frozenset[str]] = frozenset({"exponential"})
    couples_tasks: ClassVar[bool] = True

    def targets(self, data: TaskData) -> tuple[Array, tuple[str, ...]]:
        return class_indicators(data)

    def values(self, t: Array, y: Array) -> Array:
        """log(1 + sum exp(t_r - t_label)) over the other classes, which keeps the digits of a small loss."""
        rises = np.where(y > 0.0, -np.inf, t - (y * t).sum(axis=1, keepdims=True))
        highest = np.maximum(rises.max(axis=1, keepdims=True), 0.0)
        powers = np.exp(rises - highest).sum(axis=1, keepdims=True)
        values = np.where(highest > 0.0, highest + np.log(powers + np.exp(-highest)), np.log1p(powers))
        return np.asarray(np.where(highest == np.inf, np.inf, values))

    def enclose_total(self, t: Interval, y: Array, w: Array) -> Interval:
        labels = y > 0.0
        own = Interval(*(np.where(labels, end, 0.0).sum(axis=1, keepdims=True) for end in (t.lower, t.upper)))
        rises = t - own
        rises = Interval(*(np.where(labels, -np.inf, end) for end in (rises.lower, rises.upper)))
        highest = np.maximum(rises.upper.max(axis=1, keepdims=True), 0.0)
        powers = Interval(*(end - highest for end in (rises.lower, rises.upper))).exp().sum(axis=1).reshape(-1, 1)
        large, small = (powers + Interval.exact(-highest).exp()).log() + highest, powers.log1p()
        ends = (np.where(highest > 0.0, *pair) for pair in ((large.lower, small.lower), (large.upper, small.upper)))
        return (Interval(*ends).positive_part() * w).sum()

    def derivatives(self, t: Array, y: Array) -> Array:
        return self.probabilities(t) - y

    def probabilities(self, t: Array) -> Array:
        """Return the probabilities of the classes, n x m."""
        powers = np.exp(t - t.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def admissible(self, dual: Array, y: Array, w: Array) -> Array:
        p = np.clip(y - np.clip(dual, -w, w) / w, 0.0, 1.0)
        sums = p.sum(axis=1, keepdims=True)
        return np.asarray(w * (y - np.where(sums > 0.0, p / np.where(sums > 0.0, sums, 1.0), y)))

    def _extent(self, dual: Array, y: Array, w: Array) -> float:
        return float((y * dual / w).max(initial=0.0))

    def enclose_admissible(self, dual: Array, y: Array, w: Array) -> Array | Interval:
        """Return w (y - p) of probabilities p that add up to 1 in exact arithmetic."""
        return (y - self._enclose_probabilities(dual, y, w)) * w

    def enclose_bound(self, dual: Array, y: Array, w: Array, support: Interval, limit: float) -> Interval:
        """-f*(-c dual) is the sum of weighted entropies of probabilities y - c dual / w."""
        step, middle = -dual / w, float(support.middle)

        def derivative(c: float) -> float:
            return float((w * step * -np.log(np.maximum(y + c * step, TINIEST))).sum()) - middle

        c = best_on_segment(derivative, min(limit, 1.0))
        return (self._enclose_gain(dual, y, w, c) - support * c).positive_part()

    def _enclose_gain(self, dual: Array, y: Array, w: Array, c: float) -> Interval:
        p = self._enclose_probabilities(dual, y, w) * c + Interval.exact(y) * (1.0 - Interval.exact(c))
        return (entropies(p.at_least(0.0).at_most(1.0)) * w).sum()

    def _enclose_probabilities(self, dual: Array, y: Array, w: Array) -> Interval:
        """Return y - dual / w, of which rounding has put no row far outside the simplex, scaled onto it."""
        p = (y - Interval.exact(dual) / w).positive_part()
        return p / p.sum(axis=1).reshape(-1, 1)

    def error(self, t: Array, y: Array) -> float:
        """Return the share of rows whose largest prediction is of another class."""
        return float(np.mean(t.argmax(axis=1) != y.argmax(axis=1)))

    def model(self, fit: WeightedTargets, coefficients: Any) -> tuple[Any, Any, Callable[[Array], Array]]:
        """The predictions are variables."""
        import cvxpy as cp

        design = fit.design
        y = design.stack(fit.targets)
        t = cp.Variable(len(y))
        table = cp.reshape(t, fit.targets.shape, order="F")
        value = fit.weights[:, 0] @ cp.log_sum_exp(table, axis=1) - design.stack(fit.weights * fit.targets) @ t
        return value, t == design.stacked() @ coefficients, design.unstack


def _least_squares(fit: WeightedTargets) -> tuple[sp.csr_array, Array, Array, Callable[[Array], Array]]:
    """Return X, y, outside with f = 1/2 ||r||^2 + 1/2 ||outside||^2, r = y - X vec(W), and what makes a dual point of its multiplier.

    Rows are scaled by the roots of their weights. Stationarity in r gives minus the multiplier.
    """
    design, roots = fit.design, np.sqrt(fit.weights)
    scaled = roots * fit.targets
    tall = design.is_shared and design.output_shape[0] > design.n_features
    if not tall or design.is_sparse or np.any(roots != roots[:1]):
        X = design.stacked()
        stretched = X if np.all(roots == 1.0) else sp.csr_array(X * design.stack(roots)[:, None])
        return stretched, design.stack(scaled), np.zeros(0), lambda multiplier: -roots * design.unstack(multiplier)
    basis, triangle = np.linalg.qr(design.block(0))
    reduced = basis.T @ scaled
    outside = scaled - basis @ reduced
    X = sp.csr_array(sp.kron(sp.diags_array(roots[0]), sp.csr_array(triangle), format="csr"))
    return X, reduced.T.ravel(), outside, lambda multiplier: roots * (outside - basis @ multiplier.reshape(design.n_tasks, -1).T)


#: All losses of linear predictions, by name.
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Squared(), Logistic(), Hinge(), Multiclass(), SquaredHinge(), Exponential(), Huber(), Quantile())
}

#: Losses with a number, which stands in their name.
_WITH_NUMBERS: dict[str, Callable[[float], Loss]] = {Huber.name: Huber, Quantile.name: Quantile}

#: Names of the smooth losses of single predictions that problems of linear models have.
SMOOTH_LOSSES = ("squared", "logistic", "huber")


def loss_named(loss: Any, allowed: tuple[str, ...] = tuple(LOSSES)) -> Loss:
    """Return the loss with this name, or `loss` itself, if it is one of those `allowed`; "huber:0.5" is the one with delta = 0.5.

    Raises InputError: another name, no name, a delta or tau that there is not, or a user's loss.
    """
    is_foreign = isinstance(loss, Loss) and type(loss) is not type(LOSSES.get(loss.name))
    name, colon, number = loss.partition(":") if isinstance(loss, str) else (getattr(loss, "name", loss), "", "")
    if is_foreign or not isinstance(name, str) or name not in allowed or (colon and name not in _WITH_NUMBERS):
        raise InputError("loss", loss, f"one of {', '.join(allowed)}")
    if isinstance(loss, Loss):
        return loss
    if not colon:
        return LOSSES[name]
    try:
        parameter = float(number)
    except ValueError:
        raise InputError("loss", loss, f"{name}:NUMBER with a number, such as {name}:0.5") from None
    return _WITH_NUMBERS[name](parameter)
