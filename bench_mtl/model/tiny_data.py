"""Tiny random task data of every kind, for the examples of problems."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Array
from bench_mtl.model.task_data import TaskData

#: Features, tasks and examples of a shared design, and the examples of tasks with designs of their own.
FEATURES, TASKS, EXAMPLES, SIZES = 6, 3, 12, (5, 9, 7)


@dataclass(frozen=True)
class TinyData:
    """The same coefficients seen through designs of every kind."""

    shared: TaskData
    shared_csr: TaskData
    """With a design that has other entries than the shared one, and its targets."""
    per_task: TaskData
    per_task_csr: TaskData

    def labelled(self) -> TinyData:
        """Return the same data with the signs of the targets as labels."""
        parts = (self.shared, self.shared_csr, self.per_task, self.per_task_csr)
        return TinyData(*(replace(data, targets=signs_of(data.targets), name=f"{data.name} labels") for data in parts))

    def of_classes(self) -> TinyData:
        """Return the data of shared designs with indicators, -1 or +1, of the task with the largest target as labels."""
        largest = self.shared.targets.argmax(axis=1)[:, None]
        classes = frozen(np.where(np.arange(self.shared.n_tasks) == largest, 1.0, -1.0))
        shared, csr = (replace(data, targets=classes, name=f"{data.name} classes") for data in (self.shared, self.shared_csr))
        return replace(self, shared=shared, shared_csr=csr)


def tiny_data(rng: np.random.Generator, W: Array, noise: float = 0.3) -> TinyData:
    """Return data of linear models with coefficients W (6 x 3) and normal noise."""
    X = rng.standard_normal((EXAMPLES, FEATURES))
    sparse = sp.csr_array(X * (rng.random((EXAMPLES, FEATURES)) < 0.5))
    Y = X @ W + noise * rng.standard_normal((EXAMPLES, TASKS))
    Xs = [rng.standard_normal((size, FEATURES)) for size in SIZES]
    ys = [Xk @ W[:, k] + noise * rng.standard_normal(len(Xk)) for k, Xk in enumerate(Xs)]
    return TinyData(
        TaskData.shared(X, Y, name="tiny shared"),
        TaskData.shared(sparse, Y, name="tiny shared CSR"),
        TaskData.per_task(Xs, ys, name="tiny per task"),
        TaskData.per_task([sp.csr_array(Xk) for Xk in Xs], ys, name="tiny per task CSR"),
    )


def row_sparse_data(rng: np.random.Generator) -> TinyData:
    """Return `tiny_data` of which about half of the features are used, each by all tasks."""
    return tiny_data(rng, rng.standard_normal((FEATURES, TASKS)) * (rng.random((FEATURES, 1)) < 0.5))


def one_task(data: TaskData) -> TaskData:
    """Return the first task of data with a shared design."""
    return TaskData.shared(data.design.block(0), data.targets[:, 0], name="tiny")


def weighted(data: TaskData, *, alike: bool = False) -> TaskData:
    """Return the data with weights of 1, 2.5 and 4 in turn, those of all tasks `alike` if that is asked for."""
    places = np.arange(data.targets.size).reshape(data.targets.shape)
    weights = 1.0 + 1.5 * ((places // data.n_tasks if alike else places) % 3)
    return replace(data, weights=frozen(np.asarray(weights, dtype=np.float64)), name=f"{data.name} weighted")


def signs_of(targets: Array) -> Array:
    """Return -1 or +1 for every target, read-only."""
    return frozen(np.where(targets > 0.0, 1.0, -1.0))
