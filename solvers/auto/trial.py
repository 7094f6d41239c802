"""A first-order method on trial: its gaps so far, and the steps that they predict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Problem

#: The gap is computed after this number of steps, and whenever they have grown by this factor.
FIRST_CHECK, _CHECK_GROWTH = 20, 1.5


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
    return (iterate for iterate in map(_without_state, iterates) if iterate.step > 0)


def _without_state(iterate: Iterate) -> Iterate:
    return iterate._replace(state=None)
