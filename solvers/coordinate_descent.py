"""Coordinate descent for the lasso, scikit-learn's, and the search on its penalty that meets a radius."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse, one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import L1Form
from bench_mtl.model.losses import Squared
from bench_mtl.model.protocols import Form, IterativeSolver, Problem

GRAM_RULES = ("auto", "always", "never")

#: The smallest tolerance, relative to ||y||^2: below it rounding decides.
_FINEST = 1e-16

#: A fit has ended when it moves by less than this, relative to its largest entry.
_ROUNDING = 1e-15

#: Sweeps over the coordinates in one step at most; a fit that needs more goes on in the next step.
_SWEEPS = 100

#: The largest number of fits of one ball with one tolerance; a radius that they do not meet needs a finer tolerance.
_FITS_A_LEVEL = 8

#: A penalty falls at most to this share of the last one while no point outside the ball is known.
_DESCENT = 0.1

#: Features up to which "auto" computes X^T X, where there are more examples than features.
_MOST_GRAM_FEATURES = 4000


@dataclass(frozen=True)
class CoordinateDescent(IterativeSolver):
    """The lasso of every task, min_w 1/2 ||y - X w||^2 + lambda ||w||_1, by scikit-learn's cyclic coordinate descent with safe screening.

    A penalised problem is one fit a step and task, each from where the last one ended, with a tolerance that falls.

    A radius z is met by a search on lambda: ||w(lambda)||_1 falls as lambda grows, from 0 at max |X^T y|, and is piecewise linear, as
    w(lambda) is. The next lambda is that of the secant through the last two fits, kept inside a bracket, and its fit starts at the
    secant's w. The tolerance falls once lambda | ||w||_1 - z | is at most it: both bound the gap. A radius that does not bind lets
    lambda fall to 0. The iterate is the best point so far: of the fits, scaled into the ball, and of the convex combinations of
    the bracket's ends that have norm z: where no kink of the path lies between both it is exact. The dual point is the residual of the
    last fit. One ball in all tasks is one search with the same lambda for all; with a ball for every task each has a search of its own,
    and a step is a fit of all those that have not met the tolerance.

    Work counts a sweep over the coordinates as a pass, though screened coordinates cost nothing, and a pass and a half for the gaps
    and the residual of a fit; with `gram` a sweep counts d/(2n) passes (at most what it costs) and X^T X itself d/2.

    Parameters
    ----------
    tolerance : tolerance of the first fits, relative to ||y||^2 as in scikit-learn, above 0
    reduction : factor by which the tolerance falls, in (0, 1)
    gram : "always" computes X_k^T X_k (dense designs only), "never" does not, "auto" does for n >= d up to d = 4000

    References
    ----------
    Friedman, Hastie, Tibshirani, Journal of Statistical Software 33(1), 2010, sections 2.1 to 2.5 (sweeps, warm starts); Friedman,
    Hastie, Hoefling, Tibshirani, Annals of Applied Statistics 1(2), 2007, section 2; Osborne, Presnell, Turlach, IMA Journal of
    Numerical Analysis 20(3), 2000 (the path is piecewise linear); Fercoq, Gramfort, Salmon, ICML 2015 (screening).
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
        if not isinstance(fit.loss, Squared):
            return f"{self.label} is for the squared loss, and the loss of this {problem.name} is {fit.loss.name}"
        if self.gram == "always" and fit.design.is_sparse:
            return f"{self.label} with gram 'always' needs dense designs: scikit-learn takes no X^T X of sparse ones"
        return None

    def warm_up(self) -> None:
        X, y = np.asfortranarray(np.eye(2)), np.ones(2)
        for matrix in (_Matrix(X, False), _Matrix(X, True), _Matrix(sp.csc_array(X), False)):
            _Lasso(matrix, y, False).fit(np.zeros(2), 0.1, 1e-3)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.form(L1Form)
        point = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(point)
        lassos, gram_work = _lassos(form, self.gram)
        balls = _balls(form, lassos, form.oriented(point))
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
    """The residuals of the last fits, times the weights that the columns hold the roots of."""
    residuals = np.concatenate([residual for ball in balls for residual in ball.residuals])
    dual = form.fit.design.unstack(residuals)
    return dual if np.all(form.fit.weights == 1.0) else dual * np.sqrt(form.fit.weights)


class _Matrix:
    """A design as scikit-learn wants it: by columns, dense (with its Gram matrix, if that is to be used) or sparse."""

    def __init__(self, X: Any, gram: bool) -> None:
        self.X = X
        self.gram = np.ascontiguousarray(X.T @ X) if gram else None
        n, d = X.shape
        self.sweep_share = d / (2.0 * n) if gram else 1.0


class _Lasso:
    """min_w 1/2 ||y - X w||^2 + lambda ||w||_1, with w >= 0 if `positive`."""

    def __init__(self, matrix: _Matrix, y: Array, positive: bool) -> None:
        self._matrix, self.y, self._positive = matrix, np.array(y), positive
        self.correlation = self.gradient(self.y)
        self.length = float(y @ y)

    def predict(self, w: Array) -> Array:
        return np.asarray(self._matrix.X @ w)

    def gradient(self, r: Array) -> Array:
        return np.asarray(self._matrix.X.T @ r)

    def column_square(self, j: int) -> float:
        x = self._matrix.X[:, [j]]
        return float(x.multiply(x).sum()) if is_sparse(x) else float((x * x).sum())

    def fit(self, w: Array, penalty: float, tolerance: float) -> tuple[Array, bool, float]:
        """Return the last w, whether it is within the tolerance, and the number of sweeps weighted by their cost."""
        from sklearn.linear_model import enet_path

        if self.length == 0.0:
            return np.zeros_like(w), True, 0.0
        n = len(self.y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a fit has not ended within its sweeps is known from the gap
            _, coefficients, gaps, counts = enet_path(
                self._matrix.X,
                self.y,
                l1_ratio=1.0,
                alphas=np.array([penalty / n]),  # scikit-learn's objective is this one over n
                precompute=False if self._matrix.gram is None else self._matrix.gram,
                Xy=None if self._matrix.gram is None else self.correlation,
                coef_init=w.copy(),
                copy_X=False,
                check_input=False,
                return_n_iter=True,
                positive=self._positive,
                tol=tolerance,
                max_iter=_SWEEPS,
            )
        new = np.ascontiguousarray(coefficients[:, 0])
        still = float(np.abs(new - w).max()) <= _ROUNDING * float(np.abs(w).max())
        ended = float(gaps[0]) * n <= tolerance * self.length or int(counts[0]) < _SWEEPS or still
        return new, bool(ended), n * (int(counts[0]) * self._matrix.sweep_share + 1.5)


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

    def __init__(self, lassos: list[_Lasso], start: Array) -> None:
        self._lassos = lassos
        self.best = start
        self.residuals = [lasso.y for lasso in lassos]
        self.size = sum(len(lasso.y) for lasso in lassos)
        self._length = sum(lasso.length for lasso in lassos)
        self._solved_to = np.inf

    def is_solved(self, tolerance: float) -> bool:
        """Return whether the ball is solved to this tolerance."""
        return self._solved_to <= tolerance

    @abstractmethod
    def advance(self, tolerance: float) -> float:
        """Make a fit, or continue one; return its cost in passes over an example."""

    def _fitted(self, W: Array, penalty: float, tolerance: float) -> tuple[_Fit, bool, float]:
        fits = [lasso.fit(W[:, k], penalty, tolerance) for k, lasso in enumerate(self._lassos)]
        fit = self._described(np.stack([w for w, _, _ in fits], axis=1), penalty)
        self.residuals = [lasso.y - t for lasso, t in zip(self._lassos, fit.predictions, strict=True)]
        return fit, all(ended for _, ended, _ in fits), sum(cost for _, _, cost in fits)

    def _described(self, W: Array, penalty: float) -> _Fit:
        predictions = tuple(lasso.predict(W[:, k]) for k, lasso in enumerate(self._lassos))
        return _Fit(penalty, W, predictions, float(np.abs(W).sum()))


class _Penalised(_Ball):
    """lambda is given."""

    def __init__(self, lassos: list[_Lasso], start: Array, penalty: float) -> None:
        super().__init__(lassos, start)
        self._penalty = penalty

    def advance(self, tolerance: float) -> float:
        fit, ended, cost = self._fitted(self.best, self._penalty, tolerance)
        self.best = fit.W
        if ended:
            self._solved_to = tolerance
        return cost


class _Constrained(_Ball):
    """lambda is searched for."""

    def __init__(self, lassos: list[_Lasso], start: Array, radius: float, positive: bool) -> None:
        super().__init__(lassos, start)
        self._radius, self._positive = radius, positive
        heights = np.stack([lasso.correlation for lasso in lassos], axis=1)
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
        self._guess = self._penalty_of(first) or max(0.5 * highest, highest - radius * lassos[int(k)].column_square(int(j)))
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
        pairs = zip(self._lassos, fit.predictions, strict=True)
        objective = sum(0.5 * float(((lasso.y - share * t) ** 2).sum()) for lasso, t in pairs)
        if objective < self._lowest:
            self._lowest, self.best = objective, share * fit.W
        return fit

    def _penalty_of(self, fit: _Fit) -> float | None:
        """Return lambda by the optimality of a point: the mean |x_j.r| on its support; None where it is not below that of the origin."""
        if fit.norm == 0.0:
            return None
        residuals = [lasso.y - t for lasso, t in zip(self._lassos, fit.predictions, strict=True)]
        products = (float(fit.W[:, k] @ self._lassos[k].gradient(r)) for k, r in enumerate(residuals))
        penalty = sum(products) / fit.norm
        return penalty if 0.0 < penalty < self._origin.penalty else None


def _lassos(form: L1Form, gram: str) -> tuple[list[_Lasso], float]:
    """Return a lasso for every task, in coordinates that are to be non-negative, and the passes that their Gram matrices cost."""
    fit = form.fit
    design, m = fit.design, fit.design.n_tasks
    unweighted = bool(np.all(fit.weights == 1.0))
    matrices: dict[tuple[int, bytes, bytes], _Matrix] = {}
    lassos, work = [], 0.0
    for k in range(m):
        roots = None if unweighted else np.sqrt(design.task_outputs(fit.weights, k))
        flips = None if form.orientation is None else form.orientation[:, k]
        key = (0 if design.is_shared else k, b"" if roots is None else roots.tobytes(), b"" if flips is None else flips.tobytes())
        if key not in matrices:
            X = _by_columns(design.block(k), roots, flips)
            n, d = X.shape
            used = gram == "always" or (gram == "auto" and not design.is_sparse and d <= min(n, _MOST_GRAM_FEATURES))
            matrices[key] = _Matrix(X, used)
            work += 0.5 * d * n / design.n_examples if used else 0.0
        y = design.task_outputs(fit.targets, k)
        lassos.append(_Lasso(matrices[key], y if roots is None else roots * y, form.nonneg))
    return lassos, work


def _by_columns(X: Any, roots: Array | None, flips: Array | None) -> Any:
    """X with rows scaled and columns flipped, as a Fortran array, or CSC with 32-bit indices."""
    if is_sparse(X):
        X = sp.csc_array(X if roots is None else sp.diags_array(roots) @ X)
        X = X if flips is None else sp.csc_array(X @ sp.diags_array(flips))
        X.sort_indices()
        return sp.csc_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    X = X if roots is None else X * roots[:, None]
    return np.asfortranarray(X if flips is None else X * flips)


def _balls(form: L1Form, lassos: list[_Lasso], start: Array) -> list[_Ball]:
    if form.radius is None:
        assert form.penalty is not None
        return [_Penalised([lasso], start[:, [k]], form.penalty) for k, lasso in enumerate(lassos)]
    if form.balls == "all":
        return [_Constrained(lassos, start, form.radius, form.nonneg)]
    return [_Constrained([lasso], start[:, [k]], form.radius, form.nonneg) for k, lasso in enumerate(lassos)]
