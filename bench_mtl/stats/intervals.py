"""Intervals of means over instances whose times were measured several times each: a bootstrap of two levels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_mtl.core.checks import real_array, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.stats.arrays import confidence_level, student_half_width
from bench_mtl.stats.ratios import RESAMPLES

if TYPE_CHECKING:
    from bench_mtl.core.types import Array

#: Resampled medians of one instance. Up to four repetitions have no more resamples than this, and all of them are taken.
_POOL = 256

_Pools: TypeAlias = tuple["Array", NDArray[np.intp]]
"""Instances x `_POOL` resampled values, and how many of each row there are."""
_Stacks: TypeAlias = list[tuple[NDArray[np.intp], "Array"]]


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
    each drawn one on both sides, and Student's on the logarithms of the instances' ratios. Of few instances the bootstrap is too
    narrow (see `geometric_mean_ratio`). Of one instance it is over the repetitions alone, and Student's that of two samples whose
    logarithms scatter alike; there is none unless both sides were measured twice or more, for how one solver scatters says nothing of
    another.

    Parameters
    ----------
    old, new : for each instance the measurements, above zero; the two sides of an instance may differ in number.
    confidence : probability with which the interval is to hold the truth.
    seed : of the bootstrap, so that the same measurements give the same interval.

    Raises
    ------
    InputError : no instance, sequences of different lengths, an instance without a measurement or with one that is not finite and
        above zero, or a confidence that is not between 0 and 1.

    Source: Davison and Hinkley (1997), section 3.8, for the two levels.
    """
    sides = _groups("old", old, strict=True), _groups("new", new, strict=True)
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"old and new must hold as many instances each, not {len(sides[0])} and {len(sides[1])}")
    confidence_level(confidence)
    stacks = _stacked(sides[0]), _stacked(sides[1])
    logs = np.log(_medians(stacks[0], len(sides[0]))) - np.log(_medians(stacks[1], len(sides[1])))
    student = _student(logs, confidence) if len(logs) > 1 else _student_of_two(sides[0][0], sides[1][0], confidence)
    before, after = (_means(_pools(stack, len(logs), np.log), seed, side) for side, stack in enumerate(stacks))
    single = len(logs) == 1 and student is None
    return _interval(float(logs.mean()), None if single else before - after, student, confidence, len(logs), np.exp)


def shifted_mean_interval(seconds: Sequence[ArrayLike], shift: float, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the shifted geometric mean over instances of the medians of the repetitions, and an interval for it, as in `ratio_interval`.

    It says how much the mean would change with other instances of the kind, so it is wide where the instances are of many sizes.

    Parameters
    ----------
    seconds : for each instance the measurements, at least zero.
    shift : as in `shifted_geometric_mean`.
    confidence, seed : as in `ratio_interval`.

    Raises
    ------
    InputError : no instance, an instance without a measurement or with one that is not finite and at least zero (above it where the
        shift is zero), or a shift or confidence that is not allowed.
    """
    by = real_number("shift", shift)
    groups = _groups("seconds", seconds, strict=by == 0)
    confidence_level(confidence)

    def logarithms(times: Array) -> Array:
        return np.log1p(times / by) if by else np.log(times)

    def back(values: Array) -> Array:
        return by * np.expm1(values) if by else np.exp(values)

    stacks = _stacked(groups)
    logs = logarithms(_medians(stacks, len(groups)))
    alone = logarithms(groups[0]) if len(groups) == 1 else logs
    student = _student(alone, confidence, around=float(logs.mean())) if len(alone) > 1 else None
    drawn = None if student is None else _means(_pools(stacks, len(groups), logarithms), seed, side=0)
    found = _interval(float(logs.mean()), drawn, student, confidence, len(logs), back)
    return found if found.low is None else replace(found, low=max(0.0, found.low))  # no mean of times is below zero


def _interval(
    center: float,
    drawn: Array | None,
    student: tuple[float, float] | None,
    confidence: float,
    instances: int,
    back: Callable[[Array], Array],
) -> Interval:
    """Return the hull of both intervals and the centre, on the scale of the measurements."""
    ends = [*([] if student is None else student)]
    if drawn is not None:
        ends += np.quantile(drawn, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence]).tolist()
    with np.errstate(over="ignore"):  # two instances far apart may say nothing at all: the interval of a ratio is then (0, inf)
        low, value, high = back(np.array([min(center, *ends), center, max(center, *ends)] if ends else [center] * 3)).tolist()
    return Interval(value, low if ends else None, high if ends else None, instances)


def _groups(name: str, value: Sequence[ArrayLike], *, strict: bool) -> list[Array]:
    with suppress(TypeError, ValueError):  # all at once, for a report has thousands of them; only bad ones are looked at one by one
        groups = [np.array(values, dtype=np.float64) for values in value]
        together = np.concatenate(groups)
        fine = together.ndim == 1 and np.isfinite(together).all() and bool((together > 0).all() if strict else (together >= 0).all())
        if fine and all(map(len, groups)):
            return groups
    groups = [real_array(f"{name}[{place}]", values, ndim=1) for place, values in enumerate(value)]
    if not groups:
        raise InputError(f"{name} must hold at least one instance")
    for place, values in enumerate(groups):
        if not len(values):
            raise InputError(f"{name}[{place}] must hold at least one measurement")
        if values.min() < 0 or (strict and values.min() == 0):
            raise InputError(f"{name}[{place}] must be {'above' if strict else 'at least'} zero, but {values.min():g} is not")
    return groups


def _student(logs: Array, confidence: float, around: float | None = None) -> tuple[float, float]:
    center, half = float(logs.mean()) if around is None else around, student_half_width(logs, confidence)
    return center - half, center + half


def _student_of_two(old: Array, new: Array, confidence: float) -> tuple[float, float] | None:
    """Return the interval of the difference of the mean logarithms of two samples of one variance.

    None where one of them is a single measurement.
    """
    from scipy.special import stdtrit

    if min(len(old), len(new)) < 2:
        return None
    before, after = np.log(old), np.log(new)
    freedom = len(before) + len(after) - 2
    squares = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in (before, after))
    center = float(before.mean() - after.mean())
    half = float(stdtrit(freedom, 0.5 + 0.5 * confidence) * np.sqrt(squares / freedom * (1 / len(before) + 1 / len(after))))
    return center - half, center + half


def _stacked(groups: Sequence[Array]) -> _Stacks:
    """Return the instances by how often they were measured: their places, and a matrix with a row for each."""
    sizes = np.array([len(values) for values in groups])
    found = []
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        found.append((rows, np.array([groups[row] for row in rows.tolist()])))
    return found


def _medians(stacks: _Stacks, instances: int) -> Array:
    found = np.empty(instances)
    for rows, values in stacks:
        found[rows] = _middle(values)
    return found


def _pools(stacks: _Stacks, instances: int, transform: Callable[[Array], Array]) -> _Pools:
    """Per instance the transformed medians of resamples of its repetitions.

    The second level draws from these rather than anew each time: the same distribution, sorted once.
    """
    chosen = [_choices(values.shape[1]) for _, values in stacks]
    pools = np.zeros((instances, max(map(len, chosen))))
    counts = np.empty(instances, dtype=np.intp)
    for (rows, values), choices in zip(stacks, chosen, strict=True):
        pools[rows, : len(choices)] = transform(_middle(values[:, choices]))
        counts[rows] = len(choices)
    return pools, counts


def _middle(values: Array) -> Array:
    """Medians along the last axis; for few values `numpy.median` spends its time on what is checked already."""
    ordered, half = np.sort(values, axis=-1), values.shape[-1] // 2
    return ordered[..., half] if values.shape[-1] % 2 else 0.5 * (ordered[..., half - 1] + ordered[..., half])


@lru_cache(maxsize=32)
def _choices(repetitions: int) -> NDArray[np.intp]:
    """Resamples x repetitions: all of them where they are few, else a fixed random choice."""
    if repetitions**repetitions <= _POOL:
        return np.array(list(itertools.product(range(repetitions), repeat=repetitions)), dtype=np.intp)
    return np.random.default_rng(repetitions).integers(repetitions, size=(_POOL, repetitions))


def _means(pools: _Pools, seed: int, side: int) -> Array:
    """Return `RESAMPLES` means over resampled instances; sides of one seed draw the same instances, and repetitions of their own."""
    values, counts = pools
    instances, width = _draws(len(values), seed), values.shape[1]
    if width == 1:
        return values[:, 0][instances].mean(axis=1)
    alike = counts.min() == counts.max()
    places = _places(len(values), seed, side) * (counts[0] if alike else counts[instances])
    return np.take(values.ravel(), instances * width + places.astype(np.int32)).mean(axis=1)


@lru_cache(maxsize=16)
def _draws(instances: int, seed: int) -> NDArray[np.int32]:
    return np.random.default_rng(seed).integers(instances, size=(RESAMPLES, instances), dtype=np.int32)


@lru_cache(maxsize=16)
def _places(instances: int, seed: int, side: int) -> Array:
    return np.random.default_rng([seed, side + 1]).random((RESAMPLES, instances))
