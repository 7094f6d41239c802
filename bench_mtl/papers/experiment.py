"""What an experiment is made of: what its cells compute, and what is read from their rows."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.core.errors import unknown
from bench_mtl.core.types import Limits
from bench_mtl.runner.job import Found

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CellSettings = Mapping[str, Any]
"""What tells a cell from the others of its experiment: plain values by name."""

#: Of a cell: it is killed where it breaks one.
CELL_LIMITS = Limits(seconds=None, wall_seconds=600.0, memory_gib=8.0)


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run."""

    grid: tuple[CellSettings, ...]
    """The settings of its cells, in the order in which they are run."""
    sentence: str
    """What it is, against the paper, and how long it takes."""


class Verdict(enum.StrEnum):
    """What our numbers say of a published one."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    DEPENDS = "depends on the protocol"
    """It holds under some of the protocols that the paper's words allow, and not under others."""
    UNKNOWN = "cannot be known"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class PublishedNumber:
    """A published number or statement beside ours."""

    what: str
    published: str
    ours: str
    verdict: Verdict
    why: str
    published_value: float | None = None
    our_value: float | None = None
    """Where both are numbers, in one unit."""
    on_other_data: bool = False
    """Whether ours are of data in the place of the paper's, which could not be had."""

    @property
    def is_statement(self) -> bool:
        """Whether it is words, not a number."""
        return self.published_value is None

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        if self.published_value is None or self.our_value is None:
            return None
        return self.our_value - self.published_value


@dataclass(frozen=True)
class Section:
    """A part of a report: words, a table, a figure."""

    title: str
    text: str
    name: str = ""
    """Name of the files of its table and figure."""
    table: pd.DataFrame | None = None
    """With all digits, for the CSV file."""
    display: pd.DataFrame | None = None
    """As text, for people."""
    draw: Callable[[], Figure] | None = None


@dataclass(frozen=True)
class Findings:
    """What is read from the rows of an experiment."""

    comparisons: tuple[PublishedNumber, ...]
    sections: tuple[Section, ...]
    headline: str = ""
    """What came out, in a few plain sentences in Markdown; the report begins with them."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, made again."""

    name: str
    title: str
    source: str
    """Paper and place."""
    about: str
    """What is run, and what was chosen where the paper does not say."""
    scales: Mapping[str, Scale]
    compute: Callable[[CellSettings, Path | None], Found]
    """The outcome of a cell. It depends on nothing but its arguments and the code and data named here."""
    read: Callable[[pd.DataFrame], Findings]
    """What rows of cells say, one a cell that has an outcome: its settings, what it found, `status` and `seconds`. There may be none."""
    uses: tuple[str, ...] = ()
    """Problems and solvers, by name, that `compute` takes from the registry: the hashes of their files are part of each cell's key."""
    data: Callable[[CellSettings], Sequence[Mapping[str, Any]]] = lambda settings: ()
    """The data sets of a cell that are read from files, as `bench_mtl.data.load` takes them: their fingerprints are part of its key."""
    limits: Limits = field(default=CELL_LIMITS)
    cells_of: str = ""
    """The experiment that has the same `compute` and whose cells these are, where settings agree; empty: they are its own."""

    def scale(self, name: str) -> Scale:
        """Raises InputError where there is none of that name."""
        if name not in self.scales:
            raise unknown("scale", name, self.scales)
        return self.scales[name]
