"""Solvers that leave something behind in their process for the runs after them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, OneShotSolver

_kept: list[Any] = []


@dataclass(frozen=True)
class Leaves(OneShotSolver):
    """Takes 120 MiB for a while, leaves what `leaves` says, and says what process it was called in. `number` only tells cases apart."""

    leaves: str = "nothing"
    number: int = 0

    name = "leaves"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"{self.leaves}_{self.number}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        work = np.ones(120 * 2**17)
        _LEFT[self.leaves](work)
        return Answer(Iterate(program.zero()), False, "the zero point", info={"pid": os.getpid()})


def _spin() -> None:
    while True:
        pass


_LEFT: dict[str, Callable[[Any], object]] = {
    "nothing": lambda work: None,
    "memory": _kept.append,
    "thread": lambda work: threading.Thread(target=_spin, daemon=True).start(),
    "place": lambda work: os.chdir("/"),
    "processors": lambda work: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
}
