"""A problem whose optimum is known and that loads in no time, for tests of what happens around it; and the same, broken."""

import math
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.task_data import TaskData


class Box(Problem):
    """min 1/2 sum_jk s_j (W_jk - A_jk)^2 subject to |W_jk| <= bound, where A_jk = x_kj.y_k and s_j goes from 1 to 100.

    Its optimum is A, clipped.
    """

    name = "box"
    offers = frozenset({Capability.SMOOTH, Capability.PROX})

    def __init__(self, data: TaskData, *, bound: float = 0.5) -> None:
        tasks = [data.task(k) for k in range(data.n_tasks)]
        self.bound = bound
        self.target = frozen(np.column_stack([np.asarray(X.T @ y) for X, y in tasks]))
        self.weights = frozen(np.geomspace(1.0, 100.0, data.n_features)[:, None])
        self.examples_of_all = sum(len(y) for _, y in tasks)
        self._optimum = self.objective(self.repair(self.target))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        yield cls(TaskData.shared(rng.normal(size=(6, 4)), rng.normal(size=(6, 2))))

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self.target.shape

    dual_shape = point_shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": self.examples_of_all, "d": self.point_shape[0], "m": self.point_shape[1]}

    def objective(self, point: Array) -> float:
        return float(0.5 * np.sum(self.weights * (point - self.target) ** 2))

    def repair(self, point: Array) -> Array:
        return np.clip(point, -self.bound, self.bound)

    def infeasibility(self, point: Array) -> float:
        return max(0.0, float(np.abs(point).max()) / self.bound - 1.0)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return self._optimum

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        return self.objective(point), self.weights * (point - self.target)

    def smooth_value(self, point: Array) -> float:
        return self.objective(point)

    def lipschitz(self) -> float:
        return float(self.weights.max())

    def prox(self, point: Array, step_size: float) -> Array:
        return self.repair(point)

    def prox_value(self, point: Array) -> float:
        return 0.0


_built: list[str] = []


class Laborious(Box):
    """`Box` that needs `mib` MiB while it is built; one that is `refused` says so in the end. Notes how many this process has built."""

    name = "laborious"

    def __init__(self, data: TaskData, *, mib: int = 0, refused: bool = False) -> None:
        _built.append(self.name)
        hoard = []
        for _ in range(mib // 2):
            hoard.append(np.ones(2**18))
            time.sleep(0.005)  # for who watches it to come in between, also on a busy machine
        if refused:
            raise InputError(f"{mib} MiB were needed only to refuse this")
        super().__init__(data)
        self.notes = (f"built {len(_built)} times",)


class Broken(Box):
    """`Box` with the fault that is asked for: it cannot be built, or not be trusted once it is."""

    name = "broken"

    def __init__(self, data: TaskData, *, fault: str = "none") -> None:
        if fault == "raises":
            raise RuntimeError("two lines\nof trouble")
        if fault == "exits":
            raise SystemExit(3)
        if fault == "aborts":
            os.abort()
        if fault == "hangs":
            time.sleep(600.0)
        self.fault = fault
        super().__init__(data)
        if fault == "notes":
            self.notes = (7, "\ud800")  # type: ignore[assignment]

    @property
    def dimensions(self) -> Mapping[str, Any]:
        if self.fault == "dimensions":
            return {"n": np.int64(5), "d": 5.0, 7: "8"}  # type: ignore[dict-item]
        if self.fault == "no_dimensions":
            return None  # type: ignore[return-value]
        return super().dimensions

    def objective(self, point: Array) -> float:
        return math.nan if self.fault == "nan" else super().objective(point)

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        return 1e9 if self.fault == "contradicts" else super().dual_bound(point, dual)


class Measured(Box):
    """`Box` that measures its points; one with a fault cannot."""

    name = "measured"

    def __init__(self, data: TaskData, *, fault: str = "none") -> None:
        self.fault = fault
        super().__init__(data)

    def measures(self, point: Array) -> Mapping[str, float]:
        if self.fault == "raises":
            raise RuntimeError("no measures")
        return {"non-zeros": np.count_nonzero(point), "distance": math.nan if self.fault == "nan" else float(np.abs(point).sum())}


class Parted(Box):
    """`Box` that names the parts of its points, or does what `names` says instead, which is for the last moment of a run."""

    name = "parted"

    def __init__(self, data: TaskData, *, names: str = "good") -> None:
        self.names = names
        super().__init__(data)

    @property
    def parts(self) -> Any:
        if self.names == "raise":
            raise RuntimeError("no names")
        if self.names == "exit":
            raise SystemExit(3)
        if self.names == "abort":
            os.abort()
        if self.names == "hang":
            time.sleep(600.0)
        if self.names == "hog":
            hoard = np.ones(2**25)  # 256 MiB
            time.sleep(0.8)
            return (f"B{hoard[0]:g}",)
        return {"good": ("B",), "many": ("B", "C"), "none": (), "surrogate": ("\ud800",), "number": (7,), "nothing": None}[self.names]
