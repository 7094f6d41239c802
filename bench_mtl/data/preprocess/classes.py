"""What steps that need classes share."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.task_data import TaskData, signs


def labels_of_classes(data: TaskData, name: str) -> Array:
    """Return the targets, n x m, -1 but for one +1 in each row, for a step of that name.

    Raises
    ------
    InputError : a design for each task, fewer than two classes, not exactly one label +1 in every row.
    """
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
