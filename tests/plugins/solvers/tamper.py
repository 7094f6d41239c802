"""A solver that changes what is not its own."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Answer, IterativeSolver, OneShotSolver, Problem


@dataclass(frozen=True)
class Tamper(IterativeSolver):
    """Yields a point, notes its process, does what `deed` says, and yields another."""

    deed: str = "none"

    name = "tamper"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"tamper_{self.deed}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero(), None, 0, note=str(os.getpid()))
        if self.deed == "sets":
            object.__setattr__(problem, "bound", 0.001)
        if self.deed == "unlocks":
            array = problem.weights  # type: ignore[attr-defined]
            while array.base is not None:
                array = array.base
            array.flags.writeable = True
            array[...] = 0.0
        if self.deed == "loss":
            problem.loss.total = lambda *_: 1.0  # type: ignore[attr-defined]
        if self.deed == "remembers":
            problem.__dict__["remembered"] = 1.0
        if self.deed == "interrupts":
            raise KeyboardInterrupt
        if self.deed == "none_yielded":
            yield None  # type: ignore[misc]
        if self.deed == "alarm":
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        if self.deed == "errstate":
            np.seterr(all="raise")
        if self.deed == "warnings":
            warnings.simplefilter("error")
        yield Iterate(problem.zero(), None, 1)


@dataclass(frozen=True)
class Pid(OneShotSolver):
    """Tells in which process it runs."""

    number: int = 0

    name = "pid"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"pid_{self.number}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        return Answer(Iterate(program.zero()), False, "here", info={"pid": os.getpid()})
