"""Whether one of two solvers is faster than the other over instances: paired tests, and a correction for many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.stats.arrays import measured, numbers

WILCOXON, SIGN = "Wilcoxon", "sign"

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]


@dataclass(frozen=True)
class Paired:
    """The outcome of a paired test of a first solver against a second one."""

    test: str | None
    """`WILCOXON`, `SIGN`, or None where no pair differs, so that there is nothing to test."""
    p_value: float | None
    """Two-sided: the probability of a difference as clear as this one, in either direction, between solvers that do not differ."""
    wins: int
    """Instances on which the first solver is faster, or the only one that reaches the target."""
    losses: int
    ties: int
    """Instances with equal times, or that both fail on."""


def paired_test(first: ArrayLike, second: ArrayLike) -> Paired:
    """Test whether two solvers' times differ over instances.

    Where both solved every instance, Wilcoxon's signed-rank test of the logarithms of the times, whose differences have a size; pairs
    that are equal are left out, as Wilcoxon did. Where some time is missing its difference has a sign alone (a failure is slower than
    every success; two failures are a tie), so it is the sign test.

    Parameters
    ----------
    first, second : seconds on each instance, at least zero; NaN or inf where the solver failed. Those at the same place are a pair.

    Source: Wilcoxon (1945); Dixon and Mood (1946) for the sign test.
    """
    one, other = measured("first", first, ndim=1), measured("second", second, ndim=1)
    if len(one) != len(other):
        raise InputError(f"first and second must hold as many instances each, not {len(one)} and {len(other)}")
    faster, slower = (np.nan_to_num(a, nan=np.inf) < np.nan_to_num(b, nan=np.inf) for a, b in ((one, other), (other, one)))
    wins, losses = int(faster.sum()), int(slower.sum())
    ties = len(one) - wins - losses
    if wins + losses == 0:
        return Paired(None, None, 0, 0, ties)
    differ = faster | slower
    # a time of zero has no logarithm, so no size either
    if not (np.isnan(one) | np.isnan(other)).any() and min(one[differ].min(), other[differ].min()) > 0:
        from scipy import stats

        logs = np.log(one[differ]) - np.log(other[differ])
        logs = np.where(logs == 0.0, (one - other)[differ] / other[differ], logs)  # neighbours, whose logarithms are rounded alike
        return Paired(WILCOXON, float(stats.wilcoxon(logs).pvalue), wins, losses, ties)
    return Paired(SIGN, sign_test(wins, losses), wins, losses, ties)


def sign_test(wins: int, losses: int, *, alternative: Alternative = "two-sided") -> float | None:
    """Return the p-value of these numbers of wins and losses between equals; None where there is neither.

    The alternative is "two-sided", "greater" (more wins than losses are expected) or "less". Source: Dixon and Mood (1946).
    """
    from scipy import stats

    wins, losses = whole_number("wins", wins), whole_number("losses", losses)
    one_of("alternative", alternative, get_args(Alternative))
    return float(stats.binomtest(wins, wins + losses, alternative=alternative).pvalue) if wins + losses else None


def holm(p_values: ArrayLike) -> Array:
    """Return Holm's step-down adjustment: rejecting what is at most alpha keeps the chance of any false rejection at alpha.

    Of m ordered p-values the i-th becomes max over j <= i of min(1, (m - j + 1) p_(j)).

    Parameters
    ----------
    p_values : between 0 and 1; NaN where there was nothing to test stays NaN and is not counted in m.

    Source: Holm (1979), section 3.
    """
    values = numbers("p_values", p_values, ndim=1)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    if not ((values[order] >= 0) & (values[order] <= 1)).all():
        raise InputError("p_values must be between 0 and 1")
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(order), 0, -1) * values[order]))
    return adjusted
