"""`auto` for hinges under an l1,inf norm: the first-order method or working sets of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.solvers.auto.prices import Prices, Trial, after_start, digits
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.solvers.working_set import WorkingSet

#: Targets below this are for the working sets from the start.
_CLOSE = 2e-3
#: Where they are predicted to cost less than this number of steps of the first-order method, it is not tried.
_CHEAP_STEPS = 40.0
#: The first-order method is left when it has spent the first share of the price and is predicted to need more than the second.
_PATIENCE = ((0.0, 1.0), (1.0, 0.25), (2.0, 0.0))
#: Iterations of the working sets to a gap of 1, and for every digit more.
_FIRST_ITERATIONS, _A_DIGIT = 4.0, 2.5
#: Prices of an example, an entry of W and a task in a step of pdhg, of an example and an operation in an iteration of the working sets.
_PRICES = (5.0, 0.0, 0.0, 180.0, 0.05)
#: Gaps of pdhg are taken to fall at least and at most as this power of the steps.
_POWERS = (1.9, 3.0)


def _price(prices: Prices, target: float, W: Array | None, first: int) -> float:
    """Return the cost of the working sets to a relative gap, in steps of pdhg; `W` says how many rows there may be."""
    rows = max(first, prices.expected_rows if W is None else int(np.count_nonzero(W.any(axis=1))))
    return (_FIRST_ITERATIONS + _A_DIGIT * digits(target)) * prices.iteration(rows) / prices.step()


def hinge_iterates(problem: Problem, start: Iterate, target: float, sets: WorkingSet) -> Iterator[Iterate]:
    """Iterate from `start` to the relative gap `target`.

    Targets below 2e-3 are for the working sets. For others pdhg begins where a step of it is cheap: its gap is computed now and then
    and extrapolated as a power of its steps, and it is left when the steps that it still needs cost more than the other method is
    predicted to. Where that one ends before the target, for want of memory, pdhg goes on. With intercepts, which pdhg does not take, the
    working sets begin, and `smoothed_gradient` goes on.
    """
    form = problem.form(Hinges)
    prices = Prices(form.design, *_PRICES)
    price = _price(prices, target, None, sets.first)
    last = Iterate(problem.repair(start.primal), start.dual)
    note = f"working_set: the target {target:g} is close"
    if target >= _CLOSE:
        note = f"working_set: about as much as {price:.0f} steps of pdhg"
    yield last._replace(claim=math.inf if target < _CLOSE and not form.has_intercept else None)
    if form.has_intercept:
        note = "working_set: there are intercepts"
    elif target >= _CLOSE and price > _CHEAP_STEPS:
        trial, note = Trial(problem, target, _POWERS), "pdhg: on trial"
        for last in after_start(PDHG().resume(problem, start)):
            last = last._replace(work=last.work + trial.work, state=None)  # which lacks what the trial has seen
            yield last._replace(note=note)
            if not trial.needs_gap(last):
                continue
            trial.compute_gap(last)
            left, price = trial.steps_left(), _price(prices, target, last.primal, sets.first)
            if trial.exceeds_target:
                note = f"working_set after {last.step} steps of pdhg, which took it beyond {target:g}"
                break
            if any(last.step >= spent * price and left > more * price for spent, more in _PATIENCE):
                note = f"working_set after {last.step} steps of pdhg: about {left:.0f} more to {target:g}, and this costs {price:.0f}"
                break
            note = f"pdhg: about {left:.0f} steps more to {target:g}, and working_set costs {price:.0f}"
        start = Iterate(problem.start_point())
    rest: IterativeSolver = SmoothedGradient() if form.has_intercept else PDHG()
    for method in (sets, rest):
        before = last
        for iterate in after_start(method.resume(problem, start)):
            last = Iterate(iterate.primal, iterate.dual, before.step + iterate.step, before.work + iterate.work, note, claim=iterate.claim)
            yield last
        note = f"{rest.name} after {last.step} steps, for working_set has ended"
        start = Iterate(last.primal, last.dual)
