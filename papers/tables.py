"""Declared tables of a report: means over repetitions of a tidy frame, or differences of two subjects, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from papers.experiment import Experiment, Read, Section
from papers.judge import selected
from papers.values import MEASURE, NONE, Mean, by_seed, chosen, difference, mean


@dataclass(frozen=True)
class Table:
    """Means by the settings in `rows`, a column for each measure and for each value of the columns in `columns`.

    Other settings are those of `at`, else those of `Experiment.main`, else the first value of `Experiment.protocols`.
    """

    title: str
    measures: Sequence[str]
    rows: Sequence[str]
    columns: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()
    """In the place of `columns`: subjects and what is subtracted from each, on the same repetitions, as a claim names them."""
    words: str = ""
    name: str = ""
    at: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    digits: int = 4
    spread: str = "half_width"  # what stands after ±: `half_width` of the interval, the `deviation` of a repetition, or nothing (`none`)

    def __call__(self, read: Read) -> Section | None:
        """Return the table of what was read; None where nothing of it was run."""
        long = self.long(read)
        if not len(long):
            return None
        return Section(self.title, self.words, self.name, self._shown(long, read.experiment), long)

    def long(self, read: Read) -> pd.DataFrame:
        """Return a row for each cell of the table, with all digits."""
        experiment, keys = read.experiment, [*self.rows, MEASURE, *self.columns]
        subjects = [column for pair in self.pairs for name in pair for column in selected(name, experiment)]
        frame = ordered(rows_of(read, self.measures, self.at, [*keys, *subjects]), experiment, self.rows)
        if not self.pairs:
            return means(frame, keys)
        differences = []
        for key, part in frame.groupby(keys, sort=False):
            for names in self.pairs:
                ours, theirs = (by_seed(chosen(part, selected(name, experiment))) for name in names)
                pair = " minus ".join(experiment.text(name.rpartition("=")[2]) for name in names)
                differences.append(((*key, pair), mean(difference(ours, theirs))))
        return _long(differences, [*keys, "pair"])

    def _shown(self, long: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
        """Return the cells as text, a line for each combination of settings in `rows`."""
        lines: dict[tuple[str, ...], dict[str, str]] = {}
        heads: dict[tuple[int, ...], str] = {}
        columns = ["pair"] if self.pairs else self.columns
        orders = [list(self.measures), *(order_of(experiment, name, long) for name in columns)]
        for row in long.to_dict("records"):
            values = [row[MEASURE], *(row[name] for name in columns)]
            parts = [experiment.text(value) for value in values if value != NONE]
            title = " ".join(parts[1:] if len(self.measures) == 1 and len(parts) > 1 else parts)
            heads[tuple(order.index(value) for order, value in zip(orders, values, strict=True))] = title
            key = tuple(experiment.text(row[name]) for name in self.rows)
            text = Mean(row["mean"], row.get(self.spread, math.nan), row["repetitions"]).text(self.digits, sign=bool(self.pairs))
            lines.setdefault(key, {})[title] = text
        titles = [heads[place] for place in sorted(heads)]
        table = [[*key, *(cells.get(title, NONE) for title in titles)] for key, cells in lines.items()]
        return pd.DataFrame(table, columns=[*map(experiment.head, self.rows), *titles], dtype="str")


def rows_of(read: Read, measures: Sequence[str], at: Mapping[str, str | Sequence[str]], shown: Sequence[str]) -> pd.DataFrame:
    """Return the values of measures for a table or figure that shows some columns: `at`, else `main`, else the default protocol."""
    experiment, frame = read.experiment, read.values[read.values[MEASURE].isin(measures)]
    where = {**{column: values[0] for column, values in experiment.protocols.items()}, **experiment.main}
    where = {column: value for column, value in where.items() if column not in shown and column in frame}
    of_subjects = {experiment.subject: experiment.subjects} if experiment.subject in shown and experiment.subjects else {}  # no families
    return chosen(frame, {**where, **of_subjects, **at})


def means(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the mean over the repetitions for every combination of these columns, in the order of the rows."""
    return _long([(key, mean(by_seed(part))) for key, part in frame.groupby(list(keys), sort=False)], keys)


def _long(cells: Sequence[tuple[Any, Mean]], keys: Sequence[str]) -> pd.DataFrame:
    rows = [(*key, each.value, each.half, each.deviation, each.repetitions) for key, each in cells if each.repetitions]
    return pd.DataFrame(rows, columns=[*keys, "mean", "half_width", "deviation", "repetitions"])


def order_of(experiment: Experiment, column: str, frame: pd.DataFrame) -> list[str]:
    """Return the values of a column in their order: of the experiment, by number, or as they come."""
    there = list(dict.fromkeys(frame[column]))
    if column == experiment.subject:
        return [*(name for name in experiment.subjects if name in there), *(name for name in there if name not in experiment.subjects)]
    if column in experiment.protocols:
        return [name for name in (*experiment.protocols[column], NONE) if name in there]
    try:
        return sorted(there, key=float)
    except ValueError:
        return there


def ordered(frame: pd.DataFrame, experiment: Experiment, columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows by the order of these columns, the first one first."""
    places = {name: {value: i for i, value in enumerate(order_of(experiment, name, frame))} for name in columns}
    keys = pd.DataFrame({name: frame[name].map(places[name]) for name in columns})
    return frame.loc[keys.sort_values(list(columns), kind="stable").index] if columns else frame
