"""Labels and scores of many tasks, checked once, and what a metric says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import real_array
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.task_data import signs

Mask = NDArray[np.bool_]

NO_POSITIVE, NO_NEGATIVE = "no positive example", "no negative example"


class Skipped(NamedTuple):
    """A task that does not count, and why."""

    task: str
    reason: str


@dataclass(frozen=True)
class TaskMetric:
    """A metric over tasks."""

    value: float
    """Over the tasks counted; NaN where there is none."""
    per_task: tuple[float, ...]
    """Values of the tasks counted, in their order."""
    counted: tuple[str, ...]
    """Names of the tasks counted."""
    skipped: tuple[Skipped, ...] = ()

    @property
    def sentence(self) -> str:
        """How many tasks count and which do not."""
        rest = f"; skipped: {', '.join(f'{task} ({reason})' for task, reason in self.skipped)}" if self.skipped else ""
        return f"{len(self.counted)} of {len(self.counted) + len(self.skipped)} tasks counted{rest}"


class Task(NamedTuple):
    """One task: which examples are positive, and a model's scores of them."""

    name: str
    positive: Mask
    scores: Array


def checked_tasks(labels: Any, scores: Any, names: Sequence[str] | None) -> list[Task]:
    """Return the tasks of labels and scores, named by number where no names are given; what does not match is an InputError."""
    masks, vectors = [signs(vector)[0] > 0.0 for vector in _vectors("labels", labels)], _vectors("scores", scores)
    if len(vectors) != len(masks):
        raise InputError(f"scores are of {len(vectors)} tasks, but labels of {len(masks)}")
    for k, (mask, vector) in enumerate(zip(masks, vectors, strict=True)):
        if mask.shape != vector.shape:
            raise InputError(f"scores of task {k} are {len(vector)}, but its labels are {len(mask)}")
    titles = [str(k) for k in range(len(masks))] if names is None else [names] if isinstance(names, str) else [str(name) for name in names]
    if len(titles) != len(masks) or len(set(titles)) != len(masks):
        raise InputError(f"names must be {len(masks)} different names, one a task, not {len(set(titles))} in {len(titles)}")
    return [Task(*parts) for parts in zip(titles, masks, vectors, strict=True)]


def _vectors(name: str, value: Any) -> list[Array]:
    """One vector a task: the columns of a matrix, the vectors of a list, or a vector alone."""
    if isinstance(value, (list, tuple)) and len(value) > 0 and not np.isscalar(value[0]) and getattr(value[0], "ndim", 1) > 0:
        vectors = [real_array(f"{name} of task {k}", vector, ndim=1) for k, vector in enumerate(value)]
    else:
        array = real_array(name, value)
        if array.ndim not in (1, 2):
            raise InputError(f"{name} must be a matrix (examples x tasks), a list of vectors or a vector, but have shape {array.shape}")
        vectors = list(array.T) if array.ndim == 2 else [array]
    if not vectors:
        raise InputError(f"{name} must be of at least one task")
    for k, vector in enumerate(vectors):
        if not len(vector):
            raise InputError(f"{name} of task {k} are empty: every task needs an example")
    return vectors


def split(tasks: Sequence[Task], needed: Sequence[str] = (NO_POSITIVE, NO_NEGATIVE)) -> tuple[list[Task], tuple[Skipped, ...]]:
    """Return the tasks that have positive and negative examples, as far as these are needed, and the others with the reason."""
    counted, skipped = list[Task](), list[Skipped]()
    for task in tasks:
        reason = NO_POSITIVE if not task.positive.any() else NO_NEGATIVE if task.positive.all() else ""
        if reason in needed:
            skipped.append(Skipped(task.name, reason))
        else:
            counted.append(task)
    return counted, tuple(skipped)


def averaged(
    tasks: Sequence[Task],
    measure: Callable[[Task], float],
    needed: Sequence[str] = (NO_POSITIVE, NO_NEGATIVE),
    weight: Callable[[Task], float] = lambda task: 1.0,
) -> TaskMetric:
    """sum_k weight_k measure_k / sum_k weight_k over the tasks that have what is needed."""
    counted, skipped = split(tasks, needed)
    values, weights = tuple(measure(task) for task in counted), [weight(task) for task in counted]
    value = math.fsum(w * value for w, value in zip(weights, values, strict=True)) / math.fsum(weights) if counted else math.nan
    return TaskMetric(value, values, tuple(task.name for task in counted), skipped)
