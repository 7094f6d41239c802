"""What problems measure of points, derived anew: at the best and at the last point of every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from bench_mtl.report.check.cells import Number, Row
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.rows import ONE_SHOT, Measured, Run


def measure_rows(derived: Derived) -> list[Row]:
    """Return medians with the least and the greatest by problem, solver and measure."""
    groups: dict[tuple[str, str, str], list[tuple[Run, Measured, Measured]]] = {}
    for run in derived.rows.runs:
        if run.measured:
            best = min(run.measured, key=lambda point: math.inf if point.primal is None else point.primal)
            last = max(run.measured, key=lambda point: point.number)
            for name in dict.fromkeys((*best.values, *last.values)):
                groups.setdefault((run.problem, run.label, name), []).append((run, best, last))
    return [_row(*named, found) for named, found in groups.items()]


def _row(problem: str, solver: str, name: str, found: Sequence[tuple[Run, Measured, Measured]]) -> Row:
    kind = found[0][0].kind
    have = [best for _, best, _ in found if name in best.values]
    passes = [best.passes for best in have if best.passes is not None and not (kind in ONE_SHOT and best.passes == 0)]
    seconds = [best.seconds for best in have if best.seconds is not None]
    return {
        "Problem": problem,
        "Solver": solver,
        "Kind": kind,
        "Measure": name,
        "Runs": Number(len(found), "count"),
        "At the best point": _middle([best.values[name] for best in have], len(found)),
        "Seconds": Number(median(seconds) if seconds else None, "seconds"),
        "Passes": Number(median(passes) if passes else None, "count"),
        "At the last point": _middle([last.values[name] for _, _, last in found if name in last.values], len(found)),
    }


def _middle(values: Sequence[float], runs: int) -> Number:
    """Return a median with the least and the greatest, where there are several runs."""
    if not values:
        return Number(None, "count")
    return Number(median(values), "count", ends=(min(values), max(values)) if runs > 1 else None)
