"""Power laws through times at several sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import real_array
from bench_mtl.core.errors import InputError
from bench_mtl.stats.arrays import require_confidence


@dataclass(frozen=True)
class PowerLaw:
    """seconds ~ coefficient * size ** exponent."""

    coefficient: float
    exponent: float
    low: float | None
    """Lower end of the interval of the exponent; None through two points, which every line goes through."""
    high: float | None
    points: int


def power_law(sizes: ArrayLike, seconds: ArrayLike, *, confidence: float = 0.95) -> PowerLaw:
    """Return the least-squares line through the logarithms, with Student's interval of its slope.

    The interval takes the logarithms to scatter evenly about a line. Where the true law bends, as it does when fixed costs fade, it
    says how well a line describes these sizes, not what happens beyond them.

    Parameters
    ----------
    sizes, seconds : finite and above zero, of at least two different sizes; those at the same place are a point.
    confidence : probability with which the interval is to hold the exponent.
    """
    from scipy import stats
    from scipy.special import stdtrit

    x, y = real_array("sizes", sizes, ndim=1), real_array("seconds", seconds, ndim=1)
    require_confidence(confidence)
    if len(x) != len(y):
        raise InputError(f"sizes and seconds must hold as many values each, not {len(x)} and {len(y)}")
    if len(np.unique(x)) < 2:
        raise InputError(f"sizes must hold at least two different values, not {len(np.unique(x))}")
    if min(x.min(), y.min()) <= 0:
        raise InputError("sizes and seconds must be above zero")
    if len(np.unique(np.log(x))) < 2:
        raise InputError("sizes must differ by more than rounding")
    line = stats.linregress(np.log(x), np.log(y))
    exponent, low, high = float(line.slope), None, None
    if len(x) > 2:
        half = float(stdtrit(len(x) - 2, 0.5 + 0.5 * confidence) * line.stderr)
        low, high = exponent - half, exponent + half
    return PowerLaw(float(np.exp(line.intercept)), exponent, low, high, len(x))
