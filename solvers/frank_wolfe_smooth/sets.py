"""Feasible sets as convex hulls: directions between corners, and how far they go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.protocols import Problem
from bench_mtl.solvers.frank_wolfe_smooth.losses import Columns, Loss

#: What of the mass may be missing by rounding.
_ROUNDING = 1e-14


class Line(NamedTuple):
    """A search direction from a point, block by block."""

    predictions: Array
    """The change of the predictions by a step of length 1."""
    gains: Array
    """Minus the slopes of the loss at the beginning, at least 0."""
    longest: Array
    """The longest steps."""


class Hull(ABC):
    """The feasible set, and a point in it."""

    point: Array
    blocks: int

    @abstractmethod
    def line(self, gradient: Array, predictions: Array, variant: str) -> Line:
        """Return the direction of a variant, and keep it for `move`."""

    @abstractmethod
    def move(self, steps: Array, longest: Array) -> None:
        """Move the point along the last line."""


class Corners(Hull):
    """Simplices whose corners are mass times signed unit vectors, and 0 where the masses may be less.

    The weights of the corners are read off the point, |W_jk| / mass, and what is missing to 1 is the weight of 0. (For signed corners 0 is
    none, but the midpoint of any two.) So there is no active set beside the point.
    """

    kept = ("point",)

    def __init__(self, form: SimplexForm, design: Design, start: Array) -> None:
        self.point, self._form, self._design = start, form, design
        self._columns = Columns(design)
        self._together = form.balls == "all"
        self.blocks = 1 if self._together else design.n_tasks
        orientation = np.ones(start.shape) if form.orientation is None else form.orientation
        self._signs = self._by_block(orientation)
        self._each = np.arange(self.blocks)

    def line(self, gradient: Array, predictions: Array, variant: str) -> Line:
        G, W, form, each = self._by_block(gradient), self._by_block(self.point), self._form, self._each
        heights = np.abs(G) if form.signed else -self._signs * G
        best = heights.argmax(axis=0)
        top = heights[best, each]
        sign = np.where(G[best, each] > 0.0, -1.0, 1.0) if form.signed else self._signs[best, each]
        towards = np.where((top > 0.0) | (not form.slack), form.mass * sign, 0.0)
        now = (G * W).sum(axis=0)
        ahead = now - towards * G[best, each]
        self._best, self._towards = best, towards
        if variant == "plain":
            return self._made(
                predictions, np.full(self.blocks, -1.0), np.zeros(self.blocks, dtype=np.int64), 0.0 * top, ahead, np.ones(self.blocks)
            )
        heaviest = np.where(W != 0.0, G * np.sign(W), -np.inf)
        worst = heaviest.argmax(axis=0)
        weights = np.abs(W[worst, each]) / form.mass
        left = 1.0 - np.abs(W).sum(axis=0) / form.mass
        zero = (left > _ROUNDING) & form.slack & (heaviest[worst, each] < 0.0) | (weights == 0.0)
        away = np.where(zero, 0.0, form.mass * np.sign(W[worst, each]))
        weights = np.where(zero, np.maximum(left, 0.0), weights)
        behind = away * G[worst, each] - now
        if variant == "pairwise":
            return self._made(predictions, np.zeros(self.blocks), worst, away, ahead + behind, weights)
        backwards = (behind > ahead) & (weights < 1.0)
        self._towards = np.where(backwards, 0.0, towards)
        longest = np.where(backwards, weights / np.where(weights < 1.0, 1.0 - weights, 1.0), 1.0)
        gains = np.where(backwards, behind, ahead)
        return self._made(predictions, np.where(backwards, 1.0, -1.0), worst, np.where(backwards, away, 0.0), gains, longest)

    def move(self, steps: Array, longest: Array) -> None:
        W, each = self._by_block(self.point).copy(), self._each
        factors = 1.0 + steps * self._scaling
        factors[(self._scaling < 0.0) & (steps >= 1.0)] = 0.0
        W *= factors
        left = W[self._worst, each] - steps * self._away
        W[self._worst, each] = np.where((self._away != 0.0) & ((steps >= longest) | (left * self._away < 0.0)), 0.0, left)
        W[self._best, each] += steps * self._towards
        self.point = W.reshape(self.point.shape)

    def _made(self, predictions: Array, scaling: Array, worst: Array, away: Array, gains: Array, longest: Array) -> Line:
        self._scaling, self._worst, self._away = scaling, worst, away
        change = np.array(predictions * (scaling[0] if self._together else self._design.per_example(scaling)))
        m = self._design.n_tasks
        for b in range(self.blocks):
            for place, value in ((self._best[b], self._towards[b]), (worst[b], -away[b])):
                j, k = divmod(int(place), m) if self._together else (int(place), b)
                self._columns.add(k, j, float(value), change)
        return Line(change, np.maximum(gains, 0.0), longest)

    def _by_block(self, A: Array) -> Array:
        return A.reshape(-1, 1) if self._together else A


class Vertices(Hull):
    """Any set with a linear oracle: the point is a convex combination of the start and of the oracle's answers.

    These are rows of an array; one whose weight is 0 is free.
    """

    kept = ("point", "_corners", "_weights", "_moves")

    def __init__(self, problem: Problem, loss: Loss, start: Array) -> None:
        self.point, self.blocks = start, 1
        self._problem, self._loss = problem, loss
        self._corners, self._weights = start.reshape(1, -1).copy(), np.ones(1)
        self._moves = 0

    def line(self, gradient: Array, predictions: Array, variant: str) -> Line:
        vertex = self._problem.lmo(gradient)
        self._vertex, self._left, self._pairwise = vertex, -1, variant == "pairwise"
        direction, longest = vertex - self.point, 1.0
        if variant != "plain":
            heights = np.where(self._weights > 0.0, self._corners @ gradient.ravel(), -np.inf)
            worst = int(heights.argmax())
            corner, weight = self._corners[worst].reshape(self.point.shape), float(self._weights[worst])
            backwards = self.point - corner
            if self._pairwise:
                self._left, direction, longest = worst, vertex - corner, weight
            elif weight < 1.0 and float(np.vdot(gradient, backwards)) < float(np.vdot(gradient, direction)):
                self._left, direction, longest = worst, backwards, weight / (1.0 - weight)
        self._direction = direction
        gain = max(0.0, -float(np.vdot(gradient, direction)))
        return Line(self._loss.predict(direction), np.array([gain]), np.array([longest]))

    def move(self, steps: Array, longest: Array) -> None:
        gamma, is_away = float(steps[0]), self._left >= 0 and not self._pairwise
        if not self._pairwise:
            self._weights = self._weights * (1.0 + gamma if is_away else 1.0 - gamma)
        if self._left >= 0:
            self._weights[self._left] = 0.0 if steps[0] == longest[0] else max(0.0, self._weights[self._left] - gamma)
        if gamma > 0.0 and not is_away:
            self._add(self._vertex.ravel(), gamma)
        self._moves += 1
        # Recomputed from its corners now and then, so that rounding does not add up.
        again = self._moves % 100 == 0
        self.point = (self._weights @ self._corners).reshape(self.point.shape) if again else self.point + gamma * self._direction

    def _add(self, corner: Array, weight: float) -> None:
        widest = np.abs(corner).argmax()
        alike = np.flatnonzero((self._weights > 0.0) & (self._corners[:, widest] == corner[widest]))
        place = next((place for place in alike if np.array_equal(self._corners[place], corner)), -1)
        if place < 0:
            place = int(self._weights.argmin())
            if self._weights[place] > 0.0:
                place = len(self._weights)
                self._corners = np.vstack([self._corners, 0.0 * self._corners])
                self._weights = np.append(self._weights, 0.0 * self._weights)
            self._corners[place] = corner
        self._weights[place] += weight
