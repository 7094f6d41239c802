"""When the iterates of a run are certified: its stopping tests."""

from __future__ import annotations

import math
from typing import Protocol, final

from bench_mtl.core.types import Iterate

#: The iterates of a traced run are certified at steps that grow by this factor: a curve of about 250 points over five decades.
SAMPLE_GROWTH = 1.05
#: They are also certified at every step that costs at least this many passes over the data; a certificate takes one or two.
_EXPENSIVE = 8.0

#: A timed run that has solved for t seconds, and whose tests take c, makes the next one after so many times sqrt(c t): tests then take a
#: share sqrt(c / t) of its time, a tenth after a hundred tests' worth, and the target is noticed about as much too late.
_SPACING = 2.0
#: It waits longer, for this share of the time in which the gap should reach the target if it goes on to shrink as it has,
_SHARE_OF_WAY = 0.5
#: but for no more than this share of the time that it has solved for.
_LONGEST_SHARE = 0.25
#: A solver whose claim stays above the target is tested all the same once its time has doubled and is so many times that of a test.
_UNCLAIMED = 100.0


class StoppingRule(Protocol):
    """Says which iterates are certified."""

    def is_due(self, iterate: Iterate, solving: float) -> bool:
        """Whether to certify this iterate, after so many seconds of solving, tests excluded."""

    def note(self, iterate: Iterate, solving: float, cost: float, gap: float) -> None:
        """Learn the seconds that a test has taken, and the relative gap that is proven now."""


@final
class BySteps:
    """Tests for the sake of a curve, or of a run that goes on from a file: at steps that grow by a factor, and at all that cost much."""

    def __init__(self) -> None:
        self._next_step = 0
        self._before: Iterate | None = None

    def is_due(self, iterate: Iterate, solving: float) -> bool:
        expensive, self._before = is_expensive(iterate, self._before), iterate
        return expensive or iterate.step >= self._next_step

    def note(self, iterate: Iterate, solving: float, cost: float, gap: float) -> None:
        self._next_step = max(iterate.step + 1, math.ceil(iterate.step * SAMPLE_GROWTH))


@final
class ByTime:
    """Tests for the sake of the answer, since all of their time counts.

    A solver that states its own gap (`Iterate.claim`) is tested when that meets the target; where rounding refutes the claim, it has to
    promise half of it next. The iterates of any other solver are tested at times that balance what tests cost and what is solved in vain
    (`_SPACING`), and more rarely while the target is far.
    """

    def __init__(self, target: float, *, tests_start: bool) -> None:
        """
        Parameters
        ----------
        target : the relative gap to prove
        tests_start : whether the first iterate may be the answer already, as where a run begins at the solution of a similar problem
        """
        self._target = self._awaited = target
        self._is_first = not tests_start
        self._cost, self._last, self._due = math.inf, 0.0, 0.0
        self._gap = math.inf

    def is_due(self, iterate: Iterate, solving: float) -> bool:
        if iterate.claim is not None:
            return iterate.claim <= self._awaited or (solving >= 2.0 * self._last and solving >= _UNCLAIMED * self._cost)
        is_first, self._is_first = self._is_first, False
        return not is_first and solving >= self._due

    def note(self, iterate: Iterate, solving: float, cost: float, gap: float) -> None:
        if iterate.claim is not None and iterate.claim <= self._awaited:
            self._awaited = 0.5 * iterate.claim
        self._cost = min(self._cost, cost)  # the first one has computed norms of the data that all need
        self._due = solving + max(_SPACING * math.sqrt(self._cost * max(solving, self._cost)), self._wait(solving, gap))
        self._last, self._gap = solving, gap

    def _wait(self, solving: float, gap: float) -> float:
        """Return the seconds in which the target cannot be met, as far as that can be predicted."""
        if not self._target < gap < self._gap < math.inf:
            return 0.0
        predicted = (solving - self._last) * math.log(gap / self._target) / math.log(self._gap / gap)
        return min(_SHARE_OF_WAY * predicted, _LONGEST_SHARE * solving)


def is_expensive(iterate: Iterate, before: Iterate | None) -> bool:
    """Whether the steps since the iterate before cost so much each that looking at every one hardly adds to it."""
    return before is not None and iterate.work - before.work >= _EXPENSIVE * max(1, iterate.step - before.step)
