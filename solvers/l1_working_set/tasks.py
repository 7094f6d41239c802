"""The l1-penalised problem of one task on some of its entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.l1_working_set.columns import Chosen, Columns, Features, Model
from bench_mtl.solvers.l1_working_set.face import face_minimiser, solved

#: Rounds of sweeps and a Newton step on one model, at most.
_ROUNDS = 100
#: Sweeps before a Newton step, at least.
_FEWEST = 5
#: Models of a loss on one working set, and halvings of a step, at most.
_MODELS, _HALVINGS = 20, 30
#: A model is solved to this share of what its point misses, or to this share of what is asked.
_INNER, _ASKED = 0.1, 0.3
#: A step must lower the objective by this share of what its slope promises.
_ARMIJO = 1e-4
#: The least curvature of an example's logistic loss.
_FLOOR = 1e-15
#: Slopes that miss their conditions by this share of ||X_j|| ||r|| miss them by rounding.
_ROUNDING = 1e-15
#: Faces that one Newton step may pass on the way: few where factors are large.
_FACES, _FACES_OF_MANY, _MANY = 12, 3, 300

#: Returns the best intercept to predictions.
Intercept: TypeAlias = Callable[[Array], float]


class Task(ABC):
    """min_w f(X w) + penalty ||w||_1 over the entries of a working set, from the last point.

    Of the last solution `w` are all entries, `support` those that are not 0, `size` is the sum of their sizes, and `t` are the predictions
    X w; `products` counts the multiplications so far.
    """

    def __init__(self, columns: Columns, y: Array, weights: Array, cone: Array | None, intercept: Intercept | None = None) -> None:
        self.columns, self.y, self._intercept = columns, np.ascontiguousarray(y), intercept
        self.weights, self._cone = np.array(weights), cone  # of one type, for what is compiled: views may not be written to
        self.w, self.t = np.zeros(columns.d), np.zeros(columns.n)
        self.support: Features = np.zeros(0, dtype=np.int64)
        self.size = 0.0
        self.products = 0.0
        self._direction: tuple[Features, Array] | None = None
        self._of_rates = 0.0

    def _shifted(self, t: Array) -> Array:
        """Return predictions with the best intercept, where there is one."""
        return t if self._intercept is None else t + self._intercept(t)

    @abstractmethod
    def dual(self) -> Array:
        """Return minus the derivative of f in the predictions."""

    @abstractmethod
    def solve(self, features: Features, penalty: float, tolerance: float) -> None:
        """Lower the objective over these entries, until no slope misses its own condition by more than the tolerance."""

    def begin(self, w: Array, penalty: float) -> None:
        """Start at w."""
        support = np.flatnonzero(w)
        self.move_to(support, w[support])

    def move_to(self, features: Features, w: Array) -> None:
        """Set these entries, and 0 for all others."""
        self.w[self.support] = 0.0
        self.w[features] = w
        is_support = w != 0.0
        self.support, self.size = features[is_support], float(np.abs(w).sum())
        self.t = self.columns.predictions(self.support, w[is_support])

    def heights(self, slopes: Array) -> Array:
        """Return the slopes upwards, those that would move an entry from 0: below the penalty an entry stays there."""
        return np.abs(slopes) if self._cone is None else np.maximum(self._cone * slopes, 0.0)

    def excess(self, slopes: Array, heights: Array, penalty: float) -> float:
        """Return by how much the slopes miss the conditions of a minimiser."""
        of_support = heights[self.support]
        heights[self.support] = 0.0
        highest = float(heights.max()) - penalty
        heights[self.support] = of_support
        return max(highest, float(np.abs(slopes[self.support] - penalty * np.sign(self.w[self.support])).max(initial=0.0)))

    def rate(self) -> float | None:
        """Return by how much ||w||_1 falls with the penalty at its minimiser, as long as no entry becomes or ceases to be zero.

        With H the second derivatives of f in the non-zeros and s their signs, w falls by H^-1 s and ||w||_1 by s^T H^-1 s. None where H
        and those before cost more than all else so far, or where it cannot be factorised.
        """
        self._direction = None
        support = self.support
        if not len(support):
            return 0.0
        price = self.columns.newton_price(support, None)
        if len(support) >= self.columns.n or self._of_rates + price > max(self.products, self.columns.stored):
            return None
        self._of_rates += price
        signs = np.sign(self.w[support])
        fall = solved(self._hessian(support), signs)
        if fall is None:
            return None
        self._direction = (support, fall)
        return float(signs @ fall)

    def follow(self, change: float) -> None:
        """Move the non-zeros along the last direction of `rate` to where a penalty that is larger by `change` has them; no sign changes."""
        if self._direction is None:
            return
        support, fall = self._direction
        before = self.w[support]
        if abs(change) * float(np.abs(fall).sum()) > float(np.abs(before).sum()):
            return  # H is almost singular
        after = before - change * fall
        after[after * before < 0.0] = 0.0
        self.move_to(support, after)

    @abstractmethod
    def _hessian(self, support: Features) -> Array:
        """Return the second derivatives of f in these entries."""

    def _minimise_model(self, features: Features, penalty: float, h: Array | None, w: Array, g: Array, tolerance: float) -> None:
        """Minimise the model of `kernels.descend` over these entries w, which change, with slopes g, which may."""
        from bench_mtl.solvers.l1_working_set.kernels import combine, descend, products

        columns = self.columns
        if columns.has_intercept:
            h, g = columns.centre(features, h), np.append(g, 0.0)
            self.products += columns.multiplied(features)
        X = columns.chosen(features)
        cone = np.zeros(len(features)) if self._cone is None else self._cone[features]  # of one type, for what is compiled
        a_sweep = max(1, columns.multiplied(features))
        rounding = _ROUNDING * float(g @ g if h is None else g @ (g / h)) ** 0.5
        model = Model(penalty, h, columns.squares(features, h), cone, rounding)
        by_products = None if h is not None else columns.products(features, self.products)
        if by_products is not None:
            gram, stored, places = by_products
            slopes = np.empty(len(stored))
            products(columns.chosen(stored), g, slopes)
            X, g, a_sweep = Chosen(gram, None, None, places), slopes, max(1, len(places) * len(stored))
        failures, spent = 1.0, 0.0
        for _ in range(_ROUNDS):
            left = failures * columns.newton_price(features[w != 0.0], h) - spent
            count, ended = descend(X, model, w, g, tolerance, max(_FEWEST, int(left / (1.5 * a_sweep))))
            spent += 1.5 * count * a_sweep
            self.products += 1.5 * count * a_sweep
            if ended:
                return
            support = np.flatnonzero(w)
            if not 0 < len(support) <= columns.n or spent < failures * columns.newton_price(features[support], h):
                continue
            spent = 0.0
            Z = Chosen(*X[:3], X.places[support])
            H = columns.gram(features[support], h)
            slopes = np.empty(len(support))
            products(Z, g, slopes)
            new, is_lowest = face_minimiser(H, slopes, w[support], penalty, _FACES if len(support) < _MANY else _FACES_OF_MANY)
            self.products += columns.gram_price(features[support], h)
            failures = 1.0 if is_lowest else 2.0 * failures
            if new is None:
                continue
            step = np.zeros(len(g))
            combine(Z, new - w[support], step)
            w[support] = new
            g -= step if h is None else h * step


class SquaredTask(Task):
    """f(t) = sum_i s_i/2 (y_i - t_i - b)^2, b = 0 or the best one."""

    def dual(self) -> Array:
        return self.weights * (self.y - self._shifted(self.t))

    def _curvatures(self) -> tuple[Array | None, float]:
        """Return the second derivatives in the predictions in a unit, and this; None where all are 1."""
        common = float(self.weights[0])
        return (None, common) if np.all(self.weights == common) else (self.weights, 1.0)

    def _hessian(self, support: Features) -> Array:
        h, unit = self._curvatures()
        return unit * self.columns.gram(support, self.columns.centre(support, h))

    def solve(self, features: Features, penalty: float, tolerance: float) -> None:
        h, unit = self._curvatures()
        w, g = self.w[features], self.y - self._shifted(self.t)
        if h is not None:
            g *= h
        self._minimise_model(features, penalty / unit, h, w, g, tolerance / unit)
        self.move_to(features, w)


class LogisticTask(Task):
    """f(t) = sum_i s_i log(1 + exp(-y_i (t_i + b))), b = 0 or the best one."""

    def begin(self, w: Array, penalty: float) -> None:
        """Start at w, or at 0 where that is better: far on the wrong side of its margin an example has no curvature left."""
        at_zero = self._at(self.t)[0]
        super().begin(w, penalty)
        if not self._at(self.t)[0] + penalty * self.size <= at_zero:
            super().begin(np.zeros(len(w)), penalty)

    def dual(self) -> Array:
        return self._at(self.t)[1]

    def _hessian(self, support: Features) -> Array:
        return self.columns.gram(support, self.columns.centre(support, self._at(self.t)[2]))

    def _at(self, t: Array) -> tuple[float, Array, Array]:
        """Return f at t, minus its derivative, and its second derivatives, at least a little above 0."""
        t = self._shifted(t)
        margins = self.y * t
        powers = np.exp(-np.abs(margins))
        sums = 1.0 + powers
        value = float(self.weights @ (np.log(sums) - np.minimum(margins, 0.0)))
        g = self.weights * self.y * np.where(margins > 0.0, powers, 1.0) / sums
        return value, g, self.weights * np.maximum(powers / (sums * sums), _FLOOR)

    def solve(self, features: Features, penalty: float, tolerance: float) -> None:
        columns = self.columns
        cone = None if self._cone is None else self._cone[features]
        w = self.w[features]
        t, (value, g, h), total = self.t, self._at(self.t), float(self.weights.sum())
        for _ in range(_MODELS):
            slopes = columns.products_with(features, g)
            self.products += columns.multiplied(features)
            excess = missed(slopes, w, penalty, cone)
            if excess <= tolerance:
                break
            new = w.copy()
            self._minimise_model(features, penalty, h, new, g, max(_INNER * excess, _ASKED * tolerance))
            change = new - w
            step = columns.predictions(features, change)
            size = float(np.abs(w).sum())
            slope = -float(slopes @ change) + penalty * (float(np.abs(new).sum()) - size)
            rounding = _ROUNDING * (value + penalty * size + total)  # log(1 + x) has the rounding of 1 + x
            for halving in range(_HALVINGS):
                length = 0.5**halving
                trial = w + length * change if halving else new
                lower, g, h = self._at(t + length * step)
                rise = lower - value + penalty * (float(np.abs(trial).sum()) - size)
                if rise <= _ARMIJO * length * slope + rounding:
                    break
            else:
                break
            w, t, value = trial, t + length * step, lower
        self.move_to(features, w)


def missed(slopes: Array, w: Array, penalty: float, cone: Array | None) -> float:
    """Return by how much at most a slope misses its condition: penalty sign(w), or not above the penalty where w is 0."""
    zero = w == 0.0
    heights = (np.abs(slopes) if cone is None else cone * slopes)[zero]
    return float(max(heights.max(initial=penalty) - penalty, np.abs(slopes - penalty * np.sign(w))[~zero].max(initial=0.0)))
