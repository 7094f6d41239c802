"""Points inside the cones near an answer, in floats, by Clarabel: optimal ones of smaller cones, or those nearest to the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.types import Array
from bench_mtl.enclosures.cones import Cone
from bench_mtl.enclosures.linear import Equations, is_too_large
from bench_mtl.enclosures.programme import Programme

#: Steps of least squares on the way inside, and the share of the way to the boundary that a step may take.
_STEPS, _LONGEST = 6, 0.8

Point = tuple[Array, Array]
"""x and y."""


class Inner:
    """Points inside the cones, by a depth that is relative to the sizes of slacks or of the value.

    Parameters
    ----------
    judge : ``"value"``, points that are optimal where the cones are moved inward by the depth, on both sides together or, where that has
        no solution, on one alone; ``"answer"``, the points nearest to the answer, in units of the sizes

    Programmes that are too large for Clarabel have points near the answer on the primal side, where their cones are linear.
    """

    def __init__(self, p: Programme, judge: str) -> None:
        self._p, self.is_too_large = p, is_too_large(p.A)
        self._is_optimal = judge == "value" and not self.is_too_large
        self.depths = (1e-6, 1e-3) if self._is_optimal else (1e-6, 1e-4, 1e-2, 1.0)
        self._optimal: dict[tuple[float, str], Point | None] = {}

    def __call__(self, depth: float, side: str) -> Point | None:
        """Return a point on the "primal" or the "dual" side; None where there is none."""
        if self.is_too_large:
            return _by_products(self._p, depth) if side == "primal" else None
        if not self._is_optimal:
            return _nearest_point(self._p, depth) if side == "primal" else _nearest_multipliers(self._p, depth)
        for moved in ("both", side):
            key = depth, moved
            if key not in self._optimal:
                self._optimal[key] = _optimal(self._p, depth * (moved != "dual"), depth * (moved != "primal"))
            if self._optimal[key] is not None:
                return self._optimal[key]
        return None


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
    answer = clarabel.DefaultSolver(P, c, sp.csc_array(-(sp.diags_array(T) @ sp.csr_array(A)[rows])), T * b[rows], kinds, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    y = np.zeros(len(b))
    y[rows] = T * np.asarray(answer.z)
    return np.asarray(answer.x), y


def _by_products(p: Programme, depth: float) -> Point | None:
    """Return x with slacks of at least about a depth by least squares, which take products with A alone; of linear cones."""
    if any(cone.kind not in ("zero", "nonneg") for cone in p.cones):
        return None
    x, n, is_free = p.x, len(p.c), np.zeros(len(p.b), dtype=bool)
    for cone in p.cones:
        is_free[cone.rows] = cone.kind == "nonneg"
    for _ in range(_STEPS):
        slack, target = p.A @ x + p.b, np.zeros(len(p.b))
        target[is_free] = np.maximum(slack[is_free], depth * p.slacks[is_free])
        both = sp.csr_array(sp.hstack((p.A @ sp.diags_array(10.0 * p.sizes), -sp.diags_array(target))))
        w = Equations(both, np.ones(both.shape[1])).solve(target - slack)
        x = x + 10.0 * p.sizes * w[:n]
        if float((-w[n:]).max(initial=0.0)) <= _LONGEST:
            return x, p.y
    return None
