"""Sums whose rounding error does not grow with the number of terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact

_LANES = 64


@exact
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b rounded, and the rounding error (Knuth's TwoSum)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@exact
def _add_lanes(total: Any, error: Any, part: Any) -> None:
    for r in range(_LANES):  # lanes do not depend on each other, so this is vectorised
        s = total[r] + part[r]
        shadow = s - total[r]
        error[r] += (total[r] - (s - shadow)) + (part[r] - shadow)
        total[r] = s


@exact
def compensated_parts(values: Any) -> tuple[float, float]:
    """The sum of n <= 1e15 numbers as a double and a small rest, which add up to it as if computed with twice the digits.

    Ogita, Rump, Oishi, SIAM Journal on Scientific Computing 2005, algorithm Sum2.
    """
    total = np.zeros(_LANES)
    error = np.zeros(_LANES)
    whole = values.size - values.size % _LANES
    for start in range(0, whole, _LANES):
        _add_lanes(total, error, values[start : start + _LANES])
    result = 0.0
    rest = 0.0
    for r in range(_LANES):
        result, lost = two_sum(result, total[r])
        rest += lost + error[r]
    for i in range(whole, values.size):
        result, lost = two_sum(result, np.float64(values[i]))
        rest += lost
    return result, rest


@exact
def compensated_sum(values: Any) -> float:
    """The sum of n <= 1e15 non-negative numbers with a relative error of at most 2 u, u = 2**-53."""
    result, rest = compensated_parts(values)
    return result + rest if result < np.inf else result
