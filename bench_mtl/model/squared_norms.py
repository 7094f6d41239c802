"""Squared norms as a regulariser: that of all entries, and that of the singular values, which couples tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from bench_mtl.core.rounding import Interval, enclose_dot
from bench_mtl.core.spectral_bounds import enclose_trace_norm
from bench_mtl.core.types import Array
from bench_mtl.model.regularisers import Regulariser, RegulariserModel
from bench_mtl.projections import norm_trace, prox_squared_trace


@final
@dataclass(frozen=True)
class SquaredNorms(Regulariser):
    """ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2, with `half` in the place of 1/2."""

    ridge: float
    coupling: float = 0.0
    half: float = 0.5

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


def _unlevelled(values: Array, ridge: float) -> float:
    """Return an upper bound on ||s||^2 / (2 ridge), the value at level 0."""
    return float((Interval.exact(values).square().sum() * 0.5 / ridge).upper)
