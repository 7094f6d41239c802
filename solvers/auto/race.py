"""A race of solvers: the turn is that of the one that can be first, until one of them proves the target.

Every candidate has a lower bound on what it costs to the target: what it has spent, and the least that it still needs. The lowest bound has
the turn. When a candidate proves the target at a cost T, the last turn of any other was at a bound of at most T, so it has spent no more
than T and a step: a race of two costs at most 2 T and a step. A bound may be too high, of a method that suddenly becomes faster: it is
trusted up to a multiple of what the candidate has spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver
from bench_mtl.model.solver_state import OwnState, entries_of, state_of

#: The gap of a first-order method is tested when its steps have doubled, and have cost so many times what a test does.
_TESTS = 10.0
#: A bound is trusted up to so many times what a candidate has spent.
_TRUSTED = 16.0
#: The gap of a first-order method falls with no more than this power of its steps, or than so many times the power of late.
_POWER, _FASTER = 3.0, 2.0
#: How the entries begin that are of the state of a candidate's solver.
_INNER = "inner_"


class GapTest(NamedTuple):
    """A gap that a candidate had."""

    step: int
    spent: float
    gap: float = 1.0


#: The least that a candidate still needs to a gap, from its last test but one and its last.
Bound: TypeAlias = Callable[[GapTest, GapTest, float], float]


def by_steps(before: GapTest, now: GapTest, target: float) -> float:
    """Return the price of the rest for a second-order method: a step for every digit, as dear as the last."""
    return (now.spent - before.spent) * digits(target, now.gap)


def by_power(before: GapTest, now: GapTest, target: float) -> float:
    """Return the price of the rest for a first-order method, whose gap falls as a power of its steps."""
    if now.gap <= target:
        return 0.0
    a_step = (now.spent - before.spent) / (now.step - before.step)
    power = max(_POWER, _FASTER * math.log(max(before.gap, target) / now.gap) / math.log(now.step / before.step))
    return a_step * now.step * ((now.gap / target) ** (1.0 / power) - 1.0)


def digits(target: float, gap: float = 1.0) -> float:
    """Return the digits between a relative gap and a smaller one: 2 from 1 to 1e-2."""
    return 0.0 if gap <= target else math.log10(gap / target) if target > 0.0 else math.inf


@dataclass(frozen=True)
class Candidate:
    """A solver that may enter a race: by default where all others have ended."""

    solver: IterativeSolver
    price: Callable[[Iterate, Iterate], float] = lambda before, after: 0.0
    """Of going from one of its iterates to the next."""
    least: float = math.inf
    """What it costs to the target at least."""
    bound: Bound = by_power
    """Of what it still needs."""
    test: float = 0.0
    """The price of its gap, where it states none."""


class Race:
    """What candidates have done so far on a problem, from a point, to a relative gap."""

    def __init__(self, solver: Solver, candidates: Sequence[Candidate], problem: Problem, start: Iterate, target: float) -> None:
        self._solver = solver
        self._shown_first, self._earlier = start, OwnState.of(solver, start)
        self._begin = Iterate(problem.repair(start.primal), start.dual)
        if self._earlier is not None:
            self._begin = Iterate(*_points(self._earlier, problem, "begin_"))
        self._lanes = [_Lane(each, problem, self._begin, target) for each in candidates]
        if self._earlier is not None:
            for k, lane in enumerate(self._lanes):
                lane.go_on(k, self._earlier)

    def iterates(self) -> Iterator[Iterate]:
        claim = None if self._begin.primal.any() else math.inf  # nobody begins at the optimum
        yield self._begin._replace(claim=claim) if self._earlier is None else self._shown_first
        while lane := min((lane for lane in self._lanes if not lane.has_ended), key=lambda lane: lane.reach, default=None):
            ended = [each.last for each in self._lanes if each.has_ended]
            if ended and lane.reach == math.inf and not lane.spent:
                lane.follow(ended[-1])
            if lane.advance():
                yield self._shown(lane)

    def _shown(self, lane: _Lane) -> Iterate:
        last, begun = lane.last, [each for each in self._lanes if each.spent > 0.0]
        step, work = sum(each.last.step for each in begun), sum(each.last.work + each.tests for each in begun)
        note = "; ".join([lane.label, *(f"{each.label} has taken {each.last.step} steps" for each in begun if each is not lane)])
        has_states = all(each.last.state is not None for each in begun)
        state = partial(_race_state, self._solver, self._begin, [copy(each) for each in self._lanes]) if has_states else None
        return Iterate(last.primal, last.dual, step, work, note, state, last.claim)


class _Lane:
    """What one candidate has done."""

    def __init__(self, candidate: Candidate, problem: Problem, start: Iterate, target: float) -> None:
        self._candidate, self._problem, self._target = candidate, problem, target
        self.last, self.spent, self.tests, self.has_ended = start, 0.0, 0.0, False
        self._bound, self._test, self._has_begun = candidate.least, GapTest(0, 0.0), False
        self._iterates: Iterator[Iterate] = iter(())

    @property
    def label(self) -> str:
        return self._candidate.solver.label

    @property
    def reach(self) -> float:
        """What it costs to the target at least."""
        return max(self.spent, min(self._bound, _TRUSTED * self.spent)) if self.spent > 0.0 else self._candidate.least

    def follow(self, last: Iterate) -> None:
        """Begin where another candidate has ended: at its point and, if that has the shape of the problem's, at its dual point."""
        is_alike = last.dual is not None and last.dual.shape == self._problem.dual_shape
        self.last = Iterate(last.primal, last.dual if is_alike else None)

    def advance(self) -> bool:
        """Take a step; return whether there was one."""
        if not self._has_begun:
            self._has_begun, self.last = True, Iterate(self.last.primal, self.last.dual)
            self._iterates = after_start(self._candidate.solver.resume(self._problem, self.last), 0)
        new = next(self._iterates, None)
        self.has_ended = new is None
        if new is not None:
            self.spent += max(self._candidate.price(self.last, new), 1.0)
            self.last = new
            self._learn()
        return new is not None

    def _learn(self) -> None:
        """Bound what is still needed: at every step of a method of second order, now and then of another."""
        last, gap, price = self.last, self.last.claim, self._candidate.test
        if self._candidate.bound is not by_steps:
            if self._test.step == 0:  # it has been prepared
                self._test = GapTest(last.step, self.spent)
            if last.step < 2 * self._test.step or self.spent - self._test.spent < _TESTS * price:
                return
        if gap is None:
            upper, lower = self._problem.objective(last.primal), self._problem.dual_bound(last.primal, last.dual)
            gap = (upper - lower) / upper if upper > 0.0 else 0.0
            self.tests += 1.0
            self.spent += price
        now = GapTest(last.step, self.spent, min(1.0, max(0.0, gap)) if math.isfinite(gap) else 1.0)
        self._bound = self.spent + self._candidate.bound(self._test, now, self._target)
        self._test = now

    def entries(self) -> dict[str, Any]:
        """Return what this has done as entries of a state; none of a candidate that has not begun."""
        if self.spent == 0.0:
            return {}
        last, test = self.last, {f"test_{name}": value for name, value in self._test._asdict().items()}
        inner = {_INNER + key: value for key, value in (entries_of(last) or {}).items() if not isinstance(value, str)}
        numbers = {"spent": self.spent, "tests": self.tests, "bound": self._bound, "has_ended": self.has_ended, **test}
        return {**numbers, "step": last.step, "work": last.work, "primal": last.primal, "dual": last.dual, **inner}

    def go_on(self, number: int, earlier: OwnState) -> None:
        """Go on from what a state has of this candidate. The next step is taken at once, so that a state that does not fit is refused."""
        prefix = _prefix(number)
        inner = {key.removeprefix(prefix): value for key, value in earlier.entries.items() if key.startswith(prefix)}
        if not inner:
            return
        state, problem, solver = OwnState(inner), self._problem, self._candidate.solver
        self.spent, self.tests, self._bound = state.number("spent"), state.number("tests"), state.number("bound")
        self._test = GapTest(int(state.number("test_step")), state.number("test_spent"), state.number("test_gap"))
        self.has_ended, self._has_begun = bool(state.number("has_ended")), True
        entries = {key.removeprefix(_INNER): value for key, value in inner.items() if key.startswith(_INNER)}
        counts = int(state.number("step")), state.number("work")
        self.last = Iterate(*_points(state, problem), *counts, state=state_of(solver, **entries))
        if not self.has_ended:
            rest = after_start(solver.resume(problem, self.last), counts[0])
            self._iterates = chain(list(islice(rest, 1)), rest)


def _race_state(solver: Solver, begin: Iterate, lanes: Sequence[_Lane]) -> Mapping[str, Any]:
    """Return the entries of a race, which are made when somebody asks for them."""
    named = {_prefix(k) + key: value for k, lane in enumerate(lanes) for key, value in lane.entries().items()}
    return state_of(solver, begin_primal=begin.primal, begin_dual=begin.dual, **named)


def _prefix(number: int) -> str:
    """Return how the entries of a state begin that are of the candidate of this number."""
    return f"of_{number}_"


def _points(state: OwnState, problem: Problem, prefix: str = "") -> tuple[Array, Array | None]:
    """Return the point and the dual point, if any, that a state has of these names."""
    primal, name = state.array(f"{prefix}primal", np.empty(problem.point_shape)), f"{prefix}dual"
    if name not in state.entries:
        return primal, None
    ndim = np.ndim(state.entries[name])
    return primal, state.array(name, np.empty(next((shape for shape in problem.dual_shapes if len(shape) == ndim), problem.dual_shape)))


def after_start(iterates: Iterator[Iterate], step: int) -> Iterator[Iterate]:
    """Leave out the point that a run starts from."""
    return (iterate for iterate in iterates if iterate.step > step)
