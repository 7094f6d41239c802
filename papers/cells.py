"""The cells of an experiment: the jobs it is made of, with keys that say what may change their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from bench_mtl import InputError, Limits
from bench_mtl.data import fingerprint
from bench_mtl.engine.registry import Registry
from bench_mtl.engine.source_digest import NUMERICAL_PACKAGES, source_digest
from bench_mtl.engine.suite import digest
from bench_mtl.runner import Found
from papers.experiment import CellSettings, Experiment
from papers.index import experiment

#: A cell depends on what its experiment's `compute` imports of these packages and of `papers`, at the top of a file or inside a function.
PACKAGES = (*NUMERICAL_PACKAGES, "bench_mtl.estimators", "bench_mtl.metrics", "bench_mtl.data")


@dataclass(frozen=True)
class Cell:
    """One computation of an experiment; a job for a worker, and a row once it has ended."""

    experiment: str  # the one whose cell it is: it may be a part of others too
    settings: CellSettings
    limits: Limits
    threads: int = 1
    code: str = ""  # hash of what computes it
    data: tuple[str, ...] = ()  # fingerprints

    @cached_property
    def key(self) -> str:
        """A hash of all of this, which is all that may change the outcome."""
        return digest([self.experiment, dict(self.settings), asdict(self.limits), self.threads, self.code, self.data])

    @property
    def title(self) -> str:
        """What people call it."""
        return ", ".join(f"{name} {value}" for name, value in self.settings.items())

    @property
    def labels(self) -> tuple[str, str]:
        """Repetitions of one cell take about as long."""
        return self.experiment, ", ".join(f"{name} {value}" for name, value in self.settings.items() if name != "seed")

    def compute(self, data_dir: Path | None) -> Found:
        """Return what its experiment computes for its settings."""
        return experiment(self.experiment).compute(self.settings, data_dir)


def cells_of(chosen: Experiment, scale: str, registry: Registry, data_dir: Path | None) -> list[Cell]:
    """Return the cells of an experiment at a scale, in their order.

    Raises InputError: an unknown scale, a problem or solver that is not installed, a data file that is missing or cannot be read.
    """
    code = digest([source_digest(chosen.compute, PACKAGES), *_digests(chosen.uses, registry)])
    return [
        Cell(
            chosen.cells_of or chosen.name, settings, chosen.limits, 1, code,
            tuple(fingerprint(spec, data_dir=data_dir) for spec in chosen.data(settings)),
        )
        for settings in chosen.scale(scale).grid
    ]  # fmt: skip


def _digests(names: Sequence[str], registry: Registry) -> list[str]:
    installed = {**registry.problems, **registry.solvers}
    if missing := [name for name in names if name not in installed]:
        raise InputError(f"no problem or solver {', '.join(missing)} is installed")
    return [source_digest(installed[name]) for name in names]
