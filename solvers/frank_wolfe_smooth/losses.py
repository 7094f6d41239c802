"""Smooth losses as functions of predictions, and step sizes along lines of predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.forms import CurvedForm, LinearForm
from bench_mtl.model.protocols import Problem

#: Slope at which an exact line search ends, relative to that at its beginning.
_FLAT = 1e-9


@dataclass
class Loss:
    """f(W) = value(t), t = predict(W), with the gradient adjoint(derivatives(t)); without a form, predictions t are W itself."""

    value: Callable[[Array], float]
    derivatives: Callable[[Array], Array]
    design: Design | None
    coupled: bool
    """Whether the loss couples predictions of different tasks."""

    def predict(self, W: Array) -> Array:
        return W if self.design is None else self.design.forward(W)

    def adjoint(self, slopes: Array) -> Array:
        return slopes if self.design is None else self.design.adjoint(slopes)

    def per_block(self, values: Array) -> Any:
        """Return one value for every block (all tasks, or each one), to broadcast against predictions."""
        return values[0] if len(values) == 1 or self.design is None else self.design.per_example(values)

    def block_sums(self, R: Array, blocks: int) -> Array:
        """The sums over the predictions of every block."""
        if blocks == 1 or self.design is None:
            return np.array([R.sum()])
        if self.design.is_shared:
            return np.asarray(R.sum(axis=0))
        return np.add.reduceat(R, np.concatenate([[0], np.cumsum(self.design.sizes)[:-1]]))


def loss_of(problem: Problem) -> Loss:
    """Return the loss of the problem's form, if it has one, so that a line search costs no passes over the data."""
    if problem.has_form(LinearForm) and not problem.form(LinearForm).has_intercept:
        fit = problem.form(LinearForm).fit
        return Loss(fit.value, fit.derivatives, fit.design, fit.loss.couples_tasks)
    if problem.has_form(CurvedForm):
        form = problem.form(CurvedForm)
        return Loss(lambda t: form.derivatives(t)[0], lambda t: form.derivatives(t)[1], form.design, False)
    return Loss(problem.smooth_value, lambda W: problem.value_and_gradient(W)[1], None, True)


class Columns:
    """Single columns of the designs."""

    def __init__(self, design: Design) -> None:
        self._design, self._held = design, {}  # type: tuple[Design, dict[int, Any]]

    def add(self, k: int, j: int, factor: float, predictions: Array) -> None:
        """predictions of task k += factor x_j."""
        if factor == 0.0:
            return
        where = 0 if self._design.is_shared else k
        if where not in self._held:
            X = self._design.block(where)
            self._held[where] = sp.csc_array(X) if self._design.is_sparse else X
        X, out = self._held[where], self._design.task_outputs(predictions, k)
        if self._design.is_sparse:
            span = slice(X.indptr[j], X.indptr[j + 1])
            out[X.indices[span]] += factor * X.data[span]
        else:
            out += factor * X[:, j]


def exact_steps(loss: Loss, t: Array, T: Array, longest: Array) -> Array:
    """argmin over 0 <= gamma_b <= longest_b of the loss at t + gamma_b T, block by block: its slopes rise, and their roots are bracketed.

    The secant of the bracket, the older end's slope halved when it stays twice (the Illinois rule), or the middle after 40 rounds: of a
    squared loss the first secant hits the root.
    """
    blocks = len(longest)

    def slopes(gamma: Array) -> Array:
        return loss.block_sums(loss.derivatives(t + loss.per_block(gamma) * T) * T, blocks)

    low, high = np.zeros(blocks), longest.copy()
    first = at_low = slopes(low)
    at_high = slopes(high)
    gamma = np.where(at_high <= 0.0, high, 0.0)  # downhill all the way, or not at all
    searched = (at_low < 0.0) & (at_high > 0.0)
    side = np.zeros(blocks)
    for round_ in range(100):
        if not searched.any():
            break
        share = at_low / np.where(searched, at_low - at_high, -1.0) if round_ < 40 else 0.5
        gamma = np.where(searched, low + share * (high - low), gamma)
        here = slopes(gamma)
        searched &= (np.abs(here) > -_FLAT * first) & (gamma > low) & (gamma < high)
        below = here < 0.0
        at_high = np.where(searched & below & (side < 0.0), 0.5 * at_high, at_high)
        at_low = np.where(searched & ~below & (side > 0.0), 0.5 * at_low, at_low)
        low, at_low = np.where(searched & below, gamma, low), np.where(searched & below, here, at_low)
        high, at_high = np.where(searched & ~below, gamma, high), np.where(searched & ~below, here, at_high)
        side = np.where(below, -1.0, 1.0)
    return gamma


class Backtracking:
    """gamma_b = min(longest_b, gain_b / (M ||T_b||^2)), with the M that makes the quadratic model an upper bound."""

    def __init__(self) -> None:
        self._curvature = math.nan

    def steps(self, loss: Loss, t: Array, T: Array, value: float, gains: Array, longest: Array) -> tuple[Array, int]:
        """The steps, and how many values of the loss they cost. M begins at 0.9 of the last one and doubles."""
        squares = loss.block_sums(T * T, len(longest))
        moves = squares > 0.0  # a block that changes no prediction has nothing to gain but rounding
        gains, trials = np.where(moves, gains, 0.0), 0
        if math.isnan(self._curvature):
            small = 1e-3 * min(1.0, float(longest.min()) or 1.0)
            change = float(np.vdot(loss.derivatives(t + small * T) - loss.derivatives(t), T))
            self._curvature, trials = max(0.0, change) / (small * float(squares.sum())) if moves.any() else 1.0, 1
        self._curvature = 0.9 * self._curvature or 1.0
        while np.isfinite(self._curvature):
            scaled = self._curvature * squares
            gamma = np.minimum(longest, np.divide(gains, scaled, out=np.where(moves, longest, 0.0), where=scaled > 0.0))
            gamma = np.maximum(gamma, 0.0)
            model = value - float(gamma @ gains) + 0.5 * float(gamma**2 @ scaled)
            trials += 1
            change = loss.per_block(gamma) * T
            if loss.value(t + change) <= model or not gamma.any():
                return gamma, trials
            # Near the optimum rounding hides the decrease; the slope at the new point bounds it and is not hidden.
            trials += 1
            if float(np.vdot(loss.derivatives(t + change), change)) <= model - value:
                return gamma, trials
            self._curvature *= 2.0
        self._curvature = math.nan
        return np.zeros(len(longest)), trials
