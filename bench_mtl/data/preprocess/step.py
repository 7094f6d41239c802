"""What a preprocessing step is: something fitted on the training examples, and applied to them and to the held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.task_data import TaskData


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
