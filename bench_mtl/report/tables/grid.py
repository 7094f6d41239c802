"""All times of a set of problems to one target, as a matrix of instances and solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    seconds: Array
    """Medians over repetitions; NaN where not all of them reached the target, or it was not tried."""
    limits: Array
    """In seconds; NaN where there is none."""
    repetitions: tuple[tuple[float, ...], ...]
    """The times themselves; empty where `seconds` is NaN."""
    runs: int
    reached: int
    """How many of them got there."""
    stopped: bool
    """Whether all that did not were stopped by their time limit."""

    @property
    def solved(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.seconds)

    def at_limit(self) -> list[tuple[float, ...]]:
        """Return the repetitions on every instance, or the limit alone where it failed; empty where there is none."""
        return [times or ((float(limit),) if limit == limit else ()) for times, limit in zip(self.repetitions, self.limits, strict=True)]


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
    """Return the fastest of several solvers on every instance, as if one had known which to take.

    It was tried where any of them was, and its limit is the shortest of theirs: no one of them was faster than that.
    """
    seconds = np.array([column.seconds for column in columns])
    places = np.where(np.isnan(seconds), np.inf, seconds).argmin(axis=0)
    limits = np.array([np.where(column.tried, column.limits, np.nan) for column in columns])
    unlimited = np.array([column.tried & np.isnan(column.limits) for column in columns]).all(axis=0)
    return Column(
        name,
        columns[0].kind,
        np.any([column.tried for column in columns], axis=0),
        np.fmin.reduce(seconds, axis=0),
        np.where(unlimited, np.nan, np.fmin.reduce(limits, axis=0)),
        tuple(columns[place].repetitions[row] for row, place in enumerate(places)),
        sum(column.runs for column in columns),
        sum(column.reached for column in columns),
        all(column.stopped for column in columns),
    )


def interval_ends(interval: Interval, shift: float = 0.0) -> tuple[float, float]:
    """Return the ends of an interval, of a mean with this shift; missing where it says nothing."""
    low, high = interval.low, interval.high
    if low is None or high is None or not np.isfinite(high) or high + shift > WIDEST * (low + shift):
        return float("nan"), float("nan")
    return low, high


def _cells(times: pd.DataFrame) -> tuple[dict[tuple[str, str, str, float], list[Any]], dict[str, str]]:
    """By problem, instance, solver and target: the times of all repetitions that were run, the limit, whether all stopped there."""
    names = ["problem", "instance", "solver", "target", "seconds", "limit_seconds", "status", "kind"]
    cells: dict[tuple[str, str, str, float], list[Any]] = {}
    kinds: dict[str, str] = {}
    for problem, instance, solver, target, seconds, limit, status, kind in zip(*(times[name].tolist() for name in names), strict=True):
        kinds[solver] = kind
        if status != Status.SKIPPED:
            cell = cells.setdefault((problem, instance, solver, target), [[], limit, True])
            cell[0].append(seconds)
            cell[1] = limit if limit != limit else max(cell[1], limit)  # a run without a limit leaves none
            cell[2] &= seconds == seconds or status == Status.TIMEOUT
    return cells, kinds


def _column(name: str, kind: str, cells: Sequence[list[Any] | None]) -> Column:
    tried = np.array([cell is not None for cell in cells])
    limits = np.array([float("nan") if cell is None else cell[1] for cell in cells])
    repetitions = tuple(
        () if cell is None or any(time != time for time in cell[0]) else tuple(max(time, RESOLUTION) for time in cell[0]) for cell in cells
    )
    seconds = np.array([median(times) if times else float("nan") for times in repetitions])
    known = [cell for cell in cells if cell is not None]
    reached = sum(time == time for cell in known for time in cell[0])
    return Column(
        name, kind, tried, seconds, limits, repetitions, sum(len(cell[0]) for cell in known), reached, all(cell[2] for cell in known)
    )
