"""The tasks that share a penalty, one that is given or one that meets a radius, on working sets that grow."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.l1_working_set.columns import Features
from bench_mtl.solvers.l1_working_set.tasks import Task
from bench_mtl.solvers.working_sets import joining

#: A penalty falls at most to this share of the largest slope, on the way to the one that is wanted; to the second where that one is given
#: and a set cannot overfit, as there are no more features than examples.
_FALL, _FALL_OF_TALL = 0.3, 0.1
#: Entries whose slope is below this share of the penalty are not looked at, nor those whose slope is below the penalty by more than this
#: multiple of what the point misses (the strong rule has 1: Tibshirani et al., JRSS B 74(2), 2012).
_FAR, _MARGIN = 0.7, 2.0
#: A radius that is missed by this share of it may need a much lower penalty.
_FAR_OFF = 0.1
#: The accuracy that a working set is solved to, as a share of that of the whole; where all that may matter is in the set.
_INNER, _LAST = 0.3, 0.03
#: Where the aim is known, and a point misses by no more than the second share of the penalty, a set is solved to this share of the aim at
#: once.
_AIMED, _NEAR = 1.0, 0.2
#: Below this share of the penalty the conditions hold up to rounding.
_ROUNDING = 1e-15
#: Penalties that a secant is drawn through differ by this multiple of the accuracy of their fits.
_APART = 10.0
#: Penalties that are tried on one working set, at most.
_PENALTIES = 12
#: Steps without progress after which rounding allows no more.
_PATIENCE = 8


@dataclass(frozen=True)
class Sizes:
    """How working sets grow."""

    first: int
    growth: float
    aim: float = 0.0
    """The relative gap at which the run will end; 0 where that is not known."""


class Ball(ABC):
    """Some tasks of a problem, and how far they are."""

    least_penalty = 0.0
    """The penalty that is given."""

    def __init__(self, tasks: list[Task], sizes: Sizes) -> None:
        self.tasks = tasks
        self._growth, self._aim = sizes.growth, sizes.aim
        self._most = [sizes.first] * len(tasks)
        self.is_solved = False
        self.is_near = False
        """Whether the last step was for the penalty that is wanted, so that the next one is short."""
        self._least, self._waited = np.inf, 0
        self._floor, self._fall = np.inf, _FALL
        self._may_start_again = True

    def advance(self, slopes: list[Array]) -> None:
        """Solve the tasks on their working sets; `slopes` are X_k^T times the dual points of the tasks, which are up to date."""
        heights = [task.heights(slope) for task, slope in zip(self.tasks, slopes, strict=True)]
        top = max(float(height.max()) for height in heights)
        if top == 0.0:  # nothing would leave 0
            misses = [
                task.excess(slope, height, self.least_penalty) for task, slope, height in zip(self.tasks, slopes, heights, strict=True)
            ]
            self.is_solved = max(misses) == 0.0 or not self._may_start_again
            if not self.is_solved:
                self._may_start_again = False
                for task in self.tasks:
                    task.move_to(np.zeros(0, dtype=np.int64), np.zeros(0))
            return
        everything = all(task.columns.has_gram for task in self.tasks)
        self._floor = 0.0 if everything else min(self._floor, self._fall * top)  # a set that was not solved must not bring it up again
        self._advance(slopes, heights, top)

    @abstractmethod
    def _advance(self, slopes: list[Array], heights: list[Array], top: float) -> None: ...

    @property
    def share(self) -> float:
        """What the entries of the tasks are multiplied by, so that they are feasible."""
        return 1.0

    def _note_progress(self, miss: float, penalty: float) -> bool:
        """Return whether it is worth going on."""
        self._waited = 0 if miss < 0.5 * self._least else self._waited + 1
        self._least = min(self._least, miss)
        small = miss <= 1e-6 * penalty
        self.is_solved = miss <= _ROUNDING * penalty or (small and self._waited >= _PATIENCE)
        return not self.is_solved

    def _last_tolerance(self, miss: float, penalty: float) -> float:
        """Return the tolerance for a set that may be the last one.

        Slopes that miss by a share of the penalty leave a relative gap of about that share at most.
        """
        if self._aim == 0.0 or miss > _NEAR * penalty:
            return _LAST * miss
        return min(_LAST * miss, _AIMED * self._aim * penalty)

    def _working_sets(self, heights: list[Array], penalty: float, miss: float) -> tuple[list[Features], bool]:
        """Return the entries to solve for, the non-zeros and those with the largest slopes, and whether no other one has a slope above.

        All of them where that costs little.
        """
        if self._floor == 0.0:
            return [np.arange(task.columns.d) for task in self.tasks], True
        found, is_whole = [], True
        far = max(_FAR * penalty, penalty - _MARGIN * miss)
        for k, (task, height) in enumerate(zip(self.tasks, heights, strict=True)):
            non_zeros = len(task.support)
            self._most[k] = max(self._most[k], math.ceil(self._growth * non_zeros), 1 + non_zeros)
            room = self._most[k] - non_zeros
            more = joining(height, far, task.support, room + 1)
            is_whole = is_whole and (len(more) <= room or float(height[more[room]]) <= penalty)
            features = np.union1d(task.support, more[:room])
            found.append(features)
        return found, is_whole


class PenalisedBall(Ball):
    """One task with its penalty, which is reached from above."""

    def __init__(self, task: Task, sizes: Sizes, penalty: float) -> None:
        super().__init__([task], sizes)
        self._penalty = self.least_penalty = penalty
        self._fall = _FALL_OF_TALL if task.columns.d <= task.columns.n else _FALL

    def _advance(self, slopes: list[Array], heights: list[Array], top: float) -> None:
        task = self.tasks[0]
        penalty = max(self._penalty, self._floor)
        miss = task.excess(slopes[0], heights[0], penalty)
        if penalty == self._penalty and not self._note_progress(miss, max(penalty, 1e-6 * top)):
            return
        self.is_near = penalty == self._penalty
        (features,), is_whole = self._working_sets(heights, penalty, miss)
        if is_whole and penalty == self._penalty:
            task.solve(features, penalty, self._last_tolerance(miss, penalty))
        else:
            task.solve(features, penalty, _INNER * miss)


class ConstrainedBall(Ball):
    """The tasks of a ball of some radius; ||w||_1 falls as the penalty grows, and the penalty is searched for."""

    def __init__(self, tasks: list[Task], sizes: Sizes, radius: float) -> None:
        super().__init__(tasks, sizes)
        self._radius = radius
        self._penalty: float | None = None
        self._rate = 0.0  # by which the size falls with the penalty
        self.is_solved = radius == 0.0

    @property
    def share(self) -> float:
        size = self._size()
        return 1.0 if size <= self._radius else self._radius / size

    def _size(self) -> float:
        return sum(task.size for task in self.tasks)

    def _advance(self, slopes: list[Array], heights: list[Array], top: float) -> None:
        if self._penalty is None:
            self._penalty = self._first_penalty(slopes, top)
        floor = self._floor
        penalty = max(floor, self._penalty)
        miss = max(task.excess(slope, height, penalty) for task, slope, height in zip(self.tasks, slopes, heights, strict=True))
        off = self._off(penalty)
        if not self._note_progress(max(miss, off), top):
            return
        lowest = max(floor, 0.5 * penalty) if off > _FAR_OFF * penalty else penalty  # where the search may go
        sets, is_whole = self._working_sets(heights, min(penalty, lowest), max(miss, off))
        missing = max(miss, off)
        tolerance = self._last_tolerance(missing, penalty) if is_whole else _INNER * missing
        self._penalty = self._search(sets, penalty, floor, tolerance)

    def _first_penalty(self, slopes: list[Array], top: float) -> float:
        """Return the penalty by the optimality of the start: the mean slope of its non-zeros."""
        size = self._size()
        if size == 0.0:
            return _FALL * top
        mean = sum(float(slope @ task.w) for task, slope in zip(self.tasks, slopes, strict=True)) / size
        return mean if mean > 0.0 else _FALL * top

    def _off(self, penalty: float) -> float:
        """Return by how much the radius is missed, as a share of it times the penalty: about what it adds to the gap."""
        return penalty * abs(self._size() - self._radius) / self._radius

    def _search(self, sets: list[Features], penalty: float, floor: float, tolerance: float) -> float:
        """Solve the tasks on these sets for penalties until one meets the radius; none below the floor."""
        inside = outside = 0.0  # the smallest penalty known to end inside the ball, the largest to end outside; 0 for none
        last: tuple[float, float] | None = None
        for _ in range(_PENALTIES):
            for task, features in zip(self.tasks, sets, strict=True):
                task.solve(features, penalty, tolerance)
            size = self._size()
            if self._off(penalty) <= tolerance or (size < self._radius and penalty <= floor):
                break
            if size > self._radius:
                outside = max(outside, penalty)
            else:
                inside = min(inside, penalty) if inside else penalty
            low, high = max(floor, outside), inside or 4.0 * penalty
            is_slow = last is not None and abs(size - self._radius) > 0.5 * abs(last[1] - self._radius)
            guess = self._next(penalty, size, last, tolerance)
            if is_slow or not low <= guess <= high or guess == penalty:
                guess = low if outside < low else 0.5 * (low + high)
            last = (penalty, size)
            for task in self.tasks:
                task.follow(guess - penalty)
            penalty = guess
        return penalty

    def _next(self, penalty: float, size: float, last: tuple[float, float] | None, tolerance: float) -> float:
        """Return the penalty that meets the radius where no entry becomes or ceases to be zero: Newton's step, or a secant's.

        A secant through two penalties that hardly differ says nothing, as both fits are rough: then the rate before stands.
        """
        rates = [task.rate() for task in self.tasks]
        if all(rate is not None for rate in rates):
            self._rate = sum(rate for rate in rates if rate is not None)
        elif last is not None and abs(penalty - last[0]) > _APART * tolerance and (last[1] - size) * (penalty - last[0]) > 0.0:
            self._rate = (last[1] - size) / (penalty - last[0])
        if self._rate > 0.0:
            return penalty + (size - self._radius) / self._rate
        return penalty * (0.5 if size < self._radius else 1.5)
