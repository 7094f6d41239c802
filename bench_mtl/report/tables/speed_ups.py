"""How many times faster the specialised solvers are than the generic ones, over groups of like problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench_mtl.report.tables.frames import GENERIC, numbers
from bench_mtl.report.tables.grid import told
from bench_mtl.report.tables.groups import group_names
from bench_mtl.stats import Interval, geometric_mean_ratio, holm, sign_test

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.types import Array

_COLUMNS = [
    "group", "target", "instances", "without", "ratio", "at_least", "ratio_low", "ratio_high", "lowest_ratio", "generic_wins", "p_value",
    "p_adjusted",
]  # fmt: skip


def speed_ups(winners: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Per group of like problems and target how many times faster the specialised solvers are than the generic ones.

    A group is two or more labels of one problem family on one data set, whatever the parameters and the preprocessing. A kind
    of solver that does not get there counts at its limit. Against one named solver see `comparisons`.

    Returns
    -------
    DataFrame
        group, target, instances (labels with a ratio), without (labels without one), ratio (the geometric mean; below 1 where
        the generic ones are faster), at_least (whether it is a lower bound), ratio_low, ratio_high (see `geometric_mean_ratio`; missing
        for one label, and where a time is a limit), lowest_ratio, generic_wins (labels), p_value (of the sign test of who is faster,
        over the labels with a ratio), p_adjusted (by Holm, over the table).
    """
    import pandas as pd

    names = group_names(runs)
    generic, ratios = winners["kind"] == GENERIC, numbers(winners, "ratio")
    table = winners.assign(group=winners["problem"].map(names), speed_up=ratios.where(~generic, 1.0 / ratios), generic=generic)
    table = table[table.groupby(["group", "target"])["problem"].transform("size") > 1]
    rows = []
    for (group, target), of_group in table.groupby(["group", "target"], sort=False):
        known = of_group[of_group["speed_up"].notna()]
        bounded = known["at_least"].astype(bool)
        factors = known["speed_up"].to_numpy(dtype=np.float64)
        value, low, high = _mean(factors, interval=not bounded.any())
        p_value = sign_test(int((factors > 1).sum()), int((factors < 1).sum()))
        rows.append(
            {
                "group": group,
                "target": target,
                "instances": len(known),
                "without": len(of_group) - len(known),
                "ratio": value,
                "at_least": bool(bounded.any() and not (bounded & known["generic"]).any()),
                "ratio_low": low,
                "ratio_high": high,
                "lowest_ratio": float(factors.min()) if len(known) else float("nan"),
                "generic_wins": int(of_group["generic"].sum()),
                "p_value": float("nan") if p_value is None else p_value,
            }
        )
    found = pd.DataFrame(rows, columns=_COLUMNS)
    return found.assign(p_adjusted=holm(numbers(found, "p_value")))


def _mean(factors: Array, *, interval: bool) -> tuple[float, float, float]:
    """The geometric mean with its interval."""
    if not len(factors):
        return (float("nan"),) * 3
    ratio = geometric_mean_ratio(np.ones(len(factors)), factors)
    missing = (float("nan"),) * 2
    return ratio.value, *(told(Interval(ratio.value, ratio.low, ratio.high, ratio.pairs)) if interval else missing)
