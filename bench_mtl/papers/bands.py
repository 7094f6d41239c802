"""Curves of means over repetitions, in bands of their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bench_mtl.papers.summaries import mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw_means(axis: Axes, values: pd.DataFrame, x: str, y: str, look: dict[str, Any]) -> None:
    """Draw the mean of the repetitions at every place, in a band of its interval where there are several: the numbers of `summaries.mean`.

    Parameters
    ----------
    values : a row per repetition and place, of one curve; rows without a value are left out
    x, y : columns of numbers
    look : of the line, in matplotlib's words
    """
    import seaborn

    known = values[[x, y]].astype("float64").dropna()
    if known.empty:
        return
    seaborn.lineplot(
        data=known, x=x, y=y, estimator="mean", errorbar=_interval, ax=axis, legend=False, err_kws={"alpha": 0.18, "linewidth": 0.0},
        markeredgewidth=1.0, markeredgecolor=look["color"], **look,
    )  # fmt: skip


def _interval(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of the interval of the mean of several repetitions."""
    found = mean(list(map(float, values)))
    return (math.nan, math.nan) if math.isnan(found.half) else (found.value - found.half, found.value + found.half)
