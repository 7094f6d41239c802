"""Oracles: find the weak learners that violate the dual constraint of group-sparse boosting most."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from bench_mtl.core.checks import real_array
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.weak_learners.base import WeakLearners


class Oracle(ABC):
    """A search, among all weak learners of one kind on examples x_1, ..., x_n, for those of the largest violation

        ||max(G, 0)||_dual   with   G_r = sum_i h(x_i) R_ir,

    for a given R (n x K; `residuals` makes it from a dual point). The dual norm is that of `violations`.
    """

    is_exact: ClassVar[bool]
    """Whether no learner of this kind violates more than the ones found."""

    @abstractmethod
    def most_violating(self, R: Any, norm: str, count: int = 1) -> tuple[WeakLearners, Array]:
        """At most `count` learners, and their violations, in descending order.

        Raises
        ------
        InputError : an R of another number of rows, NaN or inf, an unknown norm, a count below 1.
        """

    def highest(self, R: Any, norm: str) -> float:
        """Return the largest violation found, 0 where no learner is found."""
        return float(self.most_violating(R, norm, 1)[1].max(initial=0.0))


def checked_residuals(R: Any, n: int) -> Array:
    """R as an n x K matrix.

    Raises
    ------
    InputError : another shape, no column, NaN or inf.
    """
    values = real_array("R", R, ndim=2)
    if values.shape[0] != n or values.shape[1] == 0:
        raise InputError(f"R must be {n} x K, a row for each example and a column for each class, but has shape {values.shape}")
    return values
