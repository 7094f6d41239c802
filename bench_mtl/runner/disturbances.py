"""What the machine does beside a run and its times depend on: read from outside before and after it, and reported in words.

Linux tells it; where a file is missing, nothing is reported of it. Processor time is counted in ticks, mostly of 10 ms: of the
load beside a run that is too short for them nothing is reported either.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.errors import plural
from bench_mtl.runner.setting import Setting

#: What disturbs no run: others' share of the processors, and the hypervisor's share of the time.
_QUIET_SHARE, _STOLEN_SHARE = 0.1, 0.02
#: By how many ticks the counters of a processor, or of our own processes, may be off between two readings.
_UNCERTAIN_TICKS = 2
_TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")

_SWAPPED = re.compile(rb"^pswp(?:in|out) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Reading:
    """Counters, which only grow."""

    at: float
    ours: float
    """Processor time of the run and of the process that watches it; NaN where nobody knows it."""
    busy: Mapping[int, float]
    """Seconds, by logical processor."""
    stolen: Mapping[int, float]
    swapped: int
    throttled: tuple[int, ...]


class Surroundings:
    """The machine around the runs of one slot, one after the other, as it is in `proc` and `sys` below a folder.

    `ours` gives the processor time of the run and of this process so far, NaN where it is lost; this and the clock in seconds.
    """

    def __init__(
        self, setting: Setting, ours: Callable[[], float], root: Path = Path("/"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ours, self._clock = ours, clock
        self._proc = root / "proc"
        self._slots_beside = setting.threads * (setting.slots - 1)
        """The processors that other slots may use meanwhile, which is no disturbance."""
        usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
        self._processors = frozenset(setting.processors or usable)
        self._cores = self._processors
        """With the hyper-threads beside these, whoever may use them."""
        self._throttle_counts: list[Path] = []
        for number in self._processors:
            folder = root / f"sys/devices/system/cpu/cpu{number}"
            self._cores |= frozenset(_numbers(_content(folder / "topology/thread_siblings_list")))
            self._throttle_counts += sorted(folder.glob("thermal_throttle/*_throttle_count"))
        self._before: _Reading | None = None

    def begin(self) -> None:
        """Read the counters as a run begins."""
        self._before = self._read()

    def disturbances(self) -> tuple[str, ...]:
        """Say what has disturbed the run since it began, each in a sentence with its number; this ends it."""
        before, self._before = self._before, None
        after = None if before is None else self._read()
        return () if before is None or after is None else tuple(self._differences(before, after))

    def _read(self) -> _Reading | None:
        try:
            busy, stolen = _processor_seconds(_content(self._proc / "stat"))
            swapped = sum(map(int, _SWAPPED.findall(_content(self._proc / "vmstat"))))
            throttled = tuple(int(_content(path) or b"0") for path in self._throttle_counts)
        except ValueError:  # a system that only looks like Linux
            return None
        return _Reading(self._clock(), self._ours(), busy, stolen, swapped, throttled)

    def _differences(self, before: _Reading, after: _Reading) -> Iterator[str]:
        seconds, ours = after.at - before.at, after.ours - before.ours
        busy = {number: after.busy[number] - before.busy[number] for number in before.busy.keys() & after.busy.keys()}
        cores = self._cores & busy.keys()

        def used_by_others(numbers: frozenset[int], slots_beside: int) -> float | None:
            """Return how many of these processors others have used; None where that disturbs nobody, or cannot be known."""
            others = sum(busy[number] for number in numbers) - ours - slots_beside * seconds
            most = _QUIET_SHARE * len(numbers) * seconds + _UNCERTAIN_TICKS * _TICK_SECONDS * (len(numbers) + 1)
            return others / seconds if others > most else None

        if (used := used_by_others(frozenset(busy), self._slots_beside)) is not None:
            yield f"other programs used {used:.1f} of {plural(len(busy), 'processor')}"
        used = used_by_others(cores, min(self._slots_beside, len(cores - self._processors)))
        if used is not None and len(cores) < len(busy):
            beside = "" if cores <= self._processors else ", hyper-threads included"
            yield f"other programs had {100.0 * used / len(cores):.0f} % of its cores{beside}"
        own = self._processors & busy.keys()
        stolen = sum(after.stolen[number] - before.stolen[number] for number in own)
        if stolen > len(own) * (_STOLEN_SHARE * seconds + _UNCERTAIN_TICKS * _TICK_SECONDS):
            yield f"the hypervisor took {100.0 * stolen / (len(own) * seconds):.0f} % of the time"
        if (swapped := after.swapped - before.swapped) > 0:
            yield f"the system swapped {plural(swapped, 'page')}"
        # Processors of a core, and cores of a package, count the same event.
        times = max((now - then for then, now in zip(before.throttled, after.throttled, strict=True)), default=0)
        if times > 0:
            yield f"the processor was throttled {plural(times, 'time')}"


def _processor_seconds(stat: bytes) -> tuple[dict[int, float], dict[int, float]]:
    """Return how long each processor has been busy, and how long the hypervisor has kept it, seconds; raises ValueError."""
    busy, stolen = {}, {}
    for line in stat.splitlines()[1:]:  # the first is of all together
        if not line.startswith(b"cpu"):
            break
        name, *ticks = line.split()[:9]
        user, nice, system, _idle, _waiting, interrupts, soft_interrupts, steal = map(int, ticks)
        busy[int(name[3:])] = (user + nice + system + interrupts + soft_interrupts) * _TICK_SECONDS
        stolen[int(name[3:])] = steal * _TICK_SECONDS
    return busy, stolen


def _numbers(ranges: bytes) -> Iterator[int]:
    """Yield the numbers of a list as Linux writes it: ``0,32`` or ``0-1``."""
    for part in filter(None, ranges.strip().split(b",")):
        low, _, high = part.partition(b"-")
        yield from range(int(low), int(high or low) + 1)


def _content(path: Path) -> bytes:
    """Return what a file holds; nothing where there is none, or it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
