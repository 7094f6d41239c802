"""Means of times over instances, and what stands for the time of a run that failed."""

from __future__ import annotations

import enum
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.stats.arrays import measured, per_instance

if TYPE_CHECKING:
    from bench_mtl.core.types import Array


class Failures(enum.StrEnum):
    """How a failure enters a mean. No single way is fair, so a report gives all three."""

    AT_LIMIT = "at the limit"
    """With the time limit: a lower bound on what it would have taken."""
    TEN_TIMES = "at ten times the limit"
    """With ten times the limit: the penalised average run time PAR10 of algorithm configuration."""
    LEFT_OUT = "solved by all"
    """Not at all: only instances that every solver has solved are averaged over."""


#: What PAR10 multiplies a limit by.
PENALTY = 10.0


def shifted_geometric_mean(seconds: ArrayLike, shift: float) -> float:
    """exp(mean(log(t + s))) - s over the times t, with the shift s.

    A geometric mean weighs every instance alike however long it takes; the shift keeps the shortest ones, whose times are mostly
    noise, from ruling it. With a shift of zero it is the geometric mean, with a growing one it tends to the arithmetic mean.

    Parameters
    ----------
    seconds : times of at least zero, one for each instance.
    shift : in the same unit.

    Raises
    ------
    InputError : no time, one that is missing, infinite or below zero, or a shift that is not finite and at least zero.

    Source: Achterberg (2007), appendix A.3; used throughout the benchmarks of Mittelmann.
    """
    times, by = measured("seconds", seconds, ndim=1), real_number("shift", shift)
    if np.isnan(times).any():
        raise InputError("seconds has a failure (NaN or inf): decide first what stands for it")
    if by == 0:
        return 0.0 if times.min() == 0 else float(np.exp(np.log(times).mean()))
    return float(by * np.expm1(np.log1p(times / by).mean()))  # keeps the digits of times far below the shift


def suitable_shift(seconds: ArrayLike) -> float:
    """Return the largest power of ten that is not above the median over the instances of the fastest solver's time.

    The customary 10 s would make an arithmetic mean of runs of milliseconds, which the slowest instance decides alone.

    Parameters
    ----------
    seconds : instances x solvers; NaN where a solver failed. Instances that nobody solved, or somebody in no time, say nothing.

    Returns
    -------
    float
        0 where no instance says anything.

    Raises
    ------
    InputError : not a matrix with at least one entry, or a time below zero.
    """
    times = measured("seconds", seconds, ndim=2)
    fastest = np.fmin.reduce(times, axis=1)
    fastest = fastest[fastest > 0]
    # the shortest decimal form is exact at powers of ten, which logarithms are not
    return float(Decimal(1).scaleb(Decimal(repr(float(np.median(fastest)))).adjusted())) if len(fastest) else 0.0


def replace_failures(seconds: ArrayLike, limits: ArrayLike, failures: Failures) -> Array:
    """Return times with something in the place of every failure.

    Parameters
    ----------
    seconds : instances x solvers; NaN where a solver failed.
    limits : in seconds, one for all instances or one for each.
    failures : what stands for a failure.

    Returns
    -------
    Array
        of the same shape, or with fewer rows, maybe none, if instances that not all have solved are left out.

    Raises
    ------
    InputError : not a matrix with at least one entry, a time below zero, a limit that is not finite and above zero, or as many
        limits as there are neither one nor instances.

    Source: at ten times the limit is PAR10, Hutter et al. (2009), section 3.1.
    """
    times = measured("seconds", seconds, ndim=2)
    if failures is Failures.LEFT_OUT:
        return times[~np.isnan(times).any(axis=1)]
    bounds = per_instance("limits", limits, len(times))[:, None]
    return np.where(np.isnan(times), bounds * (PENALTY if failures is Failures.TEN_TIMES else 1.0), times)
