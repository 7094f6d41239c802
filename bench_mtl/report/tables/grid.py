"""All times of a set of problems to one target, as a matrix of instances and solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Status
from bench_mtl.stats import Interval
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array

#: An interval whose ends are further apart than this factor says nothing, and is left out.
WIDEST = 1e6


@dataclass(frozen=True)
class Column:
    """One solver on every instance of a group. Times of zero count as the shortest that can be told from it."""

    name: str
    kind: str
    tried: NDArray[np.bool_]
    """Instances that it was run on, and not skipped."""
    first: Array
    """Of the first repetition alone, which choices are made by; NaN where not all repetitions reached the target, or it was not tried."""
    seconds: Array
    """Medians over repetitions; NaN where `first` is."""
    limits: Array
    """In seconds; NaN where there is none."""
    had: Array
    """The longest time that it is certain to have had without getting there, seconds; NaN where it did, or where that is not known."""
    repetitions: tuple[tuple[float, ...], ...]
    """The times themselves, the first one first; empty where `seconds` is NaN."""
    runs: int
    reached: int
    """How many of them got there."""
    stopped: bool
    """Whether all that did not were stopped by their time limit."""

    @property
    def solved(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.seconds)

    @property
    def measured(self) -> Column:
        """The same without the first repetitions, where there are others: what a choice by the first ones is measured by."""
        repetitions = tuple(times[1:] or times for times in self.repetitions)
        return replace(self, seconds=_medians(repetitions), repetitions=repetitions)

    def at_least(self) -> list[tuple[float, ...]]:
        """Return the repetitions on every instance, or the time that it had alone where it failed; empty where that is not known."""
        return [times or ((float(had),) if had == had else ()) for times, had in zip(self.repetitions, self.had, strict=True)]


@dataclass(frozen=True)
class Grid:
    """A set of problems, a target, and its solvers in the order of the runs."""

    group: str
    target: float
    instances: int
    columns: tuple[Column, ...]


def grids(times: pd.DataFrame, members: Mapping[str, Sequence[str]]) -> list[Grid]:
    """Yield a grid for every named set of problem labels and every target, from `run_times`.

    Solvers that were skipped throughout do not enter.
    """
    cells, kinds = _cells(times)
    solvers: dict[str, dict[str, None]] = {}
    instances: dict[str, dict[str, None]] = {}
    for problem, instance, solver in zip(times["problem"], times["instance"], times["solver"], strict=True):
        solvers.setdefault(problem, {})[solver] = None
        instances.setdefault(problem, {})[instance] = None
    targets = times["target"].unique().tolist()
    found = []
    for group, labels in members.items():
        places = [(label, instance) for label in labels for instance in instances[label]]
        names = dict.fromkeys(solver for label in labels for solver in solvers[label])
        for target in targets:
            columns = [_column(name, kinds[name], [cells.get((*place, name, target)) for place in places]) for name in names]
            tried = tuple(column for column in columns if column.tried.any())
            found.append(Grid(group, target, len(places), tried))
    return found


def fastest(columns: Sequence[Column], name: str) -> Column:
    """Return the fastest of several solvers on every instance, chosen by the first repetition and measured by the others.

    It was tried where any of them was, and its limit is the shortest of theirs, as is the time that it had: no one of them was faster than
    that.
    """
    columns = [column.measured for column in columns]
    first = np.array([column.first for column in columns])
    places = np.where(np.isnan(first), np.inf, first).argmin(axis=0)
    instances = np.arange(len(places))
    limits = np.array([np.where(column.tried, column.limits, np.nan) for column in columns])
    unlimited = np.array([column.tried & np.isnan(column.limits) for column in columns]).all(axis=0)
    return Column(
        name,
        columns[0].kind,
        np.any([column.tried for column in columns], axis=0),
        first[places, instances],
        np.array([column.seconds for column in columns])[places, instances],
        np.where(unlimited, np.nan, np.fmin.reduce(limits, axis=0)),
        _shortest_had(columns),
        tuple(columns[place].repetitions[row] for row, place in enumerate(places)),
        sum(column.runs for column in columns),
        sum(column.reached for column in columns),
        all(column.stopped for column in columns),
    )


def _medians(repetitions: Sequence[tuple[float, ...]]) -> Array:
    return np.array([median(times) if times else float("nan") for times in repetitions])


def _in_order(repetitions: list[tuple[int, float]]) -> tuple[float, ...]:
    """Return the times of all repetitions, the first one first; nothing where one of them did not get there."""
    if any(time != time for _, time in repetitions):
        return ()
    return tuple(max(time, RESOLUTION) for _, time in sorted(repetitions))


def _shortest_had(columns: Sequence[Column]) -> Array:
    """Return the shortest time that any of them had where none got there; NaN where of one that was tried it is not known."""
    had = np.array([column.had for column in columns])
    unknown = np.array([column.tried & ~column.solved & np.isnan(column.had) for column in columns]).any(axis=0)
    solved = np.array([column.solved for column in columns]).any(axis=0)
    return np.where(unknown | solved, np.nan, np.fmin.reduce(had, axis=0))


def interval_ends(interval: Interval, shift: float = 0.0) -> tuple[float, float]:
    """Return the ends of an interval, of a mean with this shift; missing where it says nothing."""
    low, high = interval.low, interval.high
    if low is None or high is None or not np.isfinite(high) or high + shift > WIDEST * (low + shift):
        return float("nan"), float("nan")
    return low, high


def _cells(times: pd.DataFrame) -> tuple[dict[tuple[str, str, str, float], list[Any]], dict[str, str]]:
    """By problem, instance, solver and target: number and time of all repetitions that were run, the limit, whether all that failed
    stopped there, the shortest time that any of these had."""
    names = ["problem", "instance", "solver", "target", "seconds", "limit_seconds", "had_seconds", "status", "kind", "repetition"]
    cells: dict[tuple[str, str, str, float], list[Any]] = {}
    kinds: dict[str, str] = {}
    rows = zip(*(times[name].tolist() for name in names), strict=True)
    for problem, instance, solver, target, seconds, limit, had, status, kind, repetition in rows:
        kinds[solver] = kind
        if status != Status.SKIPPED:
            cell = cells.setdefault((problem, instance, solver, target), [[], limit, True, np.inf])
            cell[0].append((repetition, seconds))
            cell[1] = limit if limit != limit else max(cell[1], limit)  # a run without a limit leaves none
            if seconds != seconds:
                cell[2] &= status == Status.TIMEOUT
                cell[3] = float(np.minimum(had, cell[3]))  # where one is not known, the shortest is not
    return cells, kinds


def _column(name: str, kind: str, cells: Sequence[list[Any] | None]) -> Column:
    tried = np.array([cell is not None for cell in cells])
    limits = np.array([float("nan") if cell is None else cell[1] for cell in cells])
    repetitions = tuple(() if cell is None else _in_order(cell[0]) for cell in cells)
    first = np.array([times[0] if times else float("nan") for times in repetitions])
    known = [cell for cell in cells if cell is not None]
    reached = sum(time == time for cell in known for _, time in cell[0])
    had = np.array([float("nan") if cell is None or cell[3] == np.inf else cell[3] for cell in cells])
    runs, stopped = sum(len(cell[0]) for cell in known), all(cell[2] for cell in known)
    return Column(name, kind, tried, first, _medians(repetitions), limits, had, repetitions, runs, reached, stopped)
