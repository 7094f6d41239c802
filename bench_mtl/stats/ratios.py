"""Statistics of paired positive measurements: ratios with intervals, and intervals that hold together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import real_array
from bench_mtl.core.errors import InputError
from bench_mtl.stats.arrays import confidence_level, student_half_width

if TYPE_CHECKING:
    from bench_mtl.core.types import Array

#: Resamples of a bootstrap. More would only sharpen quantiles that Student's interval covers anyway.
RESAMPLES = 1999


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of the ratios new / old of pairs, with an interval."""

    value: float
    low: float | None
    """None where one pair alone says nothing of the scatter."""
    high: float | None
    pairs: int


def geometric_mean_ratio(old: ArrayLike, new: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Ratio:
    """Return the geometric mean of new / old over pairs, and an interval for it.

    The interval spans two: the percentile bootstrap over the pairs, and Student's on the logarithms. The bootstrap follows
    skewed ratios where there are many pairs, but of few it is too narrow: five pairs cannot leave their own range, and are all
    on one side of the truth once in 16. Student's holds there for ratios that scatter about evenly, as those of two
    measurements of the same thing do.

    Parameters
    ----------
    old, new : the measurements, above zero; those at the same place are a pair.
    confidence : probability with which the interval is to hold the truth.
    seed : of the bootstrap, so that the same pairs give the same interval.

    Raises
    ------
    InputError : no pair, sequences of different lengths, a measurement that is not finite and above zero, or a confidence that
        is not between 0 and 1.
    """
    before, after = real_array("old", old, ndim=1), real_array("new", new, ndim=1)
    if not 0 < len(before) == len(after):
        raise InputError(f"old and new must hold as many measurements each, at least one, not {len(before)} and {len(after)}")
    if min(before.min(), after.min()) <= 0:
        raise InputError("old and new must be above zero")
    confidence_level(confidence)
    logs = np.log(after) - np.log(before)  # the quotient itself may overflow
    center = float(logs.mean())
    if len(logs) == 1:
        return Ratio(float(np.exp(center)), None, None, 1)
    half = student_half_width(logs, confidence)
    ends = [center - half, center + half, *_bootstrap(logs, confidence, seed)] if np.ptp(logs) > 0 else [center]
    with np.errstate(over="ignore"):  # two pairs far apart may say nothing at all: the interval is then (0, inf)
        low, value, high = np.exp([min(center, *ends), center, max(center, *ends)])
    return Ratio(float(value), float(low), float(high), len(logs))


def joint_confidence(confidence: float, intervals: int) -> float:
    """Return the confidence that each of these intervals needs so that all hold at once with `confidence` (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(1, intervals)


def _bootstrap(logs: Array, confidence: float, seed: int) -> tuple[float, float]:
    from scipy import stats

    drawn = stats.bootstrap(
        (logs,), np.mean, confidence_level=confidence, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(seed)
    )  # fmt: skip
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)
