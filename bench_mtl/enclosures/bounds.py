"""Proven bounds on the value of a cone programme, near a point and multipliers that nobody vouches for.

Lower bound: for any x0 and any y in the dual cones, p >= d - 1/2 x0^T P x0 - b^T y + inf over x of r^T x with r = c + P x0 - A^T y. Columns
with bounds may keep a small r_j; for the others some (y, x0) in a proven box solves r_j = 0, and all of the box is in the dual cones.
Upper bound: the equalities are solved by some x in a proven box, all of which is feasible. Both go no further than they must from the
answer to a point inside the cones (Jansson, Chaykin and Keil, SIAM J. Numer. Anal. 46, 2007, for semidefinite programmes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.rounding import TINIEST, Interval, down, gamma, up
from bench_mtl.core.types import Array
from bench_mtl.enclosures.inside import Inner
from bench_mtl.enclosures.linear import Equations, image, independent_rows, least_products, value_of
from bench_mtl.enclosures.programme import Programme

#: Sweeps of `propagated`.
_SWEEPS = 10

Box = tuple[Array, Array]


class Bound(NamedTuple):
    """A bound, what was done for it or why there is none, and the middle of the box that proves it."""

    value: float
    why: str
    point: Array | None = None


def _moved(share: float, depth: float) -> str:
    """Return how far a point was moved towards one inside the cones, as the end of a phrase."""
    return f", moved by {share:.0e} of the way to one that is {depth:.0e} inside the cones" if share else ", not moved"


def lower_bound(p: Programme, box: Box, inner: Inner) -> Bound:
    """Return the greatest lower bound that is proven near p.y, for variables in the box."""
    y = p.y.copy()
    for cone in p.cones:
        if cone.kind == "nonneg":
            y[cone.rows] = np.maximum(y[cone.rows], 0.0)
    as_they_are = partial(_lower_by, p, box, solved=np.zeros(0, dtype=int), equations=Equations(p.M[:0], np.ones(p.M.shape[1])))
    best = max((as_they_are(_joined(p, v, p.x)) for v in (y, np.zeros_like(y))), key=lambda bound: bound.value)
    reason, enough = best.why, p.most - inner.enough
    needed = ~(np.isfinite(box[0]) & np.isfinite(box[1])) & ((np.diff(p.M.indptr) > 0) | (p.c != 0.0))
    for depth, point, by_products in inner.points("dual") if best.value <= enough else ():
        if by_products and depth and needed.any() and not inner.is_too_large:  # whose residuals must be 0
            continue
        units = _joined(p, _units_of_multipliers(p, point[1]), p.sizes)
        ends = [_joined(p, y, p.x), _joined(p, point[1], point[0])]
        equations = Equations(p.M, units, by_products=by_products and not needed.any())
        for _ in range(2):
            ends = [end + equations.solve(p.c - p.M @ end) for end in ends]
        costly = least_products(image(p.M, -ends[1], None, p.c), *box) < -1e-13 * p.scale / len(p.c)
        choices = [needed] if equations.is_too_large else [needed | costly] + [needed] * bool((costly & ~needed).any())
        for solved in map(np.flatnonzero, choices):
            some = equations if len(solved) == len(p.c) else Equations(p.M[solved], units)
            test = partial(_lower_by, p, box, solved=solved, equations=some)
            bound, share = _best_between(test, ends[0], ends[1] if depth else None)
            reason = bound.why or reason
            if bound.value > best.value:
                how = f"the multipliers{_moved(share, depth)}, with the equations of {len(solved)} of {len(p.c)} columns solved"
                best, enough = Bound(bound.value, how), p.most - inner.enough if equations.is_too_large and inner.goes_on else -np.inf
            if bound.value > -np.inf:
                break
        if best.value > enough:
            break
    return best if best.value > -np.inf else Bound(-np.inf, reason)


def _lower_by(p: Programme, box: Box, z: Array, solved: NDArray[np.intp], equations: Equations) -> Bound:
    """Return a lower bound by multipliers z = (y, x0), of which some nearby one makes r_j = 0 for the columns `solved`."""
    m, radius = len(p.b), equations.reach(image(equations.M, -z, None, p.c[solved]))
    if radius is None:
        return Bound(-np.inf, f"columns of variables without bounds {equations.obstacle}: bounds on them would help")
    y = Interval.around(z[:m], radius[:m]) if radius.any() else Interval.exact(z[:m])
    if not all(cone.contains(y[cone.rows], dual=True) for cone in p.cones):
        return Bound(-np.inf, "no multipliers are proven to be inside the dual cones")
    loss = least_products(image(p.M, -z, radius, p.c), *box)
    loss[solved] = 0.0
    if not np.isfinite(loss).all():
        return Bound(-np.inf, "variables without bounds have residuals: bounds on them would help")
    value = p.d - value_of(0.0 * z[m:], z[m:], radius[m:], p.P) - value_of(p.b, z[:m], radius[:m]) + Interval.exact(loss).sum()
    if p.curvature > 0.0:
        far = up(up(np.maximum(box[1] - z[m:], z[m:] - box[0])) + radius[m:])[np.diff(p.P.indptr) > 0]
        value = value - Interval.exact(far).square().sum() * p.curvature * 0.5
    if (low := value.ends[0]) > -np.inf:
        return Bound(low, "the multipliers of the answer, or 0 where it has none")
    return Bound(low, "the quadratic objective is not proven convex, and its variables have no bounds")


def upper_bound(p: Programme, inner: Inner, *, is_first: bool = False) -> Bound:
    """Return the least upper bound that is proven near p.x, with the point that proves it.

    With `is_first` the bound is that of the first point that is proven on the way inside, not of better ones further off, and of a rounded
    one where there is none.
    """
    zero = np.concatenate([cone.rows.ravel() for cone in p.cones if cone.kind == "zero"] or [np.zeros(0, dtype=int)])
    equations = Equations(p.A[zero], p.sizes)
    if len(zero) and equations.least_singular_value <= 0.0:
        chosen, contradicts = independent_rows(p.A[zero], p.b[zero])
        if contradicts:
            return Bound(np.inf, "the equalities contradict each other as they are stored")
        zero = zero[chosen]
        equations = Equations(p.A[zero], p.sizes)

    def nearest(x: Array) -> Array:
        return x - equations.solve(equations.M @ x + p.b[zero])

    def by(x: Array) -> Bound:
        return _upper_by(p, x, zero, equations)

    def rounded() -> Bound:
        points = [by(np.round(p.x, digits))._replace(why=f"the point rounded to {digits} digits") for digits in (7, 5)]
        return max(points, key=lambda bound: bound.value)

    best, reason = Bound(-np.inf, "") if is_first else rounded(), ""
    for depth, point, by_products in inner.points("primal"):
        end = nearest(nearest(point[0])) if depth else None
        bound, share = _best_between(by, nearest(nearest(p.x)), end, is_first=is_first)
        reason = bound.why or reason
        if bound.value > best.value:
            best = bound._replace(why=f"the point{_moved(share, depth)}")
        if bound.value > (-p.least - inner.enough if by_products and inner.goes_on and not is_first else -np.inf):
            break
    best = rounded() if best.value == -np.inf and is_first else best
    return Bound(-best.value, best.why if best.value > -np.inf else reason, best.point)


def _upper_by(p: Programme, x: Array, zero: NDArray[np.intp], equations: Equations) -> Bound:
    """Return minus an upper bound by x, near which some point solves the equalities."""
    radius = equations.reach(image(equations.M, x, None, p.b[zero]))
    if radius is None:
        return Bound(-np.inf, f"equalities {equations.obstacle}, and no point is proven to solve them")
    slack = image(p.A, x, radius, p.b)
    if not all(cone.contains(slack[cone.rows], dual=False) for cone in p.cones if cone.kind != "zero"):
        return Bound(-np.inf, "no point is proven to be inside the cones: the model may have no interior")
    return Bound(-(p.d + value_of(p.c, x, radius, p.P)).ends[1], "", x)


def _best_between(test: Callable[[Array], Bound], outer: Array, inside: Array | None, *, is_first: bool = False) -> tuple[Bound, float]:
    """Return the greatest bound, or the first, that is proven on the way from `outer`, which is accurate, to `inside`, and its share."""
    best = test(outer)
    if best.value > -np.inf or inside is None:
        return best, 0.0
    best, low, high = test(inside), -50, 0  # exponents of 2: not proven, and proven
    while best.value > -np.inf and high - low > 1:
        middle = (low + high) // 2
        bound = test(outer + 2.0**middle * (inside - outer))
        if bound.value > -np.inf:
            best, high = bound if is_first else max((best, bound), key=lambda one: one.value), middle
        else:
            low = middle
    return best, 2.0**high


def _joined(p: Programme, y: Array, x: Array) -> Array:
    return y if p.P is None else np.concatenate((y, x))


def _units_of_multipliers(p: Programme, y: Array) -> Array:
    units = np.maximum(np.abs(y), 1e-8 * p.scale / p.slacks)
    for cone in p.cones:
        units[cone.rows] = p.scale / p.slacks[cone.rows] if cone.kind == "zero" else units[cone.rows].max(axis=1)[:, None]
    return units


def propagated(p: Programme, low: Array, high: Array, upper: float) -> Box:
    """Return bounds on x, within given ones, that the rows, the cones and an objective of at most `upper`, the value of some feasible point
    or inf, imply, in some sweeps."""
    A, b, count = p.A, p.b, len(p.b)
    if upper < np.inf:  # upper - d - c^T x >= 1/2 x^T P x >= 0
        A, b = sp.csr_array(sp.vstack((A, sp.csr_array(-p.c[None, :])))), np.append(b, (Interval.exact(upper) - p.d).upper)
    A.eliminate_zeros()
    rows, columns, a = np.repeat(np.arange(len(b)), np.diff(A.indptr)), A.indices, A.data
    error = 4.0 * gamma(int(np.diff(A.indptr).max(initial=0)) + 8)
    slack_low, slack_high = np.where(np.arange(len(b)) < count, -np.inf, 0.0), np.full(len(b), np.inf)

    def sums(ends: Array) -> tuple[Array, Array]:
        """Return lower bounds on the sum of a row without each entry, and on all of it, from lower ends of the entries."""
        is_lost = ~np.isfinite(ends)
        fine, lost = np.where(is_lost, 0.0, ends), np.bincount(rows, is_lost, len(b))
        total, size = np.bincount(rows, fine, len(b)), np.bincount(rows, np.abs(fine), len(b))
        others = np.where(lost[rows] - is_lost > 0, -np.inf, (total - error * size)[rows] - fine - error * np.abs(total[rows]))
        return others, np.where(lost > 0, -np.inf, total - error * size)

    for _ in range(_SWEEPS):
        before = low.copy(), high.copy()
        ends = a * low[columns], a * high[columns]
        least, most = np.where(a > 0.0, ends[0], ends[1]), np.where(a > 0.0, ends[1], ends[0])
        (below, sum_low), (above, sum_high) = sums(down(least) - TINIEST), sums(down(-most) - TINIEST)
        slack_low[:], slack_high[:] = np.fmax(slack_low, down(sum_low + b)), np.fmin(slack_high, up(-sum_high + b))
        for cone in p.cones:
            cone.narrow(slack_low, slack_high)
        top = up(up(slack_high - b)[rows] - below)  # of a x_j
        bottom = down(down(slack_low - b)[rows] + above)
        most, least = np.where(a > 0.0, top, bottom) / a, np.where(a > 0.0, bottom, top) / a
        np.fmin.at(high, columns, up(most) + TINIEST)
        np.fmax.at(low, columns, down(least) - TINIEST)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high
