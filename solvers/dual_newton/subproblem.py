"""A step of the proximal point method, as a concave maximisation over dual points: its value, its residual, its Newton direction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Huber, MarginLoss, Multiclass, Squared
from bench_mtl.solvers.dual_newton.faces import Face, RowFace, Times
from bench_mtl.solvers.dual_newton.task_systems import SHIFT, TaskGram, is_mostly_apart, solved_by_tasks
from bench_mtl.solvers.dual_newton.terms import Shrunk, Term
from bench_mtl.solvers.second_order import class_gram, class_products, solved
from bench_mtl.solvers.units import scaled_features
from bench_mtl.solvers.working_sets import Places, joining

#: Places join a working set that weights of this share would move from 0.
_NEAR = 0.7
#: What moves a row from 0 is at least this: of a penalty of 0 there are no shares.
_LEAST_THRESHOLD = 1e-150
#: Shares of a margin loss's largest dual entry below which an example takes no part: their entropies would leave the range of doubles.
SMALLEST_SHARE = 1e-150
#: The same for the probability of the class that an example is of, which is 1 minus its share.
_SMALLEST_OF_OWN = 1e-16


@dataclass(frozen=True)
class ScaledFit:
    """A `LinearFit` in features that are centred, where it has a free intercept, and of about norm 1: W = units V."""

    fit: LinearFit
    design: Design
    """The scaled features, or those of some rows of W."""
    units: Array
    heaviest: float
    """The largest sum of a task's weights."""
    size: float
    """The root of the loss at W = 0, in whose unit decrements are."""

    @classmethod
    def of(cls, fit: LinearFit) -> ScaledFit:
        heaviest = float(fit.design.task_sums(np.broadcast_to(fit.weights, fit.design.output_shape)).max())
        size = math.sqrt(fit.value(np.zeros(fit.targets.shape)))
        return cls(fit, *scaled_features(fit.design, centre=fit.intercept, weights=fit.weights), heaviest, size)

    def restricted(self, rows: Places) -> ScaledFit:
        return replace(self, design=self.design.restricted(rows), units=self.units[rows])

    @cached_property
    def _grams(self) -> list[Array]:
        """X_k^T diag(w_k) X_k, all that the squared loss needs: its curvatures do not change."""
        weights, m = self.fit.weights, self.design.n_tasks
        every = np.arange(self.design.n_features)
        if self.design.is_shared and (weights == weights[:, :1]).all():
            return [self._gram(0, weights, every)] * m
        return [self._gram(k, weights, every) for k in range(m)]

    def _gram(self, k: int, shares: Array, rows: Places) -> Array:
        X = self.design.block(k)
        half = np.sqrt(self.of_task(shares, k))[:, None] * (X if len(rows) == X.shape[1] else X[:, rows])
        return np.asarray(half.T @ half)  # which BLAS knows to be symmetric

    @cached_property
    def _factors(self) -> list[tuple[Array | None, Array]]:
        """Q and R of X_k = Q R, Q None where X_k has no more rows than columns, and R is X_k."""
        blocks = [self.design.block(k) for k in range(1 if self.design.is_shared else self.design.n_tasks)]
        return [tuple(np.linalg.qr(X)) if len(X) > X.shape[1] else (None, X) for X in blocks]  # type: ignore[misc]

    def factors(self, k: int) -> tuple[Array | None, Array]:
        """Return Q and R of X_k = Q R with orthonormal columns of Q; None and X_k where that would be no smaller."""
        return self._factors[0 if self.design.is_shared else k]

    def gram(self, k: int, shares: Array, rows: Places) -> Array:
        """Return X_k^T diag(shares_k) X_k in these rows and columns, the shares in the output shape: one over the curvatures of the
        conjugate of the loss."""
        if not isinstance(self.fit.loss, Squared):
            return self._gram(k, shares, rows)
        whole = self._grams[k]
        return whole if len(rows) == len(whole) else whole[np.ix_(rows, rows)]

    def of_task(self, R: Array, k: int) -> Array:
        return np.ascontiguousarray(self.design.task_outputs(np.broadcast_to(R, self.design.output_shape), k))


def shares_of(fit: LinearFit, dual: Array) -> Array:
    """Return what the conjugate is an entropy of: shares of the largest dual entry, or the probabilities of the classes."""
    y, w = fit.targets, fit.weights
    return np.maximum(y - dual / w, SMALLEST_SHARE + _SMALLEST_OF_OWN * y) if fit.loss.couples_tasks else y * dual / w


def dual_of(fit: LinearFit, shares: Array) -> Array:
    """Return the dual point with these shares; probabilities are scaled to sum up to 1."""
    y, w = fit.targets, fit.weights
    return np.asarray(w * (y - shares / shares.sum(axis=1, keepdims=True)) if fit.loss.couples_tasks else y * w * shares)


class Conjugate(NamedTuple):
    """f*(-r), the predictions at which -r is the derivative of f, and the second derivative there, entry by entry.

    Of the multiclass loss, whose derivative does not change with the mean of a row, one of those predictions, and 1 / (w p).
    """

    value: float
    predictions: Array
    curvature: Array


def conjugate(fit: LinearFit, dual: Array) -> Conjugate:
    loss, y, w = fit.loss, fit.targets, fit.weights
    if isinstance(loss, (Squared, Huber)):
        return Conjugate(-loss.conjugate_gain(dual, y, w), y - dual / w, np.broadcast_to(1.0 / w, dual.shape))
    u = shares_of(fit, dual)
    if isinstance(loss, Multiclass):
        logs = np.log(u)
        return Conjugate(float((w * u * logs).sum()), logs, 1.0 / (w * u))
    assert isinstance(loss, MarginLoss)
    return Conjugate(-loss.conjugate_gain(dual, y, w), y * loss.gain_derivative(u), loss.gain_curvature(u) / w)


class Centre(NamedTuple):
    """The point that a step of the proximal point method is near, with the lengths of the step."""

    points: tuple[Array, ...]
    """Of every term, in its units."""
    intercepts: Array
    step: float
    """sigma: 1 / (2 sigma) times the squared distance is added."""


@dataclass(frozen=True)
class Evaluation:
    """The dual objective at a dual point r, and what it is made of.

    phi(r) = min_{Z, b} -<X^T r, sum Z> - <r, b> + R(Z) + ||Z - Z_0||^2 / (2 sigma) + ||b - b_0||^2 / (2 sigma_b) - f*(-r)
    """

    dual: Array
    value: float
    residual: Array
    """The gradient of phi: predictions that r belongs to, minus those of Z and b."""
    curvature: Array
    shrunk: tuple[Shrunk, ...]
    intercepts: Array
    predictions: Array
    """Those of Z and b."""
    conjugate: float
    """f*(-r)."""


@dataclass(frozen=True)
class Subproblem:
    """min_{Z, b}  f(X sum Z + b) + R(Z) + ||Z - Z_0||^2 / (2 sigma) + ||b - b_0||^2 / (2 sigma_b)."""

    scaled: ScaledFit
    terms: tuple[Term, ...]
    centre: Centre

    def restricted(self, rows: Places) -> Subproblem:
        """Return the subproblem in which all rows of the points but these are 0."""
        centre = self.centre._replace(points=tuple(Z[rows] for Z in self.centre.points))
        return Subproblem(self.scaled.restricted(rows), tuple(term.restricted(rows) for term in self.terms), centre)

    def working_rows(self, dual: Array, first: int) -> Places:
        """Return the rows of the points that are not 0, and those that a dual point moves from 0, or almost does.

        Of the latter at most as many as of the former, or as `first`: those that it moves most.
        """
        live = np.flatnonzero(np.any([Z.any(axis=1) for Z in self.centre.points], axis=0))
        return np.union1d(live, joining(self._scores(dual), _NEAR, live, max(first, len(live))))

    def _scores(self, dual: Array) -> Array:
        """Return by which share of the weights at most a dual point would move every row from 0."""
        slopes, highest = self.scaled.design.adjoint(dual), np.zeros(self.scaled.design.n_features)
        for term, Z0 in zip(self.terms, self.centre.points, strict=True):
            step = self.centre.step * term.step_share
            thresholds = np.maximum(step * term.weight * term.units, _LEAST_THRESHOLD)
            highest = np.maximum(highest, term.row_norms(Z0 + step * term.slopes(slopes)) / thresholds)
        return highest

    @property
    def _intercept_step(self) -> float:
        """sigma_b: the square of the norm of an intercept's feature is the sum of the weights."""
        return self.centre.step / self.scaled.heaviest

    def evaluate(self, dual: Array) -> Evaluation:
        design, fit = self.scaled.design, self.scaled.fit
        slopes = design.adjoint(dual)
        shrunk, value, V = [], 0.0, np.zeros(slopes.shape)
        for term, Z0 in zip(self.terms, self.centre.points, strict=True):
            step, Q = self.centre.step * term.step_share, term.slopes(slopes)
            found = term.shrink(Z0 + step * Q, step)
            value += found.value - float(np.vdot(Q, found.point)) + float(((found.point - Z0) ** 2).sum()) / (2.0 * step)
            V += term.scaled_features(found.point)
            shrunk.append(found)
        predictions, b = design.forward(V), self.centre.intercepts
        if fit.intercept:
            sums = design.task_sums(dual)
            b = b + self._intercept_step * sums
            value += float(((b - self.centre.intercepts) ** 2).sum()) / (2.0 * self._intercept_step) - float(b @ sums)
            predictions = predictions + design.per_example(b)
        own = conjugate(fit, dual)
        return Evaluation(dual, value - own.value, own.predictions - predictions, own.curvature, tuple(shrunk), b, predictions, own.value)

    def missed(self, at: Evaluation) -> float:
        """Return the duality gap of the subproblem, f + f* + <r, X Z + b>."""
        fit = self.scaled.fit
        return fit.loss.total(at.predictions, fit.targets, fit.weights) + at.conjugate + float(np.vdot(at.dual, at.predictions))

    def at_end(self, at: Evaluation) -> NDArray[np.bool_] | None:
        """Return which examples' dual entries stay at the end of their range; None where none do."""
        fit = self.scaled.fit
        if isinstance(fit.loss, Huber):
            ended = (np.abs(at.dual) >= fit.loss.delta * fit.weights) & (at.dual * at.residual >= 0.0)
        elif isinstance(fit.loss, MarginLoss):
            ended = (fit.targets * at.dual < SMALLEST_SHARE * fit.weights) & (fit.targets * at.residual <= 0.0)
        else:
            return None
        return ended if ended.any() else None

    def weighted(self, R: Array, shares: Array) -> Array:
        """Return C^-1 R; of the multiclass loss C^-1 is diag(s) - s s^T / w in every row, with the shares s = w p."""
        fit = self.scaled.fit
        return class_products(shares, fit.weights, R) if fit.loss.couples_tasks else np.asarray(shares * R)

    def direction(self, at: Evaluation, residual: Array, shares: Array) -> Array:
        """Return Newton's direction in r: (C + sigma X L P L^T X^T)^-1 residual, by the system in the columns of L.

        The residual and the shares, 1 / C, are 0 at examples whose dual entry stays.
        """
        design, has_intercept = self.scaled.design, self.scaled.fit.intercept
        faces = [found.derivative() for found in at.shrunk]
        kind: type[_Columns] = _ByColumns if any(term.own_units for term in self.terms) else _ByGrams
        columns = (_ByClasses if self.scaled.fit.loss.couples_tasks else kind)(
            self.scaled, faces, np.array(np.broadcast_to(shares, design.output_shape))
        )
        r, m = columns.size, design.n_tasks if has_intercept else 0
        rhs, weighted = np.zeros(r + m), self.weighted(residual, columns.shares)
        rhs[:r] = columns.products(weighted)
        shifts = [1.0 / (self.centre.step * term.step_share) for term in self.terms]
        diagonal = np.repeat([*shifts, 1.0 / self._intercept_step], [*(face.size for face, _ in faces), m])
        if m:
            rhs[r:] = design.task_sums(weighted)
        y = None
        if isinstance(columns, _ByGrams) and is_mostly_apart(columns.faces):
            y = solved_by_tasks(columns.within, columns.task_data(has_intercept), diagonal, rhs, columns.normals)
        if y is None:
            K = np.zeros((r + m, r + m))
            columns.add_squares(K)
            for k in range(m):
                of_intercept = self.weighted(np.broadcast_to(design.per_example(np.eye(m)[k]), design.output_shape), columns.shares)
                K[:r, r + k], K[r:, r + k] = columns.products(of_intercept), design.task_sums(of_intercept)
            K[r:, :r] = K[:r, r:].T
            K[np.diag_indices(r + m)] += diagonal
            y = _solved(K, rhs)
        moved = columns.combined(y[:r])
        if m:
            moved = moved + design.per_example(y[r:])
        return self.weighted(residual - moved, columns.shares)


class _Columns(ABC):
    """The columns of X L P, of the faces of all terms side by side."""

    def __init__(self, scaled: ScaledFit, derivatives: list[tuple[Face, Array]], shares: Array) -> None:
        self.scaled, self.shares = scaled, shares
        self.faces, self.normals = [face for face, _ in derivatives], [normals for _, normals in derivatives]
        ends = np.cumsum([0, *(face.size for face in self.faces)]).tolist()
        self.parts = [slice(start, end) for start, end in pairwise(ends)]
        self.size = int(ends[-1])

    def _of_task(self, k: int, faces: Sequence[Face]) -> list[tuple[NDArray[np.intp], Times]]:
        """Return the numbers of the columns that are not 0 in task k, and products with these."""
        found = [(part.start, *face.of_task(k)) for face, part in zip(faces, self.parts, strict=True)]
        return [(start + places, times) for start, places, times in found]

    def _projected(self, V: Array) -> Array:
        """Return V P: what is in the columns of V without what is along N."""
        V = np.array(V)
        for normals, part in zip(self.normals, self.parts, strict=True):
            if normals.shape[1]:
                V[..., part] -= (V[..., part] @ normals) @ normals.T
        return V

    @abstractmethod
    def add_squares(self, K: Array) -> None:
        """K += (X L P)^T diag(shares) X L P, in the part of the columns."""

    @abstractmethod
    def products(self, R: Array) -> Array:
        """Return (X L P)^T R."""

    @abstractmethod
    def combined(self, y: Array) -> Array:
        """Return X L P y."""


@final
class _ByGrams(_Columns):
    """By X^T diag(shares) X of the rows in which there are columns of L, each of which is in one row."""

    @cached_property
    def rows(self) -> Places:
        return np.unique(np.concatenate([face.rows for face in self.faces]))  # type: ignore[union-attr]

    @cached_property
    def within(self) -> list[RowFace]:
        """The faces in these rows alone."""
        return [face.within(self.rows) for face in self.faces]  # type: ignore[union-attr]

    def task_data(self, has_intercept: bool) -> Iterator[TaskGram]:
        """Yield X_k^T diag(shares_k) X_k of every task; with intercepts X_k^T shares_k and the sum of the shares too."""
        design = self.scaled.design
        slopes, sums = design.adjoint(self.shares)[self.rows], design.task_sums(self.shares)
        for k in range(design.n_tasks):
            yield TaskGram(self.scaled.gram(k, self.shares, self.rows), slopes[:, k] if has_intercept else None, float(sums[k]))

    def add_squares(self, K: Array) -> None:
        squares = np.zeros((self.size, self.size))
        for k in range(self.scaled.design.n_tasks):
            gram, parts = self.scaled.gram(k, self.shares, self.rows), self._of_task(k, self.within)
            for at_b, times in parts:
                product = times(gram)
                for at_a, others in parts:
                    squares[np.ix_(at_a, at_b)] += others(product.T).T
        K[: self.size, : self.size] += self._projected(self._projected(squares).T)

    def products(self, R: Array) -> Array:
        slopes = self.scaled.design.adjoint(R)
        return self._projected(np.concatenate([face.products(slopes) for face in self.faces]))

    def combined(self, y: Array) -> Array:
        design, y = self.scaled.design, self._projected(y)
        V = np.zeros((design.n_features, design.n_tasks))
        for face, part in zip(self.faces, self.parts, strict=True):
            V += face.combined(y[part])
        return design.forward(V)


@final
class _ByClasses(_Columns):
    """By X L of entries, for the multiclass loss."""

    @cached_property
    def _made(self) -> tuple[NDArray[np.intp], list[Array]]:
        """The places of the columns of all tasks, one after the other, and X L of every task."""
        X = self.scaled.design.block(0)
        places, made = zip(*(self._of_task(k, self.faces)[0] for k in range(self.scaled.design.n_tasks)), strict=True)
        return np.concatenate(places), [times(X) for times in made]

    def add_squares(self, K: Array) -> None:
        order, made = self._made
        squares = np.empty((self.size, self.size))
        squares[np.ix_(order, order)] = class_gram(made, self.shares, self.scaled.fit.weights)
        K[: self.size, : self.size] += self._projected(self._projected(squares).T)

    def products(self, R: Array) -> Array:
        order, made = self._made
        out = np.empty(self.size)
        out[order] = np.concatenate([r @ M for r, M in zip(R.T, made, strict=True)])
        return self._projected(out)

    def combined(self, y: Array) -> Array:
        order, made = self._made
        parts = np.split(self._projected(y)[order], np.cumsum([M.shape[1] for M in made])[:-1])
        return np.stack([M @ part for M, part in zip(made, parts, strict=True)], axis=1)


@final
class _ByColumns(_Columns):
    """By R L of X = Q R. Singular directions of W combine features of any size: all that is made of them must have the same rounding."""

    @cached_property
    def _made(self) -> list[Array]:
        """R L of X = Q R, task by task."""
        found = []
        for k in range(self.scaled.design.n_tasks):
            R = self.scaled.factors(k)[1]
            M = np.zeros((len(R), self.size))
            for places, times in self._of_task(k, self.faces):
                M[:, places] = times(R)
            found.append(self._projected(M))
        return found

    def add_squares(self, K: Array) -> None:
        halves = np.concatenate([self._half(k, M) for k, M in enumerate(self._made)])
        K[: self.size, : self.size] += halves.T @ halves  # which BLAS knows to be symmetric

    def _half(self, k: int, M: Array) -> Array:
        """Return a B with B^T B = (X_k L P)^T diag(shares_k) X_k L P, of as few rows as M has."""
        Q, shares = self.scaled.factors(k)[0], self.scaled.of_task(self.shares, k)
        if Q is None:
            return np.sqrt(shares)[:, None] * M
        if (shares == shares[0]).all():
            return math.sqrt(shares[0]) * M
        squares = (Q.T * shares) @ Q
        squares[np.diag_indices_from(squares)] += SHIFT * shares.max()  # shares may be 0
        return np.linalg.cholesky(squares).T @ M

    def products(self, R: Array) -> Array:
        total = np.zeros(self.size)
        for k, M in enumerate(self._made):
            Q, r = self.scaled.factors(k)[0], self.scaled.of_task(R, k)
            total += M.T @ (r if Q is None else Q.T @ r)
        return total

    def combined(self, y: Array) -> Array:
        moved = np.zeros(self.scaled.design.output_shape)
        for k, M in enumerate(self._made):
            Q, t = self.scaled.factors(k)[0], M @ y
            self.scaled.design.task_outputs(moved, k)[:] = t if Q is None else Q @ t
        return moved


def _solved(K: Array, rhs: Array) -> Array:
    """Return K^-1 rhs of a positive definite K, scaled to 1 on its diagonal."""
    scale = 1.0 / np.sqrt(np.diagonal(K))
    found = solved(K * scale[:, None] * scale, scale * rhs, SHIFT)
    least = np.linalg.lstsq(K * scale[:, None] * scale, scale * rhs, rcond=SHIFT)[0] if found is None else found
    return np.asarray(scale * least)
