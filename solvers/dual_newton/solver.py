"""The proximal point method whose steps are solved on their dual by semismooth Newton's method."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Array, Iterate, gap_up_to_rounding
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Huber, Logistic, Multiclass, Squared
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.dual_newton.shards import GAP_OF_MODELS, MOST_ENTRIES_IN_SHARDS, ShardStepper, can_choose
from bench_mtl.solvers.dual_newton.subproblem import SMALLEST_SHARE, Centre, Evaluation, ScaledFit, Subproblem, dual_of, shares_of
from bench_mtl.solvers.dual_newton.terms import Term, terms_of
from bench_mtl.solvers.working_sets import Places

#: Rows of the first working set, at most.
_FIRST = 200
#: Newton steps of one subproblem, and halvings of one step, at most.
_MOST_NEWTON, _MOST_HALVINGS = 40, 40
#: A Newton decrement of this share of the dual objective is rounding.
_REST = 1e-13
#: A step must gain this share of what the gradient promises; what is lost below the second number is rounding.
_GAIN, _LOSS = 1e-4, 1e-14
#: A step becomes so many times as long at least where it was too long.
_SHORTEST = 0.33
#: Steps of Newton's method in a row that gain nothing, at most.
_MOST_IDLE = 3
#: The part of the way to the end of the range of a dual entry that a step goes straight.
_STRAIGHT, _LEAST_LEFT = 0.5, 0.01
#: The largest share below 1 of a step's end: the derivative of the entropy has none at 1.
_LARGEST_SHARE = 1.0 - 1e-16
#: A subproblem is solved well where its decrement is the first share of the gap, and no further than to the second.
_SHARE_OF_GAP, _ENOUGH_OF_GAP = 1e-2, 1e-3
#: Newton steps up to which the proximal point step grows by all of `growth`, by its root, by a half.
_EASY, _USUAL, _HARD = 8, 16, 30
#: A step that Newton's method does not solve is taken back where it makes the gap so many times larger, or its decrement is no small one.
_FAR_WORSE = 10.0
#: Proximal point steps in a row after which neither the gap is smaller nor sigma larger than ever, at most.
_MOST_STALLED = 20
#: Entries of a dense system in all coefficients, at most: 1 GiB.
_MOST_ENTRIES = 2**27
#: sigma times the curvature at most: in features of norm 1 the proximal term is rounding from there on.
_LONGEST = 1e16


@dataclass(frozen=True)
class DualNewton(SteppingSolver):
    """z_{i+1} = argmin_z F(z) + ||z - z_i||^2 / (2 sigma_i), in features that are scaled to about norm 1 and, with intercepts, centred.

    With f* the conjugate of the loss and R the regulariser, the multipliers r of a step maximise the concave ::

        phi(r) = min_z { R(z) - <X^T r, z> + ||z - z_i||^2 / (2 sigma_i) } - f*(-r),    z(r) = prox_{sigma_i R}(z_i + sigma_i X^T r)

    by Newton's method with a line search. Its system, f*'' + sigma_i X J X^T with J = L L^T the derivative of the proximal map, is solved
    in the columns of L: the entries, rows or singular directions that are not 0. Of huber losses r is in a box: steps are projected, and
    entries at a bound whose gradient points outwards stay. sigma_i grows, by `growth` where a step was easy. What it takes hardly
    depends on how large the features are, or how weak the penalty. Each Newton step costs X^T D X of the rows that are not 0 and a dense
    system, so it is for some hundreds of coefficients. Under penalties of rows and entries of many features a step is solved on a working
    set: the rows that are not 0, and at most as many, but 200 at first, of those that the last r moves most. A run ends where these have
    more coefficients than a dense system may.

    Of examples in shards the steps are those of Newton's method on the loss, with a line search: each minimises a quadratic model, made of
    X^T D X as a sum over the shards, by the method above, in memory. Under penalties by norms of rows and entries a model has the features
    alone that have coefficients, or soon will.

    Parameters
    ----------
    growth : by which sigma grows after an easy step, above 1

    Notes
    -----
    A step is one of Newton's method, or a proximal point step that needs none. Work counts products with X, and X^T D X of s of the d
    features as s^2 / (2 d) passes; of shards the passes over them.

    References
    ----------
    Li, Sun, Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems", SIAM Journal on
    Optimization 28(1), 2018; Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm", Mathematics of
    Operations Research 1, 1976.
    """

    growth: float = 30.0
    aim: float = field(default=1e-6, repr=False)
    """The relative gap of the run. Set by `aimed_at`."""

    name: ClassVar[str] = "dual_newton"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    shows_start: ClassVar[bool] = False
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real_number("growth", self.growth, minimum=1.0, strict=True)

    def objection(self, problem: Problem) -> str | None:
        if not isinstance(problem, FitProblem) or not problem.is_composite:
            return f"{self.label} takes a loss of linear predictions with a norm, which {problem.name} is not"
        loss = problem.fit.loss
        if not isinstance(loss, (Squared, Huber, Logistic, Multiclass)):
            return f"{self.label} is for squared, huber, logistic and multiclass losses, and the loss of this {problem.name} is {loss.name}"
        if problem.is_in_shards and (problem.fit.intercept or loss.couples_tasks or isinstance(loss, Huber)):
            return f"{self.label} takes no intercepts, no huber loss and none of all tasks together in shards, as this {problem.name} has"
        if problem.is_in_shards and problem.sums is None:
            return f"{self.label} takes one weight for all examples of a task in shards, and those of this {problem.name} differ"
        if terms_of(problem.regulariser, np.ones(problem.design.n_features)) is None:
            return f"{self.label} knows no derivative of the proximal map of {problem.name}"
        design = problem.design
        entries = design.n_features * sum(design.sizes[: 1 if design.is_shared else None])
        if design.is_sparse and not problem.is_in_shards and entries > _MOST_ENTRIES:
            return f"{self.label} makes sparse features dense, which are too many in {problem.name}"
        coefficients = math.prod(problem.point_shape)
        most = MOST_ENTRIES_IN_SHARDS if problem.is_in_shards else _MOST_ENTRIES
        has_sets = can_choose(problem.regulariser) and (problem.is_in_shards or problem.design.n_features > 2 * _FIRST)
        if coefficients**2 > most and not has_sets:
            return f"{self.label} may need a dense system in all {coefficients} coefficients of {problem.name}"
        return None

    def aimed_at(self, relative_gap: float) -> DualNewton:
        return replace(self, aim=relative_gap)

    def stepper(self, problem: Problem) -> Stepper:
        assert isinstance(problem, FitProblem)
        if problem.is_in_shards:
            return ShardStepper(problem, lambda model: NewtonStepper(model, self.growth, GAP_OF_MODELS))
        return NewtonStepper(problem, self.growth, self.aim)


@dataclass(frozen=True)
class State:
    """Where a run is."""

    centre: Centre
    dual: Array
    best: float
    """The smallest relative gap so far, up to rounding."""
    longest: float
    """The largest sigma that is tried next: where Newton's method failed it was larger."""
    largest: float
    """The largest sigma so far."""
    step: int
    work: float
    gap: float = math.inf
    stalled: int = 0
    """Steps after which neither the gap was smaller nor sigma larger than ever."""


class Solved(NamedTuple):
    """A subproblem after Newton's method."""

    at: Evaluation
    steps: int
    squares: float
    """The sum over the steps of the squared number of features that have coefficients, of which X^T D X is."""
    decrement: float
    is_good: bool
    """Whether Newton's method came to where only rounding is left, or near it."""


class NewtonStepper(Stepper):
    """The data in scaled features and the terms of the regulariser."""

    def __init__(self, problem: FitProblem, growth: float, aim: float) -> None:
        self.problem, self._growth, self._aim = problem, growth, aim
        self.scaled = ScaledFit.of(problem.fit)
        terms = terms_of(problem.regulariser, self.scaled.units)
        assert terms is not None
        self.terms: tuple[Term, ...] = terms
        assert problem.fit.loss.curvature is not None
        self._has_sets = len(self.scaled.units) > 2 * _FIRST and all(term.radius is None and not term.own_units for term in terms)
        self.longest = _LONGEST / problem.fit.loss.curvature

    def start(self, at: Iterate) -> State:
        """Return the state at a feasible point, with its dual point or the one of the residuals there."""
        fit, design, point = self.problem.fit, self.scaled.design, at.primal
        predictions = fit.shifted(self.problem.predictions(point))
        points = tuple(term.point_of(W) for term, W in zip(self.terms, point.reshape(-1, *point.shape[-2:]), strict=True))
        V = sum((term.scaled_features(Z) for term, Z in zip(self.terms, points, strict=True)), np.zeros(point.shape[-2:]))
        b = design.task_sums(predictions - design.forward(V)) / np.asarray(design.sizes) if fit.intercept else np.zeros(design.n_tasks)
        dual = -fit.weights * fit.loss.derivatives(predictions, fit.targets) if at.dual is None else at.dual
        sigma = self.longest / _LONGEST
        dual = self._inside(np.broadcast_to(dual, design.output_shape))
        return State(Centre(points, b, sigma), dual, math.inf, self.longest, sigma, at.step, at.work + 0.5)

    def _inside(self, dual: Array) -> Array:
        """Return a dual point in the range of the conjugate, away from the ends."""
        fit = self.problem.fit
        if isinstance(fit.loss, (Squared, Huber)):
            return np.array(fit.loss.admissible(dual, fit.targets, fit.weights))
        return dual_of(fit, np.clip(shares_of(fit, dual), 1e-8, 1.0 - 1e-8))

    def step(self, now: State) -> State | None:
        if now.stalled > _MOST_STALLED:
            return None
        enough = _ENOUGH_OF_GAP * max(min(now.best, 1.0), self._aim)
        solved = self._solved(Subproblem(self.scaled, self.terms, now.centre), now.dual, enough)
        if solved is None:
            return None
        following = self.after(now, solved)
        gap, before = self.relative_gap(following), now
        best = min(now.best, gap)
        is_good = solved.is_good and solved.decrement**2 <= _SHARE_OF_GAP * max(min(best, 1.0), self._aim) * abs(solved.at.value)
        if not is_good and (gap > _FAR_WORSE * best or solved.decrement**2 > abs(solved.at.value)):
            now, gap = self.shortened(now, following, math.sqrt(self._growth)), now.gap
        else:
            now = self.grown(following, best, _factor(self._growth, solved.steps) if is_good else 1.0)
        stalled = 0 if best < 0.9 * before.best or now.centre.step > before.largest else before.stalled + 1
        return replace(now, gap=gap, stalled=stalled, largest=max(before.largest, now.centre.step))

    def _solved(self, problem: Subproblem, dual: Array, enough: float) -> Solved | None:
        """Return a subproblem after Newton's method, on a working set of rows where few matter; None where memory takes no more."""
        d = len(self.scaled.units)
        rows = problem.working_rows(dual, _FIRST) if self._has_sets else np.arange(d)
        takes_all = not len(rows) or 2 * len(rows) > d
        if ((d if takes_all else len(rows)) * math.prod(self.problem.point_shape) // d) ** 2 > _MOST_ENTRIES:
            return None
        if takes_all:
            return maximised(problem, dual, enough)
        solved = maximised(problem.restricted(rows), dual, enough)
        shrunk = tuple(found._replace(point=_spread(found.point, rows, self.problem.design.n_features)) for found in solved.at.shrunk)
        return solved._replace(at=replace(solved.at, shrunk=shrunk))

    def iterate(self, now: State) -> Iterate:
        return Iterate(self.point(now), now.dual, now.step, now.work, claim=now.gap)

    def point(self, now: State) -> Array:
        parts = [term.coefficients(Z) for term, Z in zip(self.terms, now.centre.points, strict=True)]
        point = np.stack(parts).reshape(self.problem.point_shape)
        # Of a very long step rounding leaves points outside of their ball, by percents of it.
        return self.problem.repair(point) if any(term.radius is not None for term in self.terms) else point

    def after(self, now: State, solved: Solved) -> State:
        at = solved.at
        centre = Centre(tuple(found.point for found in at.shrunk), at.intercepts, now.centre.step)
        # Of squares X^T D X is the same in all steps.
        grams = 0.0 if isinstance(self.problem.fit.loss, Squared) else 0.5 * solved.squares / self.problem.design.n_features
        work = now.work + 3.0 * solved.steps + grams + 1.0
        return State(centre, at.dual, now.best, now.longest, now.largest, now.step + max(1, solved.steps), work)

    def grown(self, now: State, best: float, factor: float) -> State:
        """Return the state with sigma times a factor, as far as it may grow; after a failure it may by a half a step."""
        sigma = min(now.centre.step * factor, now.longest)
        return replace(now, best=best, longest=min(now.longest * min(factor, 1.5), self.longest), centre=now.centre._replace(step=sigma))

    def shortened(self, before: State, failed: State, factor: float) -> State:
        """Return the state before a step that failed, with a smaller sigma, which grows more slowly from here on."""
        sigma = before.centre.step / factor
        return replace(before, centre=before.centre._replace(step=sigma), longest=sigma, step=failed.step, work=failed.work)

    def relative_gap(self, now: State) -> float:
        """Return the relative gap up to rounding."""
        problem, fit, point = self.problem, self.problem.fit, self.point(now)
        value = fit.value(problem.predictions(point)) + problem.regulariser.value(point)
        dual, least = fit.normalised(fit.admissible(now.dual)), NEGLIGIBLE_SHARE * self.scaled.size**2
        if not dual.any():
            return gap_up_to_rounding(value, 0.0, least)
        support, limit = problem.regulariser.enclose_support(Interval.exact(fit.design.adjoint(dual)))
        return gap_up_to_rounding(value, fit.bound(dual, float(support.upper), limit.ends[0]), least)


def _spread(Z: Array, rows: Places, features: int) -> Array:
    """Return the matrix with these rows, and 0 in all others."""
    spread = np.zeros((features, Z.shape[1]))
    spread[rows] = Z
    return spread


def _factor(growth: float, steps: int) -> float:
    if steps <= _EASY:
        return growth
    return math.sqrt(growth) if steps <= _USUAL else 1.5 if steps < _HARD else 1.0


def maximised(problem: Subproblem, dual: Array, enough: float) -> Solved:
    """Return a subproblem after Newton's method on its dual, from a dual point inside its range.

    It ends where the square of its decrement is a share of `enough` of the value, or is rounding.
    """
    at, steps, squares, idle, is_good, decrement = problem.evaluate(dual), 0, 0.0, 0, True, math.inf
    while steps < _MOST_NEWTON:
        ended = problem.at_end(at)
        residual = at.residual if ended is None else np.where(ended, 0.0, at.residual)
        shares = 1.0 / at.curvature if ended is None else np.where(ended, 0.0, 1.0 / at.curvature)
        decrement = math.sqrt(max(0.0, float(np.vdot(residual, problem.weighted(residual, shares)))))
        unit = problem.scaled.size + math.sqrt(abs(at.value))
        if decrement <= _REST * unit or max(decrement**2, problem.missed(at)) <= enough * abs(at.value):
            break
        direction = problem.direction(at, residual, shares)
        steps, squares = steps + 1, squares + float(np.any([each.point.any(axis=1) for each in at.shrunk], axis=0).sum()) ** 2
        found = _searched(problem, at, direction, residual)
        if found is None:
            is_good = decrement <= 1e-7 * unit
            break
        idle = idle + 1 if found.value - at.value <= 0.1 * _LOSS * abs(at.value) else 0
        at = found
        if idle >= _MOST_IDLE:
            break
    return Solved(at, steps, squares, decrement, is_good)


def _searched(problem: Subproblem, at: Evaluation, direction: Array, residual: Array) -> Evaluation | None:
    """Return the first point that gains enough, after a step that is shortened to 0.33 to 0.5 of itself again and again; None where none
    does."""
    fit, length, slope = problem.scaled.fit, 1.0, float(np.vdot(residual, direction))
    for _ in range(_MOST_HALVINGS):
        dual = _moved(fit, at.dual, length * direction)
        found = problem.evaluate(dual)
        if found.value >= at.value + _GAIN * float(np.vdot(residual, dual - at.dual)) - _LOSS * abs(at.value):
            return found
        beyond = float(np.vdot(found.residual, direction))
        # by the secant through the slopes before and after the step
        length *= min(0.5, max(_SHORTEST, slope / (slope - beyond))) if beyond < 0.0 < slope else 0.5
    return None


def _moved(fit: LinearFit, dual: Array, change: Array) -> Array:
    """Return a dual point after a step that has this direction, and bends where it would come near the end of the range.

    A share of the range that falls by more than a half of it falls on as an exponential, and so does what is left above a share.
    """
    if isinstance(fit.loss, (Squared, Huber)):
        return fit.loss.admissible(dual + change, fit.targets, fit.weights)
    u, rise = shares_of(fit, dual), (-change if fit.loss.couples_tasks else fit.targets * change) / fit.weights
    room = np.where(rise > 0.0, 1.0 - u, u)
    with np.errstate(all="ignore"):
        part = np.where(rise == 0.0, 0.0, np.abs(rise) / room)
        left = room * np.maximum((1.0 - _STRAIGHT) * np.exp((_STRAIGHT - part) / (1.0 - _STRAIGHT)), _LEAST_LEFT)
    u = np.where(part <= _STRAIGHT, u + rise, np.where(rise > 0.0, 1.0 - left, left))
    return dual_of(fit, np.clip(u, 1e-10 * SMALLEST_SHARE, _LARGEST_SHARE))
