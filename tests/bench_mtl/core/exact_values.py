"""Exact arithmetic that bounds are held to, and entries of unlike sizes to hold them at."""

from fractions import Fraction
from typing import Any

import numpy as np

from bench_mtl.core.rounding import Interval


def rational(x: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(x)


def require_between(found: Interval, exact: Any) -> None:
    low, high = (np.broadcast_to(end, np.shape(exact)) for end in (found.lower, found.upper))
    for place, value in np.ndenumerate(np.asarray(exact, dtype=object)):
        assert Fraction(low[place]) <= value <= Fraction(high[place]), (place, float(value), low[place], high[place])


def unlike(rng: np.random.Generator, *shape: int) -> Any:
    """Return entries of some sixteen decades, some of them 0."""
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 8, shape) * (rng.random(shape) < 0.9)
