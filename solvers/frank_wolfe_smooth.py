"""Frank-Wolfe for smooth losses over sets with a linear oracle: its step sizes, the sets whose corners it moves between, the solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import CurvedForm, LinearForm, SimplexForm
from bench_mtl.model.protocols import Capability, NotOfferedError, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver

VARIANTS = ("pairwise", "away", "plain")
STEP_RULES = ("exact", "backtracking")
#: Steps after which the predictions, which are updated in every step, are recomputed.
_REFRESH = 100
#: Slope at which an exact line search ends, relative to that at its beginning.
_FLAT = 1e-9
#: What of the mass may be missing by rounding.
_ROUNDING = 1e-14


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
        return np.array([R.sum()]) if blocks == 1 or self.design is None else self.design.task_sums(R)


def loss_of(problem: Problem) -> Loss:
    """Return the loss of the problem's form, if it has one, so that a line search costs no passes over the data."""
    if problem.has_form(LinearForm) and not problem.form(LinearForm).has_intercept:
        fit = problem.form(LinearForm).fit
        return Loss(fit.value, fit.derivatives, fit.design, fit.loss.couples_tasks)
    if problem.has_form(CurvedForm):
        form = problem.form(CurvedForm)
        return Loss(lambda t: form.derivatives(t)[0], lambda t: form.derivatives(t)[1], form.design, False)
    return Loss(problem.smooth_value, lambda W: problem.value_and_gradient(W)[1], None, True)


def exact_steps(loss: Loss, t: Array, T: Array, longest: Array) -> Array:
    """argmin over 0 <= gamma_b <= longest_b of the loss at t + gamma_b T, block by block: its slopes rise, and their roots are bracketed.

    The secant of the bracket, the older end's slope halved when it stays twice (the Illinois rule), or the middle after 40 rounds: of a
    squared loss the first secant hits the root.
    """
    blocks = len(longest)

    def slopes(gamma: Array) -> Array:
        with np.errstate(all="ignore"):  # at the end of a line a slope may be infinite
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
        # A slope that overflows has no secant.
        secant = np.divide(at_low, at_low - at_high, out=np.full(blocks, 0.5), where=searched & np.isfinite(at_high))
        share = secant if round_ < 40 else np.full(blocks, 0.5)
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
            self._curvature = max(0.0, change) / (small * float(squares.sum())) if moves.any() else 1.0
            trials = 4  # a derivative is two values
        self._curvature = 0.9 * self._curvature or 1.0
        while np.isfinite(self._curvature):
            scaled = self._curvature * squares
            gamma = np.minimum(longest, np.divide(gains, scaled, out=np.where(moves, longest, 0.0), where=scaled > 0.0))
            model = value - float(gamma @ gains) + 0.5 * float(gamma**2 @ scaled)
            trials += 1
            change = loss.per_block(gamma) * T
            if loss.value(t + change) <= model or not gamma.any():
                return gamma, trials
            # Near the optimum rounding hides the decrease; the slope at the new point bounds it and is not hidden.
            trials += 2
            if float(np.vdot(loss.derivatives(t + change), change)) <= model - value:
                return gamma, trials
            self._curvature *= 2.0
        self._curvature = math.nan
        return np.zeros(len(longest)), trials


class Line(NamedTuple):
    """A search direction from a point, block by block."""

    predictions: Array
    """The change of the predictions by a step of length 1."""
    gains: Array
    """Minus the slopes of the loss at the beginning, at least 0."""
    longest: Array
    """The longest steps."""


class Corners:
    """Simplices whose corners are mass times signed unit vectors, and 0 where the masses may be less.

    The weights of the corners are read off the point, |W_jk| / mass, and what is missing to 1 is the weight of 0. (For signed corners 0 is
    none, but the midpoint of any two.) So there is no active set beside the point.
    """

    kept = ("point",)

    def __init__(self, form: SimplexForm, design: Design, start: Array) -> None:
        self.point, self._form, self._design = start, form, design
        self._held: dict[int, Any] = {}
        self._together = form.balls == "all"
        self.blocks = 1 if self._together else design.n_tasks
        orientation = np.ones(start.shape) if form.orientation is None else form.orientation
        self._signs = self._by_block(orientation)
        self._each = np.arange(self.blocks)

    def line(self, gradient: Array, predictions: Array, variant: str) -> Line:
        """Return the direction of a variant, and keep it for `move`."""
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
        """Move the point along the last line."""
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
                if value != 0.0:
                    self._add_column(j, k, float(value), change)
        return Line(change, np.maximum(gains, 0.0), longest)

    def _add_column(self, j: int, k: int, factor: float, predictions: Array) -> None:
        """predictions of task k += factor x_j."""
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

    def _by_block(self, A: Array) -> Array:
        return A.reshape(-1, 1) if self._together else A


class Vertices:
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
        self._vertex, self._left, self._pairwise, self._has_corners = vertex, -1, variant == "pairwise", variant != "plain"
        direction, longest = vertex - self.point, 1.0
        if self._has_corners:
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
        if not self._has_corners:
            self.point = self.point + gamma * self._direction
            return
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


@dataclass(frozen=True)
class FrankWolfeSmooth(SteppingSolver):
    """W <- W + gamma D along a direction D between corners of the feasible set, minimising a smooth f.

    With G = grad f(W), S = argmin <G, S> over the set, and U the corner with weight in W that has the largest <G, U>, D is S - W ("plain"),
    S - U ("pairwise"), or the better of S - W and W - U ("away"). gamma is at most what keeps U's weight at 0 or more.

    Where the set is a simplex or an l1 ball (`SimplexForm`) corners are signed unit vectors, and their weights are read off W itself; 0
    counts as a corner where it is feasible. Balls of every task are blocks: each takes a step along a direction of its own, with a length
    of its own. (Corners of the product would move all tasks by one length, which the smallest weight bounds.) Other sets keep the
    answers of the problem's oracle. f is followed by its predictions where the problem has a form of them: then a step costs one
    gradient, half a pass, and a column or two (or half a pass more in the other sets). The Frank-Wolfe gap <G, W - S> is at
    least what the certificate of W proves, with the dual point that gives G.

    Parameters
    ----------
    variant : "pairwise", "away" or "plain"
    step_rule : "exact" minimises f along D, block by block, where losses of the blocks do not share predictions (as the multiclass loss
        with a ball for every class does) and the problem has a form; elsewhere, and with "backtracking", gamma is
        min(longest, -<G, D> / (M ||D||^2)), M nine tenths of the last one or doubled until the quadratic model lies above f. ||D|| is
        measured in the predictions, where the problem has a form.

    References
    ----------
    Jaggi, ICML 2013, algorithm 1; Lacoste-Julien, Jaggi, NeurIPS 2015, algorithms 1 and 2 (away and pairwise steps); Pedregosa, Negiar,
    Askari, Jaggi, AISTATS 2020, algorithm 2 (backtracking); Lacoste-Julien, Jaggi, Schmidt, Pletscher, ICML 2013 (blocks).
    """

    variant: str = "pairwise"
    step_rule: str = "exact"

    name: ClassVar[str] = "frank_wolfe_smooth"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.LMO})
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS)
        one_of("step_rule", self.step_rule, STEP_RULES)

    @property
    def label(self) -> str:
        rule = "" if self.step_rule == "exact" else f"_{self.step_rule}"
        return (self.name if self.variant == "pairwise" else f"{self.name}_{self.variant}") + rule

    def objection(self, problem: Problem) -> str | None:
        try:
            problem.lmo(problem.start_point())
        except NotOfferedError:
            return f"{self.label} needs a bounded set, and a penalty bounds none: give {problem.name} a radius"
        return None

    def stepper(self, problem: Problem) -> LineSteps:
        return LineSteps(self, problem)


class LineSteps(Stepper):
    kept = ("_hull", "_backtracking", "_predictions", "_slopes", "_gradient", "_step", "_work")
    varying = ("hull_corners", "hull_weights")

    def __init__(self, solver: FrankWolfeSmooth, problem: Problem) -> None:
        self._solver, self._problem, self._loss = solver, problem, loss_of(problem)
        self._formed = self._loss.design is not None

    def start(self, at: Iterate) -> LineSteps:
        self._hull, self._backtracking = _hull(self._problem, self._loss, at.primal), Backtracking()
        self._exact = self._formed and self._solver.step_rule == "exact" and not (self._loss.coupled and self._hull.blocks > 1)
        self._column = 0.5 / len(at.primal) if isinstance(self._hull, Corners) else 0.5
        self._step, self._work = 0, 0.0
        self._judge()
        return self

    def _judge(self) -> None:
        """Compute the gradient at the point."""
        if self._step % _REFRESH == 0:
            self._predictions = self._loss.predict(self._hull.point)
            self._work += 0.5 if self._formed else 0.0
        self._slopes = self._loss.derivatives(self._predictions)
        self._gradient = self._loss.adjoint(self._slopes)
        self._work += 0.5 if self._formed else 1.0

    def step(self, now: LineSteps) -> LineSteps:
        loss, hull, predictions, variant = self._loss, self._hull, self._predictions, self._solver.variant
        line = hull.line(self._gradient, predictions, variant)
        if self._formed:
            self._work += self._column * (2.0 if variant == "pairwise" and self._column < 0.5 else 1.0)
        if self._exact:
            gamma = exact_steps(loss, predictions, line.predictions, line.longest)
        else:
            value = loss.value(predictions)
            gamma, trials = self._backtracking.steps(loss, predictions, line.predictions, value, line.gains, line.longest)
            self._work += 0.0 if self._formed else 0.5 * (trials + 1)
        hull.move(gamma, line.longest)
        self._predictions = predictions + loss.per_block(gamma) * line.predictions if self._formed else hull.point
        self._step += 1
        self._judge()
        return self

    def iterate(self, now: LineSteps) -> Iterate:
        return Iterate(self._hull.point, -self._slopes if self._formed else None, self._step, self._work)


def _hull(problem: Problem, loss: Loss, start: Array) -> Corners | Vertices:
    if problem.has_form(SimplexForm) and loss.design is not None:
        form = problem.form(SimplexForm)
        if form.mass > 0.0:
            return Corners(form, loss.design, start)
    return Vertices(problem, loss, start)
