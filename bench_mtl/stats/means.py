"""Means of times over instances."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.stats.arrays import measured, shifted_logarithms


def shifted_geometric_mean(seconds: ArrayLike, shift: float) -> float:
    """Return exp(mean(log(t + s))) - s over the times t, with the shift s.

    A geometric mean weighs every instance alike however long it takes; the shift keeps the shortest ones, whose times are mostly
    noise, from ruling it. With a shift of zero it is the geometric mean, with a growing one it tends to the arithmetic mean.

    Parameters
    ----------
    seconds : times of at least zero, one for each instance; a failure is refused.
    shift : in the same unit, at least zero.

    Source: Achterberg (2007), appendix A.3; used throughout the benchmarks of Mittelmann.
    """
    times, by = measured("seconds", seconds, ndim=1), real_number("shift", shift)
    if np.isnan(times).any():
        raise InputError("seconds has a failure (NaN or inf): decide first what replaces it")
    if by == 0:
        return 0.0 if times.min() == 0 else float(np.exp(np.log(times).mean()))
    logarithms, back = shifted_logarithms(by, float(times.max()))
    return float(back(logarithms(times).mean()))


def suitable_shift(seconds: ArrayLike) -> float:
    """Return the largest power of ten that is not above the median over the instances of the fastest solver's time.

    The customary 10 s would make an arithmetic mean of runs of milliseconds, which the slowest instance decides alone.

    Parameters
    ----------
    seconds : instances x solvers; NaN where a solver failed. Instances that nobody solved, or somebody in no time, say nothing; where none
        says anything it is 0.
    """
    times = measured("seconds", seconds, ndim=2)
    fastest = np.fmin.reduce(times, axis=1)
    fastest = fastest[fastest > 0]
    # the shortest decimal form is exact at powers of ten, which logarithms are not
    return float(Decimal(1).scaleb(Decimal(repr(float(np.median(fastest)))).adjusted())) if len(fastest) else 0.0
