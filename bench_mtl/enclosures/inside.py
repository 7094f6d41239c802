"""Points inside the cones near an answer, in floats: by another solve with smaller cones, or by least squares from the answer alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.types import Array
from bench_mtl.enclosures.linear import Equations, is_too_large
from bench_mtl.enclosures.programme import Programme

#: Steps of least squares on the way inside, and the share of the way to the boundary that a step may take.
_STEPS, _LONGEST = 6, 0.8
#: Entries of the ellipsoids inside all cones, at the most.
_MOST_ENTRIES = 20_000_000

Point = tuple[Array, Array]
"""x and y."""


def inner_points(p: Programme, judge: str = "answer") -> tuple[Inner, list[str]]:
    """Return what finds points inside the cones, and sentences on what is too large for it."""
    if judge == "value" and not is_too_large(p.A):
        return Solved(p), []
    inner = Repaired(p)
    sentences = ["too large for a second solve: bounds are of the answer alone"] if judge == "value" else []
    if inner.is_too_large:
        sentences.append("cones too large to repair points of: only the answer itself, and 0, were tried")
    return inner, sentences


class Solved:
    """Answers of Clarabel with the cones moved inward by a depth, both sides together or, where that has no solution, one alone.

    Depths are relative to the sizes of slacks or of the value.
    """

    depths = (1e-6, 1e-3)

    def __init__(self, p: Programme) -> None:
        self._p = p
        self._answers: dict[tuple[float, str], Point | None] = {}

    def __call__(self, depth: float, side: str) -> Point | None:
        """Return a point on the "primal" or the "dual" side; None where there is none."""
        for moved in ("both", side):
            key = depth, moved
            if key not in self._answers:
                self._answers[key] = _solved_inside(self._p, depth * (moved != "dual"), depth * (moved != "primal"))
            if self._answers[key] is not None:
                return self._answers[key]
        return None


def _solved_inside(p: Programme, primal: float, dual: float) -> Point | None:
    import clarabel  # type: ignore[import-untyped]

    inward, units, order, kinds = np.zeros(len(p.b)), np.ones(len(p.b)), np.arange(len(p.b)), []
    for cone in p.cones:
        k, dim = cone.rows.shape
        inward[cone.rows] = cone.centres
        if cone.kind in ("zero", "nonneg"):
            kinds.append((clarabel.ZeroConeT if cone.kind == "zero" else clarabel.NonnegativeConeT)(k))
        elif cone.kind == "psd":
            i, j = cone.triangle
            by_columns = np.lexsort((i, j))
            order[cone.rows[0]], units[cone.rows[0]] = cone.rows[0][by_columns], np.where(i == j, 1.0, 0.5**0.5)[by_columns]
            kinds.append(clarabel.PSDTriangleConeT(int(j[-1]) + 1))
        elif cone.alpha is not None:
            kinds += [clarabel.PowerConeT(float(alpha)) for alpha in cone.alpha]
        else:
            kinds += [clarabel.SecondOrderConeT(dim) if cone.kind == "soc" else clarabel.ExponentialConeT()] * k
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = 1e-9
    D, T = sp.diags_array(p.sizes), units / p.slacks[order]  # all in units of the sizes
    A = sp.csc_array(-(sp.diags_array(T) @ p.A[order] @ D))
    b = T * (p.b - primal * p.slacks * inward)[order]
    floor = dual * p.scale / p.slacks * inward
    c = D @ (p.c - p.A.T @ floor) / p.scale
    P = sp.csc_array((len(c), len(c)) if p.P is None else sp.triu(D @ p.P @ D / p.scale))
    answer = clarabel.DefaultSolver(P, c, A, b, kinds, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    y = np.zeros(len(p.b))
    y[order] = T * np.asarray(answer.z)
    return D @ np.asarray(answer.x), p.scale * y + floor


class Repaired:
    """Points made from the answer alone: it is pushed into the cones, and the equations are met again by least squares in their metric."""

    depths = (1e-6, 1e-4, 1e-2, 1.0)

    def __init__(self, p: Programme) -> None:
        self._p = p
        self.is_too_large = sum(cone.rows.size * cone.rows.shape[1] for cone in p.cones) > _MOST_ENTRIES

    def __call__(self, depth: float, side: str) -> Point | None:
        """Return a point on the "primal" or the "dual" side; None where there is none."""
        point = None if self.is_too_large else self._dual(depth) if side == "dual" else self._primal(depth)
        if point is None:
            return None
        return (self._p.x, point) if side == "dual" else (point, self._p.y)

    def _dual(self, depth: float) -> Array | None:
        p, m = self._p, len(self._p.b)
        z = self._pushed(p.y, p.A @ p.x + p.b, depth, dual=True)
        z = z if p.P is None else np.concatenate((z, p.x))
        for _ in range(_STEPS):
            W = self._ellipsoids(z[:m], dual=True, free=1e3 * (float(np.abs(z[:m]).max(initial=0.0)) or 1.0))
            W = W if p.P is None else sp.csr_array(sp.block_diag((W, sp.diags_array(p.sizes))))
            w = Equations(sp.csr_array(p.M @ W), np.ones(W.shape[1])).solve(p.c - p.M @ z)
            length = self._length(w[:m])
            z = z + W @ (w * min(1.0, _LONGEST / max(length, 1e-300)))
            if length <= _LONGEST:
                return z[:m]
        return None

    def _primal(self, depth: float) -> Array | None:
        p, n = self._p, len(self._p.c)
        zero = np.concatenate([cone.rows.ravel() for cone in p.cones if cone.kind == "zero"] or [np.zeros(0, dtype=int)])
        x, sizes = p.x, 10.0 * p.sizes
        for _ in range(_STEPS):
            slack = p.A @ x + p.b
            target = self._pushed(slack, p.y, depth, dual=False)
            target[zero] = 0.0
            both = sp.csr_array(sp.hstack((p.A @ sp.diags_array(sizes), -self._ellipsoids(target, dual=False, free=0.0))))
            w = Equations(both, np.ones(both.shape[1])).solve(target - slack)
            x, length = x + sizes * w[:n], self._length(w[n:])
            if length <= _LONGEST:
                return x
        return None

    def _pushed(self, z: Array, other: Array, depth: float, *, dual: bool) -> Array:
        """Return z inside all cones, deeper where the complementary point is small: so far that the value loses about `depth` to each."""
        p, z = self._p, z.copy()
        for cone in p.cones:
            if cone.kind != "zero":
                slack = p.slacks[cone.rows].max(axis=1)
                floor = depth**0.5 * (slack if dual else p.scale / slack)
                far = depth * p.scale / np.maximum(np.abs(other[cone.rows]).max(axis=1), floor)
                z[cone.rows] = cone.pushed(z[cone.rows], far, dual=dual)
        return z

    def _ellipsoids(self, z: Array, *, dual: bool, free: float) -> Any:
        """Return the matrices of all cones as one, `free` on the diagonal for equalities."""
        rows, columns, values = [], [], []
        for cone in self._p.cones:
            k, dim = cone.rows.shape
            L = np.full((k, 1, 1), free) if cone.kind == "zero" else cone.ellipsoids(z[cone.rows], dual=dual)
            rows.append(np.repeat(cone.rows, dim, axis=1).ravel())
            columns.append(np.tile(cone.rows, (1, dim)).ravel())
            values.append(L.ravel())
        m = len(self._p.b)
        return sp.csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(m, m))

    def _length(self, w: Array) -> float:
        """Return about how much of the way to the boundary the step w takes, in the metric of the ellipsoids."""
        lengths = [
            float((-w[cone.rows] if cone.kind == "nonneg" else np.linalg.norm(w[cone.rows], axis=1)).max(initial=0.0))
            for cone in self._p.cones
            if cone.kind != "zero"
        ]
        return max(lengths, default=0.0)


Inner = Solved | Repaired
