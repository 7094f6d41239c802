"""TaskData: designs and targets of many tasks, checked once, immutable."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench_mtl.core.checks import is_sparse, real_array, real_number, require_shape
from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign, frozen
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.types import Array
from bench_mtl.model.frames import Columns, chosen_columns


@dataclass(frozen=True, repr=False)
class TaskData:
    """Designs X_k and targets y_k of m tasks over the same d features.

    Make one with `TaskData.shared` or `TaskData.per_task`, which check their input.
    """

    design: Design
    targets: Array
    """In `design.output_shape`: n x m for a shared design, stacked task by task otherwise."""
    name: str = "unnamed"
    truth: dict[str, Array] = field(default_factory=dict)
    """What a generator knows: ``{"W": ...}``, or ``{"P": ..., "Q": ...}``."""
    notes: tuple[str, ...] = ()
    """What was done to the data that a reader should know, one sentence each."""
    orientation: Array | None = None
    """Signs, d x m, that the coefficients may have in a problem that restricts them (its `nonneg`); None: all +1."""
    held_out: TaskData | None = None
    """Other examples of the same tasks, preprocessed in the same way, which no solver sees."""
    weights: Array | None = None
    """Of the examples in the loss, above 0 and shaped like the targets: a whole number counts as so many copies. None: all 1."""
    task_weights: Array | None = None
    """What the loss of each task is multiplied by, m numbers above 0, after its mean is taken where that is the reduction. None: all 1."""

    @staticmethod
    def shared(
        X: Any,
        Y: Any,
        *,
        weights: Any = None,
        name: str = "unnamed",
        truth: dict[str, Array] | None = None,
        notes: tuple[str, ...] = (),
    ) -> TaskData:
        """One design X (n x d, dense or sparse) for all tasks, targets Y (n x m; a vector is one task).

        Where a target is NaN it is unknown, and its task does without the example: tasks have designs of their own then. Weights of the
        examples in the loss are above 0: n numbers, or n x m; None means equal ones. Raises InputError: wrong shapes, NaN or inf, no
        example, no task, a task without a known target.
        """
        targets = _targets("Y", Y)
        targets = targets[:, None] if targets.ndim == 1 else targets
        if targets.ndim != 2 or targets.shape[1] == 0:
            raise InputError("Y", targets.shape, "have shape n x m with at least one task")
        design = SharedDesign(X, targets.shape[1])
        if targets.shape[0] != design.output_shape[0]:
            raise InputError(f"Y has {targets.shape[0]} rows, but X has {design.output_shape[0]}")
        v = None if weights is None else _weights("weights", weights, targets.shape)
        if np.isnan(targets).any():
            ys, vs = list(targets.T), None if v is None else list(v.T)
            return TaskData.per_task([design.block(0)] * len(ys), ys, weights=vs, name=name, truth=truth, notes=notes)
        return TaskData(design, frozen(targets.copy()), name, truth or {}, notes, weights=v)

    @staticmethod
    def per_task(
        Xs: Sequence[Any],
        ys: Sequence[Any],
        *,
        weights: Sequence[Any] | None = None,
        name: str = "unnamed",
        truth: dict[str, Array] | None = None,
        notes: tuple[str, ...] = (),
    ) -> TaskData:
        """A design X_k (n_k x d) and targets y_k (n_k) for each task. Examples whose target is NaN, which is unknown, are left out.

        Weights of the examples of each task in the loss are above 0: vectors like the targets; None means equal ones. Raises
        InputError: wrong shapes, NaN or inf, an empty task or one without a known target, different numbers of features.
        """
        Xs, ys = _one_each("Xs", Xs), _one_each("ys", ys)
        given = [None] * len(ys) if weights is None else _one_each("weights", weights)
        for what, count in (("designs", len(Xs)), ("vectors of weights", len(given))):
            if count != len(ys):
                raise InputError(f"there are {count} {what} but {len(ys)} target vectors")
        design = PerTaskDesign(Xs)
        blocks, targets, checked, unknown = [], [], [], 0
        for k, (y, v) in enumerate(zip(ys, given, strict=True)):
            target = _targets(f"y of task {k}", y)
            require_shape(f"y of task {k}", target, (design.sizes[k],), why=" to match its X")
            known = np.flatnonzero(~np.isnan(target))
            if not len(known):
                raise InputError(f"task {k} has no known target")
            own = np.ones(len(target)) if v is None else _weights(f"weights of task {k}", v, target.shape)
            unknown += len(target) - len(known)
            blocks.append(design.block(k) if len(known) == len(target) else design.block(k)[known])
            targets.append(target[known])
            checked.append(own[known])
        if unknown:
            notes = (*notes, f"{plural(unknown, 'target')} were unknown: their tasks do without these examples.")
            design = PerTaskDesign(blocks)
        v = None if weights is None else frozen(np.concatenate(checked))
        return TaskData(design, frozen(np.concatenate(targets)), name, truth or {}, notes, weights=v)

    @staticmethod
    def from_arrays(X: Any, Y: Any, *, name: str = "unnamed") -> TaskData:
        """`TaskData.shared` for one array or sparse matrix X, `TaskData.per_task` for lists of designs and of target vectors.

        Raises InputError: as these do.
        """
        return TaskData.per_task(X, Y, name=name) if isinstance(X, (list, tuple)) else TaskData.shared(X, Y, name=name)

    @staticmethod
    def from_frame(
        frame: Any,
        *,
        labels: Columns | None = None,
        targets: Columns | None = None,
        class_column: str | None = None,
        task: str | None = None,
        drop: str | Sequence[str] = (),
        impute: str | None = None,
        name: str = "frame",
    ) -> TaskData:
        """Tasks from a pandas frame: a row an example, a column a feature or something to be learned.

        Exactly one of `labels`, `targets` and `class_column` says what is to be learned. All other columns are features, and numbers.
        Raises InputError: not exactly one of the three, columns that do not exist, a missing value, a text, an infinite number, another
        label; the first is named by column and row, which count from 0.

        Parameters
        ----------
        labels : columns of labels 0/1 or -1/+1, each a task: a number n for the last n columns (the first \\|n\\| when negative), or names.
        targets : the same for columns of real numbers.
        class_column : the name of a column of numbers or words; each of its values is a task, against all others.
        task : the name of a column that says which task a row belongs to; then each task has rows of its own, and one column to learn.
        drop : names of columns to leave out.
        impute : "mean" or "median" for features that are missing, of their column over all rows; None refuses them.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"frame must be a pandas DataFrame, not {type(frame).__name__}: TaskData.from_arrays takes arrays")
        chosen = chosen_columns(frame, labels=labels, targets=targets, class_column=class_column, task=task, drop=drop, impute=impute)
        if chosen.task is None:
            return TaskData.shared(chosen.X, chosen.targets, name=name, notes=chosen.notes)
        members = [np.flatnonzero(chosen.task == k) for k in range(int(chosen.task.max()) + 1)]
        return TaskData.per_task(
            [chosen.X[rows] for rows in members], [chosen.targets[rows, 0] for rows in members], name=name, notes=chosen.notes
        )

    @staticmethod
    def from_tasks(
        frames: Mapping[str, Any],
        *,
        labels: str | None = None,
        targets: str | None = None,
        drop: str | Sequence[str] = (),
        impute: str | None = None,
        name: str = "frames",
    ) -> TaskData:
        """Tasks with rows of their own from a pandas frame for each, such as ``{"Rome": frame, "Oslo": other}``.

        All frames have the same columns, in any order. The options are those of `TaskData.from_frame`; values are imputed in each frame.
        Raises InputError: no frame, one without the columns of the first, and whatever `from_frame` refuses; the task is named.
        """
        if not isinstance(frames, Mapping) or not frames:
            raise InputError("frames", frames, "a table of a pandas frame for each task")
        columns: list[str] | None = None
        designs, values = [], []
        for task, frame in frames.items():
            try:
                own = [str(column) for column in getattr(frame, "columns", ())]
                columns = columns or own
                if set(own) != set(columns):
                    odd = sorted(set(own) ^ set(columns))[0]
                    raise InputError(f"column '{odd}' is in some frames only")
                ordered = frame.iloc[:, [own.index(column) for column in columns]] if own else frame
                data = TaskData.from_frame(ordered, labels=labels, targets=targets, drop=drop, impute=impute)
                if data.n_tasks > 1:
                    raise InputError("one column is to be learned, not several")
            except InputError as error:
                raise error.within(f"task '{task}'") from None
            X, y = data.task(0)
            designs.append(X)
            values.append(y)
        shown = ", ".join(map(str, list(frames)[:8])) + (" and others" if len(frames) > 8 else "")
        return TaskData.per_task(designs, values, name=name, notes=(f"The tasks are {shown}.",))

    def with_task_weights(self, task_weights: Any) -> TaskData:
        """These data with what the loss of each task is multiplied by. Raises InputError: not a number above 0 for each task."""
        values = real_array("task_weights", task_weights)
        if values.shape != (self.n_tasks,) or not np.all(values > 0.0):
            raise InputError("task_weights", task_weights, f"{plural(self.n_tasks, 'number')} above 0, one a task")
        return replace(self, task_weights=frozen(values.copy()))

    def with_held_out(self, other: TaskData) -> TaskData:
        """These data with `other` as their held-out examples.

        Raises InputError: no TaskData, or another number of features or tasks.
        """
        if not isinstance(other, TaskData):
            raise InputError("other", other, "a TaskData")
        for what, own, given in (("features", self.n_features, other.n_features), ("tasks", self.n_tasks, other.n_tasks)):
            if own != given:
                raise InputError(f"held-out examples have {given} {what}, but the data have {own}")
        return replace(self, held_out=other)

    def __repr__(self) -> str:
        sizes, storage = self.design.sizes, "sparse" if self.design.is_sparse else "dense"
        rows = f"{sizes[0]}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
        shared = "the same for all tasks" if self.design.is_shared else "of its own for each task"
        held_out = "" if self.held_out is None else f", {max(self.held_out.design.sizes)} held out"
        return f"<TaskData '{self.name}': {plural(self.n_tasks, 'task')}\n  {rows} x {self.n_features} {storage}, {shared}{held_out}>"

    @property
    def n_features(self) -> int:
        return self.design.n_features

    @property
    def n_tasks(self) -> int:
        return self.design.n_tasks

    def task(self, k: int) -> tuple[Any, Array]:
        """(X_k, y_k)."""
        return self.design.block(k), self.design.task_outputs(self.targets, k)


def signs(targets: Array) -> tuple[Array, bool]:
    """Labels as -1/+1, and whether they had to be converted from 0/1. Raises InputError: any other value; the first one is named."""
    plus, minus, zero = targets == 1.0, targets == -1.0, targets == 0.0
    odd = ~(plus | minus | zero)
    if odd.any():
        place = tuple(int(i) for i in np.argwhere(odd)[0])
        raise InputError(f"labels must be -1/+1 (or 0/1), but entry {place} is {targets[place]:g}")
    if zero.any() and minus.any():
        raise InputError("labels mix 0 with -1: use -1/+1 (or 0/1)")
    if not zero.any():
        return targets, False
    return np.where(plus, 1.0, -1.0), True


def binary_labels(data: TaskData) -> tuple[Array, tuple[str, ...]]:
    """Labels as -1/+1, read-only, and the notes of the data; where labels 0/1 had to be converted with a note of that, and a warning.

    Raises InputError: any other value, as `signs` does.
    """
    labels, converted = signs(data.targets)
    if not converted:
        return frozen(labels), data.notes
    note = "labels 0/1 were converted to -1/+1"
    warnings.warn(note, UserWarning, stacklevel=3)
    return frozen(labels), (*data.notes, note)


def number_or_truth(name: str, value: Any, data: TaskData, part: str, norm: Callable[[Array], float]) -> float:
    """Return `value` as a finite number of at least 0; for "truth", the norm of this part of what the generator of the data knows.

    The part is "W" (P + Q where these are known instead), "P" or "Q". Raises InputError: another value, or "truth" of data that do not know
    it, or know one of another shape.
    """
    if not (isinstance(value, str) and value == "truth"):
        return real_number(name, value)
    truth = data.truth
    if part == "W" and "W" not in truth and {"P", "Q"} <= truth.keys():
        return norm(true_part(name, data, "P") + true_part(name, data, "Q"))
    return norm(true_part(name, data, part))


def true_part(name: str, data: TaskData, part: str) -> Array:
    """Return this part of what is known of the data. Raises InputError: it is not known, or is not d x m."""
    if part not in data.truth:
        raise InputError(f"{name} 'truth' needs data that know their true {part}, which '{data.name}' do not: give a number")
    found = real_array(f"the true {part} of '{data.name}'", data.truth[part])
    require_shape(f"the true {part} of '{data.name}'", found, (data.n_features, data.n_tasks), why=" for radius 'truth'")
    return found


def class_indicators(data: TaskData) -> tuple[Array, tuple[str, ...]]:
    """Labels as indicators of one class a row, n x m with one 1 a row, read-only, and notes as `binary_labels` has them.

    Raises InputError: another value, designs that are not shared, a row with no class or several.
    """
    labels, notes = binary_labels(data)
    if not data.design.is_shared:
        raise InputError("classes need one design for all of them, but these tasks have designs of their own")
    indicators = np.asarray(labels == 1.0, dtype=np.float64)
    counts = indicators.sum(axis=1)
    if np.any(counts != 1.0):
        row = int(np.argmax(counts != 1.0))
        raise InputError(f"labels must have exactly one class a row, but row {row} has {int(counts[row])}")
    return frozen(indicators), notes


def _one_each(name: str, values: Any) -> list[Any]:
    """Return a list of what each task has."""
    is_list = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not is_list and not (isinstance(values, np.ndarray) and values.ndim):
        raise InputError(name, values, "a list with an entry for each task")
    return list(values)


def _targets(name: str, value: Any) -> Array:
    """Return targets, of which NaN are unknown."""
    return real_array(name, value.toarray() if is_sparse(value) else value, is_nan_allowed=True)


def _weights(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return weights of examples in the shape of the targets, read-only."""
    v = real_array(name, value)
    v = v[:, None] if v.ndim == 1 and len(shape) == 2 else v
    if v.shape[:1] != shape[:1] or v.ndim != len(shape) or v.shape[1:] not in (shape[1:], (1,) * (len(shape) - 1)):
        raise InputError(name, np.shape(value), f"have shape {shape}, or a number for each example")
    if not np.all(v > 0.0):
        raise InputError(f"{name} must be above 0, but one is {v.min():g}: leave out examples that should not count")
    require_comparable(name, v)
    return frozen(np.array(np.broadcast_to(v, shape)))


def require_comparable(name: str, weights: Array) -> None:
    """Raise InputError for weights above 0 whose sum overflows, or whose shares of it underflow."""
    least, most = float(weights.min()), float(weights.max())
    with np.errstate(over="ignore"):
        if not least / np.multiply(most, weights.size) >= np.finfo(np.float64).tiny:
            raise InputError(f"{name} must not be so {'far apart' if least < 1.0 else 'large'}, from {least:g} to {most:g}")
