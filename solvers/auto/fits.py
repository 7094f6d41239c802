"""`auto` for smooth losses under an l1,inf norm: working sets of rows, and an accelerated method where their steps become expensive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.types import Iterate
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.protocols import Problem
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.auto.prices import Prices, Trial, after_start, digits
from bench_mtl.solvers.working_set import WorkingSet

#: Prices of an example, an entry of W and a task in a step of the accelerated method, of an example and an operation in an iteration of
#: the sets.
_PRICES = (20.0, 25.0, 1.2e4, 60.0, 0.025)
#: Gaps of the accelerated method are taken to fall at least and at most as this power of its steps.
_POWERS = (2.0, 4.0)
#: It is tried where the sets are predicted to cost at least so many steps of it for every digit of the target, and again where they cost
#: this multiple of what they did.
_LEAST_STEPS, _DEARER = 60.0, 2.0
#: It is left when it has spent the first share of the price of the sets and is predicted to need more than the second.
_PATIENCE = ((0.1, 1.0), (0.7, 0.5), (1.2, 0.25), (2.0, 0.0))
#: A set that grows by more than this factor in a step has not settled: it may double in the next.
_GROWS, _DOUBLES = 1.3, 2.0
#: Iterations of the sets to a gap of 1, for every digit more, and at least: those in which they grow are not counted.
_FIRST_ITERATIONS, _A_DIGIT, _LEAST_LEFT = 3.0, 1.0, 2.0


@dataclass
class _Sets:
    """What the iterates of the working sets so far say of the price of the others."""

    prices: Prices
    iterations: float
    rows: int
    is_growing: bool = True

    def look_at(self, iterate: Iterate) -> None:
        rows = int(np.count_nonzero(iterate.primal.any(axis=1)))
        self.is_growing = rows > _GROWS * self.rows
        self.iterations -= not self.is_growing
        self.rows = rows

    def steps_left(self) -> float:
        """Return the price of the iterations that are left, in steps of the accelerated method."""
        rows = self.rows * (_DOUBLES if self.is_growing else 1.0)
        return max(_LEAST_LEFT, self.iterations) * self.prices.iteration(rows) / self.prices.step()


def fit_iterates(problem: Problem, start: Iterate, target: float, sets: WorkingSet) -> Iterator[Iterate]:
    """Iterate from `start` to the relative gap `target`.

    The working sets begin. Before any of their iterations from which on they are predicted to cost many steps of the accelerated method,
    that one is on trial: its gap is computed now and then and extrapolated, and it is left when it would cost as much as they. Both go on
    where they were. Where the sets end, for want of memory or by rounding, the accelerated method goes on.
    """
    design = problem.form(LinearForm).design
    prices = Prices(design, *_PRICES)
    state = _Sets(
        prices, _FIRST_ITERATIONS + _A_DIGIT * digits(target), max(min(2 * sets.first, design.n_features), int(prices.expected_rows))
    )
    trial = Trial(problem, target, _POWERS)
    gradient = after_start(AcceleratedGradient(restart="gradient").resume(problem, start))
    step, work_of_sets, tried = 0, 0.0, 0.0
    least_steps = _LEAST_STEPS * max(1.0, digits(target))
    last = Iterate(problem.repair(start.primal), start.dual)
    yield last
    note = "working_set"
    iterates = after_start(sets.resume(problem, start))
    while True:
        left = state.steps_left()
        if left > max(least_steps, _DEARER * tried):
            tried, begun = left, last.step
            for last in gradient:
                step += 1
                more = f"accelerated_gradient: about {left:.0f} steps of it are the price of working_set"
                yield Iterate(last.primal, last.dual, step, work_of_sets + last.work + trial.work, more)
                if not trial.needs_gap(last):
                    continue
                trial.compute_gap(last)
                spent, needed = last.step - begun, trial.steps_left()
                if trial.exceeds_target or any(spent >= share * left and needed > rest * left for share, rest in _PATIENCE):
                    break
            note = f"working_set after {last.step} steps of accelerated_gradient, predicted to need {trial.steps_left():.0f} more"
        by_sets = next(iterates, None)
        if by_sets is None:
            break
        step, work_of_sets = step + 1, by_sets.work
        yield Iterate(by_sets.primal, by_sets.dual, step, work_of_sets + last.work + trial.work, note, claim=by_sets.claim)
        state.look_at(by_sets)
    note = "accelerated_gradient, for working_set has ended"
    for last in gradient:
        step += 1
        yield Iterate(last.primal, last.dual, step, work_of_sets + last.work + trial.work, note)
