"""Points inside the cones near an answer, in floats, by Clarabel: optimal ones of smaller cones, or those nearest to the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.types import Array
from bench_mtl.enclosures.cones import Cone
from bench_mtl.enclosures.linear import Equations, is_too_large
from bench_mtl.enclosures.programme import Programme, is_panic

#: Steps of least squares on the way inside.
_STEPS = 20
#: What a second solve must gain for a nonzero of the matrix, as a share of the value.
_PER_NONZERO = 3e-13
#: Of more nonzeros an answer alone is not sought beyond what products prove.
_CHEAP = 20_000
#: The weights, in turn, of entries that are to stay, where those of the objective are at most 1: large ones stop Clarabel at times.
_PENALTIES = (1e8, 1e6, 1e5)

Point = tuple[Array, Array]
"""x and y."""


class Inner:
    """Points inside the cones, by a depth that is relative to the sizes of slacks or of the value.

    With the judge ``"value"`` they are optimal where the cones are moved inward by the depth, on both sides together or, where that has no
    solution, on one alone; with ``"answer"`` they are the points nearest to the answer, in units of the sizes.

    Before these come points near the answer that products alone make, of linear cones; nothing comes after them where the programme is too
    large for Clarabel.
    """

    def __init__(self, p: Programme, judge: str) -> None:
        self._p, self._is_optimal, self.is_too_large = p, judge == "value", is_too_large(p.A)
        near = _PER_NONZERO * p.A.nnz * p.scale
        self.enough = near if p.most - p.least <= 10.0 * near else -np.inf
        """Bounds are not sought further where they are so near to the answer's value, which must be one on both sides."""
        self.goes_on = self._is_optimal or p.A.nnz <= _CHEAP
        """Whether bounds by products alone that are further off are sought again by Clarabel."""
        self._optimal = cache(partial(_optimal, p))

    def points(self, side: str) -> Iterator[tuple[float, Point, bool]]:
        """Yield depths, points of the "primal" or the "dual" side, and whether products alone made them; first the answer."""
        is_linear = all(cone.kind in ("zero", "nonneg") for cone in self._p.cones)
        yield 0.0, (self._p.x, self._p.y), is_linear
        for depth in (1e-12, 1e-9, 1e-6, 1e-3) if is_linear else ():
            if (point := _by_products(self._p, depth, side)) is not None:
                yield depth, point, True
        for depth in () if self.is_too_large else (1e-6, 1e-3) if self._is_optimal else (1e-6, 1e-4, 1e-2, 1.0):
            if (point := self._by_clarabel(depth, side)) is not None:
                yield depth, point, False

    def _by_clarabel(self, depth: float, side: str) -> Point | None:
        if not self._is_optimal:
            return _nearest_point(self._p, depth) if side == "primal" else _nearest_multipliers(self._p, depth)
        return self._optimal(depth, depth) or self._optimal(depth * (side == "primal"), depth * (side == "dual"))


def completed(p: Programme, values: Array) -> Programme:
    """Return the programme with an answer that has these entries, and in place of NaN the best ones for them, with multipliers.

    Entries are held by a penalty, first where they are, and then where it has left them: in the cones, where multipliers are not its own.
    The others are then the best for entries that stay, where there are such. What is too large has no multipliers, and its other entries
    are feasible ones by products, where all cones are linear.
    """
    is_free, y = np.isnan(values), np.zeros(len(p.b))
    x, size = np.where(is_free, 0.0, values), float(np.abs(values[~is_free]).max(initial=0.0)) or 1.0
    stays = np.where(is_free, 0.0, values)
    if is_too_large(p.A):
        part = Programme(p.c[is_free], 0.0, None, sp.csr_array(p.A[:, is_free]), p.A @ stays + p.b, p.cones, stays[is_free], y)
        point = _by_products(part, 1e-9, "primal") if all(cone.kind in ("zero", "nonneg") for cone in p.cones) and is_free.any() else None
        stays[is_free] = 0.0 if point is None else point[0]
        return p.answered(stays, y)
    for _ in range(2):
        c = p.c if p.P is None else p.c + p.P @ x
        largest, held = float(np.abs(c).max(initial=0.0)) or 1.0, sp.diags_array(1.0 - is_free)
        Q = 0.0 * held if p.P is None else p.P * (size / largest)
        slack = (p.A @ x + p.b) / size
        answers = (_solved(Q + weight * held, c / largest, p.A, slack, p.cones) for weight in _PENALTIES)
        answer = next((one for one in answers if one is not None), None)
        if answer is None:
            break
        x, y = x + size * answer[0], largest * answer[1]
    x = np.where(is_free, x, values)
    if is_free.any():
        c = p.c if p.P is None else p.c + p.P @ stays
        largest = float(np.abs(c[is_free]).max(initial=0.0)) or 1.0
        Q = None if p.P is None else p.P[is_free][:, is_free] * (size / largest)
        best = _solved(Q, c[is_free] / largest, p.A[:, is_free], (p.A @ stays + p.b) / size, p.cones)
        if best is not None:
            x[is_free] = size * best[0]
            is_equality = np.zeros(len(p.b), dtype=bool)
            for cone in p.cones:
                is_equality[cone.rows] = cone.kind == "zero"
            rows = np.flatnonzero(is_equality & (np.diff(sp.csr_array(p.A[:, is_free]).indptr) > 0))
            x[is_free] -= Equations(sp.csr_array(p.A[rows][:, is_free]), p.sizes[is_free]).solve((p.A @ x + p.b)[rows])
    return p.answered(x, y)


def _optimal(p: Programme, primal: float, dual: float) -> Point | None:
    D, T, floor = sp.diags_array(p.sizes), sp.diags_array(1.0 / p.slacks), dual * p.scale * _inward(p) / p.slacks
    P = None if p.P is None else D @ p.P @ D / p.scale
    answer = _solved(P, D @ (p.c - p.A.T @ floor) / p.scale, T @ p.A @ D, T @ p.b - primal * _inward(p), p.cones)
    return None if answer is None else (D @ answer[0], p.scale * (T @ answer[1]) + floor)


def _nearest_point(p: Programme, depth: float) -> Point | None:
    D, T = sp.diags_array(p.sizes), sp.diags_array(1.0 / p.slacks)
    answer = _solved(sp.eye_array(len(p.c)), -p.x / p.sizes, T @ p.A @ D, T @ p.b - depth * _inward(p), p.cones)
    return None if answer is None else (D @ answer[0], p.y)


def _nearest_multipliers(p: Programme, depth: float) -> Point | None:
    """By stationary points: columns of M, in units of the sizes, are equalities, and multipliers are in the dual cones."""
    (n, N), m = p.M.shape, len(p.b)
    units, z = p.scale / p.slacks, p.y
    if p.P is not None:
        units, z = np.concatenate((units, p.sizes)), np.concatenate((z, p.x))
    rows = sp.diags_array(p.sizes / p.scale)
    A = sp.vstack((rows @ p.M @ sp.diags_array(units), sp.eye_array(m, N)))
    b = np.concatenate((-(rows @ p.c), -depth * _inward(p)))
    cones = [Cone(cone.kind, n + cone.rows, cone.alpha) for cone in p.cones if cone.kind != "zero"]
    answer = _solved(sp.eye_array(N), -z / units, A, b, cones, equalities=n)
    if answer is None:
        return None
    z = units * answer[0]
    return (p.x if p.P is None else z[m:]), z[:m]


def _inward(p: Programme) -> Array:
    inward = np.zeros(len(p.b))
    for cone in p.cones:
        inward[cone.rows] = cone.centres
    return inward


def _solved(P: Any, c: Array, A: Any, b: Array, cones: Sequence[Cone], *, equalities: int = 0) -> Point | None:
    """Return x that minimises 1/2 x^T P x + c^T x with A x + b in the cones, and its multipliers; None where there is none.

    Where the first rows are `equalities`, the others are in the duals of the cones.
    """
    import clarabel  # type: ignore[import-untyped]

    order, factors, kinds = [np.arange(equalities)], [np.ones(equalities)], [clarabel.ZeroConeT(equalities)] * bool(equalities)
    for cone in cones:
        k, dim = cone.rows.shape
        entries, numbers = cone.coordinates(dual=bool(equalities))
        order.append(cone.rows[:, entries].ravel())
        factors.append(numbers.ravel())
        if cone.kind in ("zero", "nonneg"):
            kinds.append((clarabel.ZeroConeT if cone.kind == "zero" else clarabel.NonnegativeConeT)(k))
        elif cone.kind == "psd":
            kinds.append(clarabel.PSDTriangleConeT(int(cone.triangle[1][-1]) + 1))
        elif cone.alpha is not None:
            kinds += [clarabel.PowerConeT(float(alpha)) for alpha in cone.alpha]
        else:
            kinds += [clarabel.SecondOrderConeT(dim) if cone.kind == "soc" else clarabel.ExponentialConeT()] * k
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = 1e-9
    rows, T = np.concatenate(order), np.concatenate(factors)
    P = sp.csc_array((len(c), len(c))) if P is None else sp.csc_array(sp.triu(P))
    try:
        answer = clarabel.DefaultSolver(
            P, c, sp.csc_array(-(sp.diags_array(T) @ sp.csr_array(A)[rows])), T * b[rows], kinds, settings
        ).solve()
    except BaseException as error:
        if not is_panic(error):
            raise
        return None
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    y = np.zeros(len(b))
    y[rows] = T * np.asarray(answer.z)
    return np.asarray(answer.x), y


def _by_products(p: Programme, depth: float, side: str) -> Point | None:
    """Return x with slacks of about a depth, by steps of least squares, or multipliers of at least a depth; of linear cones."""
    is_free = np.zeros(len(p.b), dtype=bool)
    for cone in p.cones:
        is_free[cone.rows] = cone.kind == "nonneg"
    if side == "dual":
        return p.x, np.where(is_free, np.maximum(p.y, depth * p.scale / p.slacks), p.y)
    x, floor = p.x, np.where(is_free, depth * p.slacks, 0.0)
    for _ in range(_STEPS):
        slack = p.A @ x + p.b
        missed = np.where(is_free, slack < 0.5 * floor, np.abs(slack) > 1e-9 * p.slacks)
        if not missed.any():
            return x, p.y
        rows = np.flatnonzero(missed | ~is_free)
        x = x + Equations(p.A[rows], p.sizes, by_products=True).solve((floor - slack)[rows])
    return None
