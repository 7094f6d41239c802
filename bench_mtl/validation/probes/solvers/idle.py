"""A solver that does nothing, as often as it is asked to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.engine.stopping import SAMPLE_GROWTH
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem


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
