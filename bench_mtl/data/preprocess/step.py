"""What a preprocessing step is: something fitted on the training examples, and applied to them and to the held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.task_data import TaskData, signs


class Fitted(NamedTuple):
    """A step with the statistics of the training rows."""

    transform: Callable[[Matrix], Matrix]
    """Rows to transformed rows."""
    note: str
    """A sentence that says what was done."""
    keeps_signs: bool = False
    """Whether sign(x . w) stays the same for every row x and every w."""
    keeps_features: bool = True
    """Whether feature j is still that feature, so that `TaskData.orientation` still belongs to it."""
    orientation: Array | None = None
    """Signs for the new features, where the step makes them."""


Step = Callable[[TaskData, Matrix], Fitted]
"""Data and their pooled rows (those of all tasks; those of a shared design once) to a fitted step."""


def is_count(text: str) -> bool:
    """Return whether an argument of a step is a whole number of at least 0."""
    return text.isascii() and text.isdigit()


def whole_numbers(name: str, form: str, minima: tuple[int, ...], optional: tuple[int, ...] = ()) -> list[int]:
    """Return the whole numbers after a step's name, those left out at the end filled up; InputError for any other arguments."""
    parts = name.split(":")[1:]
    missing = len(minima) - len(parts)
    if 0 <= missing <= len(optional) and all(map(is_count, parts)):
        numbers = [int(part) for part in parts] + list(optional[len(optional) - missing :])
        if all(number >= minimum for number, minimum in zip(numbers, minima, strict=True)):
            return numbers
    raise InputError(f"preprocessing step '{name}' must be {form}, with whole numbers of at least 1{' (SEED: 0)' if optional else ''}")


def labels_of_classes(data: TaskData, name: str) -> Array:
    """Return the targets, n x m, -1 but for one +1 in each row, for a step of that name."""
    if not data.design.is_shared:
        raise InputError(f"preprocessing step '{name}' needs classes over one design, but these tasks have designs of their own")
    if data.n_tasks < 2:
        raise InputError(f"preprocessing step '{name}' needs at least 2 classes, but there is 1 task")
    labels, _ = signs(data.targets)
    counts = np.count_nonzero(labels == 1.0, axis=1)
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        raise InputError(f"preprocessing step '{name}' needs classes, exactly one label +1 a row, but row {row} has {counts[row]}")
    return labels
