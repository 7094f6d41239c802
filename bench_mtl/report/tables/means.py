"""Mean times over groups of like problems, with failures entered in three ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.report.tables.grid import Column, Grid, grids, interval_ends
from bench_mtl.report.tables.groups import groups
from bench_mtl.stats import shifted_geometric_mean, shifted_mean_interval, suitable_shift

if TYPE_CHECKING:
    import pandas as pd

#: What PAR10, the penalised average run time, multiplies the limit of a failure by (Hutter et al., 2009, section 3.1).
_PENALTY = 10.0

_COLUMNS = [
    "group", "target", "solver", "kind", "instances", "run_on", "solved", "shift", "mean", "mean_at_least", "mean_low", "mean_high",
    "mean_ten_times", "solved_by_all", "mean_solved_by_all",
]  # fmt: skip


def means(runs: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Shifted geometric means of the time to each target, per group of like problems and solver.

    An instance counts as solved where all repetitions reached the target, with their median. A failure counts at the time that it had,
    whatever its reason. A solver that was not tried on all instances of the group has no means: over fewer they would be of
    something else.

    Parameters
    ----------
    runs : of a store
    times : their `run_times`

    Returns
    -------
    DataFrame
        group, target, solver, kind, instances (of the group), run_on (how many of them the solver was tried on), solved, shift (of all
        solvers of the group, see `suitable_shift`), mean (failures at the time that they had), mean_at_least (whether there are any, so
        that the true mean is no smaller), mean_low and mean_high (its interval, see `shifted_mean_interval`; missing where there are),
        mean_ten_times (failures at ten times the time limit), solved_by_all (instances that were solved by every solver that was tried on
        all and solved any), mean_solved_by_all (over these; of those solvers alone). Means are missing where it is not known what time a
        failure had, or where it had no limit.
    """
    import pandas as pd

    rows = [row for grid in grids(times, groups(runs)) for row in _rows(grid)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _rows(grid: Grid) -> list[dict[str, Any]]:
    if not grid.columns:
        return []
    shift = suitable_shift(np.column_stack([column.seconds for column in grid.columns]))
    competing = [column for column in grid.columns if column.tried.all() and column.solved.any()]
    common = np.all([column.solved for column in competing], axis=0) if competing else np.zeros(grid.instances, dtype=bool)
    rows = []
    for column in grid.columns:
        row = {
            "group": grid.group,
            "target": grid.target,
            "solver": column.name,
            "kind": column.kind,
            "instances": grid.instances,
            "run_on": int(column.tried.sum()),
            "solved": int(column.solved.sum()),
            "shift": shift,
            "solved_by_all": int(common.sum()),
        }
        rows.append(row | (_means(column, common, shift) if column.tried.all() else {}))
    return rows


def _means(column: Column, common: NDArray[np.bool_], shift: float) -> dict[str, float | bool]:
    found = {}
    if column.solved.any() and common.any():
        found["mean_solved_by_all"] = shifted_geometric_mean(column.seconds[common], shift)
    if (column.solved | ~np.isnan(column.had)).all():
        found["mean"] = shifted_geometric_mean(np.where(column.solved, column.seconds, column.had), shift)
        found["mean_at_least"] = not column.solved.all()
        if column.solved.all():
            found["mean_low"], found["mean_high"] = interval_ends(shifted_mean_interval(column.at_least(), shift), shift)
    if (column.solved | ~np.isnan(column.limits)).all():
        limits = np.where(np.isnan(column.limits), 1.0, column.limits)  # where there is none, none is needed
        entered = np.where(column.solved, column.seconds, _PENALTY * limits)
        found["mean_ten_times"] = shifted_geometric_mean(entered, shift)
    return found
