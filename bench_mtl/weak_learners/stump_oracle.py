"""The exact oracle of decision stumps."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.types import Array
from bench_mtl.model.forms import ROW_NORMS
from bench_mtl.weak_learners.columns import sorted_columns
from bench_mtl.weak_learners.oracles import Oracle, checked_residuals
from bench_mtl.weak_learners.stumps import Stumps, stumps_at
from bench_mtl.weak_learners.violation import violations


@final
class StumpOracle(Oracle):
    """Every stump on X: every feature, every threshold between two neighbouring values of it, both polarities.

    Features are sorted once. With T = sum_i R_i and the prefix sum L of the rows R_i in the order of a feature, the stump of polarity +1
    with its threshold after them has G = T - 2 L, that of polarity -1 the negative. So one search adds each row of R once a feature
    (its zeros count as one row) and looks at each of the stumps: time O(n d K), memory O(n d).

    Equal violations: the lower feature first, then the lower threshold, then polarity +1 (as far as sums in floating point are equal).

    Parameters
    ----------
    X : examples, n x d, dense or sparse.
    one_per_feature : find at most one stump of each feature, the most violating. Otherwise several are mostly neighbouring thresholds of
        few features.

    Raises
    ------
    InputError : NaN or inf, no feature with two different values.
    """

    is_exact: ClassVar[bool] = True

    def __init__(self, X: Any, *, one_per_feature: bool = False) -> None:
        self._columns = sorted_columns(X)
        self._n_stumps = 2 * len(self._columns.cuts())
        self._one_per_feature = one_per_feature

    @property
    def n_stumps(self) -> int:
        """How many stumps there are."""
        return self._n_stumps

    def most_violating(self, R: Any, norm: str, count: int = 1) -> tuple[Stumps, Array]:
        one_of("norm", norm, ROW_NORMS)
        wanted = min(whole_number("count", count, minimum=1), self._n_stumps)
        values = checked_residuals(R, self._columns.n_rows)
        exponent = int(np.frexp(np.abs(values).max())[1])  # a power of two, so that no square overflows or vanishes
        values = np.ldexp(values, -exponent)
        places = self._search(values, norm, wanted)
        stumps = stumps_at(self._columns, places)
        # Prefix sums round; what is handed out is summed from the outputs themselves, one by one and so the same for equal outputs.
        pairs = zip(places // 2, stumps.polarities, strict=True)
        found = violations(np.array([(polarity * self._columns.sides(int(cut))) @ values for cut, polarity in pairs]), norm)
        order = np.lexsort((places, -found))
        with np.errstate(over="ignore"):
            return stumps.take(order), np.ldexp(found[order], exponent)

    def _search(self, R: Array, norm: str, count: int) -> NDArray[np.int64]:
        from bench_mtl.weak_learners.kernels import CODES, best_of_each, most_violating

        rows, values, starts, zeros, _ = self._columns
        total = R.sum(axis=0)
        if not self._one_per_feature:
            return most_violating(R, total, rows, values, starts, zeros, CODES[norm], count)
        best, places = best_of_each(R, total, rows, values, starts, zeros, CODES[norm])
        usable = np.flatnonzero(places >= 0)
        return places[usable[np.argsort(-best[usable], kind="stable")[:count]]]

    @staticmethod
    def warm_up() -> None:
        """Compile the search, or load it."""
        X: Array = np.array([[0.0], [1.0]])
        for one_per_feature in (False, True):
            StumpOracle(X, one_per_feature=one_per_feature).highest(X, "l12")
