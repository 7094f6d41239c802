"""Minimisers of a convex quadratic over weighted l1 balls, or with a weighted l1 penalty, by an active-set method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array

#: Shares of what is compared: a ball is full up to the first, a slope of an entry of 0 too large from the second and its rounding on.
_FULL, _OPTIMAL, _ROUNDING = 1e-12, 1e-10, 1e-15


@dataclass(frozen=True)
class L1Quadratic:
    """argmin_v  <g, v - v0> + 1/2 (v - v0)^T H (v - v0)  over  sum_{i in ball b} t_i |v_i| <= radius for every ball b.

    Parameters
    ----------
    H : positive definite, p x p
    g : p
    v0 : a feasible point, p
    weights : t > 0, p
    balls : the ball of every entry, 0, 1, ...; p
    radius, penalty : the radius > 0 of every ball, or None; then the objective has penalty sum_i t_i |v_i|
    signs : the signs that an entry may have, 0 for both; p

    References
    ----------
    Nocedal, Wright, Numerical Optimization, 2nd edition, algorithm 16.3, on the faces of the balls instead of inequalities.
    """

    H: Array
    g: Array
    v0: Array
    weights: Array
    balls: NDArray[np.intp]
    radius: float | None
    penalty: float
    signs: Array

    def minimise(self, most: int) -> Array:
        """Return the minimiser, or the point after `most` faces, which is feasible and no worse than v0."""
        v = self.v0.copy()
        signs = np.sign(v)
        sums = np.bincount(self.balls, self.weights * np.abs(v))
        full = np.zeros(len(sums), dtype=bool) if self.radius is None else sums >= self.radius * (1.0 - _FULL)
        barred = np.zeros(len(v) + len(full), dtype=bool)  # what leaves a face as soon as it joins it does so by rounding
        joined = -1
        for _ in range(most):
            step, multipliers = self._on_face(v, signs, full)
            length, leaves = self._room(v, step, signs, full)
            v = v + length * step
            if leaves == joined >= 0:
                barred[leaves] = True
            if leaves >= len(v):
                full[leaves - len(v)] = True
            elif leaves >= 0:
                v[leaves] = signs[leaves] = 0.0
            else:
                joined = self._enlarge(v, signs, full, multipliers, barred)
                if joined < 0:
                    return v
        return v

    def _slopes(self, v: Array) -> Array:
        return np.asarray(self.g + self.H @ (v - self.v0))

    def _on_face(self, v: Array, signs: Array, full: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the step to the minimiser on the face of the non-zero signs, and the multipliers of all balls."""
        own = np.flatnonzero(signs)
        binding = np.flatnonzero(full)
        normals = np.where(self.balls[own] == binding[:, None], signs[own] * self.weights[own], 0.0)
        units = np.abs(normals).max(axis=1, initial=0.0) if len(own) else np.ones(len(binding))
        units[units == 0.0] = 1.0
        normals = normals / units[:, None]
        system = np.block([[self.H[np.ix_(own, own)], normals.T], [normals, np.zeros((len(binding), len(binding)))]])
        slopes = self._slopes(v)[own] + self.penalty * self.weights[own] * signs[own]
        right = np.concatenate([-slopes, np.zeros(len(binding))])
        try:
            solved = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(system, right, rcond=None)[0]
        step, multipliers = np.zeros_like(v), np.full(len(full), self.penalty)
        step[own], multipliers[binding] = solved[: len(own)], solved[len(own) :] / units
        return step, multipliers

    def _room(self, v: Array, step: Array, signs: Array, full: NDArray[np.bool_]) -> tuple[float, int]:
        """Return the length, at most 1, to the first sign change (of entry i) or full ball b, and i, p + b or -1."""
        length, first = 1.0, -1
        towards = np.flatnonzero(signs * step < 0.0)
        if len(towards):
            lengths = -v[towards] / step[towards]
            i = int(lengths.argmin())
            if lengths[i] < length:
                length, first = max(float(lengths[i]), 0.0), int(towards[i])
        if self.radius is not None:
            sums = np.bincount(self.balls, self.weights * np.abs(v), len(full))
            growth = np.bincount(self.balls, self.weights * signs * step, len(full))
            for b in np.flatnonzero(~full & (growth > 0.0)):
                room = max(0.0, (self.radius - sums[b]) / growth[b])
                if room < length:
                    length, first = float(room), len(v) + int(b)
        return length, first

    def _enlarge(self, v: Array, signs: Array, full: NDArray[np.bool_], multipliers: Array, barred: NDArray[np.bool_]) -> int:
        """Free the ball b or the entry i whose multiplier is furthest from optimal; return p + b, i, or -1 where there is none."""
        negative = np.flatnonzero(full & (multipliers < 0.0) & ~barred[len(v) :])
        if len(negative):
            b = int(negative[multipliers[negative].argmin()])
            full[b] = False
            return len(v) + b
        slopes = self._slopes(v)
        held = multipliers[self.balls] * self.weights
        rounding = _ROUNDING * (np.abs(self.g) + np.abs(self.H) @ np.abs(v - self.v0))
        excess = np.abs(slopes) - held * (1.0 + _OPTIMAL) - rounding
        excess[(signs != 0.0) | (self.signs * slopes > 0.0) | barred[: len(v)]] = -np.inf
        i = int(excess.argmax())
        if excess[i] <= 0.0:
            return -1
        signs[i] = -np.sign(slopes[i])
        return i
