"""Hinge problems that cannot be built, or cannot be trusted once they are."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bench_mtl.types import Array
from problems.l1inf_hinge import L1InfHinge


class Broken(L1InfHinge):
    """`L1InfHinge` of radius 1 with the fault that is asked for."""

    name = "broken"

    def __init__(self, data: Any, *, fault: str = "none") -> None:
        if fault == "raises":
            raise RuntimeError("two lines\nof trouble")
        if fault == "exits":
            raise SystemExit(3)
        if fault == "aborts":
            os.abort()
        if fault == "hangs":
            time.sleep(600.0)
        super().__init__(data, radius=1.0)
        self.fault = fault
        if fault == "notes":
            self.notes = (7, "\ud800")  # type: ignore[assignment]

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from ()

    @property
    def dimensions(self) -> Mapping[str, Any]:
        if self.fault == "dimensions":
            return {"n": np.int64(5), "d": 5.0, 7: "8"}  # type: ignore[dict-item]
        if self.fault == "no_dimensions":
            return None  # type: ignore[return-value]
        return super().dimensions

    def objective(self, point: Array) -> float:
        if self.fault == "nan":
            return math.nan
        return super().objective(point)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        if self.fault == "contradicts":
            return 1e9
        return super().dual_bound(point, dual)

    def value_and_subgradient(self, point: Array) -> Any:
        if self.fault == "hangs_in_warm_up":
            time.sleep(600.0)
        return super().value_and_subgradient(point)
