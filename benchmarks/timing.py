"""Timing several calls side by side, and figures with their limits."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tabulate import tabulate

Call: TypeAlias = Callable[[], object]

#: A sample shorter than this is a mean over several calls, because a clock's own cost would show.
_SHORTEST_SAMPLE = 1e-3

#: A call up to this long is made once before each sample, unrecorded: the contestant before has emptied the caches.
_WARMED = 5e-3


class Effort(NamedTuple):
    """The bounds on timing one contestant in one cell."""

    repeats: int
    seconds: float  # no further repeat is begun after this much of a contestant's own time; one is always made


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
    """One point of a grid with the timings there, by contestant; fastest repeats are what the ratios are made of."""

    family: str
    shape: tuple[int, ...]
    data: str
    ratio: float  # the radius over the norm of the data
    times: Mapping[str, Timing]

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.shape))} {self.data}, {self.ratio:g}"

    def over(self, contestant: str, other: str) -> float:
        """Return the time of `contestant` over that of `other`."""
        return self.times[contestant].cpu / self.times[other].cpu


def timed(calls: Mapping[str, Call], effort: Effort) -> dict[str, Timing]:
    """Time calls in turns, so that what slows the machine down for a while slows all of them."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    estimates = {name: _estimate(call) for name, call in calls.items()}
    loops = {name: max(1, int(_SHORTEST_SAMPLE / estimate)) for name, estimate in estimates.items()}
    for _ in range(effort.repeats):
        for name, call in calls.items():
            if samples[name] and sum(wall for _, wall in samples[name]) * loops[name] >= effort.seconds:
                continue
            if estimates[name] < _WARMED:
                call()
            samples[name].append(_sample(call, loops[name]))
    times = {}
    for name, pairs in samples.items():
        cpu, wall = zip(*pairs, strict=True)
        times[name] = Timing(min(cpu), statistics.median(cpu), min(wall), statistics.median(wall), len(pairs), loops[name])
    return times


def _estimate(call: Call) -> float:
    """About the seconds of a call; the first one also compiles, and touches the memory."""
    call()
    return max(1e-7, _sample(call, 1)[1])


def _sample(call: Call, loops: int) -> tuple[float, float]:
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(loops):
        call()
    return (time.thread_time() - cpu) / loops, (time.perf_counter() - wall) / loops


def peak_bytes(call: Call) -> int:
    """The most memory that Python and NumPy hold at once, beyond what they held before, during the second of two calls."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@dataclass(frozen=True)
class Bar:
    """One figure and its limit."""

    name: str
    value: float | None  # None where the run has no cell for it
    limit: float | None  # None for a figure that is only reported
    at_least: bool = False  # whether the figure must not be below the limit (else: not above)
    detail: str = ""  # the cell that is furthest on the wrong side, for bars over cells
    figures: dict[str, float] = field(default_factory=dict)

    @classmethod
    def over(cls, name: str, figures: dict[str, float], limit: float, *, at_least: bool = False, mean: bool = False) -> Bar:
        """Return the worst of the figures of cells, or their geometric mean."""
        if not figures:
            return cls(name, None, limit, at_least)
        worst = (min if at_least else max)(figures, key=lambda cell: figures[cell])
        value = statistics.geometric_mean(figures.values()) if mean else figures[worst]
        return cls(name, value, limit, at_least, f"{worst}: {figures[worst]:.3g}", figures)

    @property
    def met(self) -> bool | None:
        if self.value is None or self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_table(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def bar_table(bars: Sequence[Bar], style: str) -> str:
    """Return the figures with their limits, as a table of a style of `tabulate`."""
    verdict = {True: "met", False: "NOT MET", None: "-"}
    rows = []
    for bar in bars:
        limit = "" if bar.limit is None else f"{'>=' if bar.at_least else '<='} {bar.limit:g}"
        rows.append((bar.name, "not measured" if bar.value is None else f"{bar.value:.3g}", limit, verdict[bar.met], bar.detail))
    return tabulate(rows, headers=["bar", "figure", "limit", "", "worst cell"], tablefmt=style, disable_numparse=True)
