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
    """Return the tasks of labels and scores, named by number where no names are given.

    Raises
    ------
    InputError : NaN or inf, labels other than -1/+1 or 0/1, sizes that do not match, no task, names that are not one a task or not unique.
    """
    masks, found = positives(labels), vectors("scores", scores)
    if len(found) != len(masks):
        raise InputError(f"scores are of {len(found)} tasks, but labels of {len(masks)}")
    for k, (mask, vector) in enumerate(zip(masks, found, strict=True)):
        if mask.shape != vector.shape:
            raise InputError(f"scores of task {k} are {len(vector)}, but its labels are {len(mask)}")
    return [Task(*parts) for parts in zip(task_names(names, len(masks)), masks, found, strict=True)]


def positives(labels: Any) -> list[Mask]:
    """Return which examples of each task are positive; raises InputError as `checked_tasks` does."""
    return [signs(vector)[0] > 0.0 for vector in vectors("labels", labels)]


def task_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return `names` as they are, or the numbers of the tasks."""
    if names is None:
        return tuple(map(str, range(count)))
    chosen = (names,) if isinstance(names, str) else tuple(map(str, names))
    if len(chosen) != count or len(set(chosen)) != count:
        raise InputError(f"names must be {count} different names, one a task, not {len(set(chosen))} in {len(chosen)}")
    return chosen


def vectors(name: str, value: Any) -> list[Array]:
    """One vector a task: the columns of a matrix, the vectors of a list, or a vector alone."""
    is_list = isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(value[0]) > 0
    if is_list:
        found = [real_array(f"{name} of task {k}", vector, ndim=1) for k, vector in enumerate(value)]
    else:
        array = real_array(name, value)
        if array.ndim not in (1, 2):
            raise InputError(f"{name} must be a matrix (examples x tasks), a list of vectors or a vector, but have shape {array.shape}")
        found = list(array.T) if array.ndim == 2 else [array]
    if not found:
        raise InputError(f"{name} must be of at least one task")
    for k, vector in enumerate(found):
        if not len(vector):
            raise InputError(f"{name} of task {k} are empty: every task needs an example")
    return found


def one_sided(task: Task) -> str | None:
    """Return why a task has nothing to rank, if it has not."""
    if not task.positive.any():
        return NO_POSITIVE
    return NO_NEGATIVE if task.positive.all() else None


def averaged(
    tasks: Sequence[Task],
    measure: Callable[[Task], float],
    exclusion: Callable[[Task], str | None] = one_sided,
    weight: Callable[[Task], float] = lambda task: 1.0,
) -> TaskMetric:
    """sum_k weight_k measure_k / sum_k weight_k over the tasks that fit."""
    reasons = [exclusion(task) for task in tasks]
    kept = [task for task, reason in zip(tasks, reasons, strict=True) if reason is None]
    values = tuple(measure(task) for task in kept)
    weights = [weight(task) for task in kept]
    total = math.fsum(weight * value for weight, value in zip(weights, values, strict=True))
    return TaskMetric(
        total / math.fsum(weights) if kept else math.nan,
        values,
        tuple(task.name for task in kept),
        tuple(Skipped(task.name, reason) for task, reason in zip(tasks, reasons, strict=True) if reason is not None),
    )
