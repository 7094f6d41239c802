"""What workers are given to do: the cases of suites, and jobs of other kinds, which say themselves what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from bench_mtl.core.text import encodable
from bench_mtl.core.types import Limits, Record, Status, Times
from bench_mtl.runner.gathered import WARM_UP
from bench_mtl.runner.inprocess import Ran, failed
from bench_mtl.runner.messages import JobFound, Message, Phase


class Work(Protocol):
    """A thing to do in a worker, once: one key, one row. Cases are one kind of it."""

    @property
    def key(self) -> str:
        """A hash of all that may change the outcome."""

    @property
    def title(self) -> str:
        """How people read of it."""

    @property
    def labels(self) -> tuple[str, str]:
        """What it shares with work that takes about as long: a first name, and a second one that says less."""

    @property
    def limits(self) -> Limits: ...

    @property
    def threads(self) -> int: ...


class Found(NamedTuple):
    """What a job has come to."""

    values: Mapping[str, Any]
    """Numbers, texts and lists of them, by name."""
    status: Status
    """`VERIFIED` where what was to be proven is, `INACCURATE` otherwise, also where nothing can be."""
    reason: str
    """One sentence."""


class Job(Work, Protocol):
    """Work that says itself what it computes. It can be pickled. Of its limits those of the whole run and of memory hold."""

    def compute(self, data_dir: Path | None) -> Found:
        """The outcome, in whatever process this is called."""


def run_job(job: Job, data_dir: Path | None, tell: Callable[[Message], None]) -> Ran:
    """Run `job` in this process, telling what it has found; returns its record."""
    tell(Phase(WARM_UP, 0.0))
    started = perf_counter()
    try:
        found = job.compute(data_dir)
        status = Status(found.status)
    except (Exception, SystemExit) as error:
        return Ran(failed("", error))
    tell(JobFound({name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.values.items()}))
    return Ran(Record(status, encodable(found.reason), times=Times(solve=perf_counter() - started)))
