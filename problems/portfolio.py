"""Portfolio design: the constantly rebalanced portfolio of largest log-wealth, on a simplex or on its part in a box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of, real_array, real_number
from bench_mtl.core.designs import Design, SharedDesign, frozen, spectral_norm
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import TINIEST, Interval, gamma
from bench_mtl.core.types import Array
from bench_mtl.model.forms import CurvedForm, SimplexForm
from bench_mtl.model.protocols import Capability, ConicModel, Form, PredictingProblem
from bench_mtl.model.task_data import TaskData
from bench_mtl.projections import project_box_simplex, project_simplex

#: How far beyond 1 the sum of the bounds may be by rounding; what `project_box_simplex` allows.
_SLACK = 1e-14

#: How far from 1 the sum of a portfolio may be, in exact arithmetic: more than `_SLACK`.
_SUM_SLACK = 2.0**-45

#: Bounds on w over its sum are wider than those on w by at most this share.
_WIDER = Interval(1.0 - 2.0 * _SUM_SLACK, 1.0 + 2.0 * _SUM_SLACK)

#: Relatives that are all this close to 1 are known by their differences from 1, which are exact.
_NEAR_ONE = 0.5

#: Weights above this are counted as assets held: many methods leave a trace of all.
_HELD = 1e-6

#: The reference return of a period is its mean, but at most this many times its worst: rounding is weighed by it.
_LARGEST_REFERENCE = 16.0

#: Duals are scaled to a largest entry of 1 and raised to the first; those of returns that vanish are the second.
_SMALLEST_DUAL, _LARGEST_DUAL = 1e-290, 1e300


class Portfolio(PredictingProblem):
    """Weights of assets that would have earned the most, if rebalanced to them after every period.

    ::

        min_w  - sum_t log(x_t.w)    subject to  w >= 0,  sum_j w_j = 1,  and  lower <= w <= upper  where given

    x_tj > 0 is the price of asset j after period t over its price before it. A point is w, d x 1.

    Few w of floats have a sum of 1 in exact arithmetic. So w represents the portfolio w / sum_j w_j: the bounds are those on w, and its sum
    is 1 to 2^-45. F is that of the portfolio, and the certificate holds for all of these.

    Certificate. -log(u) >= 1 + log(a) - a u for every a > 0, so with sigma(g) = max <g, w> over the feasible set, at the best scale of a,

        F* >= max_c  T + sum_t log(c a_t) - c sigma(X^T a) = sum_t log(a_t) + T log(T / sigma(X^T a))

    because c = T / sigma, and sigma > 0 since X, a and w are not negative. A dual point is any a, T x 1, of which entries that are not
    positive are raised to the smallest that counts. The residuals give a_t = 1 / x_t.w; on the simplex that is the bound of `math.md`
    with T log(max_j g_j / T) in place of max_j g_j - T, so never worse. Within bounds sigma is bounded by the dual of its linear programme,
    theta + sum_j max(g_j - theta, 0) upper_j - max(theta - g_j, 0) lower_j for any theta. Where all relatives are within a half of 1, both
    F and the certificate are formed from x_tj - 1, with log(1 + x): they keep their digits also where F is near 0.

    Outside the feasible set. Let low_t = min x_t.w over the set (its d-dimensional linear minimisation: a corner). What gradients
    see is f(w) = sum_t ell_t(x_t.w + r_t (1 - sum_j w_j)), where ell_t(u) = -log(u) for u >= low_t, its Taylor polynomial of second order
    at low_t below, and r_t the mean of x_t, at most 16 times low_t. On the feasible set nothing changes; the gradient is Lipschitz
    everywhere, with the constant ||diag(1 / low) (X - r 1^T)||^2. It takes the curvature 1/low_t^2 where 1/u_t^2 is met: loose by a tenth
    on relatives that vary by 2 % a period, six times at 30 %; line searches do better. Thanks to r it leaves out the direction (1, ..., 1)
    that no feasible step has, in which the curvature is 1e2 (30 %) to 1e5 (1 %) times larger.

    Parameters
    ----------
    data : TaskData with a shared dense design, T x d price relatives, all above 0; its targets are ignored. `held_out` the same.
    lower, upper : bounds on the weights, at least 0, numbers or one for every asset; 0 and 1 by default

    Raises
    ------
    InputError : several tasks, designs that are not shared or not dense, a relative that is not positive, bounds that no portfolio meets.

    References
    ----------
    Cover, Mathematical Finance 1(1), 1991; Singer's slides "Efficient projection algorithms onto the l1 ball", MMDS 2008 (portfolio design,
    hyper-box constraints).
    """

    name: ClassVar[str] = "portfolio"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (CurvedForm, SimplexForm)
    takes_prices: ClassVar[bool] = True
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"log": frozenset({"linear", "exponential"})}

    def __init__(self, data: TaskData, *, lower: Any = None, upper: Any = None) -> None:
        self.design: Design = data.design
        self._relatives = _relatives("data", data)
        self.notes = data.notes
        d = self._relatives.shape[1]
        floor, ceiling = _bounds(lower, upper, d)
        self._boxed = bool(np.any(floor > 0.0) or np.any(ceiling < 1.0))
        self._form = CurvedForm(self.design, _derivatives, 1.0, frozen(floor), frozen(ceiling))
        near_one = bool(np.all(np.abs(self._relatives - 1.0) <= _NEAR_ONE))
        self._centre = 1.0 if near_one else 0.0
        self._shifted: Design = SharedDesign(self._relatives - 1.0, 1) if near_one else self.design
        # min x_t.w over the feasible set, for every t
        lowest = [row @ self._form.vertex(row) for row in self._relatives] if self._boxed else self._relatives.min(axis=1)
        self._lowest = frozen(np.array(lowest))
        self._reference = frozen(np.minimum(self._relatives.mean(axis=1), _LARGEST_REFERENCE * self._lowest))
        self._held_out = None if data.held_out is None else _relatives("held-out data", data.held_out)
        if self._held_out is not None and self._held_out.shape[1] != d:
            raise InputError("held-out data", self._held_out.shape[1], f"have {d} assets")

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        T, d = 14, 6

        def market(periods: int, spread: float) -> TaskData:
            drift = 0.3 * spread * rng.standard_normal(d)
            return TaskData.shared(np.exp(drift + spread * rng.standard_normal((periods, d))), np.ones(periods), name="tiny market")

        yield cls(market(T, 0.3))
        yield cls(market(T, 0.3), upper=0.3)
        yield cls(market(T, 0.5), lower=np.linspace(0.0, 0.1, d), upper=np.linspace(0.5, 0.4, d))
        yield cls(market(4, 0.3))
        yield cls(market(4, 0.3), lower=0.05)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self._relatives.shape[1], 1)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (self._relatives.shape[0], 1)

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": self._relatives.shape[0], "d": self._relatives.shape[1], "m": 1}

    def start_point(self) -> Array:
        """The portfolio nearest to 0: all assets alike, as far as the bounds let them."""
        return self.repair(self.zero())

    def scale(self) -> float:
        """One nat a period, or the log-wealth of the start point where that is more."""
        return max(super().scale(), float(self._relatives.shape[0]))

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """X w, of relatives that are near 1 (X - 1) w."""
        return self._shifted.forward_with_error(point)

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        shares = self._product((predictions, error), len(point)) / Interval.of_sum(point)
        return -(shares.log1p() if self._centre else shares.log()).sum()

    def repair(self, point: Array) -> Array:
        """A portfolio as it is, anything else projected."""
        w, lower, upper = np.ascontiguousarray(point[:, 0]), self._form.lower, self._form.upper
        if not np.any(w < lower) and not np.any(w > upper) and abs(math.fsum(w) - 1.0) <= 0.5 * _SUM_SLACK:
            return point
        return (project_box_simplex(w, 1.0, lower, upper) if self._boxed else project_simplex(w))[:, None]

    def infeasibility(self, point: Array) -> float:
        w = point[:, 0]
        total = abs(float(w.sum()) - 1.0)
        excess = max(0.0, total - 1e-12, float((self._form.lower - w).max()), float((w - self._form.upper).max()) - 1e-12)
        return excess if np.isfinite(point).all() else np.inf

    def dual_of(self, predictions: Array) -> Array:
        """Return 1 / x_t.w."""
        with np.errstate(all="ignore"):
            return np.minimum(1.0 / (self._centre + predictions), _LARGEST_DUAL)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        a = self.dual_at(point) if dual is None else dual
        largest = float(a.max())
        a = np.maximum(a / largest, _SMALLEST_DUAL) if largest > 0.0 else np.ones(a.shape)
        T = len(a)
        gains = self._product(self._shifted.adjoint_with_error(a), T)[:, 0]
        support, logarithms = self._support(gains), Interval.exact(a).log().sum()
        if self._centre:
            growth = ((Interval.exact(a) - 1.0).sum() + support) / float(T)
            return logarithms - growth.log1p() * float(T)
        return logarithms - (support / float(T)).log() * float(T)

    def _product(self, product: tuple[Array, Array], terms: int) -> Interval:
        """Return a product with its error: a sum of positive numbers is known better than in proportion to norms."""
        value, error = product
        return Interval.around(value, error if self._centre else np.minimum(error, gamma(terms + 8) * value + terms * TINIEST))

    def _support(self, gains: Interval) -> Interval:
        """max <gains, w> over the portfolios, of gains that are known between bounds."""
        if not self._boxed:
            return gains.largest()
        lower, upper, middle = self._form.lower, self._form.upper, gains.middle
        order = np.argsort(-middle, kind="stable")
        spent = lower.sum() + np.cumsum((upper - lower)[order])
        theta = float(middle[order[min(int(np.searchsorted(spent, 1.0)), len(order) - 1)]])
        above = gains - theta
        return (above.positive_part() * (_WIDER * upper) - (-above).positive_part() * (_WIDER * lower)).sum() + theta

    def measures(self, point: Array) -> Mapping[str, float]:
        """The number of assets with more than a millionth of the wealth; the log-wealth that held-out periods would have brought."""
        found = {"non-zeros": float(np.count_nonzero(point > _HELD))}
        if self._held_out is not None:
            found["held-out log-wealth"] = float(np.log(self._held_out @ point).sum())
        return found

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        u, below = self._returns(point)
        slopes = -1.0 / u + below / self._lowest / self._lowest
        gradient = self._relatives.T @ slopes - float(self._reference @ slopes)
        return self._continued(u, below), gradient[:, None]

    def smooth_value(self, point: Array) -> float:
        return self._continued(*self._returns(point))

    def lipschitz(self) -> float:
        """||diag(1 / low) (X - r 1^T)||^2 in the spectral norm, see the class."""
        return spectral_norm((self._relatives - self._reference[:, None]) / self._lowest[:, None]) ** 2

    def prox(self, point: Array, step_size: float) -> Array:
        """Projection onto the simplex, or onto its part in the box."""
        return self.repair(point)

    def prox_value(self, point: Array) -> float:
        return 0.0

    def lmo(self, direction: Array) -> Array:
        """All in the asset with the lowest entry; with a box the lowest entries first, each up to its bound."""
        return self._form.vertex(direction[:, 0])[:, None]

    def make_forms(self) -> tuple[Form, ...]:
        """Without a box, the feasible set is a simplex."""
        return (self._form,) if self._boxed else (self._form, SimplexForm(1.0, False, False))

    def to_cvxpy(self, form: str = "log") -> ConicModel:
        """The problem with returns u = X w as variables, so that their multiplier is a dual point."""
        import cvxpy as cp

        one_of("form", form, tuple(self.conic_forms))
        T, d = self._relatives.shape
        w, u = cp.Variable(d), cp.Variable(T)
        earned = u == self._relatives @ w
        constraints = [earned, cp.sum(w) == 1.0, w >= self._form.lower]
        if np.any(self._form.upper < 1.0):
            constraints.append(w <= self._form.upper)

        def recover() -> tuple[Array, Array | None]:
            dual = earned.dual_value
            return np.asarray(w.value)[:, None], None if dual is None else np.asarray(dual)[:, None]

        return ConicModel(cp.Problem(cp.Minimize(-cp.sum(cp.log(u))), constraints), recover)

    def _returns(self, point: Array) -> tuple[Array, Array]:
        """x_t.w + r_t (1 - sum w), raised to the lowest return where below it, and by how much it is below (0 or negative)."""
        w = point[:, 0]
        u = self._relatives @ w + (1.0 - float(w.sum())) * self._reference
        return np.maximum(u, self._lowest), np.minimum(u - self._lowest, 0.0)

    def _continued(self, u: Array, below: Array) -> float:
        share = below / self._lowest
        return float((-np.log(u) - share + 0.5 * share**2).sum())


def _derivatives(u: Array) -> tuple[float, Array, Array]:
    """Of - sum log(u)."""
    slopes = -1.0 / u
    return -float(np.log(u).sum()), slopes, slopes**2


def _relatives(name: str, data: TaskData) -> Array:
    """The price relatives of `data`, checked."""
    if not data.design.is_shared or data.n_tasks != 1:
        raise InputError(f"{name} of a portfolio must have one shared design and one task, not {data.n_tasks} task(s)")
    if data.design.is_sparse:
        raise InputError(f"{name} of a portfolio must be dense: a price relative of 0 is none")
    X: Array = data.design.block(0)
    if not np.all(X > 0.0):
        t, j = (int(i) for i in np.argwhere(~(X > 0.0))[0])
        raise InputError(f"price relatives must be above 0, but that of asset {j} in period {t} of {name} is {X[t, j]:g}")
    return X


def _bounds(lower: Any, upper: Any, d: int) -> tuple[Array, Array]:
    """Bounds of all assets, within 0 and 1."""
    floor, ceiling = _bound("lower", lower, 0.0, d), np.minimum(_bound("upper", upper, 1.0, d), 1.0)
    if np.any(floor > ceiling):
        j = int(np.argmax(floor > ceiling))
        raise InputError(f"lower must not exceed upper, but does for asset {j}: {floor[j]:g} and {ceiling[j]:g}")
    for name, bound, excess in (("lower", floor, floor.sum() - 1.0), ("upper", ceiling, 1.0 - ceiling.sum())):
        if excess > _SLACK:
            raise InputError(f"no portfolio is within the bounds: those of {name} add up to {bound.sum():g}")
    return floor, ceiling


def _bound(name: str, value: Any, default: float, d: int) -> Array:
    if value is None:
        return np.full(d, default)
    if np.isscalar(value) or getattr(value, "ndim", 1) == 0:
        return np.full(d, real_number(name, value))
    bound = real_array(name, value, ndim=1)
    if bound.shape != (d,):
        raise InputError(f"{name} must be a number or one for each of {d} assets, but has shape {bound.shape}")
    if np.any(bound < 0.0):
        raise InputError(f"{name} must be at least 0, but is {bound.min():g} for asset {int(bound.argmin())}")
    return bound
