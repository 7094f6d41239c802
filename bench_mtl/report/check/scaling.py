"""The exponents of times against sizes, derived anew."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean, median
from typing import Any

from bench_mtl.core.text import one_line
from bench_mtl.report.check.cells import Number, Row
from bench_mtl.report.check.clocks import time_to
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.rows import SKIPPED, Run

#: Sizes that make a sweep, and points that make a fit.
_FEWEST = 3

#: The option that says how many workers compute with the data.
_NO_SIZE = "workers"


def scaling_rows(derived: Derived) -> list[Row]:
    """Return the exponents of the time to the tightest target, by sweep and solver."""
    target = derived.rows.targets[-1]
    return [row for key, runs in _sweeps(derived) for row in _rows_of(key, runs, target, derived)]


def _rows_of(key: str, runs: list[Run], target: float, derived: Derived) -> Iterator[Row]:
    name = sweep_name(runs[0], key)
    by_solver: dict[str, dict[int, list[Run]]] = {}
    for run in runs:
        if derived.counts[run.id].holds(target):
            by_solver.setdefault(run.label, {}).setdefault(_data(run)[key], []).append(run)
    for solver, by_size in by_solver.items():
        points: dict[int, float] = {}
        for size, of_size in by_size.items():
            times = [time for run in of_size if (time := time_to(run, target)) is not None]
            if len(times) == len(of_size) and median(times) > 0.0:
                points[size] = median(times)
        exponent, ends = _slope(points) if len(points) >= _FEWEST else (None, None)
        yield {
            "Sweep": name,
            "Key": key,
            "Target": Number(target, "target"),
            "Solver": solver,
            "Points": Number(len(points), "count"),
            "Exponent": Number(exponent, "count", ends=ends),
            "Size": Number(max(points, default=None), "count"),
        }


def _slope(points: Mapping[int, float]) -> tuple[float, tuple[float, float]]:
    """Return the slope of the least-squares line through the logarithms, and Student's 95 % interval of it."""
    from scipy.special import stdtrit

    x, y = [math.log(size) for size in points], [math.log(seconds) for seconds in points.values()]
    x_mean, y_mean = fmean(x), fmean(y)
    spread = sum((each - x_mean) ** 2 for each in x)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread
    left = sum((b - y_mean - slope * (a - x_mean)) ** 2 for a, b in zip(x, y, strict=True))
    half = float(stdtrit(len(x) - 2, 0.975)) * math.sqrt(left / (len(x) - 2) / spread)
    return slope, (slope - half, slope + half)


def _sweeps(derived: Derived) -> Iterator[tuple[str, list[Run]]]:
    """Yield the runs of problems that differ in one whole-numbered option of their data alone, with the option."""
    ran = [run for run in derived.rows.runs if run.status != SKIPPED]
    for key in dict.fromkeys(key for run in ran for key, value in _data(run).items() if _is_size(value) and key != _NO_SIZE):
        for runs in sweeps_of(ran, key):
            if len({_data(run)[key] for run in runs}) >= _FEWEST:
                yield key, runs


def sweeps_of(ran: Iterable[Run], key: str) -> Iterable[list[Run]]:
    """Return the runs of problems that are alike but for one option of their data, a whole number."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in ran:
        if _is_size(_data(run).get(key)):
            others = json.dumps({name: value for name, value in _data(run).items() if name != key}, sort_keys=True)
            found.setdefault((run.family, run.parameters, others, run.machine), []).append(run)
    return found.values()


def _data(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.data)
    return found


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def sweep_name(run: Run, key: str) -> str:
    """Return what the problems of a sweep have in common."""
    data = {name: value for name, value in _data(run).items() if name != key}
    what = data.pop("name", None) or data.pop("file", "data")
    held = "".join(f", {name} = {value}" for name, value in data.items())
    return one_line(f"{run.family} on {what}{held}, by {key}{f', {run.machine}' if run.machine else ''}")
