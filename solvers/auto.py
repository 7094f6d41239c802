"""Picks between the first-order and the interior-point method for hinges under an l1,inf norm, and notes why."""

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

#: The cost of an iteration of the interior-point method in steps of the first-order one: the first number for its products and solves, the
#: second for every pass over the data that its factorisations have operations for. With shared data a pass is one product of matrices, as
#: quick as a factorisation where it has many columns: the second number is for many tasks, and m / (m + `_COLUMNS`) of it for m.
_COST_OWN, _COST_SHARED, _COLUMNS = (20.0, 1.0), (13.0, 2.0), 96.0
#: Iterations of the interior-point method to a gap of 1, and for every digit more.
_NEWTON_OWN, _NEWTON_SHARED = (6.5, 1.8), (4.5, 1.5)
#: The gap is computed after this number of steps, and whenever they have grown by this factor.
_FIRST_CHECK, _CHECK_GROWTH = 20, 1.5
#: The cost of computing the gap once, in steps.
_CHECK = 2.0
#: The share of the interior-point method's cost that is spent on finding out whether it is needed.
_TRIAL_SHARE = 0.1
#: A trial ends when the predicted remaining steps exceed the first share of the cost, or exceed `_OVERDUE` of it where the second share is
#: spent already. Shared data bring plateaus, which no extrapolation predicts.
_PATIENCE_OWN, _PATIENCE_SHARED, _OVERDUE = (0.7, 1.0), (0.5, 0.5), 0.2
#: For tasks with data of their own the polish of pdhg goes from the first gap to the optimum, for the second multiple of all work so far.
_POLISHED, _POLISH_COST = 8e-5, 2.5
#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: Gaps are taken to fall at least and at most as this power of the steps.
_SLOWEST, _FASTEST = 1.9, 3.0


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """`PDHG` or `InteriorPoint`, whichever is predicted to be quicker to the target.

    An iteration of the interior-point method costs a known number of operations, and it needs few and predictable ones; its total cost is
    counted in steps of pdhg. Pdhg begins, its gap is computed now and then and extrapolated as a power of its steps, and it is left when
    the steps that it still needs come near that cost; not before a tenth of the cost is spent, and with few exceptions not after all of it
    is (for shared data half), so that a wrong start mostly costs about as much again; more where the extrapolation stays optimistic and
    wrong. Where the interior-point method would not fit into memory, pdhg goes on. Asked for more than its target, it takes the interior-
    point method.

    Parameters
    ----------
    target : relative gap; None takes that of the run, or 1e-6 where a run has none
    memory_gib : memory limit of the interior-point method in GiB

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
        reason = newton.incompatibility(problem)
        price = _price(problem, target) if reason is None else math.inf
        trial = _Trial(problem, target)
        left_share, spent_share = _PATIENCE_SHARED if problem.form(HingeForm).design.is_shared else _PATIENCE_OWN
        last = start
        note = (
            f"pdhg, for {reason}"
            if reason
            else f"pdhg: on trial for {_TRIAL_SHARE * price:.0f} steps, a tenth of what interior_point costs"
        )
        for last in PDHG().resume(problem, start):
            yield last._replace(work=last.work + trial.work, note=note)
            if reason or not trial.needs_gap(last):
                continue
            trial.compute_gap(last)
            left, spent = trial.steps_left(), last.step + trial.cost
            if trial.exceeds_target:
                note = f"interior_point after {last.step} steps of pdhg, which took it beyond {target:g}"
                break
            if (left > left_share * price and spent >= _TRIAL_SHARE * price) or (left > _OVERDUE * price and spent >= spent_share * price):
                note = f"interior_point after {last.step} steps of pdhg: about {left:.0f} more to {target:g}, and this costs {price:.0f}"
                break
            note = f"pdhg: about {left:.0f} steps more to {target:g}, and interior_point costs {price:.0f}"
        work = last.work + trial.work
        for iterate in newton.steps(problem):
            if iterate.step > 0:
                yield Iterate(iterate.primal, iterate.dual, last.step + iterate.step, work + iterate.work, note)


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

    @property
    def cost(self) -> float:
        """The cost of all gaps so far, in steps."""
        return _CHECK * len(self.gaps)

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
    """Return the cost of the interior-point method to a relative gap, in steps of the first-order one."""
    design = problem.form(HingeForm).design
    (products, factors), (first, a_digit) = _COST_OWN, _NEWTON_OWN
    if design.is_shared:
        first, a_digit = _NEWTON_SHARED
        products, factors = _COST_SHARED[0], _COST_SHARED[1] * design.n_tasks / (design.n_tasks + _COLUMNS)
    iterations = first + a_digit * max(0.0, -math.log10(target))
    return iterations * (products + factors * factor_passes(design))
