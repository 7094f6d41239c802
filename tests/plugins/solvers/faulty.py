"""Solvers that misbehave, each in one way."""

import itertools
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem


@dataclass(frozen=True)
class Faulty(IterativeSolver):
    """Yields the zero point a few times, then does what `fault` says."""

    fault: str = "none"

    name = "faulty"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"faulty_{self.fault}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in range(3):
            yield Iterate(problem.zero(), None, step, float(step))
        if self.fault == "none":
            for step in itertools.count(3):
                yield Iterate(problem.zero(), None, step, float(step))
        if self.fault == "raises":
            raise RuntimeError("two lines\nof trouble")
        if self.fault == "nan":
            yield Iterate(np.full(problem.point_shape, np.nan), None, 3)
        if self.fault == "far":
            yield Iterate(np.full(problem.point_shape, 1e9), None, 3)
        if self.fault == "sleeps":
            time.sleep(60.0)
        if self.fault == "aborts":
            os.abort()
        if self.fault == "kills_itself":
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Silent(IterativeSolver):
    """Ends without an iterate."""

    name = "silent"
    requires = frozenset()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield from ()


@dataclass(frozen=True)
class Liar(OneShotSolver):
    """Claims that a multiple of the all-ones point is optimal."""

    size: float = 0.0
    claims: bool = True

    name = "liar"
    requires = frozenset()
    tolerances = (1e-3, 1e-9)

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        return Answer(Iterate(np.full(program.point_shape, self.size)), self.claims, "trust me")
