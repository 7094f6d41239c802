"""How many times faster the specialised solvers are than the generic ones, over groups of like problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench_mtl.report.tables.comparisons import FASTEST_GENERIC, FASTEST_SPECIALISED
from bench_mtl.report.tables.grid import Grid, fastest, grids
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.pairs import pair
from bench_mtl.results.frames import ONE_SHOT, SPECIALISED
from bench_mtl.stats import holm

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = [
    "group", "target", "instances", "without", "ratio", "at_least", "at_most", "ratio_low", "ratio_high", "lowest_ratio", "losses",
    "p_value", "p_adjusted",
]  # fmt: skip


def speed_ups(runs: pd.DataFrame, times: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return how many times faster the fastest specialised solver is than the fastest generic one, by group of like problems and target.

    Both are chosen anew on every instance. Peers count among the generic solvers here. With a baseline it is the fastest of all others
    against that.

    Parameters
    ----------
    runs : of a store
    times : their `run_times`
    baseline : label of a solver, or None

    Returns
    -------
    DataFrame
        group (of two instances or more), target, and as in a `Pair`: instances (of the group), without (those without a ratio), ratio,
        at_least, at_most, ratio_low, ratio_high, lowest_ratio, losses (instances on which the generic solvers or the baseline are
        faster), p_value; p_adjusted (by Holm, over the table).
    """
    import pandas as pd

    rows = [_row(grid, baseline) for grid in grids(times, groups(runs)) if grid.instances > 1]
    table = pd.DataFrame(rows, columns=_COLUMNS).astype(
        dict.fromkeys(["ratio", "ratio_low", "ratio_high", "lowest_ratio", "p_value"], "float64")
    )
    return table.assign(p_adjusted=holm(table["p_value"]))


def _row(grid: Grid, baseline: str | None) -> dict[str, Any]:
    slow = [column for column in grid.columns if (column.kind in ONE_SHOT if baseline is None else column.name == baseline)]
    quick = [column for column in grid.columns if (column.kind == SPECIALISED if baseline is None else column.name != baseline)]
    row: dict[str, Any] = {"group": grid.group, "target": grid.target, "instances": grid.instances}
    if not slow or not quick:
        return row | {"without": grid.instances, "at_least": False, "at_most": False, "losses": 0}
    found = pair(fastest(slow, FASTEST_GENERIC), fastest(quick, FASTEST_SPECIALISED))
    return row | {
        "without": grid.instances - (found.ratios if found.ratio == found.ratio else 0),
        "ratio": found.ratio,
        "at_least": found.at_least,
        "at_most": found.at_most,
        "ratio_low": found.low,
        "ratio_high": found.high,
        "lowest_ratio": found.lowest,
        "losses": found.losses,
        "p_value": found.p_value,
    }
