"""Solvers on the instances of a problem, or of a group of problems, to one target: what each of them took, or had in vain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench_mtl.report.check.clocks import RESOLUTION, Counting, had, time_to
from bench_mtl.report.check.rows import SKIPPED, TIMEOUT, Run


@dataclass(frozen=True)
class Attempt:
    """A solver on one instance."""

    seconds: tuple[float, ...]
    """Of all repetitions, the first one first; empty unless all of them got there."""
    had: float | None = None
    """Where one did not: the shortest time that one of those had in one go; None where that is not known."""
    runs: int = 0
    reached: int = 0
    stopped: bool = True
    """Whether all that did not get there were stopped by their time limit."""
    limit: float | None = None

    @property
    def first(self) -> float:
        """Of the first repetition, which choices are made by; infinite where it failed."""
        return self.seconds[0] if self.seconds else math.inf

    @property
    def measured(self) -> tuple[float, ...]:
        """Of the repetitions after the first, where there are any: what a choice is measured by."""
        return self.seconds[1:] or self.seconds

    @property
    def typical(self) -> float:
        """The median of these; infinite where it failed."""
        return median(self.measured) if self.seconds else math.inf

    @property
    def known(self) -> tuple[float, ...]:
        """What stands for its time in a ratio: the measured ones, or what it had in vain; empty where that is not known."""
        return self.measured if self.seconds else () if self.had is None else (self.had,)


@dataclass(frozen=True)
class Entrant:
    """A solver on all instances; None stands for one that it was not run on."""

    label: str
    kind: str
    attempts: tuple[Attempt | None, ...]

    @property
    def tried(self) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.attempts if attempt is not None)

    @property
    def is_tried_everywhere(self) -> bool:
        return None not in self.attempts

    @property
    def is_whole(self) -> bool:
        """Whether it got there in every run on every instance."""
        return all(attempt is not None and attempt.seconds for attempt in self.attempts)

    @property
    def runs(self) -> int:
        return sum(attempt.runs for attempt in self.tried)

    @property
    def reached(self) -> int:
        return sum(attempt.reached for attempt in self.tried)

    @property
    def is_stopped(self) -> bool:
        return all(attempt.stopped for attempt in self.tried)

    @property
    def by_all(self) -> Entrant:
        """The same, measured by all repetitions: nobody has chosen it."""
        attempts = (each and replace(each, seconds=(*each.seconds[:1], *each.seconds)) for each in self.attempts)
        return replace(self, attempts=tuple(attempts))

    @property
    def first(self) -> float:
        """Geometric mean over the instances of the first repetitions."""
        return geometric_mean([attempt.first for attempt in self.tried])

    @property
    def seconds(self) -> float:
        """Geometric mean over the instances of what it is measured by."""
        return geometric_mean([attempt.typical for attempt in self.tried])


def geometric_mean(values: Sequence[float]) -> float:
    """Return exp of the mean logarithm; the value itself where there is one."""
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))


def entrants(runs: Iterable[Run], counts: Mapping[int, Counting], target: float) -> tuple[list[tuple[str, str]], list[Entrant]]:
    """Return the instances, each with its problem, and the solvers that were run on any of them."""
    runs = tuple(runs)
    places = list(dict.fromkeys((run.problem, run.instance) for run in runs))
    found: dict[str, dict[tuple[str, str], list[Run]]] = {}
    kinds = {}
    for run in runs:
        if run.status != SKIPPED and counts[run.id].holds(target):
            found.setdefault(run.label, {}).setdefault((run.problem, run.instance), []).append(run)
            kinds[run.label] = run.kind
    return places, [
        Entrant(label, kinds[label], tuple(_attempt(by_place[place], target) if place in by_place else None for place in places))
        for label, by_place in found.items()
    ]


def _attempt(runs: Sequence[Run], target: float) -> Attempt:
    timed = [(run, time_to(run, target)) for run in sorted(runs, key=lambda run: run.repetition)]
    seconds = [max(time, RESOLUTION) for _, time in timed if time is not None]
    in_vain = [had(run) for run, time in timed if time is None]
    known = [time for time in in_vain if time is not None]
    limits = [run.limit for run in runs]
    return Attempt(
        seconds=() if in_vain else tuple(seconds),
        had=min(known) if known and len(known) == len(in_vain) else None,
        runs=len(runs),
        reached=len(seconds),
        stopped=all(run.status == TIMEOUT for run, time in timed if time is None),
        limit=None if None in limits else max(limit for limit in limits if limit is not None),
    )


def fastest(columns: Sequence[Entrant], label: str) -> Entrant:
    """Return the fastest of several on every instance, chosen by the first repetitions and measured by the others.

    Where none gets there it has had the shortest time that one of them had: no one of them was faster than that.
    """
    rows = zip(*(column.attempts for column in columns), strict=True)
    return Entrant(label, columns[0].kind, tuple(_best([attempt for attempt in row if attempt is not None]) for row in rows))


def _best(attempts: Sequence[Attempt]) -> Attempt | None:
    if not attempts:
        return None
    best = min(attempts, key=lambda attempt: attempt.first)
    if best.seconds:
        return best
    in_vain = [attempt.had for attempt in attempts]
    known = [time for time in in_vain if time is not None]
    return Attempt((), min(known) if len(known) == len(in_vain) else None)
