"""The watch over a run: what it uses, seen from outside, and whether it has broken a limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from bench_mtl.core.types import Limits, Status
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.memory import descendants, proportional_mib, resident_mib

#: How far past its limit a solver may be when it is killed: time for one that stops by itself to hand in its answer.
GRACE_SECONDS = 0.3
#: Loading, building a problem and compiling are on no clock, but they may not take for ever either.
PREPARATION_SECONDS = 600.0
#: The longest that nobody looks at a worker.
LONGEST_WAIT_SECONDS = 0.05
#: No program fills memory faster, MiB/s: the closer to its limit, the sooner a worker is looked at again.
_FASTEST_FILLING = 8192.0
#: How often to look for what a worker has started.
_CHILDREN_SECONDS = 0.1


class Watch:
    """Looks at a run from outside, as often as it must."""

    def __init__(self, limits: Limits, pid: int, deadline: SharedDeadline, gathered: Gathered) -> None:
        self._limits = limits
        self._pid = pid
        self._deadline = deadline
        self._gathered = gathered
        self._memory_mib = math.inf if limits.memory_gib is None else limits.memory_gib * 1024
        self._started = time.monotonic()
        self._counted_at = -math.inf
        self._children: list[int] = []
        self._shared = 0.0
        """Counted more than once in the sum over the processes, MiB."""

    def longest_wait(self) -> float:
        """For how long nothing can go wrong, seconds."""
        return min(LONGEST_WAIT_SECONDS, max(0.001, (self._memory_mib - self._resident()) / _FASTEST_FILLING))

    def broken(self) -> tuple[Status, str] | None:
        """What the run has broken, if anything."""
        now, deadline, limits = time.monotonic(), self._deadline.value, self._limits
        if deadline and now > deadline + GRACE_SECONDS:
            return Status.TIMEOUT, f"time limit of {limits.seconds:g} s"
        began = self._gathered.began
        if began is None and now > self._started + PREPARATION_SECONDS:
            return Status.TIMEOUT, f"building the problem and compiling took more than {PREPARATION_SECONDS:g} s"
        # A limit is none on compiling, as long as that does not take for ever. The solver's process can write NaN there.
        said = self._deadline.compiling
        compiling = min(said, PREPARATION_SECONDS) if said >= 0.0 else 0.0
        if began is not None and now > began + limits.whole_run + compiling:
            return Status.TIMEOUT, f"limit of {limits.whole_run:g} s for the whole run"
        if self._resident() > self._memory_mib and (not self._children or self._proportional() > self._memory_mib):
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
        """Return the memory of the worker and all that it has started, MiB; what they share counts once, as it was when last looked for."""
        now = time.monotonic()
        if now - self._counted_at > _CHILDREN_SECONDS:
            self._children, self._counted_at = descendants(self._pid), now
            self._shared = max(0.0, self._sum(resident_mib) - self._proportional()) if self._children else 0.0
        used = self._sum(resident_mib) - self._shared
        self._gathered.note_memory(used)
        return used

    def _proportional(self) -> float:
        """The same, looked for now, which takes longer."""
        return self._sum(proportional_mib)

    def _sum(self, memory: Callable[[int], float]) -> float:
        return math.fsum(map(memory, (self._pid, *self._children)))
