"""A problem that costs nothing, so that what is timed is the framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.task_data import TaskData


class Origin(Problem):
    """min_w 1 + ||w||^2 / 2 over two numbers. The bound is 1 - 2 / (1 + dual), so that a solver that does nothing seems to get on."""

    name: ClassVar[str] = "origin"
    offers: ClassVar[frozenset[Capability]] = frozenset()

    @classmethod
    def from_data(cls, data: TaskData, **parameters: Any) -> Self:
        return cls()

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        yield cls()

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (2,)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": 1, "d": 2, "m": 1}

    def objective(self, point: Array) -> float:
        return 1.0 + 0.5 * float(point @ point)

    def repair(self, point: Array) -> Array:
        return point

    def infeasibility(self, point: Array) -> float:
        return 0.0

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return 1.0 - 2.0 / (1.0 + (0.0 if dual is None else max(0.0, float(dual[0]))))
