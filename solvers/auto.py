"""Picks between the first-order and the interior-point method for hinges under an l1,inf norm, and says why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm
from bench_mtl.model.protocols import Form, IterativeSolver, Problem
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.interior_point.system import factor_passes
from bench_mtl.solvers.pdhg import PDHG

#: What an iteration of the interior-point method takes, in steps of the first-order one: so many for its products and solves, and so many
#: for a pass over the data's worth of operations in its factorisations. Of shared data a pass is one product of matrices, as quick as a
#: factorisation where it has many columns: the second number is for many tasks, and m / (m + `_COLUMNS`) of it for m.
_COST_OWN, _COST_SHARED, _COLUMNS = (20.0, 1.0), (13.0, 2.0), 96.0
#: Iterations of the interior-point method to a gap of 1, and for every digit more.
_NEWTON_OWN, _NEWTON_SHARED = (6.5, 1.8), (4.5, 1.5)
#: The gap is looked at after so many steps, and whenever they have grown by this factor.
_FIRST_LOOK, _LOOK_GROWTH = 20, 1.5
#: What one look costs, in steps.
_LOOK = 2.0
#: The share of the interior-point method's price that goes into finding out whether it is needed.
_TRIAL_SHARE = 0.1
#: What is foreseen to be left ends a trial above the first share of the price, or above `_OVERDUE` where the second share is spent already.
#: Shared data bring plateaus, which no foresight sees.
_PATIENCE_OWN, _PATIENCE_SHARED, _OVERDUE = (0.7, 1.0), (0.5, 0.5), 0.2
#: For tasks with data of their own the polish of pdhg goes from the first gap to the optimum, for the second multiple of all work so far.
_POLISHED, _POLISH_COST = 8e-5, 2.5
#: What a run without a target is aimed at.
_DEFAULT_TARGET = 1e-6
#: Gaps are taken to fall at least and at most as this power of the steps.
_SLOWEST, _FASTEST = 1.9, 3.0


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """`PDHG` or `InteriorPoint`, whichever is foreseen to be quicker to the target.

    An iteration of the interior-point method costs a known number of operations, and it needs few and foreseeable ones; what it will take
    is its price, in steps of pdhg. Pdhg begins, its gap is looked at now and then and extrapolated as a power of its steps, and it is left
    when what it still needs comes near the price; not before a tenth of the price is spent, and with few exceptions not after all of it is
    (for shared data half), so that a wrong beginning mostly costs about as much again; more where the foresight stays bright and
    wrong. Where the interior-point method would not fit into memory, pdhg goes on. Asked for more than its target, it takes the interior-
    point method.

    Parameters
    ----------
    target : the relative gap to be quick to; None takes that of the run, or 1e-6 where a run has none
    memory_gib : of the interior-point method

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
        InteriorPoint().warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        target = self.target or _DEFAULT_TARGET
        newton = InteriorPoint(memory_gib=self.memory_gib)
        refusal = newton.incompatibility(problem)
        price = _price(problem, target) if refusal is None else math.inf
        trial = _Trial(problem, target)
        dear, late = _PATIENCE_SHARED if problem.form(HingeForm).design.is_shared else _PATIENCE_OWN
        last = start
        note = (
            f"pdhg, for {refusal}"
            if refusal
            else f"pdhg: on trial for {_TRIAL_SHARE * price:.0f} steps, a tenth of what interior_point costs"
        )
        for last in PDHG().resume(problem, start):
            yield last._replace(work=last.work + trial.work, note=note)
            if refusal or not trial.is_due(last):
                continue
            trial.look(last)
            left, spent = trial.steps_left(), last.step + trial.cost
            if trial.is_over:
                note = f"interior_point after {last.step} steps of pdhg, which took it beyond {target:g}"
                break
            if (left > dear * price and spent >= _TRIAL_SHARE * price) or (left > _OVERDUE * price and spent >= late * price):
                note = f"interior_point after {last.step} steps of pdhg: about {left:.0f} more to {target:g}, and this costs {price:.0f}"
                break
            note = f"pdhg: about {left:.0f} steps more to {target:g}, and interior_point costs {price:.0f}"
        work = last.work + trial.work
        for iterate in newton.steps(problem):
            if iterate.step > 0:
                yield Iterate(iterate.primal, iterate.dual, last.step + iterate.step, work + iterate.work, note)


@dataclass
class _Trial:
    """What looking at the gap of the first-order method has shown."""

    problem: Problem
    target: float
    gaps: list[tuple[int, float]] = field(default_factory=list)
    """(step, relative gap)"""
    bounds: tuple[float, float] = (math.inf, -math.inf)
    work: float = 0.0

    def is_due(self, iterate: Iterate) -> bool:
        return iterate.step >= (_LOOK_GROWTH * self.gaps[-1][0] if self.gaps else _FIRST_LOOK)

    @property
    def cost(self) -> float:
        """Of all looks so far, in steps."""
        return _LOOK * len(self.gaps)

    def look(self, iterate: Iterate) -> None:
        """One pass: the objective takes a product with the data, the dual bound one with their transpose."""
        upper, lower = self.bounds
        upper = min(upper, self.problem.objective(iterate.primal))
        lower = max(lower, self.problem.dual_bound(iterate.primal, iterate.dual))
        self.bounds = upper, lower
        self.work += 1.0
        self.gaps.append((iterate.step, (upper - lower) / upper if upper > 0.0 else 0.0))

    @property
    def is_over(self) -> bool:
        """Whether the target was met at the look before the last, and somebody still asks for more."""
        return len(self.gaps) > 1 and self.gaps[-2][1] <= self.target

    def steps_left(self) -> float:
        """Until the target, if the gap goes on falling as the power of the steps that it has fallen with since half of them."""
        design = self.problem.form(HingeForm).design
        if design.is_shared or self.target >= _POLISHED:
            return self._steps_left(self.target)
        step, gap = self.gaps[-1]
        return 0.0 if gap <= self.target else _POLISH_COST * (step + self._steps_left(_POLISHED)) - step

    def _steps_left(self, target: float) -> float:
        step, gap = self.gaps[-1]
        if gap <= target:
            return 0.0
        earlier = [(s, g) for s, g in self.gaps if s <= 0.5 * step]
        if not earlier:
            return step * ((gap / target) ** (1.0 / _FASTEST) - 1.0)
        s, g = earlier[-1]
        power = math.log(g / gap) / math.log(step / s) if g > gap else 0.0
        return step * ((gap / target) ** (1.0 / min(max(power, _SLOWEST), _FASTEST)) - 1.0)


def _price(problem: Problem, target: float) -> float:
    """Of the interior-point method to a relative gap, in steps of the first-order one."""
    design = problem.form(HingeForm).design
    (products, factors), (first, a_digit) = _COST_OWN, _NEWTON_OWN
    if design.is_shared:
        first, a_digit = _NEWTON_SHARED
        products, factors = _COST_SHARED[0], _COST_SHARED[1] * design.n_tasks / (design.n_tasks + _COLUMNS)
    iterations = first + a_digit * max(0.0, -math.log10(target))
    return iterations * (products + factors * factor_passes(design))
