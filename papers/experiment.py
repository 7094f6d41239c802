"""What an experiment is made of: what its cells compute, which values are read from them, and what is claimed and shown of these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl import InputError, Limits
from bench_mtl.runner import Found

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from papers.judge import Judged

CellSettings = Mapping[str, Any]
"""What tells a cell from the others of its experiment: plain values by name."""

#: Of a cell: it is killed where it breaks one.
CELL_LIMITS = Limits(seconds=None, wall_seconds=600.0, memory_gib=8.0)


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run."""

    grid: tuple[CellSettings, ...]  # the settings of its cells, in the order in which they are run
    sentence: str  # what it is, against the paper, and how long it takes


def grid(seeds: int, **settings: Sequence[Any]) -> tuple[CellSettings, ...]:
    """Return all combinations of settings, repetition by repetition, the last setting moving fastest."""
    return tuple(
        {**dict(zip(settings, values, strict=True)), "seed": seed}
        for seed in range(seeds)
        for values in itertools.product(*settings.values())
    )


@dataclass(frozen=True)
class Section:
    """A part of a report: words, a figure, a table."""

    title: str
    words: str
    name: str = ""  # of the files of its figure and of its digits
    table: pd.DataFrame | None = None  # as text, for people
    digits: pd.DataFrame | None = None  # with all digits, for a CSV file
    draw: Callable[[], Figure] | None = None
    after: str = ""


@dataclass(frozen=True)
class Read:
    """What is read from the rows of an experiment."""

    experiment: Experiment
    rows: pd.DataFrame  # a row a cell that has an outcome: its settings, what it found, `status` and `seconds`
    values: pd.DataFrame  # the tidy frame: settings, `seed`, `measure`, `value`
    judged: tuple[Judged, ...]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, made again."""

    name: str
    title: str
    source: str  # paper and place; it begins with authors and year
    about: str  # what is run, and what was chosen where the paper does not say
    scales: Mapping[str, Scale]  # `small`, which ends within minutes, and `full`
    compute: Callable[[CellSettings, Path | None], Found]
    """The outcome of a cell. It depends on nothing but its arguments and the code and data named here."""
    values: Callable[[pd.DataFrame], pd.DataFrame]  # rows of cells that have an outcome, one at least, as a tidy frame: see `papers.values`
    claims: Sequence[Any]  # what is published, of `papers.published`
    sections: Sequence[Callable[[Read], Section | None]] = ()
    """Tables and figures, in their order: declared ones, or functions; None where there is nothing to show."""
    subjects: Sequence[str] = ()  # what is compared, in the order of tables; the rival "*" of a claim stands for all of them
    subject: str = "model"  # the column of the subjects
    each: Sequence[str] = ()  # columns for whose every value a claim is judged by itself, unless it names the column
    protocols: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the paper leaves open, by column: its values, that of the default protocol first. A claim has one verdict over all of them."""
    main: Mapping[str, str] = field(default_factory=dict)  # what claims, tables and figures are about in columns that they do not name
    other_data: str = ""  # what is in the place of the paper's data, where all are others
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """What is in the place of some of the paper's data sets, by their names in the column `data`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How values of columns are written for people, where otherwise: `l1inf` as l1,inf."""
    titles: Mapping[str, str] = field(default_factory=dict)  # how columns are called in tables and figures, where otherwise than their name
    uses: tuple[str, ...] = ()
    """Problems and solvers, by name, that `compute` takes from the registry: the hashes of their files are part of each cell's key."""
    data: Callable[[CellSettings], Sequence[Mapping[str, Any]]] = lambda settings: ()
    """The data sets of a cell that are read from files, as `bench_mtl.load` takes them: their fingerprints are part of its key."""
    limits: Limits = field(default=CELL_LIMITS)
    cells_of: str = ""
    """The experiment that has the same `compute` and whose cells these are, where settings agree; empty: they are its own."""

    def scale(self, name: str) -> Scale:
        """Raises InputError where there is none of that name."""
        if name not in self.scales:
            raise InputError(f"'{self.name}' has no scale '{name}': {', '.join(self.scales)}")
        return self.scales[name]

    def text(self, value: str) -> str:
        """Return a value of a column as people read it."""
        return self.labels.get(value, value)

    def head(self, column: str) -> str:
        """Return the title of a column."""
        return self.titles.get(column, column[:1].upper() + column[1:])
