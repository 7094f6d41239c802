"""The tidy frame of an experiment: a row for every measured value, with the settings that it belongs to; and means over repetitions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench_mtl.stats import student_half_width

#: Of the t intervals of means over repetitions.
CONFIDENCE = 0.95

#: What stands in a column that does not matter to a measure, such as a rule of decision to an area under a curve.
NONE = "-"

#: What the column of repetitions is called. A value without one is of all repetitions together, and has no interval.
SEED, MEASURE, VALUE = "seed", "measure", "value"


class Mean(NamedTuple):
    """A mean over repetitions."""

    value: float = math.nan
    half: float = math.nan  # half the width of its t interval; NaN of one repetition, 0 of a value that has no repetitions
    repetitions: int = 0
    deviation: float = math.nan  # standard deviation of a repetition

    def text(self, digits: int = 4, *, sign: bool = False) -> str:
        """Return the mean ± half of the interval; "-" where there is no repetition."""
        if not self.repetitions:
            return NONE
        shown = f"{self.value:{'+' if sign else ''}.{digits}f}"
        return shown if not self.half > 0.0 else f"{shown} ± {self.half:.{digits}f}"


def mean(values: Mapping[Hashable, float]) -> Mean:
    """Return the mean of values by repetition; a lone value by None has no repetitions, and is exact."""
    numbers = np.array([value for value in values.values() if not math.isnan(value)], dtype=np.float64)
    if len(numbers) < 2:
        half = 0.0 if None in values and len(numbers) else math.nan
        return Mean(float(numbers[0]), half, 1) if len(numbers) else Mean()
    return Mean(float(numbers.mean()), student_half_width(numbers, CONFIDENCE), len(numbers), float(numbers.std(ddof=1)))


def difference(values: Mapping[Hashable, float], others: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """Return values minus others, by repetition, where both are there."""
    return {seed: value - others[seed] for seed, value in values.items() if seed in others}


def label(value: object) -> str:
    """Return a setting as claims and tables write it: ``0.1``, ``30``, ``l1inf``."""
    return f"{value:g}" if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else str(value)


def melted(rows: pd.DataFrame, settings: Sequence[str], measures: Mapping[str, str], scale: float = 1.0) -> pd.DataFrame:
    """Return a tidy frame of columns, named by their measures, times a scale; settings that the rows have not are `NONE`."""
    kept = pd.DataFrame({name: rows[name].map(label) if name in rows else NONE for name in settings}, index=rows.index)
    kept[SEED] = rows.get(SEED, np.nan)
    parts = [
        kept.assign(measure=measure, value=scale * rows[column].astype("float64")) for measure, column in measures.items() if column in rows
    ]
    return tidy(parts, settings)


def per_model(rows: pd.DataFrame, settings: Sequence[str], models: Sequence[str], measures: Mapping[str, str]) -> pd.DataFrame:
    """Return a tidy frame of cells that hold several models: a column ``l1_eer`` is the column ``eer`` of the model ``l1``."""
    parts = [
        melted(rows, settings, {measure: f"{model}_{column}" for measure, column in measures.items()}).assign(model=model)
        for model in models
    ]
    return tidy(parts, [*settings, "model"])


def tidy(parts: Iterable[pd.DataFrame], settings: Sequence[str]) -> pd.DataFrame:
    """Return tidy frames as one, without missing values; a setting that one of them has not is `NONE` there."""
    columns = [*settings, SEED, MEASURE, VALUE]
    filled = [part for part in parts if len(part)]
    if not filled:
        return pd.DataFrame(columns=columns)
    frame = pd.concat(filled, ignore_index=True).reindex(columns=columns).dropna(subset=VALUE)
    frame = frame.astype(dict.fromkeys([*settings, MEASURE], object))  # far quicker to choose from than texts of pyarrow
    return frame.fillna(dict.fromkeys(settings, NONE)).reset_index(drop=True)


def with_families(frame: pd.DataFrame, families: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the frame with rows for families of models: the mean of their members, where all of them have a value."""
    keys = [name for name in frame.columns if name not in ("model", VALUE)]
    wide = frame.pivot(index=keys, columns="model", values=VALUE)
    added = [
        wide.reindex(columns=list(members)).mean(axis=1, skipna=False).dropna().rename(VALUE).reset_index().assign(model=family)
        for family, members in families.items()
    ]
    return pd.concat([frame, *(part for part in added if len(part))], ignore_index=True)


def chosen(frame: pd.DataFrame, where: Mapping[str, str | Sequence[str]]) -> pd.DataFrame:
    """Return the rows whose settings are these, one or any of several; "*" is any, and what does not matter to a measure is in all."""
    wanted = {column: [names] if isinstance(names, str) else list(names) for column, names in where.items() if names != "*"}
    masks = [frame[column].isin([*names, NONE]) for column, names in wanted.items()]
    return frame[np.logical_and.reduce(masks)] if masks else frame


def by_seed(frame: pd.DataFrame) -> dict[Hashable, float]:
    """Return the values of a measure by repetition; raises ValueError where one has several: a column is neither chosen nor shown."""
    seeds = [None if isinstance(seed, float) and math.isnan(seed) else seed for seed in frame[SEED]]
    if len(set(seeds)) < len(seeds):
        several = [name for name in frame.columns if name != VALUE and frame[name].nunique(dropna=False) > 1]
        raise ValueError(f"several values of a repetition: say which in {', '.join(map(repr, several))}")
    return dict(zip(seeds, frame[VALUE].tolist(), strict=True))
