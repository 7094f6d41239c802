"""Scores of the learners along the training ratio or the number of labels: curves, and the best and the worst learner of each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from papers.chen.learners import MODELS
from papers.chen.scores import MEASURES, SETTINGS, values
from papers.chen.variants import MAIN
from papers.experiment import Experiment
from papers.figures import Lines
from papers.tables import Table
from papers.values import MEASURE, NONE, VALUE, label, tidy

#: The learners with the highest and the lowest mean at a place.
BEST, WORST, BEST_OTHER = "the best", "the worst", "the best but MixedNorm"

_WORDS = "Per cent, means over the repetitions ± half of the 95 % interval; decisions at 0, AUC per label."

Place = Callable[[Mapping[Any, Any]], float]
"""Where a row stands on a curve."""


def curves(table: Experiment, along: str, place: Place, *, other_data: str = "") -> Experiment:
    """Return an experiment of tables as one of curves along a column."""
    drawn = [
        Lines(f"Scores, {features} features, {intercept} intercept", MEASURES, along, "model", name=f"curves-{features}", words=_WORDS,
              at={"features": features, "intercept": intercept}, log="")
        for features, intercept in MAIN
    ]  # fmt: skip
    shown = Table("Scores in digits", (*MEASURES, "seconds of tuning"), (along, "model", "features", "intercept"), name="scores", digits=2,
                  words=f"{_WORDS} Seconds are of all fits of a tuning, on one core.")  # fmt: skip
    return replace(table, values=partial(curve_values, along, place), sections=(*drawn, shown), other_data=other_data)


def curve_values(along: str, place: Place, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values of the tables at every place of the curves, with the learners that are the best and the worst there."""
    places: list[str] = [label(place(row)) for row in rows.to_dict("records")]
    groups = rows.assign(place=places).groupby("place", sort=False)
    parts = [_with_ends(values(part.assign(data=NONE))).assign(**{along: str(at)}) for at, part in groups]
    return tidy(parts, (*SETTINGS, along))


def _with_ends(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the ends; there are none where a learner is missing, which might be one."""
    ends = []
    scores = frame[frame[MEASURE].isin(MEASURES) & frame["model"].isin(list(MODELS))]
    for _, part in scores.groupby([MEASURE, *(name for name in SETTINGS if name != "model")], sort=False):
        means = part.groupby("model")[VALUE].mean()
        if len(means) == len(MODELS):
            named = {BEST: means.idxmax(), WORST: means.idxmin(), BEST_OTHER: means.drop("MixedNorm").idxmax()}
            ends += [part[part["model"] == name].assign(model=end) for end, name in named.items()]
    return pd.concat([frame, *ends], ignore_index=True)
