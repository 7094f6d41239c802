"""Solver against solver over groups of like problems: how many times faster, how sure, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import unknown
from bench_mtl.report.tables.grid import Column, Grid, fastest, grids
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.pairs import pair
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED
from bench_mtl.stats import holm

if TYPE_CHECKING:
    import pandas as pd

#: The fastest solver of a kind, chosen anew on every instance.
FASTEST_GENERIC, FASTEST_PEER, FASTEST_SPECIALISED = "fastest generic", "fastest peer", "fastest specialised"

_COLUMNS = [
    "group", "target", "reference", "solver", "instances", "ratios", "ratio", "at_least", "at_most", "ratio_low", "ratio_high", "wins",
    "losses", "ties", "test", "p_value", "p_adjusted",
]  # fmt: skip


def comparisons(runs: pd.DataFrame, times: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return how many times faster solvers are than a reference, per group of like problems and target.

    Without a baseline every solver that is not generic is compared with the fastest generic one of each instance, and the fastest
    specialised one of each instance with every generic one; and, in the same way, every solver that is neither generic nor a peer with the
    fastest peer, and the fastest specialised one with every peer. Whoever picks the fastest of several on each instance has an advantage
    that nobody has who must choose before: the first kind of rows is unfair to the solver, the second to the reference. With a
    baseline all other solvers, and the fastest specialised of them, are compared with it.

    A pair enters over the instances that both were tried on, with failures as in `pairs.pair`.

    Parameters
    ----------
    runs : of a store
    times : their `run_times`
    baseline : label of a solver, or None

    Returns
    -------
    DataFrame
        group, target, reference, solver, and what a `Pair` holds: instances, ratios, ratio, at_least, at_most, ratio_low, ratio_high, wins,
        losses, ties, test, p_value; p_adjusted (by Holm, over all rows of the group and target that have a test).

    Raises
    ------
    InputError : no solver has the label `baseline`.
    """
    import pandas as pd

    labels = set(runs["solver_label"].map(str))
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    rows: list[dict[str, Any]] = []
    for grid in grids(times, groups(runs)):
        of_grid = [_row(grid, reference, solver) for reference, solver in _pairs(grid, baseline)]
        of_grid = [row for row in of_grid if row["instances"]]
        adjusted = holm([row["p_value"] for row in of_grid])
        rows += [{**row, "p_adjusted": float(p)} for row, p in zip(of_grid, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _pairs(grid: Grid, baseline: str | None) -> Iterator[tuple[Column, Column]]:
    """References and solvers."""
    if baseline is not None:
        for reference in (column for column in grid.columns if column.name == baseline):
            others = [column for column in grid.columns if column.name != baseline]
            yield from ((reference, column) for column in others)
            specialised = [column for column in others if column.kind == SPECIALISED]
            if len(specialised) > 1:
                yield reference, fastest(specialised, FASTEST_SPECIALISED)
        return
    specialised = [column for column in grid.columns if column.kind == SPECIALISED]
    for kind, name, measured in ((GENERIC, FASTEST_GENERIC, (GENERIC,)), (PEER, FASTEST_PEER, ONE_SHOT)):
        references = [column for column in grid.columns if column.kind == kind]
        if references:
            best = fastest(references, name)
            yield from ((best, column) for column in grid.columns if column.kind not in measured)
        if specialised and len(references) + len(specialised) > 2:  # else it is the row above
            best = fastest(specialised, FASTEST_SPECIALISED)
            yield from ((column, best) for column in references)


def _row(grid: Grid, reference: Column, solver: Column) -> dict[str, Any]:
    found = pair(reference, solver)
    row = {"group": grid.group, "target": grid.target, "reference": reference.name, "solver": solver.name}
    same = ("instances", "ratios", "ratio", "at_least", "at_most", "wins", "losses", "ties", "test", "p_value")
    return row | {name: getattr(found, name) for name in same} | {"ratio_low": found.low, "ratio_high": found.high}
