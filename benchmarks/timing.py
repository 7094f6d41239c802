"""Timing several calls side by side."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[], object]

#: A sample shorter than this is a mean over several calls, because a clock's own cost would show.
_SHORTEST_SAMPLE = 1e-3

#: A call up to this long is made once before each sample, unrecorded: the contestant before has emptied the caches.
_WARMED = 5e-3


@dataclass(frozen=True)
class Effort:
    """The bounds on timing one contestant in one cell."""

    repeats: int
    seconds: float
    """No further repeat is begun after this much of a contestant's own time; one is always made."""


@dataclass(frozen=True)
class Timing:
    """Seconds a call: time of the calling thread on a processor, and on the wall clock."""

    cpu: float
    cpu_median: float
    wall: float
    wall_median: float
    repeats: int
    calls_a_repeat: int


@dataclass(frozen=True)
class Cell:
    """One point of a grid, with the calls to compare there."""

    family: str
    shape: tuple[int, ...]
    data: str
    ratio: float
    """The radius over the norm of the data."""
    calls: Mapping[str, Call]

    @property
    def name(self) -> str:
        return f"{' x '.join(map(str, self.shape))} {self.data}, C/norm {self.ratio:g}"


@dataclass(frozen=True)
class Measured:
    """A cell with its timings, by contestant; fastest repeats are what the ratios are made of."""

    family: str
    shape: tuple[int, ...]
    data: str
    ratio: float
    times: Mapping[str, Timing]

    @property
    def elements(self) -> int:
        return self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)

    def over(self, contestant: str, other: str) -> float:
        """Return the time of `contestant` over that of `other`."""
        return self.times[contestant].cpu / self.times[other].cpu

    def as_table(self) -> dict[str, Any]:
        return asdict(self)


def measure(cell: Cell, effort: Effort) -> Measured:
    """Time the calls of a cell in turns, so that what slows the machine down for a while slows all of them."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in cell.calls}
    estimates = {name: _estimate(call, effort) for name, call in cell.calls.items()}
    loops = {name: max(1, int(_SHORTEST_SAMPLE / estimate)) for name, estimate in estimates.items()}
    for _ in range(effort.repeats):
        for name, call in cell.calls.items():
            if samples[name] and sum(wall for _, wall in samples[name]) * loops[name] >= effort.seconds:
                continue
            if estimates[name] < _WARMED:
                call()
            samples[name].append(_sample(call, loops[name]))
    times = {name: _timing(found, loops[name]) for name, found in samples.items()}
    return Measured(cell.family, cell.shape, cell.data, cell.ratio, times)


def _estimate(call: Call, effort: Effort) -> float:
    """About the seconds of a call; the first one also compiles, and touches the memory."""
    first = _sample(call, 1)[1]
    return max(1e-7, _sample(call, 1)[1] if first < 2.0 * effort.seconds else first)


def _sample(call: Call, loops: int) -> tuple[float, float]:
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(loops):
        call()
    return (time.thread_time() - cpu) / loops, (time.perf_counter() - wall) / loops


def _timing(samples: list[tuple[float, float]], loops: int) -> Timing:
    cpu, wall = zip(*samples, strict=True)
    return Timing(min(cpu), statistics.median(cpu), min(wall), statistics.median(wall), len(samples), loops)


def peak_bytes(call: Call) -> int:
    """The most memory that Python and NumPy hold at once, beyond what they held before, during the second of two calls."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(cells: Iterator[Cell], effort: Effort, say: Callable[[str], None]) -> Iterator[Measured]:
    """Measure cell by cell, with a line for each."""
    for cell in cells:
        result = measure(cell, effort)
        say(
            f"{cell.family:6} {cell.name:44} "
            + "  ".join(f"{name} {1e3 * timing.cpu:.3g}" for name, timing in result.times.items())
            + " ms"
        )
        yield result
