"""Intervals of geometric means over instances whose times were measured several times each: a bootstrap of two levels, and Student's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_mtl.core.checks import real_array, real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.stats.arrays import require_confidence, shifted_logarithms, student_half_width

#: Resamples of a bootstrap. More would only sharpen quantiles that Student's interval covers anyway.
RESAMPLES = 1999

#: Resampled medians of one instance. Up to four repetitions have no more resamples than this, and all of them are taken.
_POOL = 256


@dataclass(frozen=True)
class Interval:
    """A value with an interval."""

    value: float
    low: float | None
    """None where one instance was measured once, which says nothing of the scatter."""
    high: float | None
    instances: int


def ratio_interval(old: Sequence[ArrayLike], new: Sequence[ArrayLike], *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the geometric mean over instances of the ratios old / new of the medians of the repetitions, and an interval for it.

    The interval spans two: the percentile bootstrap of two levels, which draws instances with replacement and then the repetitions of
    each on both sides, and Student's on the logarithms of the instances' ratios. Of few instances the bootstrap is too narrow: five
    cannot leave their own range, and are all on one side of the truth once in 16. Of one instance it is over the repetitions alone,
    and Student's is that of two samples whose logarithms scatter alike; it needs two measurements on each side.

    Parameters
    ----------
    old, new : for each instance the measurements, finite and above zero; the two sides of an instance may differ in number.
    confidence : probability with which the interval is to hold the truth.
    seed : of the bootstrap, so that the same measurements give the same interval.

    Source: Davison and Hinkley (1997), section 3.8, for the two levels.
    """
    before, after = _groups("old", old, strict=True), _groups("new", new, strict=True)
    if len(before) != len(after):
        raise InputError(f"old and new must hold as many instances each, not {len(before)} and {len(after)}")
    require_confidence(confidence)
    seed = whole_number("seed", seed)
    logs = _of_medians(before, np.log) - _of_medians(after, np.log)
    student = _student(logs, confidence) if len(logs) > 1 else _student_of_two(np.log(before[0]), np.log(after[0]), confidence)
    drawn = None if student is None else _resampled(before, np.log, seed, 0) - _resampled(after, np.log, seed, 1)
    return _hull(logs, student, drawn, confidence, np.exp)


def geometric_mean_ratio(old: ArrayLike, new: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the geometric mean of new / old over pairs, and an interval for it: `ratio_interval` of instances measured once."""
    before, after = real_array("old", old, ndim=1), real_array("new", new, ndim=1)
    if len(before) != len(after):
        raise InputError(f"old and new must hold as many instances each, not {len(before)} and {len(after)}")
    for name, values in (("old", before), ("new", after)):
        if values.min(initial=np.inf) <= 0:
            raise InputError(name, float(values.min()), "above zero")
    return ratio_interval([[time] for time in after], [[time] for time in before], confidence=confidence, seed=seed)


def shifted_mean_interval(seconds: Sequence[ArrayLike], shift: float, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the shifted geometric mean over instances of the medians of the repetitions, and an interval for it, as in `ratio_interval`.

    It says how much the mean would change with other instances of the kind, so it is wide where the instances are of many sizes.

    Parameters
    ----------
    seconds : for each instance the measurements, finite and at least zero, and above it where the shift is zero.
    shift : as in `shifted_geometric_mean`.
    confidence, seed : as in `ratio_interval`.
    """
    by = real_number("shift", shift)
    groups = _groups("seconds", seconds, strict=by == 0)
    require_confidence(confidence)
    seed = whole_number("seed", seed)
    logarithms, back = shifted_logarithms(by, max(float(times.max()) for times in groups))
    logs = _of_medians(groups, logarithms)
    alone = logarithms(groups[0]) if len(groups) == 1 else logs
    student = _student(alone, confidence, around=float(logs.mean())) if len(alone) > 1 else None
    interval = _hull(logs, student, None if student is None else _resampled(groups, logarithms, seed, 0), confidence, back)
    return interval if interval.low is None else replace(interval, low=max(0.0, interval.low))  # no mean of times is below zero


def joint_confidence(confidence: float, intervals: int) -> float:
    """Return the confidence that each of these intervals needs so that all hold at once with `confidence` (Bonferroni)."""
    require_confidence(confidence)
    return 1.0 - (1.0 - confidence) / max(1, whole_number("intervals", intervals))


def _groups(name: str, value: Sequence[ArrayLike], *, strict: bool) -> list[Array]:
    if not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise InputError(name, value, "a list of measurements for each instance")
    groups = [real_array(f"{name}[{place}]", values, ndim=1) for place, values in enumerate(value)]
    if not groups:
        raise InputError(f"{name} must hold at least one instance")
    for place, values in enumerate(groups):
        if not len(values):
            raise InputError(f"{name}[{place}] must hold at least one measurement")
        if values.min() < 0 or (strict and values.min() == 0):
            raise InputError(f"{name}[{place}]", float(values.min()), f"{'above' if strict else 'at least'} zero")
    return groups


def _hull(
    logs: Array, student: tuple[float, float] | None, drawn: Array | None, confidence: float, back: Callable[[Array], Array]
) -> Interval:
    """Return the mean of logarithms with the hull of both intervals, on the scale of the measurements."""
    center = float(logs.mean())
    if student is None or drawn is None:
        return Interval(float(back(np.array(center))), None, None, len(logs))
    ends = [center, *student, *np.quantile(drawn, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])]
    with np.errstate(over="ignore"):  # two instances far apart may say nothing at all: the interval of a ratio is then (0, inf)
        low, value, high = back(np.array([min(ends), center, max(ends)])).tolist()
    return Interval(value, low, high, len(logs))


def _student(logs: Array, confidence: float, around: float | None = None) -> tuple[float, float]:
    center, half = float(logs.mean()) if around is None else around, student_half_width(logs, confidence)
    return center - half, center + half


def _student_of_two(before: Array, after: Array, confidence: float) -> tuple[float, float] | None:
    """Return the interval of the difference of the means of two samples of one variance; None where one of them is a single value."""
    from scipy.special import stdtrit

    if min(len(before), len(after)) < 2:
        return None
    freedom = len(before) + len(after) - 2
    squares = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in (before, after))
    center = float(before.mean() - after.mean())
    half = float(stdtrit(freedom, 0.5 + 0.5 * confidence) * np.sqrt(squares / freedom * (1 / len(before) + 1 / len(after))))
    return center - half, center + half


def _of_medians(groups: Sequence[Array], transform: Callable[[Array], Array]) -> Array:
    return transform(np.array([_medians(values) for values in groups]))


def _resampled(groups: Sequence[Array], transform: Callable[[Array], Array], seed: int, side: int) -> Array:
    """Return `RESAMPLES` means over instances drawn anew, each by the transformed median of its repetitions drawn anew.

    Sides of one seed draw the same instances, and repetitions of their own. The second level draws from a pool of each instance's
    resampled medians: the same distribution, sorted once.
    """
    pools = [transform(_medians(values[_choices(len(values))])) for values in groups]
    sizes = np.array([len(pool) for pool in pools])
    starts, instances = np.cumsum(sizes) - sizes, _draws(len(pools), seed)
    places = starts[instances] + (_places(len(pools), seed, side) * sizes[instances]).astype(np.intp)
    means: Array = np.concatenate(pools)[places].mean(axis=1)
    return means


def _medians(values: Array) -> Array:
    """Return medians along the last axis; for few values `numpy.median` spends its time on checks."""
    ordered, half = np.sort(values, axis=-1), values.shape[-1] // 2
    low, high = ordered[..., half - 1], ordered[..., half]
    if values.shape[-1] % 2:
        return high
    with np.errstate(over="ignore"):
        return np.where(high > 1.0, 0.5 * low + 0.5 * high, 0.5 * (low + high))


@lru_cache(maxsize=32)
def _choices(repetitions: int) -> NDArray[np.intp]:
    """Return resamples x repetitions: all of them where they are few, else a fixed random choice."""
    if repetitions**repetitions <= _POOL:
        return np.array(list(itertools.product(range(repetitions), repeat=repetitions)), dtype=np.intp)
    return np.random.default_rng(repetitions).integers(repetitions, size=(_POOL, repetitions))


@lru_cache(maxsize=16)
def _draws(instances: int, seed: int) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(instances, size=(RESAMPLES, instances), dtype=np.int32)


@lru_cache(maxsize=16)
def _places(instances: int, seed: int, side: int) -> Array:
    return np.random.default_rng([seed, side + 1]).random((RESAMPLES, instances))
