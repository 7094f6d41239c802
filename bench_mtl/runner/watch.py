"""The watch over a run: what it uses, seen from outside, and whether it has broken a limit."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time

from bench_mtl.core.types import Limits, Status
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.memory import descendants, joint_mib, resident_mib

#: How far past its limit a solver may be when it is killed: time for one that stops by itself to hand in its answer.
GRACE_SECONDS = 0.3
#: Loading, building a problem and compiling are on no clock, but they may not take for ever either.
PREPARATION_SECONDS = 600.0
#: The longest that nobody looks at a worker.
LONGEST_WAIT_SECONDS = 0.05
#: No program fills memory faster, MiB/s, even where it gets it in huge pages: the closer to its limit, the sooner a run is looked at again.
_FASTEST_FILLING = 32768.0
#: From this share of its memory on, a run is near its limit.
_NEAR = 0.5
#: What several processes share is not counted again before so many times as it has taken. It is the second number near the limit, where one
#: of them uses less than before, and may share nothing any more (a child that becomes another program).
_COUNTING_TIMES, _COUNTING_TIMES_NEAR = 100.0, 3.0
#: Less than before, MiB.
_DROP_MIB = 4.0


class Watch:
    """Looks at a run from outside, as often as it must."""

    def __init__(self, limits: Limits, pid: int, deadline: SharedDeadline, gathered: Gathered, *, is_apart: bool = False) -> None:
        self._limits = limits
        self._pid = pid
        self._deadline = deadline
        self._gathered = gathered
        self._memory_mib = math.inf if limits.memory_gib is None else limits.memory_gib * 1024
        self._started = self._clock_ran = time.monotonic()
        self._is_apart = is_apart
        self._count_again = self._count_near_again = -math.inf
        self._each: dict[int, float] = {}
        """MiB of each process at the last look."""
        self._is_stale = False
        """Whether they may share less than when that was counted."""
        self._seen: tuple[int, ...] = (pid,)
        self._used = self._shared = 0.0
        """MiB; what is shared is counted more than once in the sum over the processes."""
        self._is_counted = True
        """Whether that is known of all of them."""

    def longest_wait(self) -> float:
        """For how long after the last look nothing can go wrong, seconds."""
        return min(LONGEST_WAIT_SECONDS, max(0.001, (self._memory_mib - self._used) / _FASTEST_FILLING))

    def broken(self) -> tuple[Status, str] | None:
        """What the run has broken, if anything."""
        deadline, limits = self._deadline.value, self._limits
        now = time.monotonic()
        began = self._gathered.began
        if deadline or began is None:
            self._clock_ran = now
        # No clock publishes a deadline before the run, or one further away than its limit: somebody has written there.
        if deadline and not self._started <= deadline <= now + (limits.seconds or 0.0) + GRACE_SECONDS:
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
        silent = max(self._started, self._gathered.heard_at) + (limits.seconds or math.inf)
        if now > min(self._clock_ran, silent) + limits.patience + compiling:
            return Status.TIMEOUT, f"limit of {limits.patience:g} s for what is on no clock"
        if self._breaks_memory():
            return Status.MEMORY, f"memory limit of {limits.memory_gib:g} GiB"
        return None

    def counted(self) -> float | None:
        """What the solver's clock has counted, where it runs now, seconds; None where what it publishes is no time."""
        deadline, now = self._deadline.value, time.monotonic()
        if not deadline or self._limits.seconds is None:
            return None
        counted = self._limits.seconds - (deadline - now)
        return counted if 0.0 <= counted <= now - self._started else None

    def _resident(self) -> float:
        """Return the memory of the run, MiB: what its process and all that this has started use.

        What they share counts once, as it was when last counted; what a new one shares is not known before that, and counts twice.
        """
        found = self._processes()
        self._is_counted = self._is_counted and found == self._seen
        self._seen = found
        together = self._together()
        if len(found) == 1:
            self._shared, self._is_counted, self._is_stale = 0.0, True, False
        else:
            is_near, now = together > _NEAR * self._memory_mib, time.monotonic()
            if now >= self._count_again or (self._is_stale and is_near and now >= self._count_near_again):
                self._count(at_rest=is_near)
        self._used = max(0.0, self._together() - self._shared)
        if self._is_counted:
            self._gathered.note_memory(self._used)
        return self._used

    def _breaks_memory(self) -> bool:
        """Whether the run uses more than it may, where nothing of it is counted twice."""
        used = self._resident()
        if used > self._memory_mib and len(self._seen) > 1:
            self._count(at_rest=True)
            used = self._resident()
        return used > self._memory_mib

    def _count(self, *, at_rest: bool) -> None:
        """Find out what the processes share.

        At rest, where they are near the limit: several that fill memory would go far beyond it in the milliseconds that this takes.
        """
        began = time.monotonic()
        if at_rest:
            self._signal(signal.SIGSTOP)
        self._shared = max(0.0, self._together() - joint_mib(self._seen))
        self._is_counted, self._is_stale = True, False
        if at_rest and self._together() - self._shared <= self._memory_mib:
            self._signal(signal.SIGCONT)
        now = time.monotonic()
        self._count_again = now + _COUNTING_TIMES * (now - began)
        self._count_near_again = now + _COUNTING_TIMES_NEAR * (now - began)

    def _together(self) -> float:
        """Return the sum of what all use, MiB, and note whether one of them uses less than before."""
        each = {pid: resident_mib(pid) for pid in self._seen}
        self._is_stale |= any(mib < self._each.get(pid, 0.0) - _DROP_MIB for pid, mib in each.items())
        self._each = each
        return math.fsum(each.values())

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._seen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _processes(self) -> tuple[int, ...]:
        """Those whose memory is the run's: where each has a process of its own, not the one that it was forked from."""
        started = descendants(self._pid)
        return tuple(started) if self._is_apart and started else (self._pid, *started)
