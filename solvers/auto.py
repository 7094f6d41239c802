"""Picks between the first-order method and working sets of rows for hinges under an l1,inf norm, and notes why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm
from bench_mtl.model.protocols import Form, IterativeSolver, Problem
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.working_set import WorkingSet

#: Targets below this are for the working sets from the start.
_CLOSE = 2e-3
#: Where they are predicted to cost less than this number of steps of the first-order method, it is not tried.
_CHEAP_STEPS = 40.0
#: Costs in nanoseconds; only their ratios matter. An entry of the design in a pass over it: tasks with data of their own, shared data,
#: sparse data. What a step of the first-order method costs besides: of the same two, and an example. An iteration of the other: in all,
#: a task, an example.
_ENTRY_OWN, _ENTRY_SHARED, _ENTRY_SPARSE = 0.5, 0.03, 0.8
_STEP_OWN, _STEP_SHARED, _STEP_EXAMPLE = 1e5, 4e5, 5.0
_ITERATION, _ITERATION_TASK, _ITERATION_EXAMPLE = 2e6, 1e5, 180.0
#: An operation of its factorisations, and the products on its rows in an iteration.
_OPERATION, _PRODUCTS = 0.05, 10.0
#: Its iterations to a gap of 1, and for every digit more.
_FIRST_ITERATIONS, _A_DIGIT = 4.0, 2.5
#: Rows that dense data are expected to need: this share.
_ROWS_SHARE = 0.25
#: The first-order method is left when it has spent the first share of the price and is predicted to need more than the second.
_PATIENCE = ((0.0, 1.0), (1.0, 0.25), (2.0, 0.0))
#: The gap is computed after this number of steps, and whenever they have grown by this factor.
_FIRST_CHECK, _CHECK_GROWTH = 20, 1.5
#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: Gaps are taken to fall at least and at most as this power of the steps.
_SLOWEST, _FASTEST = 1.9, 3.0


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """`PDHG` or `WorkingSet`, whichever is predicted to be quicker to the target.

    Targets below 2e-3 are for the working sets. For others pdhg begins where a step of it is cheap: its gap is computed now and then and
    extrapolated as a power of its steps, and it is left when the steps that it still needs cost more than the other method is predicted
    to. Where that one ends before the target, for want of memory, pdhg goes on.

    Parameters
    ----------
    target : relative gap; None takes that of the run, or 1e-6 where a run has none
    memory_gib : memory limit of the factors of the working sets in GiB

    Notes
    -----
    Steps and work are those of both methods added up. The note of the iterates says which method was picked, when, and why.
    """

    target: float | None = None
    memory_gib: float = 4.0

    name: ClassVar[str] = "auto"
    takes: ClassVar[tuple[type[Form], ...]] = (HingeForm,)

    def __post_init__(self) -> None:
        if self.target is not None:
            real_number("target", self.target, strict=True)
        real_number("memory_gib", self.memory_gib, strict=True)

    def aimed_at(self, relative_gap: float) -> Auto:
        return self if self.target is not None else replace(self, target=relative_gap)

    def warm_up(self) -> None:
        PDHG().warm_up()
        WorkingSet().warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        target = self.target or _DEFAULT_TARGET
        design, sets = problem.form(HingeForm).design, WorkingSet(memory_gib=self.memory_gib)
        price = _price(design, target, None)
        last = Iterate(problem.repair(start.primal), start.dual)
        note = f"working_set: the target {target:g} is close"
        if target >= _CLOSE:
            note = f"working_set: about as much as {price:.0f} steps of pdhg"
        yield last
        if target >= _CLOSE and price > _CHEAP_STEPS:
            trial, note = _Trial(problem, target), "pdhg: on trial"
            for last in _after_start(PDHG().resume(problem, start)):
                last = last._replace(work=last.work + trial.work)
                yield last._replace(note=note)
                if not trial.needs_gap(last):
                    continue
                trial.compute_gap(last)
                left, price = trial.steps_left(), _price(design, target, last.primal)
                if trial.exceeds_target:
                    note = f"working_set after {last.step} steps of pdhg, which took it beyond {target:g}"
                    break
                if any(last.step >= spent * price and left > more * price for spent, more in _PATIENCE):
                    note = f"working_set after {last.step} steps of pdhg: about {left:.0f} more to {target:g}, and this costs {price:.0f}"
                    break
                note = f"pdhg: about {left:.0f} steps more to {target:g}, and working_set costs {price:.0f}"
            start = Iterate(problem.start_point())
        for method in (sets, PDHG()):
            before = last
            for iterate in _after_start(method.resume(problem, start)):
                last = Iterate(iterate.primal, iterate.dual, before.step + iterate.step, before.work + iterate.work, note)
                yield last
            note = f"pdhg after {last.step} steps, for working_set has ended"
            start = Iterate(last.primal, last.dual)


def _after_start(iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Leave out the point that a run starts from."""
    return (iterate for iterate in iterates if iterate.step > 0)


@dataclass
class _Trial:
    """The gaps of the first-order method so far, and the steps that they predict."""

    problem: Problem
    target: float
    gaps: list[tuple[int, float]] = field(default_factory=list)
    """(step, relative gap)"""
    bounds: tuple[float, float] = (math.inf, -math.inf)
    work: float = 0.0

    def needs_gap(self, iterate: Iterate) -> bool:
        """Return whether the gap is to be computed at this iterate."""
        return iterate.step >= (_CHECK_GROWTH * self.gaps[-1][0] if self.gaps else _FIRST_CHECK)

    def compute_gap(self, iterate: Iterate) -> None:
        """Compute the gap by one pass: the objective takes a product with the data, the dual bound one with their transpose."""
        upper, lower = self.bounds
        upper = min(upper, self.problem.objective(iterate.primal))
        lower = max(lower, self.problem.dual_bound(iterate.primal, iterate.dual))
        self.bounds = upper, lower
        self.work += 1.0
        self.gaps.append((iterate.step, (upper - lower) / upper if upper > 0.0 else 0.0))

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
            return step * ((gap / self.target) ** (1.0 / _FASTEST) - 1.0)
        s, g = earlier[-1]
        power = math.log(g / gap) / math.log(step / s) if g > gap else 0.0
        return step * ((gap / self.target) ** (1.0 / min(max(power, _SLOWEST), _FASTEST)) - 1.0)


def _price(design: Design, target: float, W: Array | None) -> float:
    """Return the cost of the working sets to a relative gap, in steps of the first-order method; `W` says how many rows there may be."""
    m, d, examples = design.n_tasks, design.n_features, design.n_examples
    entries = design.n_stored * (m if design.is_shared else 1)
    entry = _ENTRY_SPARSE if design.is_sparse else _ENTRY_SHARED if design.is_shared else _ENTRY_OWN
    expected = 0.0 if design.is_sparse else _ROWS_SHARE * d
    rows = float(min(d, max(WorkingSet().first, expected if W is None else np.count_nonzero(W.any(axis=1)))))
    share, n = rows / d, examples / m
    narrow = min(n * rows**2 + rows**3, 2.0 * n**2 * rows + n * rows**2)
    factors = entries * share * rows * share if design.is_sparse else m * narrow
    step = entry * entries + (_STEP_SHARED if design.is_shared else _STEP_OWN) + _STEP_EXAMPLE * examples
    products = (0.5 + _PRODUCTS * share) * entry * entries
    iteration = products + _ITERATION + _ITERATION_TASK * m + _ITERATION_EXAMPLE * examples + _OPERATION * (factors + rows**3 / 3.0)
    return (_FIRST_ITERATIONS + _A_DIGIT * max(0.0, -math.log10(target))) * iteration / step
