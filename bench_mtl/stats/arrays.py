"""Checks that the statistics share. A measurement that does not exist, for the solver failed, is NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import not_real, real_number, require_unmasked
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array


def numbers(name: str, value: ArrayLike, *, ndim: int) -> Array:
    """Return `value` as an array of numbers, NaN and inf among them; raises InputError where it is not numeric, or of another dimension."""
    try:
        if np.iscomplexobj(value):
            raise not_real(name, value, "not complex ones")
        require_unmasked(name, value)
        array = np.array(value, dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise not_real(name, value, error) from None
    if array.ndim != ndim:
        raise InputError(name, array.shape, f"have {ndim} dimension(s)")
    return array


def measured(name: str, value: ArrayLike, *, ndim: int) -> Array:
    """Return `numbers` that are at least one, and at least zero each; NaN and inf, which both say "never", are NaN."""
    array = numbers(name, value, ndim=ndim)
    if not array.size:
        raise InputError(name, array.shape, "have at least one entry")
    if np.nanmin(array, initial=np.inf) < 0:
        raise InputError(name, float(np.nanmin(array)), "at least zero")
    array[np.isinf(array)] = np.nan
    return array


def shifted_logarithms(shift: float, largest: float) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return log(t + shift), up to a constant, of times t up to the largest, and its inverse; of t far below the shift no digit is lost."""
    if largest <= 1e300 * shift:
        return lambda times: np.log1p(times / shift), lambda values: shift * np.expm1(values)
    return lambda times: np.log(times + shift), lambda values: np.exp(values) - shift


def require_confidence(value: float) -> None:
    """Raise InputError unless `value` is a probability strictly between 0 and 1."""
    real_number("confidence", value, strict=True, below=1.0)


def student_half_width(values: Array, confidence: float) -> float:
    """Return half the width of Student's interval of the mean, from at least two values."""
    from scipy.special import stdtrit

    return float(stdtrit(len(values) - 1, 0.5 + 0.5 * confidence) * np.std(values, ddof=1) / np.sqrt(len(values)))
