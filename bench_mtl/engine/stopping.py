"""When the iterates of a run are certified: its stopping tests."""

from __future__ import annotations

import math
from typing import TypeAlias, final

from bench_mtl.core.types import Iterate

#: The iterates of a traced run are certified at steps that grow by this factor: a curve of about 250 points over five decades.
SAMPLE_GROWTH = 1.05
#: They are also certified at every step that costs at least this many passes over the data; a certificate takes one or two.
_EXPENSIVE = 8.0

#: A timed run that has worked for w passes over the data, and whose tests take c, makes the next one after so many times sqrt(c w): tests
#: then take a share sqrt(c / w) of it, a tenth after a hundred tests' worth, and the target is noticed about as much too late. Passes, and
#: no seconds, so that the answer does not depend on how fast the machine is.
_SPACING = 2.0
#: Of long runs, after this share of what they have worked, or so many tests' worth: the best of many iterates proves more than that of few.
_USUAL_SHARE, _TESTS = 0.05, 10.0
#: Passes of a certificate; and what it, and a pass, take beside them, in numbers that a pass would have read meanwhile.
_PASSES, _NUMBERS, _NUMBERS_OF_A_PASS = 2.0, 5e5, 2e4
#: It waits longer, for this share of the passes in which the gap should reach the target if it goes on to shrink as it has,
_SHARE_OF_WAY = 0.5
#: but for no more than this share of what it has worked.
_LONGEST_SHARE = 0.25
#: A solver whose claim stays above the target is tested all the same once its work has doubled and is so many times that of a test.
_UNCLAIMED = 100.0


@final
class BySteps:
    """Tests for the sake of a curve, or of a run that goes on from a file: at steps that grow by a factor, and at all that cost much.

    Of steps that are not all handed over the first is tested that is due. Which are does not depend on where a run begins.
    """

    def __init__(self) -> None:
        self._next_step = 0
        self._before: Iterate | None = None

    def is_due(self, iterate: Iterate) -> bool:
        before, self._before = self._before, iterate
        is_expensive = before is not None and iterate.work - before.work >= _EXPENSIVE * max(1, iterate.step - before.step)
        is_due = is_expensive or iterate.step >= self._next_step
        while self._next_step <= iterate.step:
            self._next_step = max(self._next_step + 1, math.ceil(self._next_step * SAMPLE_GROWTH))
        return is_due

    def note(self, iterate: Iterate, gap: float) -> None:
        """Do nothing: the bounds do not matter."""


@final
class ByWork:
    """Tests for the sake of the answer, since all of their time counts.

    A solver that states its own gap (`Iterate.claim`) is tested when that meets the target; where rounding refutes the claim, it has to
    promise half of it next. The iterates of any other solver are tested after amounts of work that balance what tests cost and what is
    done in vain (`_SPACING`), and more rarely while the target, a relative gap, is far. A pass over the data reads `numbers` numbers.
    """

    def __init__(self, target: float, numbers: int) -> None:
        self._target = self._awaited = target
        # To the nearest power of two, so that rows that are there twice end a fit where weights of two do.
        self._cost = 2.0 ** round(math.log2(_PASSES + _NUMBERS / (_NUMBERS_OF_A_PASS + numbers)))
        self._last = self._due = 0.0
        self._gap = math.inf

    def is_due(self, iterate: Iterate) -> bool:
        work = _work(iterate)
        if iterate.claim is not None:
            return iterate.claim <= self._awaited or (work >= 2.0 * self._last and work >= _UNCLAIMED * self._cost)
        return work >= self._due

    def note(self, iterate: Iterate, gap: float) -> None:
        if iterate.claim is not None and iterate.claim <= self._awaited:
            self._awaited = 0.5 * iterate.claim
        work = _work(iterate)
        spacing = min(_SPACING * math.sqrt(self._cost * work), max(_TESTS * self._cost, _USUAL_SHARE * work))
        self._due = work + max(spacing, self._wait(work, gap))
        self._last, self._gap = work, gap

    def _wait(self, work: float, gap: float) -> float:
        """Return the passes in which the target cannot be met, as far as that can be predicted."""
        if not self._target < gap < self._gap < math.inf:
            return 0.0
        predicted = (work - self._last) * math.log(gap / self._target) / math.log(self._gap / gap)
        return min(_SHARE_OF_WAY * predicted, _LONGEST_SHARE * work)


def _work(iterate: Iterate) -> float:
    """Return the passes so far; steps of a solver that does not count them."""
    return iterate.work or float(iterate.step)


#: Says which iterates are certified (`is_due`), and learns of each that was which relative gap is proven now (`note`).
StoppingRule: TypeAlias = BySteps | ByWork
