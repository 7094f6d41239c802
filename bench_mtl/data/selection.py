"""Which rows and tasks of a data set are used: the same options for all readers of examples with labels or targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.table import Rows, Table
from bench_mtl.model.task_data import TaskData

#: So many sets of labels that became classes are named.
_NAMED = 12


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Options that choose rows and tasks, checked. `read_npz` explains them."""

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
            _number_of_sets(self.classes)
            if self.labels is not None:
                raise InputError("classes and labels cannot both be given: either of them chooses the tasks")

    @classmethod
    def among_columns(
        cls, most_frequent: int | None, classes: str | None = None, examples: int | None = None, held_out: int = 0, seed: int = 0
    ) -> Selection:
        """Return the options of a file in which `labels` says which columns are labels, and `most_frequent` how many of them are used."""
        if most_frequent is not None:
            whole_number("most_frequent", most_frequent, minimum=1)
        return cls(labels=most_frequent, classes=classes, examples=examples, held_out=whole_number("held_out", held_out), seed=seed)

    def of(self, table: Table, name: str) -> TaskData:
        """Return the chosen rows and tasks of a table.

        Raises InputError: anything that this table does not have: a split, that number of rows or labels, classes.
        """
        X, targets = table.whole()
        notes, has_class = table.notes, np.ones(table.n_rows, dtype=np.bool_)
        if self.classes is not None:
            if table.task is not None:
                raise InputError("classes cannot be made in a file with 'task': each of its tasks has one target")
            if not table.are_labels:
                raise InputError("classes cannot be made: the targets are real numbers")
            targets, has_class, note = _classes_of_labels(targets, _number_of_sets(self.classes))
            notes = (*notes, note)
        training, held_out, row_notes = self._rows(table, targets, has_class)
        columns, column_notes = self._columns(table)
        targets = targets if columns is None else targets[:, columns]
        data = _over(X, targets, table.task, training, f" in split '{self.split}'")
        missing = [] if self.classes is None else np.flatnonzero(~(data.targets == 1.0).any(axis=0)).tolist()
        missing_notes = (f"No training row has class {', '.join(map(str, missing))} (numbered from 0).",) if missing else ()
        data = replace(data, name=name, notes=(*notes, *row_notes, *column_notes, *missing_notes))
        if held_out is None:
            return data
        return data.with_held_out(replace(_over(X, targets, table.task, held_out, " among the held-out rows"), name=f"{name}, held out"))

    def streamed(self, table: Table) -> Table:
        """Return what `split` and `labels` choose of a table, still block by block.

        Raises InputError: as `of` does; tasks have rows of their own.
        """
        if table.task is not None:
            raise InputError("has 'task', which gives each task rows of its own: shards hold rows that all tasks share")
        blocks, n_rows, notes = table.blocks, table.n_rows, table.notes
        if self.split != "all":
            rows, row_notes = _rows_of_split(table, self.split, np.ones(n_rows, dtype=np.bool_))
            blocks, n_rows, notes = partial(table.blocks, rows), len(rows), (*notes, *row_notes)
        columns, column_notes = self._columns(table)
        chosen = replace(table, blocks=blocks, n_rows=n_rows, notes=(*notes, *column_notes))
        if columns is None:
            return chosen

        def some() -> Iterator[tuple[Matrix, Array]]:
            return ((X, targets[:, columns]) for X, targets in blocks())

        return replace(chosen, blocks=some, n_targets=len(columns))

    def _rows(self, table: Table, targets: Array, has_class: NDArray[np.bool_]) -> tuple[Rows, Rows | None, tuple[str, ...]]:
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
        drawn = sample(_classes_of(targets[rows]), self.examples, number, self.seed, what="rows")
        if drawn is not None:
            notes = (*notes, drawn.note(len(rows), "rows", self.seed))
            if number:
                held_out = rows[drawn.held_out]
            rows = rows[drawn.training]
        if self.held_out is True and held_out is not None:
            notes = (*notes, f"The {len(held_out)} rows of the split 'test' are held out.")
        return rows, held_out, notes

    def _columns(self, table: Table) -> tuple[Rows | None, tuple[str, ...]]:
        """Return the chosen columns of the targets (None: all; one where tasks have their own rows), and notes."""
        m = table.n_targets
        if table.task is None:
            if self.target != 0:
                raise InputError(f"target = {self.target} is only for files with 'task'; here every column of Y is a task")
            if self.labels is None:
                return None, ()
            if not table.are_labels:
                raise InputError("labels cannot be chosen: the targets are real numbers")
            if self.labels > m:
                raise InputError(f"labels = {self.labels} asks for more than the {m} label(s) there are")
            frequency = np.sum([np.count_nonzero(targets == 1.0, axis=0) for _, targets in table.blocks()], axis=0)
            kept = np.sort(np.argsort(-frequency, kind="stable")[: self.labels])  # ties go to the earlier column
            return kept, (f"The {self.labels} most frequent of {m} labels were retained.",)
        if self.labels is not None:
            raise InputError("labels cannot be chosen in a file with 'task': each of its tasks has one target")
        if self.target >= m:
            raise InputError(f"target = {self.target} is out of range: there are {m} target(s), numbered from 0")
        return np.array([self.target]), (f"Column {self.target} of {m} in Y is the target.",) if m > 1 else ()


def _number_of_sets(classes: Any) -> int | None:
    """Return K for ``"sets:K"``, None for ``"single"``."""
    if classes == "single":
        return None
    if isinstance(classes, str):
        family, _, digits = classes.partition(":")
        if family == "sets" and digits.isascii() and digits.isdigit() and int(digits) >= 2:
            return int(digits)
    raise InputError("classes", classes, "single or sets:K, with K a whole number of at least 2")


def _classes_of_labels(labels: Array, n_sets: int | None) -> tuple[Array, NDArray[np.bool_], str]:
    """Make the labels classes of the rows with exactly one of them, or make the `n_sets` most frequent sets of labels classes.

    Of labels n x m, -1/+1, these are n x K, in the rows that have a class +1 for it and -1 for the others, meaningless elsewhere; which
    rows have one, and what was done, are returned with them.
    """
    n, m = labels.shape
    if n_sets is None:
        alone = np.count_nonzero(labels == 1.0, axis=1) == 1
        used = np.flatnonzero((labels[alone] == 1.0).any(axis=0))
        if len(used) < 2:
            raise InputError(
                f"classes = 'single' needs at least 2 labels that some row has alone, but of {m} label(s) {len(used)} are such"
            )
        dropped = f" {m - len(used)} of {m} labels were dropped: no row has one of them alone." if len(used) < m else ""
        return labels[:, used], alone, f"{np.count_nonzero(alone)} of {n} rows have exactly one label and were retained.{dropped}"
    different, first, number, counts = np.unique(labels == 1.0, axis=0, return_index=True, return_inverse=True, return_counts=True)
    if n_sets > len(different):
        raise InputError(f"classes = 'sets:{n_sets}' asks for more than the {len(different)} different sets of labels there are")
    chosen = np.lexsort((first, -counts))[:n_sets]
    targets = np.where(number.reshape(n, 1) == chosen, 1.0, -1.0)
    kept = (targets == 1.0).any(axis=1)
    names = ", ".join("{" + ", ".join(map(str, np.flatnonzero(row))) + "}" for row in different[chosen[:_NAMED]])
    which = f"The {n_sets} most frequent of {len(different)} sets of labels became classes, {names}{', ...' if n_sets > _NAMED else ''}"
    return targets, kept, f"{which}; {np.count_nonzero(kept)} of {n} rows were retained."


def _rows_of_split(table: Table, split: str, has_class: NDArray[np.bool_]) -> tuple[Rows, tuple[str, ...]]:
    """Return row numbers of a split, checked, of those that have a class."""
    n = table.n_rows
    if split == "all":
        rows, notes = np.arange(n), tuple[str, ...]()
    elif split in table.splits:
        name, rows = f"{split}_idx", np.asarray(table.splits[split])
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise InputError(f"{name} must be a vector of row numbers, but has shape {rows.shape} and type {rows.dtype}")
        if len(rows) == 0:
            raise InputError(f"{name} is empty: split '{split}' has no row")
        require_range(name, rows, n, "rows")
        rows = rows.astype(np.intp)
        notes = (f"Only the {len(rows)} rows of the split '{split}' were used, of {n}.",)
    else:
        raise InputError(f"has no split '{split}': the array {split}_idx is missing; use split = 'all'")
    kept = rows[has_class[rows]]
    if len(kept) == 0 < len(rows):
        raise InputError(f"no row of the split '{split}' has a class")
    return kept, (*notes, f"{len(kept)} of them have a class.") if notes and len(kept) < len(rows) else notes


def _over(X: Matrix, targets: Array, task: Rows | None, rows: Rows, where: str) -> TaskData:
    """Return the tasks over some rows; `where` says in messages where these come from."""
    if task is None:
        return TaskData.shared(X[rows], targets[rows])
    if len(task) == 0:
        raise InputError("X is empty")
    members = [rows[task[rows] == k] for k in range(int(task.max()) + 1)]
    for k, own in enumerate(members):
        if len(own) == 0:
            raise InputError(f"task {k} has no row{where}")
    return TaskData.per_task([X[own] for own in members], [targets[own, 0] for own in members])


def require_range(name: str, indices: NDArray[Any], size: int, what: str, first: int = 0) -> None:
    """Raise InputError where an index is not one of `size`; their positions are counted from `first`."""
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if len(wrong):
        place = int(wrong[0])
        raise InputError(f"{name} has {indices[place]} at position {first + place}, but there are {size} {what}, numbered from 0")


class Sample(NamedTuple):
    """Two disjoint sets of row numbers, each ascending."""

    training: Rows
    held_out: Rows
    proportional: bool
    """Whether there were classes whose proportions were retained."""

    def note(self, n: int, what: str, seed: int) -> str:
        """Return a sentence that says what was drawn."""
        numbers = f"{len(self.training)}" + (f" and {len(self.held_out)} held-out" if len(self.held_out) else "")
        how = "in the classes' proportions" if self.proportional else "at random"
        return f"{numbers} of {n} {what} were drawn {how}, with seed {seed}."


def sample(classes: NDArray[Any], examples: int | None, held_out: int, seed: int, *, what: str, minimum: int = 1) -> Sample | None:
    """`examples` rows for training (None: all that are left) and `held_out` others, each in the proportions of `classes` up to rounding.

    The training rows do not depend on `held_out`, where their number is given. None where all rows are for training.
    """
    seed, n_held_out = whole_number("seed", seed), whole_number("held_out", held_out)
    n = len(classes)
    if examples is None:
        if n_held_out == 0:
            return None
        if n - n_held_out < minimum:
            raise InputError("held_out", n_held_out, f"at most {n - minimum}, so that {minimum} of {n} {what} are left")
        n_training = n - n_held_out
    else:
        n_training = whole_number("examples", examples, minimum=minimum, maximum=n, why=f", the number of {what}")
        if n_training + n_held_out > n:
            raise InputError(f"examples = {n_training} and held_out = {n_held_out} are more than the {n} {what} there are")
    order = _proportional(classes, np.random.default_rng(seed))
    return Sample(np.sort(order[:n_training]), np.sort(order[n_training : n_training + n_held_out]), len(np.unique(classes)) > 1)


def _classes_of(targets: Array) -> NDArray[Any]:
    """Return the class of each row where there is exactly one +1 among labels -1/+1 (or one label), else the same for all rows."""
    labels = np.abs(targets) == 1.0
    if labels.all() and targets.shape[1] == 1:
        return targets[:, 0]
    if labels.size and labels.all() and (np.count_nonzero(targets == 1.0, axis=1) == 1).all():
        return targets.argmax(axis=1)
    return np.zeros(len(targets))


def _proportional(classes: NDArray[Any], generator: np.random.Generator) -> Rows:
    """Return a random order of all rows, of which every beginning has the proportions of `classes` up to rounding."""
    order = generator.permutation(len(classes))
    quantile = np.empty(len(classes))
    for label in np.unique(classes):
        members = order[classes[order] == label]
        # The i-th of a class's members is at the quantile (i + 1/2) / size: the lowest ones over all classes are a proportional sample.
        quantile[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.asarray(order[np.argsort(quantile[order], kind="stable")])
