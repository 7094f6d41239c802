"""Norms of matrices of coefficients, a class for each: what problems constrain or penalise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import leading_pair, spectral_norm_bound
from bench_mtl.core.rounding import TINIEST, UNIT, Interval, down, gamma, up
from bench_mtl.core.spectral_bounds import enclose_spectral_norm, enclose_trace_norm
from bench_mtl.core.types import Array
from bench_mtl.projections import (
    norm_l1inf,
    norm_l12,
    norm_linf1,
    norm_trace,
    project_l1_ball,
    project_l1inf_ball,
    project_l12_ball,
    project_trace_ball,
    prox_l1inf,
    prox_l12,
    prox_trace,
    soft_threshold,
)

#: What the modulus of a product of two floats is of the exact one, at least and at most.
_OF_PRODUCTS = Interval(1.0 - 4.0 * UNIT, 1.0 + 4.0 * UNIT)


class NormModel(NamedTuple):
    """A d x m variable of CVXPY with its norm: at most `value` under the constraints, and equal to it at the best other variables."""

    matrix: Any
    value: Any
    constraints: list[Any]


class Norm(ABC):
    """A norm ||W|| of matrices d x m, or of those in a cone: +inf outside."""

    models: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": frozenset({"linear"})}
    """Forms that `model` writes, each with the cones it needs, as in `Problem.conic_forms`."""

    @abstractmethod
    def value(self, W: Array) -> float:
        """Return ||W||, of a W in the cone."""

    @abstractmethod
    def dual(self, G: Array) -> float:
        """Return max <G, W> over ||W|| <= 1, or an upper bound of it that is off by rounding at most."""

    @abstractmethod
    def enclose(self, W: Array) -> Interval:
        """Return ||W|| between bounds that hold in exact arithmetic."""

    @abstractmethod
    def enclose_dual(self, G: Interval) -> Interval:
        """Return `dual` between bounds that hold in exact arithmetic, of a G that is known between bounds."""

    def enclose_dual_around(self, G: Array, error: Array) -> Interval:
        """Return `enclose_dual` of all that is within `error` of G, entry by entry."""
        return self.enclose_dual(Interval.around(G, error))

    @abstractmethod
    def project(self, W: Array, radius: float) -> Array:
        """Return argmin_V 1/2 ||V - W||_F^2 subject to ||V|| <= radius."""

    @np.errstate(all="ignore")
    def repair(self, W: Array, radius: float) -> Array:
        """Return W where ||W|| <= radius in exact arithmetic, else a matrix for which that holds, next to its projection.

        The projection is scaled down by twice what its norm is uncertain by, so that it is left alone when it comes again.
        """
        size = self.enclose(W)
        inside = self.outside_cone(W) == 0.0
        V = W
        if not (inside and size.lower <= radius):  # where only rounding keeps it outside, no projection is needed
            V = self.project(W, radius)
            size = self.enclose(V)
        if size.upper <= radius:
            return V
        # Rounding a matrix moves its norm by at most the smaller side times u of itself, and by what is lost below the normal numbers.
        goal = down(radius - 2.0 * V.size * TINIEST) * (1.0 - 8.0 * UNIT * (min(V.shape) + 8))
        factor = goal / up(size.upper + size.width)
        return V * factor if factor > 0.0 else np.zeros(W.shape)

    @abstractmethod
    def prox(self, W: Array, weight: float) -> Array:
        """Return argmin_V 1/2 ||V - W||_F^2 + weight ||V||."""

    @abstractmethod
    def vertex(self, direction: Array, radius: float) -> Array:
        """Return argmin_W <direction, W> subject to ||W|| <= radius, an extreme point."""

    @abstractmethod
    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        """Return a matrix of this shape and its norm in CVXPY."""

    def to_cone(self, W: Array) -> Array:
        """Return the nearest matrix in the cone."""
        return W

    def outside_cone(self, W: Array) -> float:
        """Return how far an entry is outside the cone, at most; 0 inside."""
        return 0.0


@final
@dataclass(frozen=True)
class L1Inf(Norm):
    """sum_j max_k |W_jk|, whose dual norm is max_j sum_k |G_jk|. (Quattoni et al. 2009.)"""

    def value(self, W: Array) -> float:
        return norm_l1inf(W)

    def dual(self, G: Array) -> float:
        return norm_linf1(G)

    def enclose(self, W: Array) -> Interval:
        value = norm_l1inf(W)
        return Interval.around(value, 2.0 * gamma(len(W)) * value)

    def enclose_dual(self, G: Interval) -> Interval:
        sizes, share = G.magnitude(), 2.0 * gamma(len(G.lower[0]) + 8)  # relative: nothing is below 0
        low, high = (float(np.max(np.sum(end, axis=1))) for end in (sizes.lower, sizes.upper))
        return Interval(low * (1.0 - share), high * (1.0 + share))

    def enclose_dual_around(self, G: Array, error: Array) -> Interval:
        """Row by row: most of the time of a certificate on small data went into bounds of the entries."""
        sizes, spread = np.abs(G).sum(axis=1), error.sum(axis=1)
        share = 2.0 * gamma(G.shape[1] + 8)  # relative to each, for they are not below 0
        low, high = float(np.max(sizes * (1.0 - share) - spread * (1.0 + share))), float(np.max(sizes + spread))
        return Interval(max(0.0, down(low)), high * (1.0 + share))

    def project(self, W: Array, radius: float) -> Array:
        return project_l1inf_ball(W, radius)

    def prox(self, W: Array, weight: float) -> Array:
        return prox_l1inf(W, weight)

    def vertex(self, direction: Array, radius: float) -> Array:
        """W_j = -radius sign(direction_j) in the row j of `direction` with the largest l1 norm, all else 0."""
        W = np.zeros(direction.shape)
        row = int(np.abs(direction).sum(axis=1).argmax())
        W[row] = np.where(direction[row] > 0.0, -radius, radius)
        return W

    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        """Row bounds mu: -mu_j <= W_jk <= mu_j. That mu >= 0 follows; Clarabel ends at optimal points more often when it is stated."""
        import cvxpy as cp

        d, m = shape
        W, mu = cp.Variable(shape), cp.Variable(d, nonneg=True)
        rows = cp.reshape(mu, (d, 1), order="C") @ np.ones((1, m))
        return NormModel(W, cp.sum(mu), [rows >= W, rows >= -W])


@final
@dataclass(frozen=True)
class L12(Norm):
    """sum_j ||W_j||_2, whose dual norm is the largest l2 norm of a row."""

    models: ClassVar[Mapping[str, frozenset[str]]] = {"epigraph": frozenset({"linear", "quadratic"})}

    def value(self, W: Array) -> float:
        return norm_l12(W)

    def dual(self, G: Array) -> float:
        return float(lengths(G.T).max(initial=0.0))

    def enclose(self, W: Array) -> Interval:
        return enclose_lengths(Interval.exact(W), axis=1).sum()

    def enclose_dual(self, G: Interval) -> Interval:
        return enclose_lengths(G, axis=1).largest()

    def project(self, W: Array, radius: float) -> Array:
        return np.asarray(project_l12_ball(W, radius))

    def prox(self, W: Array, weight: float) -> Array:
        return np.asarray(prox_l12(W, weight))

    def vertex(self, direction: Array, radius: float) -> Array:
        """W_j = -radius direction_j / ||direction_j||_2 in the row j where this is longest, all else 0."""
        W, sizes = np.zeros(direction.shape), lengths(direction.T)
        row = int(sizes.argmax())
        if sizes[row] > 0.0:
            W[row] = -radius * (direction[row] / sizes[row])
        return W

    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        import cvxpy as cp

        W = cp.Variable(shape)
        return NormModel(W, cp.sum(cp.norm(W, 2, axis=1)), [])


@final
@dataclass(frozen=True)
class L1(Norm):
    """sum_jk |W_jk| (`balls` "all"), or max_k sum_j |W_jk|, whose balls are one ball for every task ("task").

    With `nonneg` of matrices with W_jk orientation_jk >= 0 only (W >= 0 where `orientation` is None).
    """

    balls: str = "all"
    nonneg: bool = False
    orientation: Array | None = None
    """Signs, d x m; only with `nonneg`."""

    def value(self, W: Array) -> float:
        return float(np.abs(W).sum(axis=self._axis).max())

    def dual(self, G: Array) -> float:
        """The largest entry, or the sum of those of the columns; of positive ones with `nonneg`."""
        heights = np.maximum(self.oriented(G), 0.0) if self.nonneg else np.abs(G)
        largest = heights.max(axis=0)
        return float(largest.max() if self.balls == "all" else largest.sum())

    def enclose(self, W: Array) -> Interval:
        return Interval.of_sum(np.abs(W), axis=self._axis).largest()

    def enclose_dual(self, G: Interval) -> Interval:
        turned = G if self.orientation is None else G.signed(self.orientation)
        return self._together((turned.positive_part() if self.nonneg else G.magnitude()).largest(axis=0))

    def enclose_dual_around(self, G: Array, error: Array) -> Interval:
        """Of the moduli alone, where signs are free: rounding up is monotone, so that of the largest it bounds all."""
        if self.nonneg:
            return super().enclose_dual_around(G, error)
        sizes = np.abs(G)
        low, high = down((sizes - error).max(axis=0)), up((sizes + error).max(axis=0))
        return self._together(Interval(np.maximum(low, 0.0), high))

    def _together(self, largest: Interval) -> Interval:
        """Return the dual norm from the largest entries of the columns."""
        return largest.largest() if self.balls == "all" else largest.sum()

    def project(self, W: Array, radius: float, *, method: str = "newton") -> Array:
        """`method` as in `project_l1_ball`."""
        if self.balls == "task":
            return self.oriented(project_l1_ball(self.oriented(W), radius, method=method, axis=0, nonneg=self.nonneg))
        flat = project_l1_ball(np.ascontiguousarray(self.oriented(W)).ravel(), radius, method=method, nonneg=self.nonneg)
        return self.oriented(flat.reshape(W.shape))

    def prox(self, W: Array, weight: float) -> Array:
        """The soft threshold, of `balls` "all" only."""
        assert self.balls == "all"
        return self.oriented(np.maximum(self.oriented(W) - weight, 0.0)) if self.nonneg else soft_threshold(W, weight)

    def vertex(self, direction: Array, radius: float) -> Array:
        """At most one entry a ball: -radius times the sign of the entry of `direction` that is largest in magnitude."""
        W = np.zeros(direction.shape)
        heights = self.oriented(-direction) if self.nonneg else np.abs(direction)
        signs = self.oriented(np.ones(direction.shape)) if self.nonneg else np.where(direction > 0.0, -1.0, 1.0)
        if self.balls == "task":
            places: tuple[Any, ...] = (heights.argmax(axis=0), np.arange(direction.shape[1]))
        else:
            places = tuple(np.array([i]) for i in np.unravel_index(int(heights.argmax()), direction.shape))
        W[places] = np.where(heights[places] > 0.0, radius * signs[places], 0.0)
        return W

    def to_cone(self, W: Array) -> Array:
        return self.oriented(np.maximum(self.oriented(W), 0.0)) if self.nonneg else W

    def outside_cone(self, W: Array) -> float:
        return max(0.0, -float(self.oriented(W).min())) if self.nonneg else 0.0

    def oriented(self, W: Array) -> Array:
        """Return W in coordinates in which what may not be negative is W itself, and back."""
        return W if self.orientation is None else W * self.orientation

    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        """Bounds mu >= |W|; with `nonneg` mu >= 0 is W, turned."""
        import cvxpy as cp

        mu = cp.Variable(shape, nonneg=self.nonneg)  # an attribute, which some interfaces pass as a bound, and not as rows
        if self.nonneg:
            return NormModel(mu if self.orientation is None else cp.multiply(self.orientation, mu), cp.sum(mu, axis=self._axis), [])
        W = cp.Variable(shape)
        return NormModel(W, cp.sum(mu, axis=self._axis), [mu >= W, mu >= -W])

    @property
    def _axis(self) -> int | None:
        return 0 if self.balls == "task" else None


@final
@dataclass(frozen=True)
class Trace(Norm):
    """The sum of the singular values, whose dual norm is the largest (of which `dual` is an upper bound)."""

    models: ClassVar[Mapping[str, frozenset[str]]] = {"sdp": frozenset({"linear", "psd"}), "nuclear_norm": frozenset({"linear", "psd"})}

    def value(self, W: Array) -> float:
        return norm_trace(W)

    def dual(self, G: Array) -> float:
        return spectral_norm_bound(G)

    def enclose(self, W: Array) -> Interval:
        return enclose_trace_norm(_used_rows(W))

    def enclose_dual(self, G: Interval) -> Interval:
        return enclose_spectral_norm(G)

    def project(self, W: Array, radius: float) -> Array:
        return _without_empty_rows(lambda rows: project_trace_ball(rows, radius), W)

    def prox(self, W: Array, weight: float) -> Array:
        return _without_empty_rows(lambda rows: prox_trace(rows, weight), W)

    def vertex(self, direction: Array, radius: float) -> Array:
        """-radius u v^T, (u, v) the leading singular vectors of `direction` (Jaggi, ICML 2013, section 4.1)."""
        u, v = leading_pair(direction)
        return np.outer(-radius * u, v)

    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        """ "sdp" writes the lifting out: ||W||_* <= r iff some [[A, W], [W^T, B]] >= 0 has trace A + trace B <= 2 r.

        "nuclear_norm" leaves it to `cvxpy.normNuc`.
        """
        import cvxpy as cp

        d, m = shape
        if form == "sdp":
            lifted = cp.Variable((d + m, d + m), PSD=True)
            return NormModel(lifted[:d, d:], 0.5 * cp.trace(lifted), [])
        W = cp.Variable(shape)
        return NormModel(W, cp.normNuc(W), [])


@final
@dataclass(frozen=True)
class FeatureNorm(Norm):
    """||diag(factors) W||, of a norm that depends on the moduli in each row alone; with `nonnegative` of matrices W >= 0 only.

    Of a row whose factor is 0 the norm knows nothing, and the dual norm is infinite unless the row is 0.
    """

    norm: Norm
    factors: Array
    """d x 1, at least 0. There is no projection unless they are all 1."""
    nonnegative: bool = False

    @property
    def models(self) -> Mapping[str, frozenset[str]]:  # type: ignore[override]
        return self.norm.models

    @property
    def free_rows(self) -> NDArray[np.bool_]:
        """Which rows have the factor 0, d of them."""
        return np.asarray(self.factors[:, 0] == 0.0)

    @property
    def _divisors(self) -> Array:
        return np.where(self.factors == 0.0, 1.0, self.factors)

    def value(self, W: Array) -> float:
        product = self.factors * W
        return self.norm.value(product) if np.isfinite(product).all() else np.inf

    def dual(self, G: Array) -> float:
        heights = self.to_cone(G)
        return np.inf if heights[self.free_rows].any() else self.norm.dual(heights / self._divisors)

    def enclose(self, W: Array) -> Interval:
        """An entry of the product is off by a rounding, or by what is lost below the normal numbers."""
        product, lost = self.factors * W, W.size * TINIEST * bool(W.any())
        if not np.isfinite(product).all():
            return Interval(0.0, np.inf)
        return (self.norm.enclose(product) * _OF_PRODUCTS + Interval(-lost, lost)).positive_part()

    def enclose_dual(self, G: Interval) -> Interval:
        heights = Interval(self.to_cone(G.lower), self.to_cone(G.upper))
        if heights.lower[self.free_rows].any() or heights.upper[self.free_rows].any():
            return Interval(0.0, np.inf)
        return self.norm.enclose_dual(heights / self._divisors)

    def project(self, W: Array, radius: float) -> Array:
        assert np.all(self.factors == 1.0)
        return self.norm.project(self.to_cone(W), radius)

    def prox(self, W: Array, weight: float) -> Array:
        """Row by row g prox_weight(W_j / g), the proximal map of g times a norm; what is below 0 with `nonnegative` is 0 before."""
        V, divisors = self.to_cone(W), self._divisors
        return np.where(self.factors == 0.0, V, divisors * self.norm.prox(V / divisors, weight))

    def vertex(self, direction: Array, radius: float) -> Array:
        towards = -self.to_cone(-direction)
        W = self.norm.vertex(towards / self._divisors, radius) / self._divisors
        return np.where(towards < 0.0, W, 0.0) if self.nonnegative else W

    def to_cone(self, W: Array) -> Array:
        return np.maximum(W, 0.0) if self.nonnegative else self.norm.to_cone(W)

    def outside_cone(self, W: Array) -> float:
        return max(0.0, -float(W.min())) if self.nonnegative else self.norm.outside_cone(W)

    def model(self, form: str, shape: tuple[int, int]) -> NormModel:
        """The norm is of other variables; rows whose factor is 0 have variables of their own."""
        import cvxpy as cp

        inner, free, ones = self.norm.model(form, shape), self.free_rows, np.ones(shape)
        W = cp.multiply(ones * (self.factors > 0.0) / self._divisors, inner.matrix)
        if free.any():
            W = W + np.eye(shape[0])[:, free] @ cp.Variable((int(free.sum()), shape[1]))
        signs = self.to_cone(ones) + self.to_cone(-ones)  # of the entries that may have one sign only
        return NormModel(W, inner.value, [*inner.constraints, *([cp.multiply(signs, W) >= 0.0] if signs.any() else [])])


def lengths(W: Array) -> Array:
    """Return the l2 norms of the columns; squares of tiny or huge entries do not leave the range of doubles."""
    top = np.abs(W).max(axis=0, initial=0.0)
    scale = np.where(top > 0.0, top, 1.0)
    return np.asarray(scale * np.sqrt(((W / scale) ** 2).sum(axis=0)))


def enclose_lengths(W: Interval, axis: int) -> Interval:
    """Return the l2 norms of the rows (`axis` 1) or columns (0) between bounds; powers of two bring the entries of each near 1."""
    top = np.maximum(np.abs(W.lower), np.abs(W.upper)).max(axis=axis, keepdims=True)
    exponents = np.frexp(top)[1]
    return W.ldexp(-exponents, TINIEST).square().sum(axis=axis).root().ldexp(np.squeeze(exponents, axis=axis))


def _used_rows(W: Array) -> Array:
    """Return W without its rows of zeros, which no singular value sees; one of them where there is no other."""
    used = W.any(axis=1)
    return W[used] if used.any() else W[:1]


def _without_empty_rows(shrink: Callable[[Array], Array], W: Array) -> Array:
    """Shrink singular values, which leaves rows of zeros alone: those of features that no example has, most where examples are few."""
    rows = np.flatnonzero(W.any(axis=1))
    if 2 * len(rows) > len(W) or not len(rows):
        return shrink(W)
    shrunk = np.zeros(W.shape)
    shrunk[rows] = shrink(W[rows])
    return shrunk
