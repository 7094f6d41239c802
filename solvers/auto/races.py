"""`auto` under an l1,inf norm: working sets of rows against a first-order method, by prices and by the gaps of that method on trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import methodcaller

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.solvers.working_set import WorkingSet
from bench_mtl.solvers.working_set.run import rows_in_use

# A solver has no clock: prices are nanoseconds of which only the ratios matter.

#: An entry of the design in a pass over it: tasks with data of their own, shared data for every task and once for all, sparse data.
_ENTRY_OWN, _ENTRY_SHARED, _READ_SHARED, _ENTRY_SPARSE = 0.5, 0.03, 0.8, 0.8
#: What a step of a first-order method costs besides, of the same two.
_STEP_OWN, _STEP_SHARED = 1e5, 4e5
#: An iteration of the working sets: in all, and a task.
_ITERATION, _ITERATION_TASK = 2e6, 1e5
#: The products on its rows in an iteration.
_PRODUCTS = 10.0
#: Rows that dense data are expected to need: this share.
_ROWS_SHARE = 0.25
#: The gap of a method on trial is computed after this number of steps, and whenever they have grown by this factor.
_FIRST_CHECK, _CHECK_GROWTH = 20, 1.5


@dataclass(frozen=True)
class Rule:
    """What is known of a first-order method and the working sets on one kind of problem."""

    step_example: float
    """The price of an example, below of an entry of W, and of a task with data of its own, in a step of the first-order method."""
    step_coefficient: float
    step_task: float
    iteration_example: float
    """The price of an example in an iteration of the working sets, and below of an operation of its factorisations."""
    operation: float
    powers: tuple[float, float]
    """Gaps of the first-order method are taken to fall at least and at most as this power of its steps."""
    patience: tuple[tuple[float, float], ...]
    """It is left when it has spent the first share of the price of the sets and is predicted to need more than the second."""
    first_iterations: float
    """Iterations of the sets to a gap of 1, and for every digit more."""
    a_digit: float

    def iterations(self, target: float) -> float:
        return self.first_iterations + self.a_digit * digits(target)

    def leaves(self, spent: float, needed: float, price: float) -> bool:
        return any(spent >= share * price and needed > rest * price for share, rest in self.patience)


#: Against `PDHG`.
_HINGES = Rule(5.0, 0.0, 0.0, 180.0, 0.05, (1.9, 3.0), ((0.0, 1.0), (1.0, 0.25), (2.0, 0.0)), 4.0, 2.5)
#: Against `AcceleratedGradient`. Iterations in which the sets grow are not counted.
_FITS = Rule(20.0, 25.0, 1.2e4, 60.0, 0.025, (2.0, 4.0), ((0.1, 1.0), (0.7, 0.5), (1.2, 0.25), (2.0, 0.0)), 3.0, 1.0)
#: Hinges: targets below this are for the working sets from the start.
_CLOSE = 2e-3
#: Hinges: where the sets are predicted to cost less than this number of steps of the first-order method, it is not tried.
_CHEAP_STEPS = 40.0
#: Fits: it is tried where the sets are predicted to cost at least so many steps of it for every digit of the target, and again where they
#: cost this multiple of what they did.
_LEAST_STEPS, _DEARER = 60.0, 2.0
#: A set that grows by more than this factor in a step has not settled: it may double in the next.
_GROWS, _DOUBLES = 1.3, 2.0
#: Iterations that a set is taken to need at least.
_LEAST_LEFT = 2.0


@dataclass(frozen=True)
class Prices:
    """What a step of a first-order method and an iteration of `working_set` cost on a design."""

    design: Design
    rule: Rule

    @property
    def _pass(self) -> float:
        design = self.design
        if design.is_shared and not design.is_sparse:
            return _ENTRY_SHARED * self._entries + _READ_SHARED * design.n_stored
        return (_ENTRY_SPARSE if design.is_sparse else _ENTRY_OWN) * self._entries

    @property
    def _entries(self) -> float:
        return self.design.n_stored * (self.design.n_tasks if self.design.is_shared else 1)

    @property
    def expected_rows(self) -> float:
        return 0.0 if self.design.is_sparse else _ROWS_SHARE * self.design.n_features

    def step(self) -> float:
        """Return the price of a step of the first-order method."""
        design, rule = self.design, self.rule
        fixed = _STEP_SHARED if design.is_shared else _STEP_OWN + rule.step_task * design.n_tasks
        coefficients = design.n_features * design.n_tasks
        return self._pass + fixed + rule.step_example * design.n_examples + rule.step_coefficient * coefficients

    def iteration(self, rows: float) -> float:
        """Return the price of an iteration of the working sets on so many rows."""
        design = self.design
        m, rows = design.n_tasks, min(rows, design.n_features)
        share, n = rows / design.n_features, design.n_examples / m
        narrow = min(n * rows**2 + rows**3, 2.0 * n**2 * rows + n * rows**2)
        factors = self._entries * share * rows * share if design.is_sparse else m * narrow
        products = (0.5 + _PRODUCTS * share) * self._pass
        rest = _ITERATION + _ITERATION_TASK * m + self.rule.iteration_example * design.n_examples
        return products + rest + self.rule.operation * (factors + rows**3 / 3.0)


def digits(target: float) -> float:
    """Return the digits of a relative gap: 2 for 1e-2."""
    return max(0.0, -math.log10(target))


@dataclass
class Trial:
    """The gaps of the first-order method so far, and the steps that they predict."""

    problem: Problem
    target: float
    powers: tuple[float, float]
    gaps: list[tuple[int, float]] = field(default_factory=list)
    """(step, relative gap)"""
    bounds: tuple[float, float] = (math.inf, -math.inf)
    work: float = 0.0

    def has_looked(self, iterate: Iterate) -> bool:
        """Compute the gap at this iterate where that is due, by one pass: the objective takes a product with the data, the dual bound one
        with their transpose. Return whether it was."""
        if iterate.step < (_CHECK_GROWTH * self.gaps[-1][0] if self.gaps else _FIRST_CHECK):
            return False
        upper, lower = self.bounds
        upper = min(upper, self.problem.objective(iterate.primal))
        lower = max(lower, self.problem.dual_bound(iterate.primal, iterate.dual))
        self.bounds = upper, lower
        self.work += 1.0
        self.gaps.append((iterate.step, (upper - lower) / upper if upper > 0.0 else 0.0))
        return True

    @property
    def exceeds_target(self) -> bool:
        """Whether the target was met at the last gap but one, and the run still goes on."""
        return len(self.gaps) > 1 and self.gaps[-2][1] <= self.target

    def steps_left(self) -> float:
        """Return the steps until the target, if the gap goes on falling as the power of the steps of their second half."""
        step, gap = self.gaps[-1]
        if gap <= self.target:
            return 0.0
        earlier = [(s, g) for s, g in self.gaps if s <= 0.5 * step]
        if not earlier:
            return step * ((gap / self.target) ** (1.0 / self.powers[1]) - 1.0)
        s, g = earlier[-1]
        power = math.log(g / gap) / math.log(step / s) if g > gap else 0.0
        return step * ((gap / self.target) ** (1.0 / min(max(power, self.powers[0]), self.powers[1])) - 1.0)


def after_start(iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Leave out the point that a run starts from, and states, which would be copied for whoever holds an iterate."""
    return (iterate for iterate in map(methodcaller("_replace", state=None), iterates) if iterate.step > 0)


def hinge_iterates(problem: Problem, start: Iterate, target: float, sets: WorkingSet) -> Iterator[Iterate]:
    """Iterate from `start` to the relative gap `target` of hinges.

    Targets below 2e-3 are for the working sets. For others pdhg begins where a step of it is cheap: its gap is computed now and then
    and extrapolated as a power of its steps, and it is left when the steps that it still needs cost more than the other method is
    predicted to. Where that one ends before the target, for want of memory, pdhg goes on. With intercepts, which pdhg does not take, the
    working sets begin, and `smoothed_gradient` goes on.
    """
    form = problem.form(Hinges)
    prices = Prices(form.design, _HINGES)

    def price_of(W: Array | None) -> float:
        """Return the cost of the working sets in steps of pdhg; `W` says how many rows there may be."""
        rows = max(sets.first, prices.expected_rows if W is None else int(np.count_nonzero(W.any(axis=1))))
        return _HINGES.iterations(target) * prices.iteration(rows) / prices.step()

    price = price_of(None)
    last = Iterate(problem.repair(start.primal), start.dual)
    note = f"working_set: the target {target:g} is close"
    if target >= _CLOSE:
        note = f"working_set: about as much as {price:.0f} steps of pdhg"
    yield last._replace(claim=math.inf if target < _CLOSE and not form.has_intercept else None)
    if form.has_intercept:
        note = "working_set: there are intercepts"
    elif target >= _CLOSE and price > _CHEAP_STEPS:
        trial, note = Trial(problem, target, _HINGES.powers), "pdhg: on trial"
        for last in after_start(PDHG().resume(problem, start)):
            last = last._replace(work=last.work + trial.work, state=None)  # which lacks what the trial has seen
            yield last._replace(note=note)
            if not trial.has_looked(last):
                continue
            left, price = trial.steps_left(), price_of(last.primal)
            if trial.exceeds_target:
                note = f"working_set after {last.step} steps of pdhg, which took it beyond {target:g}"
                break
            if _HINGES.leaves(last.step, left, price):
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


@dataclass
class _Sets:
    """What the iterates of the working sets so far say of the price of the others."""

    prices: Prices
    iterations: float
    rows: int
    is_growing: bool = True

    def look_at(self, iterate: Iterate) -> None:
        rows = int(np.count_nonzero(rows_in_use(iterate.primal)))
        self.is_growing = rows > _GROWS * self.rows
        self.iterations -= not self.is_growing
        self.rows = rows

    def steps_left(self) -> float:
        """Return the price of the iterations that are left, in steps of the accelerated method."""
        rows = self.rows * (_DOUBLES if self.is_growing else 1.0)
        return max(_LEAST_LEFT, self.iterations) * self.prices.iteration(rows) / self.prices.step()


def fit_iterates(problem: Problem, start: Iterate, target: float, sets: WorkingSet) -> Iterator[Iterate]:
    """Iterate from `start` to the relative gap `target` of a smooth loss.

    The working sets begin. Before any of their iterations from which on they are predicted to cost many steps of the accelerated method,
    that one is on trial: its gap is computed now and then and extrapolated, and it is left when it would cost as much as they. Both go on
    where they were. Where the sets end, for want of memory or by rounding, the accelerated method goes on.
    """
    design = problem.form(LinearForm).design
    prices = Prices(design, _FITS)
    state = _Sets(prices, _FITS.iterations(target), max(min(2 * sets.first, design.n_features), int(prices.expected_rows)))
    trial = Trial(problem, target, _FITS.powers)
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
                if trial.has_looked(last) and (trial.exceeds_target or _FITS.leaves(last.step - begun, trial.steps_left(), left)):
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
