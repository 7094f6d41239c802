"""Reader of LIBSVM multi-label files: ``label,label,... feature:value feature:value ...``, one example a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

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
        numbers = {number for labels in label_sets for number in labels}
        require_whole(label_sets)
        found = Labels.among(numbers, all(len(labels) == 1 for labels in label_sets))
        return selection.of(Table(sp.csr_array(X), found.matrix(label_sets), notes=(found.note,)), source.stem)


def require_whole(label_sets: Sequence[tuple[float, ...]], first: int = 0) -> None:
    """Raise InputError where a label is no whole number; examples are counted from `first`."""
    for row, labels in enumerate(label_sets):
        for number in labels:
            if not float(number).is_integer():
                raise InputError(f"example {first + row} has the label {number:g}: label numbers must be whole")


class Labels(NamedTuple):
    """What the labels of a file stand for."""

    numbers: tuple[float, ...]
    """Those that occur, ascending."""
    one_task: bool
    """Whether they are the two labels of one task."""

    @classmethod
    def among(cls, numbers: Iterable[float], each_alone: bool) -> Labels:
        """Return what these numbers stand for, where `each_alone` says whether every example has exactly one.

        Raises
        ------
        InputError : there is no number.
        """
        found = tuple(sorted(numbers))
        if not found:
            raise InputError("has no label on any line")
        return cls(found, each_alone and found in ((-1.0, 1.0), (-1.0,), (1.0,), (0.0, 1.0)))

    def matrix(self, label_sets: Sequence[tuple[float, ...]]) -> Array:
        """-1/+1, a row for each set and a column for each task."""
        if self.one_task:
            return np.where(np.array(label_sets, dtype=np.float64).reshape(-1, 1) == 1.0, 1.0, -1.0)
        column = {number: k for k, number in enumerate(self.numbers)}
        Y = np.full((len(label_sets), len(self.numbers)), -1.0)
        for row, labels in enumerate(label_sets):
            Y[row, [column[number] for number in labels]] = 1.0
        return Y

    @property
    def note(self) -> str:
        """A sentence that says what became of them."""
        if self.one_task:
            shown = " and ".join(f"{number:g}" for number in self.numbers)
            return f"The labels {shown} of the file became one task with the labels -1 and 1."
        return f"The {len(self.numbers)} label numbers of the file became one-against-all tasks."
