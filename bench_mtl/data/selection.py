"""Which rows and tasks of a data file are used: the same options for all readers of examples with labels or targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.label_sets import classes_of_labels, missing_classes, number_of_sets
from bench_mtl.data.sampling import classes_of, sample
from bench_mtl.model.task_data import TaskData

Rows = NDArray[Any]


@dataclass(frozen=True)
class Table:
    """All rows and targets of a file."""

    X: Matrix
    """n x d."""
    targets: Array
    """n x m: labels -1/+1, or real targets."""
    are_labels: bool = True
    task: Rows | None = None
    """n task numbers, where each task has its own rows; None where all tasks share the rows."""
    splits: Mapping[str, Rows] = field(default_factory=dict)
    """Row numbers by the name of a split, not checked yet."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Options that choose rows and tasks. `read_npz` explains them.

    Raises
    ------
    InputError : an option of a wrong type or value, `classes` together with `labels`.
    """

    split: str = "all"
    labels: int | None = None
    classes: str | None = None
    target: int = 0
    examples: int | None = None
    held_out: int | bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("split", self.split, ("all", "train", "test"))
        whole_number("target", self.target)
        if self.labels is not None:
            whole_number("labels", self.labels, minimum=1)
        if self.classes is not None:
            number_of_sets(self.classes)
            if self.labels is not None:
                raise InputError("classes and labels cannot both be given: either of them chooses the tasks")

    @classmethod
    def among_columns(cls, most_frequent: int | None, classes: str | None, examples: int | None, held_out: int, seed: int) -> Selection:
        """Return the options of a file in which `labels` says which columns are labels, and `most_frequent` how many of them are used.

        Raises
        ------
        InputError : as `Selection` does; `held_out` is a number.
        """
        if most_frequent is not None:
            whole_number("most_frequent", most_frequent, minimum=1)
        return cls(labels=most_frequent, classes=classes, examples=examples, held_out=whole_number("held_out", held_out), seed=seed)

    def of(self, table: Table, name: str) -> TaskData:
        """Return the chosen rows and tasks of a table.

        Raises
        ------
        InputError : anything that this table does not have: a split, that number of rows or labels, classes.
        """
        notes, has_class = table.notes, np.ones(len(table.targets), dtype=np.bool_)
        if self.classes is not None:
            if table.task is not None:
                raise InputError("classes cannot be made in a file with 'task': each of its tasks has one target")
            if not table.are_labels:
                raise InputError("classes cannot be made: the targets are real numbers")
            found = classes_of_labels(table.targets, number_of_sets(self.classes))
            table, has_class, notes = replace(table, targets=found.targets), found.has_class, (*notes, *found.notes)
        training, held_out, row_notes = self._rows(table, has_class)
        columns, column_notes = self._columns(table)
        table = replace(table, targets=columns)
        data = _over(table, training, f" in split '{self.split}'")
        missing = () if self.classes is None else missing_classes(data.targets)
        data = replace(data, name=name, notes=(*notes, *row_notes, *column_notes, *missing))
        if held_out is None:
            return data
        return data.with_held_out(replace(_over(table, held_out, " among the held-out rows"), name=f"{name}, held out"))

    def _rows(self, table: Table, has_class: NDArray[np.bool_]) -> tuple[Rows, Rows | None, tuple[str, ...]]:
        """Return row numbers for training, held-out ones, and notes."""
        rows, notes = _rows_of_split(table, self.split, has_class)
        number, held_out = (0, None) if isinstance(self.held_out, bool) else (self.held_out, None)
        if self.held_out is True:
            if self.split != "train":
                raise InputError(f"held_out = true takes the rows of the split 'test', so split must be 'train', not '{self.split}'")
            held_out = _rows_of_split(table, "test", has_class)[0]
            common = np.intersect1d(rows, held_out)
            if len(common):
                raise InputError(f"held_out = true needs splits without common rows, but row {int(common[0])} is in both")
        if table.task is not None and (self.examples is not None or number):
            raise InputError("examples and a number of held_out rows are only for files without 'task'")
        drawn = sample(classes_of(table.targets[rows]), self.examples, number, self.seed, what="rows")
        if drawn is not None:
            notes = (*notes, drawn.note(len(rows), "rows", self.seed))
            if number:
                held_out = rows[drawn.held_out]
            rows = rows[drawn.training]
        if self.held_out is True and held_out is not None:
            notes = (*notes, f"The {len(held_out)} rows of the split 'test' are held out.")
        return rows, held_out, notes

    def _columns(self, table: Table) -> tuple[Array, tuple[str, ...]]:
        """Return the chosen columns of the targets, n x m (n x 1 where tasks have their own rows), and notes."""
        m = table.targets.shape[1]
        if table.task is None:
            if self.target != 0:
                raise InputError(f"target = {self.target} is only for files with 'task'; here every column of Y is a task")
            if self.labels is None:
                return table.targets, ()
            if not table.are_labels:
                raise InputError("labels cannot be chosen: the targets are real numbers")
            kept = most_frequent(np.count_nonzero(table.targets == 1.0, axis=0), self.labels)
            return table.targets[:, kept], (most_frequent_note(self.labels, m),)
        if self.labels is not None:
            raise InputError("labels cannot be chosen in a file with 'task': each of its tasks has one target")
        if self.target >= m:
            raise InputError(f"target = {self.target} is out of range: there are {m} target(s), numbered from 0")
        notes = (f"Column {self.target} of {m} in Y is the target.",) if m > 1 else ()
        return table.targets[:, [self.target]], notes


def most_frequent(frequency: NDArray[Any], count: int) -> Rows:
    """Return the `count` columns of labels with most +1 entries, given the number of each, ascending; ties go to the earlier column.

    Raises
    ------
    InputError : there are fewer.
    """
    if count > len(frequency):
        raise InputError(f"labels = {count} asks for more than the {len(frequency)} label(s) there are")
    return np.sort(np.argsort(-frequency, kind="stable")[:count])


def most_frequent_note(count: int, m: int) -> str:
    """Return a sentence that says that labels were left out."""
    return f"The {count} most frequent of {m} labels were kept."


def _rows_of_split(table: Table, split: str, has_class: NDArray[np.bool_]) -> tuple[Rows, tuple[str, ...]]:
    """Return row numbers of a split, of those that have a class."""
    if split == "all":
        rows, notes = np.arange(len(has_class)), tuple[str, ...]()
    elif split in table.splits:
        rows = split_rows(split, table.splits[split], len(has_class))
        notes = (split_note(split, len(rows), len(has_class)),)
    else:
        raise no_split(split)
    kept = rows[has_class[rows]]
    if len(kept) == 0 < len(rows):
        raise InputError(f"no row of the split '{split}' has a class")
    return kept, (*notes, f"{len(kept)} of them have a class.") if notes and len(kept) < len(rows) else notes


def no_split(split: str) -> InputError:
    """Return the error for a split that a file does not have."""
    return InputError(f"has no split '{split}': the array {split}_idx is missing; use split = 'all'")


def split_note(split: str, count: int, n: int) -> str:
    """Return a sentence that says that other rows were left out."""
    return f"Only the {count} rows of the split '{split}' were used, of {n}."


def _over(table: Table, rows: Rows, where: str) -> TaskData:
    """Return the tasks over some rows; `where` says in messages where these come from."""
    X, targets, task = table.X, table.targets, table.task
    if task is None:
        return TaskData.shared(X[rows], targets[rows])
    members = [rows[task[rows] == k] for k in range(int(task.max()) + 1)]
    for k, own in enumerate(members):
        if len(own) == 0:
            raise InputError(f"task {k} has no row{where}")
    return TaskData.per_task([X[own] for own in members], [targets[own, 0] for own in members])


def split_rows(split: str, rows: NDArray[Any], n: int) -> NDArray[Any]:
    """Return row numbers of a split, of n rows, checked.

    Raises
    ------
    InputError : they are no vector of row numbers, are none, or one is out of range.
    """
    name = f"{split}_idx"
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(f"{name} must be a vector of row numbers, but has shape {rows.shape} and type {rows.dtype}")
    if len(rows) == 0:
        raise InputError(f"{name} is empty: split '{split}' has no row")
    require_range(name, rows, n, "rows")
    return rows


def require_range(name: str, indices: NDArray[Any], size: int, what: str, first: int = 0) -> None:
    """Raise InputError where an index is not one of `size`; their positions are counted from `first`."""
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if len(wrong):
        place = int(wrong[0])
        raise InputError(f"{name} has {indices[place]} at position {first + place}, but there are {size} {what}, numbered from 0")
