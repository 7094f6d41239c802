"""Solver against solver over groups of like problems: how many times faster, how sure, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.errors import unknown
from bench_mtl.report.tables.frames import GENERIC, SPECIALISED
from bench_mtl.report.tables.grid import Column, Grid, fastest, grids, told
from bench_mtl.stats import holm, paired_test, ratio_interval

if TYPE_CHECKING:
    import pandas as pd

#: The fastest solver of a kind, chosen anew on every instance.
FASTEST_GENERIC, FASTEST_SPECIALISED = "fastest generic", "fastest specialised"

_COLUMNS = [
    "group", "target", "reference", "solver", "instances", "ratios", "ratio", "at_least", "at_most", "ratio_low", "ratio_high", "wins",
    "losses", "ties", "test", "p_value", "p_adjusted",
]  # fmt: skip


def comparisons(runs: pd.DataFrame, times: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """How many times faster solvers are than a reference, per group of like problems and target.

    Without a baseline every solver that is not generic is compared with the fastest generic one of each instance, and the fastest
    specialised one of each instance with every generic one. Whoever picks the fastest of several on each instance has an advantage
    that nobody has who must choose before: the first kind of rows is unfair to the solver, the second to the reference. With a
    baseline all other solvers, and the fastest specialised of them, are compared with it.

    A pair enters over the instances that both were tried on. A failure, whatever its reason, counts at its time limit: where only the
    reference has failed anywhere, the ratio is a lower bound (`at_least`), where only the solver has, an upper one (`at_most`), and
    where both have, on different instances, it would be neither and is missing, as it is where a failure had no limit. Instances that
    both fail on do not enter the ratio.

    Parameters
    ----------
    runs : of a store
    times : their `run_times`
    baseline : label of a solver, or None

    Returns
    -------
    DataFrame
        group, target, reference, solver, instances (that both were tried on), ratios (how many of them
        somebody solved, which the ratio is of), ratio (geometric mean
        of the reference's seconds / the solver's; above 1 where the solver is faster), at_least, at_most, ratio_low and ratio_high (see
        `ratio_interval`; missing where the ratio is a bound), wins (instances on which the solver is faster or alone), losses, ties,
        test, p_value (see `paired_test`), p_adjusted (by Holm, over all rows of the group and target).

    Raises
    ------
    InputError : no solver has the label `baseline`.
    """
    import pandas as pd

    labels = set(runs["solver_label"].map(str))
    if baseline is not None and baseline not in labels:
        raise unknown("baseline", baseline, labels)
    rows: list[dict[str, Any]] = []
    for grid in grids(runs, times):
        of_grid = [_row(grid, reference, solver) for reference, solver in _pairs(grid, baseline)]
        of_grid = [row for row in of_grid if row["instances"]]
        adjusted = holm([np.nan if row["p_value"] is None else row["p_value"] for row in of_grid])
        rows += [{**row, "p_adjusted": float(p)} for row, p in zip(of_grid, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"p_value": "float64"})


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
    generic = [column for column in grid.columns if column.kind == GENERIC]
    specialised = [column for column in grid.columns if column.kind == SPECIALISED]
    if generic:
        best = fastest(generic, FASTEST_GENERIC)
        yield from ((best, column) for column in grid.columns if column.kind != GENERIC)
    if specialised and len(generic) + len(specialised) > 2:  # else it is the row above
        best = fastest(specialised, FASTEST_SPECIALISED)
        yield from ((column, best) for column in generic)


def _row(grid: Grid, reference: Column, solver: Column) -> dict[str, Any]:
    both = reference.tried & solver.tried
    row: dict[str, Any] = {"group": grid.group, "target": grid.target, "reference": reference.name, "solver": solver.name}
    row["instances"] = int(both.sum())
    if not both.any():
        return row
    places = np.flatnonzero(both & (reference.solved | solver.solved))
    at_least, at_most = bool((~reference.solved[places]).any()), bool((~solver.solved[places]).any())
    before, after = ([column.at_limit()[place] for place in places] for column in (reference, solver))
    row |= {"ratios": len(places), "at_least": at_least and not at_most, "at_most": at_most and not at_least}
    if len(places) and all(before) and all(after) and not (at_least and at_most):
        interval = ratio_interval(before, after)
        row["ratio"] = interval.value
        if not (at_least or at_most):
            row["ratio_low"], row["ratio_high"] = told(interval)
    tested = paired_test(solver.seconds[both], reference.seconds[both])
    return row | {
        "wins": tested.wins,
        "losses": tested.losses,
        "ties": tested.ties,
        "test": tested.test,
        "p_value": tested.p_value,
    }
