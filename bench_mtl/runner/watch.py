"""The watch over a run: what it uses, seen from outside, and whether it has broken a limit."""

from __future__ import annotations

import math
import time

from bench_mtl.core.types import GRACE_SECONDS, OVERRUN, Limits, Status
from bench_mtl.runner.child import LONGEST_WAIT_SECONDS
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.memory import descendants, joint_mib, resident_mib

#: Loading, building a problem and compiling are on no clock, but they may not take for ever either.
PREPARATION_SECONDS = 600.0
#: No program fills memory faster, MiB/s, even where it gets it in huge pages: the closer to its limit, the sooner a run is looked at again.
_FASTEST_FILLING = 32768.0
#: What several processes share is not counted for their peak before so many times as long as that has taken.
_COUNTING_TIMES = 100.0


class Watch:
    """Examines a run from outside, as often as it must."""

    def __init__(self, limits: Limits, pid: int, deadline: SharedDeadline, gathered: Gathered) -> None:
        self._limits = limits
        self._pid = pid
        self._deadline = deadline
        self._gathered = gathered
        self._memory_mib = math.inf if limits.memory_gib is None else limits.memory_gib * 1024
        self._started = self._clock_ran = time.monotonic()
        self._used = 0.0
        """MiB."""
        self._look_again = self._count_again = -math.inf

    def longest_wait(self) -> float:
        """For how long nothing can go wrong, seconds: until memory is to be read again."""
        return max(0.001, self._look_again - time.monotonic())

    def broken(self) -> tuple[Status, str] | None:
        """What the run has broken, if anything."""
        deadline, limits = self._deadline.value, self._limits
        now = time.monotonic()
        began = self._gathered.began
        most = (limits.seconds or 0.0) * (1.0 + OVERRUN if self._gathered.is_one_shot else 1.0)
        if deadline or began is None:
            self._clock_ran = now
        # No clock publishes a deadline before the run, or one further away than its limit: somebody has written there.
        if deadline and (limits.seconds is None or not self._started <= deadline <= now + most + GRACE_SECONDS):
            return Status.ERROR, f"its clock is false: it is to be killed {deadline - now:.3g} s from now"
        if deadline and now > deadline + GRACE_SECONDS:
            return Status.TIMEOUT, f"time limit of {limits.seconds:g} s"
        if began is None and now > self._started + PREPARATION_SECONDS:
            return Status.TIMEOUT, f"building the problem and compiling took more than {PREPARATION_SECONDS:g} s"
        # A limit is none on compiling, as long as that does not take for ever. The solver's process can write NaN there.
        said = self._deadline.compiling
        compiling = min(said, PREPARATION_SECONDS) if said >= 0.0 else 0.0
        if began is not None and limits.wall_seconds is not None and now > began + limits.wall_seconds + compiling:
            return Status.TIMEOUT, f"limit of {limits.wall_seconds:g} s for the whole run"
        # What the solver's process publishes may be false: from one message to the next it has no more than both limits together.
        silent = max(self._started, self._gathered.heard_at) + (most or math.inf)
        if began is not None and now > min(max(self._clock_ran, began), silent) + limits.patience + compiling:
            return Status.TIMEOUT, f"limit of {limits.patience:g} s for what is on no clock"
        if now >= self._look_again:
            self._used = self._memory()
            self._look_again = now + min(LONGEST_WAIT_SECONDS, max(0.001, (self._memory_mib - self._used) / _FASTEST_FILLING))
        if self._used > self._memory_mib:
            return Status.MEMORY, f"memory limit of {limits.memory_gib:g} GiB"
        return None

    def counted(self) -> float | None:
        """What the clock of an iterative solver has counted, where it runs now, seconds; None where what it publishes is no time."""
        deadline, now = self._deadline.value, time.monotonic()
        if not deadline or self._limits.seconds is None or self._gathered.is_one_shot:  # whose clock begins anew at every tolerance
            return None
        counted = self._limits.seconds - (deadline - now)
        return counted if 0.0 <= counted <= now - self._started else None

    def _memory(self) -> float:
        """Return the memory of the run, MiB, and note its peak: what its process and all that this has started use.

        What several share counts once where that may matter: beyond the limit, and now and then for the peak.
        """
        started, began = descendants(self._pid), time.monotonic()
        pids = started if started and not self._gathered.is_alone else [self._pid, *started]  # not the one that it was forked from
        used = math.fsum(map(resident_mib, pids))
        if len(pids) > 1:
            if used <= self._memory_mib and began < self._count_again:
                return used
            used, now = joint_mib(pids), time.monotonic()
            self._count_again = now + _COUNTING_TIMES * (now - began)
        self._gathered.note_memory(used)
        return used
