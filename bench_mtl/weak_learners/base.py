"""What weak learners are, functions of an example with values -1 and +1, and how far they violate the dual constraint of boosting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, real_array, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.forms import ROW_NORMS, positive_dual_norms


class WeakLearners(ABC):
    """J functions h_j of an example x with values -1 and +1, immutable."""

    @abstractmethod
    def __len__(self) -> int:
        """J."""

    @abstractmethod
    def outputs(self, X: Any) -> Array:
        """H (n x J) with H_ij = h_j(x_i), for examples X (n x d, dense or sparse).

        Raises InputError: NaN or inf, or too few features for these learners.
        """

    @abstractmethod
    def take(self, indices: Any) -> Self:
        """Return the learners of these numbers (whole numbers or a mask), in that order; InputError for one that is not theirs."""

    @abstractmethod
    def joined(self, other: WeakLearners) -> Self:
        """Return these learners and then those of `other`; InputError for learners of another kind."""

    @abstractmethod
    def describe(self, j: int) -> str:
        """Return a line that says where h_j is +1, such as ``x[12] > 0.35``."""

    @abstractmethod
    def features_of(self, j: int) -> tuple[int, ...]:
        """Return the features that h_j examines, ascending."""

    def names(self) -> tuple[str, ...]:
        """Return `describe` of every learner."""
        return tuple(self.describe(j) for j in range(len(self)))


def chosen(indices: Any, size: int) -> NDArray[np.intp]:
    """Return numbers of learners, from a mask or from numbers."""
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


class Oracle(ABC):
    """A search, among all weak learners of one kind on examples x_1, ..., x_n, for those of the largest violation

        ||max(G, 0)||_dual   with   G_r = sum_i h(x_i) R_ir,

    for a given R (n x K), such as `bench_mtl.model.margins.multiclass_residuals` of a dual point. The dual norm is that of `violations`.
    """

    is_exact: ClassVar[bool]
    """Whether no learner of this kind violates more than the ones found."""
    n_rows: int
    """n."""

    def most_violating(self, R: Any, norm: str, count: int = 1) -> tuple[WeakLearners, Array]:
        """At most `count` learners, and their violations, in descending order.

        Raises InputError: an R of another number of rows, NaN or inf, an unknown norm, a count below 1.
        """
        one_of("norm", norm, ROW_NORMS)
        wanted, values = whole_number("count", count, minimum=1), real_array("R", R, ndim=2)
        if values.shape[0] != self.n_rows or values.shape[1] == 0:
            what = f"R must be {self.n_rows} x K, a row for each example and a column for each class"
            raise InputError(f"{what}, but has shape {values.shape}")
        exponent = int(np.frexp(np.abs(values).max())[1])  # a power of two, so that no square overflows or vanishes
        learners, sizes = self._search(np.ldexp(values, -exponent), norm, wanted)
        with np.errstate(over="ignore"):
            return learners, np.ldexp(sizes, exponent)

    @abstractmethod
    def _search(self, R: Array, norm: str, count: int) -> tuple[WeakLearners, Array]:
        """Do what `most_violating` says, with entries of at most 1."""

    def highest(self, R: Any, norm: str) -> float:
        """Return the largest violation found, 0 where no learner is found."""
        return float(self.most_violating(R, norm, 1)[1].max(initial=0.0))


def violations(G: Any, norm: str) -> Array:
    """Return the dual norms of max(G_j, 0) of each row of G (J x K); with H of a set of learners, G = H^T R.

    Because W >= 0 only the positive part counts: a dual point is feasible for a penalty nu where no learner's violation exceeds nu (the
    seed of group-sparse boosting, Paisitkriangkrai, Shen and van den Hengel 2012, appendix, equations 6 and 11). Raises InputError: an
    unknown norm, NaN or inf, not a matrix.
    """
    return positive_dual_norms(real_array("G", G, ndim=2), one_of("norm", norm, ROW_NORMS))


def direction(g: Array, norm: str) -> Array:
    """Return a v >= 0 of norm 1 (l2, l-inf or l1) with v . g = ||max(g, 0)||_dual; zero where no entry is above 0."""
    positive = np.maximum(g, 0.0)
    top = positive.max(initial=0.0)
    if top == 0.0:
        return positive
    if norm == "l12":
        return positive / top / np.linalg.norm(positive / top)
    return np.where(positive > 0.0, 1.0, 0.0) if norm == "l1inf" else np.eye(len(g))[int(g.argmax())]
