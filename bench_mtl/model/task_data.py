"""TaskData: designs and targets of many tasks, checked once, immutable."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench_mtl.core.checks import is_sparse, real_array, real_number
from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array


@dataclass(frozen=True)
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
    """What was done to the data that a reader should be told, one sentence each."""
    orientation: Array | None = None
    """Signs, d x m, that the coefficients may have in a problem that restricts them (its `nonneg`); None: all +1."""
    held_out: TaskData | None = None
    """Other examples of the same tasks, preprocessed in the same way, which no solver sees."""

    @staticmethod
    def shared(X: Any, Y: Any, *, name: str = "unnamed", truth: dict[str, Array] | None = None, notes: tuple[str, ...] = ()) -> TaskData:
        """One design X (n x d, dense or sparse) for all tasks, targets Y (n x m; a vector is one task).

        Raises
        ------
        InputError : wrong shapes, NaN or inf, no example, no task.
        """
        targets = _targets("Y", Y)
        targets = targets[:, None] if targets.ndim == 1 else targets
        if targets.ndim != 2 or targets.shape[1] == 0:
            raise InputError(f"Y must be n x m with at least one task, but has shape {targets.shape}")
        design = SharedDesign(X, targets.shape[1])
        if targets.shape[0] != design.output_shape[0]:
            raise InputError(f"Y has {targets.shape[0]} rows, but X has {design.output_shape[0]}")
        return TaskData(design, frozen(targets.copy()), name, truth or {}, notes)

    @staticmethod
    def per_task(
        Xs: Sequence[Any], ys: Sequence[Any], *, name: str = "unnamed", truth: dict[str, Array] | None = None, notes: tuple[str, ...] = ()
    ) -> TaskData:
        """A design X_k (n_k x d) and targets y_k (n_k) for each task.

        Raises
        ------
        InputError : wrong shapes, NaN or inf, an empty task, different numbers of features.
        """
        if len(Xs) != len(ys):
            raise InputError(f"there are {len(Xs)} designs but {len(ys)} target vectors")
        design = PerTaskDesign(Xs)
        checked = []
        for k, y in enumerate(ys):
            target = _targets(f"y of task {k}", y)
            if target.shape != (design.sizes[k],):
                raise InputError(f"y of task {k} must have shape ({design.sizes[k]},) to match its X, but has {target.shape}")
            checked.append(target)
        return TaskData(design, frozen(np.concatenate(checked)), name, truth or {}, notes)

    def with_held_out(self, other: TaskData) -> TaskData:
        """These data with `other` as their held-out examples.

        Raises
        ------
        InputError : another number of features or tasks.
        """
        for what, own, given in (("features", self.n_features, other.n_features), ("tasks", self.n_tasks, other.n_tasks)):
            if own != given:
                raise InputError(f"held-out examples have {given} {what}, but the data have {own}")
        return replace(self, held_out=other)

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
    """Labels as -1/+1, and whether they had to be converted from 0/1.

    Raises
    ------
    InputError : any other value; the first one is named.
    """
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

    Raises
    ------
    InputError : any other value, as `signs` does.
    """
    labels, converted = signs(data.targets)
    if not converted:
        return frozen(labels), data.notes
    note = "labels 0/1 were converted to -1/+1"
    warnings.warn(note, UserWarning, stacklevel=3)
    return frozen(labels), (*data.notes, note)


def number_or_truth(name: str, value: Any, data: TaskData, part: str, norm: Callable[[Array], float]) -> float:
    """Return `value` as a finite number of at least 0; for "truth", the norm of this part of what the generator of the data knows.

    The part is "W" (P + Q where these are known instead), "P" or "Q".

    Raises
    ------
    InputError : another value, or "truth" of data that do not know it.
    """
    if value != "truth":
        return real_number(name, value)
    truth = data.truth
    if part == "W" and "W" not in truth and {"P", "Q"} <= truth.keys():
        return norm(truth["P"] + truth["Q"])
    if part not in truth:
        raise InputError(f"{name} 'truth' needs data that know their true {part}, which '{data.name}' do not: give a number")
    return norm(truth[part])


def class_indicators(data: TaskData) -> tuple[Array, tuple[str, ...]]:
    """Labels as indicators of one class a row, n x m with one 1 a row, read-only, and notes as `binary_labels` has them.

    Raises
    ------
    InputError : another value, designs that are not shared, a row with no class or several.
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


def _targets(name: str, value: Any) -> Array:
    dense = value.toarray() if is_sparse(value) else value
    return real_array(name, dense)
