"""Solvers that a machine is tried with: one that does nothing, as often as it is asked to, and one that breaks a limit."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array, Iterate
from bench_mtl.engine.stopping import SAMPLE_GROWTH
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem

_TOO_LONG = 600


@dataclass(frozen=True)
class Idle(IterativeSolver):
    """Yields `samples` points that are all certified, and ends."""

    samples: int = 1
    number: int = 0
    """Only tells runs apart."""

    name: ClassVar[str] = "idle"
    requires: ClassVar[frozenset[Capability]] = frozenset()

    @property
    def label(self) -> str:
        return f"idle_{self.number}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        step = 0
        for _ in range(self.samples):
            yield Iterate(problem.zero(), np.array([float(step)]), step, float(step))
            step = max(step + 1, math.ceil(step * SAMPLE_GROWTH))


@dataclass(frozen=True)
class Rogue(IterativeSolver):
    """Yields one point, then does what `deed` says: "sleep" (in C, holding the interpreter), "allocate" or "fork".

    The number of a forked child, which outlives the run, is reported as the work of a second point.
    """

    deed: str = "sleep"

    name: ClassVar[str] = "rogue"
    requires: ClassVar[frozenset[Capability]] = frozenset()

    def __post_init__(self) -> None:
        one_of("deed", self.deed, ("sleep", "allocate", "fork"))

    @property
    def label(self) -> str:
        return f"rogue_{self.deed}"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        yield Iterate(problem.zero())
        if self.deed == "sleep":
            ctypes.PyDLL(None).sleep(_TOO_LONG)
        elif self.deed == "allocate":
            hoard = []
            while True:
                hoard.append(np.ones(2**17))
        else:
            child = os.fork()
            if child == 0:
                os.setsid()
                time.sleep(_TOO_LONG)
                os._exit(0)
            yield Iterate(problem.zero(), step=1, work=float(child))
