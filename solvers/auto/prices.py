"""What steps cost, in nanoseconds of which only the ratios matter, for a solver has no clock; and the gaps of methods on trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import methodcaller

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Problem

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
#: The gap is computed after this number of steps, and whenever they have grown by this factor.
FIRST_CHECK, _CHECK_GROWTH = 20, 1.5


@dataclass(frozen=True)
class Prices:
    """What a step of a first-order method and an iteration of `working_set` cost on a design."""

    design: Design
    step_example: float
    """An example, below an entry of W, and a task with data of its own, in a step of the first-order method."""
    step_coefficient: float
    step_task: float
    iteration_example: float
    """An example in an iteration of the working sets, and below an operation of its factorisations."""
    operation: float

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
        design = self.design
        fixed = _STEP_SHARED if design.is_shared else _STEP_OWN + self.step_task * design.n_tasks
        coefficients = design.n_features * design.n_tasks
        return self._pass + fixed + self.step_example * design.n_examples + self.step_coefficient * coefficients

    def iteration(self, rows: float) -> float:
        """Return the price of an iteration of the working sets on so many rows."""
        design = self.design
        m, rows = design.n_tasks, min(rows, design.n_features)
        share, n = rows / design.n_features, design.n_examples / m
        narrow = min(n * rows**2 + rows**3, 2.0 * n**2 * rows + n * rows**2)
        factors = self._entries * share * rows * share if design.is_sparse else m * narrow
        products = (0.5 + _PRODUCTS * share) * self._pass
        rest = _ITERATION + _ITERATION_TASK * m + self.iteration_example * design.n_examples
        return products + rest + self.operation * (factors + rows**3 / 3.0)


def digits(target: float) -> float:
    """Return the digits of a relative gap: 2 for 1e-2."""
    return max(0.0, -math.log10(target))


@dataclass
class Trial:
    """The gaps of the first-order method so far, and the steps that they predict."""

    problem: Problem
    target: float
    powers: tuple[float, float]
    """Gaps are taken to fall at least and at most as this power of the steps."""
    gaps: list[tuple[int, float]] = field(default_factory=list)
    """(step, relative gap)"""
    bounds: tuple[float, float] = (math.inf, -math.inf)
    work: float = 0.0

    def needs_gap(self, iterate: Iterate) -> bool:
        """Return whether the gap is to be computed at this iterate."""
        return iterate.step >= (_CHECK_GROWTH * self.gaps[-1][0] if self.gaps else FIRST_CHECK)

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
            return step * ((gap / self.target) ** (1.0 / self.powers[1]) - 1.0)
        s, g = earlier[-1]
        power = math.log(g / gap) / math.log(step / s) if g > gap else 0.0
        return step * ((gap / self.target) ** (1.0 / min(max(power, self.powers[0]), self.powers[1])) - 1.0)


def after_start(iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Leave out the point that a run starts from, and states, which would be copied for whoever holds an iterate."""
    return (iterate for iterate in map(methodcaller("_replace", state=None), iterates) if iterate.step > 0)
