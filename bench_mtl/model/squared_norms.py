"""Squared norms as a regulariser: that of all entries, and that of the singular values, which couples tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bench_mtl.core.rounding import Interval, enclose_dot, quotient
from bench_mtl.core.spectral_bounds import enclose_trace_norm
from bench_mtl.core.types import Array
from bench_mtl.model.regularisers import Penalty, Regulariser, RegulariserModel
from bench_mtl.projections import norm_trace, prox_squared_trace

#: Products from this size on prove nothing beside a ridge: divided by a factor of a feature they may overflow.
_FAR = 1e290


@final
@dataclass(frozen=True)
class SquaredNorms(Regulariser):
    """ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2, with `half` in the place of 1/2."""

    ridge: float
    coupling: float = 0.0
    half: float = 0.5

    is_homogeneous: ClassVar[bool] = False

    @property
    def strengths(self) -> tuple[float, float]:
        """a and b of a/2 ||W||_F^2 + b/2 ||W||_*^2."""
        return 2.0 * self.half * self.ridge, 2.0 * self.half * self.coupling

    def value(self, point: Array) -> float:
        coupled = norm_trace(point) ** 2 if self.coupling > 0.0 else 0.0
        return self.half * self.ridge * float((point**2).sum()) + self.half * self.coupling * coupled

    def enclose(self, point: Array) -> Interval:
        """Roots of the weights are multiplied with W before it is squared, so that no square leaves the range."""
        exponent = int(np.frexp(np.abs(point).max(initial=0.0))[1])
        near_one, root = np.ldexp(point, -exponent), Interval.exact(np.float64(self.ridge)).root().ldexp(exponent)
        total = enclose_dot(near_one, near_one) * root.square()
        if self.coupling > 0.0:
            total = total + (enclose_trace_norm(point) * Interval.exact(np.float64(self.coupling)).root()).square()
        return total * self.half

    def prox(self, point: Array, step_size: float) -> Array:
        """point / (1 + step_size ridge), of which the proximal operator of the squared trace norm makes the rest."""
        shrink = 1.0 / (1.0 + 2.0 * step_size * self.half * self.ridge)
        if self.coupling == 0.0:
            return shrink * point
        return np.asarray(prox_squared_trace(shrink * point, 2.0 * shrink * step_size * self.half * self.coupling))

    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        """Of a ridge alone: max_z <G, z> - R(z) is convex in G, and 0 at 0: for c <= 1."""
        if self.coupling > 0.0:
            return super().enclose_support(G)
        return G.square().sum() * 0.5 / self.strengths[0], Interval(1.0, 1.0)

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        import cvxpy as cp

        W = cp.Variable(shape)
        squares = self.ridge * cp.sum_squares(W) + (self.coupling * cp.square(cp.normNuc(W)) if self.coupling > 0.0 else 0.0)
        return RegulariserModel(unit * W, self.half * unit * unit * squares, [], lambda: unit * np.asarray(W.value))

    @np.errstate(all="ignore")
    def conjugate(self, values: Array) -> float:
        """Return an upper bound on g*(s) = max_{b >= 0} s.b - ridge/2 ||b||^2 - coupling/2 (sum b)^2, for descending s >= 0.

        This is the conjugate at a matrix of these singular values. It is found by water-filling::

            g*(s) = min_level  sum_i max(s_i - level, 0)^2 / (2 ridge) + level^2 / (2 coupling)

        whose best level is coupling S_k / (ridge + k coupling) for the k values above it, of sum S_k. Any level gives an upper bound of
        g*, so it may be rounded; its value is rounded upward. Without a ridge the level is s_1, without coupling it is 0.
        """
        ridge, coupling = self.ridge, self.coupling
        if not values.any():
            return 0.0
        if coupling == 0.0:
            return _unlevelled(values, ridge)
        flat = float((Interval.exact(values[0]).square() * 0.5 / coupling).upper)
        if ridge == 0.0:
            return flat
        counts = np.arange(1, len(values) + 1)
        levels = np.cumsum(values) * (coupling / (ridge + coupling * counts))
        level = levels[max(1, int(np.count_nonzero(values > levels))) - 1]
        above = (Interval.exact(values) - level).positive_part()
        filled = above.square().sum() * 0.5 / ridge + Interval.exact(level).square() * 0.5 / coupling
        candidates = [flat, float(filled.upper), _unlevelled(values, ridge)]  # each an upper bound, and each may overflow
        return min((candidate for candidate in candidates if not np.isnan(candidate)), default=np.inf)


@final
@dataclass(frozen=True)
class PenaltyAndRidge(Regulariser):
    """weight ||W|| + ridge/2 ||W||_F^2, ridge > 0: the elastic net of a norm."""

    penalty: Penalty
    ridge: float

    is_homogeneous: ClassVar[bool] = False

    def value(self, point: Array) -> float:
        return self.penalty.value(point) + SquaredNorms(self.ridge).value(point)

    def enclose(self, point: Array) -> Interval:
        return self.penalty.enclose(point) + SquaredNorms(self.ridge).enclose(point)

    def prox(self, point: Array, step_size: float) -> Array:
        """That of the norm, of the point and a step divided by 1 + step_size ridge."""
        shrink = 1.0 / (1.0 + step_size * self.ridge)
        return self.penalty.prox(shrink * point, shrink * step_size)

    def repair(self, point: Array) -> Array:
        return self.penalty.repair(point)

    def excess(self, point: Array) -> float:
        return self.penalty.excess(point)

    @np.errstate(all="ignore")
    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        """max_z <G, z> - R(z) <= 1/(2 ridge) ||G - U||_F^2 for any U of dual norm <= weight, and convex in G, 0 at 0: for c <= 1.

        The best U is G less its proximal point; rounded, it is scaled until its dual norm is small enough.
        """
        near, limit = np.asarray(G.middle), Interval(1.0, 1.0)
        if not np.abs(near).max(initial=0.0) < _FAR:
            return Interval(np.inf, np.inf), limit
        U = near - self.penalty.prox(near, 1.0)
        share = min(1.0, float(quotient(self.penalty.weight, self.penalty.norm.enclose_dual(Interval.exact(U))).lower))
        rest = (G - Interval.exact(U) * share) / Interval.exact(np.float64(self.ridge)).root()
        return rest.square().sum() * 0.5, limit

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        import cvxpy as cp

        inner = self.penalty.model(form, shape, unit)
        return inner._replace(penalty=inner.penalty + 0.5 * self.ridge * cp.sum_squares(inner.coefficients))

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        return {form: cones | {"squares"} for form, cones in self.penalty.models.items()}


def _unlevelled(values: Array, ridge: float) -> float:
    """Return an upper bound on ||s||^2 / (2 ridge), the value at level 0."""
    return float((Interval.exact(values).square().sum() * 0.5 / ridge).upper)
