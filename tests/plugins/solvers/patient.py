"""Solvers that behave, and take their time."""

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.engine.environment import thread_variables
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem


@dataclass(frozen=True)
class Waits(IterativeSolver):
    """Yields the zero point every `pause` seconds: as long as its limits let it."""

    number: int = 0
    pause: float = 0.05

    name = "waits"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"waits_{self.number}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in itertools.count():
            yield Iterate(problem.zero(), None, step, float(step))
            time.sleep(self.pause)


@dataclass(frozen=True)
class Reports(OneShotSolver):
    """Answers with the zero point and says what process it was called in, after taking memory.

    `number` only tells cases apart; `seconds` is how long it takes.
    """

    number: int = 0
    seconds: float = 0.0
    mib: int = 0

    name = "reports"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"reports_{self.number}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        memory = np.ones(self.mib * 2**17)
        time.sleep(self.seconds)
        variables = {name: os.environ.get(name) for name in thread_variables(1)}
        info = {"pid": os.getpid(), "processors": sorted(os.sched_getaffinity(0)), "mib": memory.nbytes >> 20, **variables}
        return Answer(Iterate(program.zero()), False, "the zero point", info=info)
