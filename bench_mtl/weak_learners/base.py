"""What weak learners are: functions of an example with values -1 and +1, many at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array


class WeakLearners(ABC):
    """J functions h_j of an example x with values -1 and +1, immutable."""

    @abstractmethod
    def __len__(self) -> int:
        """J."""

    @abstractmethod
    def outputs(self, X: Any) -> Array:
        """H (n x J) with H_ij = h_j(x_i), for examples X (n x d, dense or sparse).

        Raises
        ------
        InputError : NaN or inf, or too few features for these learners.
        """

    @abstractmethod
    def take(self, indices: Any) -> Self:
        """Return the learners of these numbers (whole numbers or a mask), in that order.

        Raises
        ------
        InputError : a number that is not one of theirs.
        """

    @abstractmethod
    def joined(self, other: WeakLearners) -> Self:
        """Return these learners and then those of `other`.

        Raises
        ------
        InputError : learners of another kind.
        """

    @abstractmethod
    def describe(self, j: int) -> str:
        """Return a line that says where h_j is +1, such as ``x[12] > 0.35``."""

    @abstractmethod
    def features_of(self, j: int) -> tuple[int, ...]:
        """Return the features that h_j looks at, ascending."""

    def names(self) -> tuple[str, ...]:
        """Return `describe` of every learner."""
        return tuple(self.describe(j) for j in range(len(self)))


def chosen(indices: Any, size: int) -> NDArray[np.intp]:
    """Return numbers of learners, from a mask or from numbers.

    Raises
    ------
    InputError : neither of them, a number out of range, a mask of another length.
    """
    array = np.asarray(indices)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise InputError(f"indices must be a vector of whole numbers or a mask, but have shape {array.shape} and type {array.dtype}")
    if array.dtype.kind == "b":
        if len(array) != size:
            raise InputError(f"indices are a mask of {len(array)} entries, but there are {size} learners")
        return np.flatnonzero(array)
    wrong = np.flatnonzero((array < 0) | (array >= size))
    if len(wrong):
        raise InputError(f"indices have {array[wrong[0]]}, but there are {size} learners, numbered from 0")
    return array.astype(np.intp)
