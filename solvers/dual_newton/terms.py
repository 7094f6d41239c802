"""The terms of a regulariser in scaled features, W = units V: proximal maps, and the derivatives of these."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array
from bench_mtl.model.norms import L1, L12, L1Inf, Norm, Trace
from bench_mtl.model.regularisers import Constraint, Penalty, Regulariser, Stacked
from bench_mtl.solvers.dual_newton.faces import DenseFace, Face, RowFace

#: Newton steps at most for the threshold of a ball: the norm is convex and piecewise linear in it, and a step leaves no piece twice.
_MOST_STEPS = 100
#: A norm that exceeds the radius by this share is that of a projected point.
_ROUNDING = 1e-15
#: Entries from which on a face of row lengths has columns of single entries.
_MANY = 100
#: Singular values closer than this share of the largest are one.
_EQUAL = 1e-12


class Shrunk(NamedTuple):
    """A proximal map at a point."""

    point: Array
    """d x m, in the term's own units."""
    value: float
    """The term there."""
    derivative: Callable[[], tuple[Face, Array]]
    """Makes L, in scaled features, and N, r x c with orthonormal columns, of the derivative L (I - N N^T) L^T."""


class Thresholded(NamedTuple):
    """The proximal map of theta times a weighted norm."""

    point: Array
    norms: Array
    """The weighted norms of the balls: one, or one a task."""
    falls: Array
    """By how much they fall with theta."""
    derivative: Callable[[], tuple[Face, Array]]
    """Makes L, and the derivatives of the weighted norms along its columns, r x balls."""


class Term(ABC):
    """weight ||W||, or ||W|| <= radius, for W = units V."""

    own_units = False
    """Whether its points are W itself, since its norm is none of V."""

    def __init__(self, regulariser: Constraint | Penalty, units: Array) -> None:
        self.units = units
        self.radius = regulariser.radius if isinstance(regulariser, Constraint) else None
        self.weight = 0.0 if isinstance(regulariser, Constraint) else regulariser.weight
        # In its own units a step is as long as in the middle of the scaled features.
        self.step_share = float(np.exp(2.0 * np.log(units).mean())) if self.own_units else 1.0

    def coefficients(self, point: Array) -> Array:
        """Return W of a point of this term."""
        return point if self.own_units else point * self.units[:, None]

    def point_of(self, W: Array) -> Array:
        return W if self.own_units else W / self.units[:, None]

    def scaled_features(self, point: Array) -> Array:
        """Return V of a point of this term."""
        return point / self.units[:, None] if self.own_units else point

    def slopes(self, Q: Array) -> Array:
        """Return the derivative in this term's points of a function with the derivative Q in V."""
        return Q / self.units[:, None] if self.own_units else Q

    def shrink(self, U: Array, step: float) -> Shrunk:
        """Return argmin_Z 1/2 ||Z - U||^2 + step R(Z)."""
        prepared = self.prepared(U)
        if self.radius is None:
            result = self.threshold(prepared, np.array([step * self.weight]))
            return Shrunk(result.point, self.weight * float(result.norms.sum()), lambda: self._plain(result))
        result, inside = self._on_radius(prepared, self.radius)
        if inside.all():
            free = self._allowed(U)
            face = lambda: (self._in_features(RowFace.of_entries(free)), np.zeros((int(free.sum()), 0)))  # noqa: E731
            return Shrunk(np.where(free, U, 0.0), 0.0, face)
        return Shrunk(result.point, 0.0, lambda: self._on_balls(result, inside))

    def _allowed(self, U: Array) -> NDArray[np.bool_]:
        """Return which entries have a sign that they may have."""
        return np.ones(U.shape, dtype=bool)

    def row_norms(self, U: Array) -> Array:
        """Return the dual norm of every row: at most its unit where the proximal map of the norm is 0."""
        raise NotImplementedError

    def restricted(self, rows: NDArray[np.intp]) -> Self:
        """Return the term of these rows alone."""
        other = copy.copy(self)
        other.units = self.units[rows]
        return other

    def _plain(self, result: Thresholded) -> tuple[Face, Array]:
        face, _ = result.derivative()
        return self._in_features(face), np.zeros((face.size, 0))

    def _on_balls(self, result: Thresholded, inside: NDArray[np.bool_]) -> tuple[Face, Array]:
        face, slopes = result.derivative()
        slopes = slopes[:, ~inside]
        lengths = np.linalg.norm(slopes, axis=0)
        return self._in_features(face), slopes[:, lengths > 0.0] / lengths[lengths > 0.0]

    def _in_features(self, face: Face) -> Face:
        return face.scaled(1.0 / self.units) if self.own_units else face

    def _on_radius(self, prepared: Any, radius: float) -> tuple[Thresholded, NDArray[np.bool_]]:
        """Return the projection on the balls, and which of them need none: Newton's method finds every theta from its left."""
        result = self.threshold(prepared, np.zeros(1))
        inside = result.norms <= radius * (1.0 + _ROUNDING)
        theta = np.zeros(len(inside))
        for _ in range(_MOST_STEPS):
            over = result.norms - radius
            moving = (over > _ROUNDING * radius) & (result.falls > 0.0)
            following = theta + np.where(moving, over / np.where(moving, result.falls, 1.0), 0.0)
            if not (following > theta).any():
                break
            theta = following
            result = self.threshold(prepared, theta)
        return result, inside

    def prepared(self, U: Array) -> Any:
        """Return what `threshold` wants to know of a point, whatever theta is."""
        return U

    @abstractmethod
    def threshold(self, prepared: Any, theta: Array) -> Thresholded:
        """Return the proximal map of theta times the norm; theta is one number, or one for every ball."""


@final
class _Entries(Term):
    """sum_jk units_j |V_jk|, of the entries that may not be 0 in a cone; over all, or of every task by itself."""

    def __init__(self, regulariser: Constraint | Penalty, units: Array) -> None:
        super().__init__(regulariser, units)
        assert isinstance(regulariser.norm, L1)
        self._norm = regulariser.norm

    def restricted(self, rows: NDArray[np.intp]) -> Self:
        other, orientation = super().restricted(rows), self._norm.orientation
        other._norm = self._norm if orientation is None else replace(self._norm, orientation=orientation[rows])
        return other

    def _allowed(self, U: Array) -> NDArray[np.bool_]:
        return np.asarray(self._norm.oriented(U) >= 0.0) if self._norm.nonneg else super()._allowed(U)

    def row_norms(self, U: Array) -> Array:
        turned = self._norm.oriented(U)
        return np.asarray((turned if self._norm.nonneg else np.abs(turned)).max(axis=1))

    def threshold(self, prepared: Any, theta: Array) -> Thresholded:
        norm, units, U = self._norm, self.units[:, None], prepared
        turned = norm.oriented(U)
        sizes = (turned if norm.nonneg else np.abs(turned)) - units * theta
        heights = np.maximum(sizes, 0.0)
        Z = norm.oriented(heights if norm.nonneg else np.copysign(heights, turned))
        active = heights > 0.0
        per_task, falls = (units * heights).sum(axis=0), (units**2 * active).sum(axis=0)
        if norm.balls == "all":
            per_task, falls = per_task.sum(keepdims=True), falls.sum(keepdims=True)

        def derivative() -> tuple[Face, Array]:
            face = RowFace.of_entries(active)
            rows, tasks = np.nonzero(active)
            slopes = self.units[rows] * np.sign(Z[rows, tasks])
            return face, slopes[:, None] * face.values**2 if norm.balls == "task" else slopes[:, None]

        return Thresholded(Z, per_task, falls, derivative)


@final
class _RowLengths(Term):
    """sum_j units_j ||V_j||_2."""

    def row_norms(self, U: Array) -> Array:
        return np.sqrt((U * U).sum(axis=1))

    def threshold(self, prepared: Any, theta: Array) -> Thresholded:
        U = prepared
        lengths = self.row_norms(U)
        shares = np.maximum(1.0 - self.units * theta / np.where(lengths > 0.0, lengths, np.inf), 0.0)
        shares[lengths == 0.0] = 0.0

        def derivative() -> tuple[Face, Array]:
            rows, m = np.flatnonzero(shares > 0.0), U.shape[1]
            h, kept = U[rows] / lengths[rows, None], shares[rows]
            if len(rows) * m >= _MANY:  # J = s I + (1 - s) h h^T, a column more a row, of which all but one are in one task
                entries = RowFace.of_entries(np.broadcast_to(shares[:, None] > 0.0, U.shape))
                heads = h * np.sqrt(1.0 - kept)[:, None]
                face = RowFace(
                    len(U), np.append(entries.rows, rows), np.vstack([entries.values * np.sqrt(np.repeat(kept, m))[:, None], heads])
                )
                slopes = np.append(np.sqrt(kept)[:, None] * h, np.sqrt(1.0 - kept)) * np.append(
                    np.repeat(self.units[rows], m), self.units[rows]
                )
                return face, slopes[:, None]
            along = h[:, :, None] * h[:, None, :]
            roots = np.sqrt(kept)[:, None, None] * (np.eye(m) - along) + along
            face = RowFace(len(U), np.repeat(rows, m), roots.reshape(-1, m))
            return face, (self.units[rows, None] * h).reshape(-1, 1)

        norm, fall = (self.units * shares * lengths).sum(keepdims=True), (self.units**2 * (shares > 0.0)).sum(keepdims=True)
        return Thresholded(U * shares[:, None], norm, fall, derivative)


@final
class _RowHeights(Term):
    """sum_j units_j max_k |V_jk|."""

    def row_norms(self, U: Array) -> Array:
        return np.asarray(np.abs(U).sum(axis=1))

    def threshold(self, prepared: Any, theta: Array) -> Thresholded:
        U, sizes, weights = prepared, np.abs(prepared), self.units * theta
        falling = -np.sort(-sizes, axis=1)
        levels = ((np.cumsum(falling, axis=1) - weights[:, None]) / np.arange(1, U.shape[1] + 1)).max(axis=1)
        live = levels > 0.0
        level = np.where(live, np.minimum(levels, falling[:, 0]), 0.0)[:, None]  # a mean of equal sizes may be rounded up
        Z = np.clip(U, -level, level)
        tops, rows = live[:, None] & (sizes >= level), np.flatnonzero(live)
        counts = tops[rows].sum(axis=1)

        def derivative() -> tuple[Face, Array]:
            heads = np.where(tops[rows], np.sign(U[rows]), 0.0) / np.sqrt(counts)[:, None]
            below = RowFace.of_entries(live[:, None] & ~tops)
            face = RowFace(len(U), np.concatenate([rows, below.rows]), np.concatenate([heads, below.values]))
            slopes = np.concatenate([self.units[rows] / np.sqrt(counts), np.zeros(below.size)])
            return face, slopes[:, None]

        norm, fall = (self.units * level[:, 0]).sum(keepdims=True), (self.units[rows] ** 2 / counts).sum(keepdims=True)
        return Thresholded(Z, norm, fall, derivative)


@final
class _SingularValues(Term):
    """The sum of the singular values of W, whatever the features are measured in."""

    own_units = True

    def prepared(self, U: Array) -> Any:
        return np.linalg.svd(U, full_matrices=False)

    def threshold(self, prepared: Any, theta: Array) -> Thresholded:
        left, values, right = prepared
        shrunk = np.maximum(values - theta, 0.0)
        norm, fall = shrunk.sum(keepdims=True), (shrunk > 0.0).sum(keepdims=True).astype(np.float64)
        return Thresholded((left * shrunk) @ right, norm, fall, lambda: _spectral_face(left, values, right, shrunk))


def _spectral_face(left: Array, values: Array, right: Array, shrunk: Array) -> tuple[Face, Array]:
    """Return the derivative of a map of singular values, and those of their sum along its columns.

    With u_i, v_j the singular vectors and s -> p the map of the values, the columns are u_i v_i^T where p_i > 0, and for pairs of places
    the symmetric and the antisymmetric part of u_i v_j^T, times the roots of (p_i - p_j) / (s_i - s_j) and (p_i + p_j) / (s_i + s_j).
    """
    d, m = len(left), right.shape[1]
    active = np.flatnonzero(shrunk > 0.0)
    rank = len(active)
    i, j = np.triu_indices(len(values), 1)
    apart = values[i] - values[j] > _EQUAL * values[:1]
    symmetric = np.where(apart, (shrunk[i] - shrunk[j]) / np.where(apart, values[i] - values[j], 1.0), (shrunk[i] > 0.0) * 1.0)
    total = values[i] + values[j]
    opposite = (shrunk[i] + shrunk[j]) / np.where(total > 0.0, total, 1.0)
    pairs = np.einsum("ap,pb->abp", left[:, i], right[j])
    swapped = np.einsum("ap,pb->abp", left[:, j], right[i])
    roots = np.sqrt(shrunk[active] / values[active]) if rank else np.zeros(0)
    parts = [
        np.einsum("ap,pb->abp", left[:, active], right[active]),
        ((pairs + swapped) * np.sqrt(0.5 * symmetric))[:, :, symmetric > 0.0],
        ((pairs - swapped) * np.sqrt(0.5 * opposite))[:, :, opposite > 0.0],
        np.einsum("ai,jb,j->abij", _complement(left), right[active], roots).reshape(d, m, -1),
        np.einsum("ai,jb,i->abij", left[:, active], _complement(right.T).T, roots).reshape(d, m, -1),
    ]
    columns = np.concatenate(parts, axis=2)
    slopes = np.zeros((columns.shape[2], 1))
    slopes[:rank] = 1.0
    return DenseFace(columns), slopes


def _complement(Q: Array) -> Array:
    """Return orthonormal columns that are orthogonal to those of Q, all there are."""
    return np.asarray(np.linalg.qr(Q, mode="complete")[0][:, Q.shape[1] :])


#: The term of every norm that Newton's method knows; enter that of your own.
TERMS: dict[type[Norm], type[Term]] = {L1: _Entries, L12: _RowLengths, L1Inf: _RowHeights, Trace: _SingularValues}


def terms_of(regulariser: Regulariser, units: Array) -> tuple[Term, ...] | None:
    """Return the terms of a regulariser, one for each matrix of a point; None where it has another norm than those known here."""
    parts = regulariser.parts if isinstance(regulariser, Stacked) else (regulariser,)
    terms = []
    for part in parts:
        if not isinstance(part, (Constraint, Penalty)) or type(part.norm) not in TERMS:
            return None
        terms.append(TERMS[type(part.norm)](part, units))
    return tuple(terms)
