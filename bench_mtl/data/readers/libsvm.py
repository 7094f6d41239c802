"""Reader of LIBSVM multi-label files: ``label,label,... feature:value feature:value ...``, one example a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data.readers.common import naming, parsing, readable_file
from bench_mtl.data.selection import Selection, Table
from bench_mtl.model.task_data import TaskData


def read_libsvm(
    path: str | Path,
    *,
    features: int | None = None,
    labels: int | None = None,
    classes: str | None = None,
    examples: int | None = None,
    held_out: int = 0,
    seed: int = 0,
) -> TaskData:
    """Tasks from a LIBSVM multi-label file: a sparse shared design, and a task for each label number that occurs.

    Feature numbers count from 1, or from 0 where a file uses the number 0. A line may have no label. Tasks are in
    ascending order of the label numbers. Files with one label a line, 0 or 1, or -1 or 1, are one task.

    Parameters
    ----------
    path : the file.
    features : d, where the file leaves out the last ones; None takes the largest number that occurs.
    labels : the number of labels to keep, the most frequent; ties go to the lower number.
    classes, examples, held_out, seed : as for `read_npz`; `held_out` is a number.

    Raises
    ------
    InputError : anything but such a file, labels that are not whole numbers, no label or feature at all.
    """
    from sklearn.datasets import load_svmlight_file

    source = readable_file(path)
    n_features = None if features is None else whole_number("features", features, minimum=1)
    selection = Selection(labels=labels, classes=classes, examples=examples, held_out=whole_number("held_out", held_out), seed=seed)
    with naming(source):
        with parsing("a LIBSVM file"):
            X, label_sets = load_svmlight_file(str(source), n_features=n_features, multilabel=True)
        if X.shape[0] == 0:
            raise InputError("has no example")
        if n_features is None and X.nnz == 0:
            raise InputError("has no feature on any line")
        Y, notes = _label_matrix(label_sets)
        return selection.of(Table(sp.csr_array(X), Y, notes=notes), source.stem)


def _one_task(numbers: list[float]) -> tuple[str, ...]:
    return (f"The labels {' and '.join(f'{number:g}' for number in numbers)} of the file became one task with the labels -1 and 1.",)


def _label_matrix(label_sets: list[tuple[float, ...]]) -> tuple[Array, tuple[str, ...]]:
    """-1/+1, a row for each set and a column for each number that occurs in any."""
    numbers = sorted({number for labels in label_sets for number in labels})
    if not numbers:
        raise InputError("has no label on any line")
    for row, labels in enumerate(label_sets):
        for number in labels:
            if not float(number).is_integer():
                raise InputError(f"example {row} has the label {number:g}: label numbers must be whole")
    if numbers in ([-1.0, 1.0], [-1.0], [1.0]) and all(len(labels) == 1 for labels in label_sets):
        return np.array(label_sets, dtype=np.float64), _one_task(numbers)
    if numbers == [0.0, 1.0] and all(len(labels) == 1 for labels in label_sets):
        return np.where(np.array(label_sets) == 1.0, 1.0, -1.0), _one_task(numbers)
    column = {number: k for k, number in enumerate(numbers)}
    Y = np.full((len(label_sets), len(numbers)), -1.0)
    for row, labels in enumerate(label_sets):
        Y[row, [column[number] for number in labels]] = 1.0
    return Y, (f"The {len(numbers)} label numbers of the file became one-against-all tasks.",)
