"""Coordinate descent under an l1 norm, and the search on its penalty that meets a radius."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import L1Form
from bench_mtl.model.losses import Logistic, Squared
from bench_mtl.model.protocols import Form, IterativeSolver, Problem
from bench_mtl.solvers.coordinate_descent.fits import Lasso, Matrix, TaskFit, task_fits

GRAM_RULES = ("auto", "always", "never")

#: The smallest tolerance, relative to ||y||^2: below it rounding decides.
_FINEST = 1e-16

#: The largest number of fits of one ball with one tolerance; a radius that they do not meet needs a finer tolerance.
_FITS_A_LEVEL = 8

#: A penalty falls at most to this share of the last one while no point outside the ball is known.
_DESCENT = 0.1


@dataclass(frozen=True)
class CoordinateDescent(IterativeSolver):
    """min_w f(X w) + lambda ||w||_1 for every task, coordinate by coordinate.

    The squared loss, 1/2 ||y - X w||^2, is that of the lasso: scikit-learn's cyclic coordinate descent with safe screening. The logistic
    loss takes Newton steps: sweeps of coordinate descent over the model of second order, with the entries alone that are not 0 or whose
    slope is near lambda, then a line search on the objective, until the gap is proven.

    A penalised problem is one fit a step and task, each from where the last one ended, with a tolerance that falls.

    A radius z is met by a search on lambda: ||w(lambda)||_1 falls as lambda grows, from 0 where lambda is the largest slope at w = 0. With
    the squared loss it is piecewise linear, as w(lambda) is; with the logistic loss the pieces are smooth. The next lambda is that of the
    secant through the last two fits, kept inside a bracket, and its fit starts at the secant's w. The tolerance falls once
    lambda | ||w||_1 - z | is at most it: both bound the gap. A radius that does not bind lets lambda fall to 0. The iterate is the best
    point so far: of the fits, scaled into the ball, and of the convex combinations of the bracket's ends that have norm z: where no kink
    of the path lies between both it is exact (squared loss). The dual point is the residual of the last fit, minus the derivative of the
    loss. One ball in all tasks is one search with the same lambda for all; with a ball for every task each has a search of its own,
    and a step is a fit of all those that have not met the tolerance.

    Work counts a sweep over the coordinates as a pass, though screened coordinates cost nothing, and a pass and a half for the gaps
    and the residual of a fit; with `gram` a sweep counts d/(2n) passes (at most what it costs) and X^T X itself d/2. A Newton step counts
    a pass, and its sweeps by the share of the columns that they are over; its fit two passes more.

    Parameters
    ----------
    tolerance : tolerance of the first fits, above 0: relative to ||y||^2 as in scikit-learn, or to the logistic loss at w = 0
    reduction : factor by which the tolerance falls, in (0, 1)
    gram : "always" computes X_k^T X_k (squared loss, dense designs only), "never" does not, "auto" does for n >= d up to d = 4000

    References
    ----------
    Friedman, Hastie, Tibshirani, Journal of Statistical Software 33(1), 2010, sections 2.1 to 2.5 (sweeps, warm starts); Friedman,
    Hastie, Hoefling, Tibshirani, Annals of Applied Statistics 1(2), 2007, section 2; Osborne, Presnell, Turlach, IMA Journal of
    Numerical Analysis 20(3), 2000 (the path is piecewise linear); Fercoq, Gramfort, Salmon, ICML 2015 (screening). Logistic loss: Yuan,
    Chang, Hsieh, Lin, JMLR 11, 2010; Yuan, Ho, Lin, JMLR 13, 2012, algorithm 2 (Newton steps by coordinate descent).
    """

    tolerance: float = 1e-3
    reduction: float = 0.1
    gram: str = "auto"

    name: ClassVar[str] = "coordinate_descent"
    takes: ClassVar[tuple[type[Form], ...]] = (L1Form,)

    def __post_init__(self) -> None:
        real_number("tolerance", self.tolerance, strict=True)
        if real_number("reduction", self.reduction, strict=True) >= 1.0:
            raise InputError(f"reduction must be below 1, not {self.reduction:g}")
        one_of("gram", self.gram, GRAM_RULES)

    @property
    def version(self) -> str:
        import sklearn

        return f"scikit-learn {sklearn.__version__}"

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        fit = problem.form(L1Form).fit
        if not isinstance(fit.loss, (Squared, Logistic)):
            return f"{self.label} is for the squared and the logistic loss, and the loss of this {problem.name} is {fit.loss.name}"
        if self.gram == "always" and isinstance(fit.loss, Logistic):
            return f"{self.label} with gram 'always' is for the squared loss: the others have no X^T X that stays the same"
        if self.gram == "always" and fit.design.is_sparse:
            return f"{self.label} with gram 'always' needs dense designs: scikit-learn takes no X^T X of sparse ones"
        return None

    def warm_up(self) -> None:
        from bench_mtl.solvers.coordinate_descent.kernels import warm_up

        X, y = np.asfortranarray(np.eye(2)), np.ones(2)
        for matrix in (Matrix(X, False), Matrix(X, True), Matrix(sp.csc_array(X), False)):
            Lasso(matrix, y, False).fit(np.zeros(2), 0.1, 1e-3)
        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.form(L1Form)
        point = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(point)
        tasks, gram_work = task_fits(form, self.gram)
        balls = _balls(form, tasks, form.oriented(point))
        shares = 0.5 * sum(ball.size for ball in balls) / form.fit.design.n_examples
        step, work, tolerance = 0, gram_work + 2.0 * shares, self.tolerance
        while True:
            for ball in balls:
                if not ball.is_solved(tolerance):
                    work += ball.advance(tolerance) / form.fit.design.n_examples
            step += 1
            yield Iterate(_point(form, balls), _dual(form, balls), step, work)
            if all(ball.is_solved(tolerance) for ball in balls):
                if tolerance <= _FINEST:
                    return
                tolerance = max(_FINEST, self.reduction * tolerance)


def _point(form: L1Form, balls: list[_Ball]) -> Array:
    return np.ascontiguousarray(form.oriented(np.concatenate([ball.best for ball in balls], axis=1)))


def _dual(form: L1Form, balls: list[_Ball]) -> Array:
    """Return the dual point that the residuals of the last fits are."""
    return form.fit.design.unstack(np.concatenate([part for ball in balls for part in ball.duals]))


@dataclass(frozen=True)
class _Fit:
    """A fit of all tasks of a ball."""

    penalty: float
    W: Array
    predictions: tuple[Array, ...]
    norm: float


class _Ball(ABC):
    """The tasks that share a lambda, and the best point so far."""

    best: Array
    residuals: list[Array]

    def __init__(self, tasks: list[TaskFit], start: Array) -> None:
        self._tasks = tasks
        self.best = start
        self.residuals = [task.residual(np.zeros(len(task.y))) for task in tasks]
        self.size = sum(len(task.y) for task in tasks)
        self._length = sum(task.length for task in tasks)
        self._solved_to = np.inf

    @property
    def duals(self) -> list[Array]:
        """The parts of the dual point that belong to the tasks."""
        return [task.dual(r) for task, r in zip(self._tasks, self.residuals, strict=True)]

    def is_solved(self, tolerance: float) -> bool:
        """Return whether the ball is solved to this tolerance."""
        return self._solved_to <= tolerance

    @abstractmethod
    def advance(self, tolerance: float) -> float:
        """Make a fit, or continue one; return its cost in passes over an example."""

    def _fitted(self, W: Array, penalty: float, tolerance: float) -> tuple[_Fit, bool, float]:
        fits = [task.fit(W[:, k], penalty, tolerance) for k, task in enumerate(self._tasks)]
        fit = self._described(np.stack([w for w, _, _ in fits], axis=1), penalty)
        self.residuals = [task.residual(t) for task, t in zip(self._tasks, fit.predictions, strict=True)]
        return fit, all(ended for _, ended, _ in fits), sum(cost for _, _, cost in fits)

    def _described(self, W: Array, penalty: float) -> _Fit:
        predictions = tuple(task.predict(W[:, k]) for k, task in enumerate(self._tasks))
        return _Fit(penalty, W, predictions, float(np.abs(W).sum()))


class _Penalised(_Ball):
    """lambda is given."""

    def __init__(self, tasks: list[TaskFit], start: Array, penalty: float) -> None:
        super().__init__(tasks, start)
        self._penalty = penalty

    def advance(self, tolerance: float) -> float:
        fit, ended, cost = self._fitted(self.best, self._penalty, tolerance)
        self.best = fit.W
        if ended:
            self._solved_to = tolerance
        return cost


class _Constrained(_Ball):
    """lambda is searched for."""

    def __init__(self, tasks: list[TaskFit], start: Array, radius: float, positive: bool) -> None:
        super().__init__(tasks, start)
        self._radius, self._positive = radius, positive
        heights = np.stack([task.correlation for task in tasks], axis=1)
        heights = heights if positive else np.abs(heights)
        j, k = np.unravel_index(int(heights.argmax()), heights.shape)
        highest = max(0.0, float(heights[j, k]))
        self._origin = self._described(np.zeros_like(start), highest)
        self._lowest = np.inf
        if radius == 0.0 or highest == 0.0:
            self.best, self._solved_to = self._origin.W, 0.0
            return
        self._last = self._before = self._origin
        self._above: _Fit | None = None
        self._below = self._origin
        self._level, self._fits, self._ended = np.inf, 0, True
        self._errors: list[float] = []
        first = self._consider(self._described(start, 0.0))
        self._guess = self._penalty_of(first) or max(0.5 * highest, highest - radius * tasks[int(k)].column_square(int(j)))
        self._W = start

    def advance(self, tolerance: float) -> float:
        if tolerance < self._level and self._level < np.inf:  # the last lambda again: its fit was rough
            self._above, self._below, self._fits, self._errors = None, self._origin, 0, []
        self._level = tolerance
        fit, self._ended, cost = self._fitted(self._W, self._guess, tolerance)
        self._consider(fit)
        self._W = fit.W
        if self._ended:
            self._update_bracket(fit, tolerance)
        return cost

    def _update_bracket(self, fit: _Fit, tolerance: float) -> None:
        """Put the fit into the bracket, and choose the next lambda unless this one is good enough."""
        if fit.penalty != self._last.penalty:
            self._before = self._last
        self._last = fit
        self._fits += 1
        self._errors.append(abs(fit.norm - self._radius))
        if fit.norm > self._radius:
            if self._above is None or fit.penalty > self._above.penalty:
                self._above = fit
        elif fit.penalty < self._below.penalty:
            self._below = fit
        if self._above is not None:
            self._consider(self._mixed(self._below, self._above, self._radius))
        if fit.penalty * self._errors[-1] <= tolerance * self._length or self._fits >= _FITS_A_LEVEL:
            self._solved_to = tolerance
        if self._errors[-1] > 0.0:
            self._guess, self._W = self._next()

    def _next(self) -> tuple[float, Array]:
        """Return the next lambda, and the point from which to fit it."""
        last, before, above, below = self._last, self._before, self._above, self._below
        rises = (before.norm - last.norm) * (last.penalty - before.penalty) > 0.0
        guess = -1.0
        if rises:
            guess = last.penalty + (self._radius - last.norm) * (before.penalty - last.penalty) / (before.norm - last.norm)
        if above is None:
            guess = guess if _DESCENT * last.penalty < guess < last.penalty else _DESCENT * last.penalty
            mixed = self._at(before, last, guess) if rises else last.W
            return guess, mixed
        stuck = len(self._errors) > 3 and self._errors[-1] > 0.5 * self._errors[-4]
        if not stuck and above.penalty < guess < below.penalty:
            return guess, self._at(before, last, guess)
        share = 0.5 if stuck else (self._radius - below.norm) / (above.norm - below.norm)
        guess = below.penalty + share * (above.penalty - below.penalty)
        return guess, self._at(below, above, guess)

    def _at(self, one: _Fit, other: _Fit, penalty: float) -> Array:
        """Return the point at this lambda on the line through both fits, but not far beyond them."""
        share = min(2.0, max(-1.0, (penalty - one.penalty) / (other.penalty - one.penalty)))
        W = one.W + share * (other.W - one.W)
        return np.maximum(W, 0.0) if self._positive else W

    def _mixed(self, inside: _Fit, outside: _Fit, norm: float) -> _Fit:
        """Return the convex combination whose norm is at most `norm`, and equal to it where no sign changes."""
        share = (norm - inside.norm) / (outside.norm - inside.norm)
        pairs = zip(inside.predictions, outside.predictions, strict=True)
        W, predictions = inside.W + share * (outside.W - inside.W), tuple(t + share * (u - t) for t, u in pairs)
        return _Fit(0.0, W, predictions, float(np.abs(W).sum()))

    def _consider(self, fit: _Fit) -> _Fit:
        """Keep the fit, scaled into the ball, where it is the best point so far."""
        share = 1.0 if fit.norm <= self._radius else self._radius / fit.norm
        pairs = zip(self._tasks, fit.predictions, strict=True)
        objective = sum(task.value(share * t) for task, t in pairs)
        if objective < self._lowest:
            self._lowest, self.best = objective, share * fit.W
        return fit

    def _penalty_of(self, fit: _Fit) -> float | None:
        """Return lambda by the optimality of a point: the mean |x_j.r| on its support; None where it is not below that of the origin."""
        if fit.norm == 0.0:
            return None
        residuals = [task.residual(t) for task, t in zip(self._tasks, fit.predictions, strict=True)]
        products = (float(fit.W[:, k] @ self._tasks[k].gradient(r)) for k, r in enumerate(residuals))
        penalty = sum(products) / fit.norm
        return penalty if 0.0 < penalty < self._origin.penalty else None


def _balls(form: L1Form, tasks: list[TaskFit], start: Array) -> list[_Ball]:
    if form.radius is None:
        assert form.penalty is not None
        return [_Penalised([task], start[:, [k]], form.penalty) for k, task in enumerate(tasks)]
    if form.balls == "all":
        return [_Constrained(tasks, start, form.radius, form.nonneg)]
    return [_Constrained([task], start[:, [k]], form.radius, form.nonneg) for k, task in enumerate(tasks)]
