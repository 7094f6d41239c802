"""What an experiment is made of: its cells and what they compute, and what is read from their rows."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.errors import unknown
from bench_mtl.papers.code import made_by
from bench_mtl.registry import Registry, source_digest
from bench_mtl.runner.job import Found
from bench_mtl.suite import digest
from bench_mtl.types import Limits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Settings = Mapping[str, Any]
"""What tells a cell from the others of its experiment: plain values by name."""

#: Of a cell: it is killed where it breaks one.
CELL_LIMITS = Limits(seconds=None, wall_seconds=600.0, memory_gib=8.0)


@dataclass(frozen=True)
class Scale:
    """How much of an experiment is run."""

    grid: tuple[Settings, ...]
    """The settings of its cells, in the order in which they are run."""
    sentence: str
    """What it is, against the paper, and how long it takes."""


class Reading(enum.StrEnum):
    """What our numbers say of a published one."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNKNOWN = "cannot be known"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Comparison:
    """A published number or statement beside ours."""

    what: str
    published: str
    ours: str
    reading: Reading
    why: str
    published_value: float | None = None
    our_value: float | None = None
    """Where both are numbers, in one unit."""
    on_other_data: bool = False
    """Whether ours are of data in the place of the paper's, which are lost."""

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
    """Of the files of its table and figure."""
    table: pd.DataFrame | None = None
    """With all digits, for the CSV file."""
    shown: pd.DataFrame | None = None
    """As text, for people."""
    draw: Callable[[], Figure] | None = None


@dataclass(frozen=True)
class Findings:
    """What is read from the rows of an experiment."""

    comparisons: tuple[Comparison, ...]
    sections: tuple[Section, ...]


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
    compute: Callable[[Settings, Path | None], Found]
    """The outcome of a cell. It depends on nothing but its arguments and the code and data named here."""
    read: Callable[[pd.DataFrame], Findings]
    """What rows of cells say, one a cell that has an outcome: its settings, what it found, `status` and `seconds`. There may be none."""
    uses: tuple[str, ...] = ()
    """Problems and solvers, by name, that `compute` takes from the registry: the hashes of their files are part of each cell's key."""
    data: Callable[[Settings], Sequence[Mapping[str, Any]]] = lambda settings: ()
    """The data sets of a cell that are read from files, as `bench_mtl.data.load` takes them: their fingerprints are part of its key."""
    limits: Limits = field(default=CELL_LIMITS)

    def scale(self, name: str) -> Scale:
        """Raises InputError where there is none of that name."""
        if name not in self.scales:
            raise unknown("scale", name, self.scales)
        return self.scales[name]


@dataclass(frozen=True)
class Cell:
    """One computation of an experiment; a job for a worker, and a row once it has ended."""

    experiment: str
    settings: Settings
    limits: Limits
    threads: int = 1
    code: str = ""
    """Hash of what computes it."""
    data: tuple[str, ...] = ()
    """Fingerprints."""

    @cached_property
    def key(self) -> str:
        """A hash of all of this, which is all that may change the outcome."""
        return digest([self.experiment, dict(self.settings), asdict(self.limits), self.threads, self.code, self.data])

    @property
    def title(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    @property
    def labels(self) -> tuple[str, str]:
        """Repetitions of one cell take about as long."""
        alike = (f"{name} {value}" for name, value in self.settings.items() if name != "seed")
        return self.experiment, ", ".join(alike)

    def compute(self, data_dir: Path | None) -> Found:
        """What its experiment computes for its settings."""
        from bench_mtl.papers.catalogue import experiment

        return experiment(self.experiment).compute(self.settings, data_dir)


def cells_of(experiment: Experiment, scale: str, registry: Registry, data_dir: Path | None) -> list[Cell]:
    """The cells of an experiment at a scale, in their order.

    Raises
    ------
    InputError : an unknown scale, a problem or solver that is not installed, a data file that is missing or cannot be read.
    """
    code = digest([made_by(experiment.compute), *_digests(experiment.uses, registry)])
    return [
        Cell(
            experiment.name, settings, experiment.limits, 1, code,
            tuple(fingerprint(spec, data_dir=data_dir) for spec in experiment.data(settings)),
        )
        for settings in experiment.scale(scale).grid
    ]  # fmt: skip


def _digests(names: Sequence[str], registry: Registry) -> Iterator[str]:
    for name in names:
        if name not in registry.problems and name not in registry.solvers:
            raise unknown("problem or solver", name, [*registry.problems, *registry.solvers])
        yield source_digest(registry.problems[name] if name in registry.problems else registry.solvers[name])
