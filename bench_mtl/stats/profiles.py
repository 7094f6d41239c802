"""Profiles: for every solver the share of instances that it solves within a growing factor of the best time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array
from bench_mtl.stats.arrays import measured

#: Times below it, in seconds, are not told apart: a ratio to a time of zero would be none.
RESOLUTION = 1e-6


@dataclass(frozen=True)
class Profile:
    """Step functions, one for each solver, that are continuous from the right and constant after the last step."""

    at: Array
    """Where a solver's share steps up, ascending; the first is 1, where the profile begins."""
    shares: Array
    """solvers x places: the share of all instances that the solver has solved from there on. Failures count as instances."""
    instances: int


def performance_profile(seconds: ArrayLike, *, resolution: float = RESOLUTION) -> Profile:
    """Return the performance profiles of several solvers, rho_s(tau) = |{p : t_ps <= tau min_s' t_ps'}| / |{p}|.

    rho_s(1) is the share of the instances p on which s is fastest, alone or with others, and rho_s at the right end the share that
    s has solved. An instance that s fails on has a ratio of infinity, so it never enters; it is in the denominator, and so is one
    that everybody fails on.

    Of more than two solvers the profile ranks only the best: who is second may change when the best is left out (Gould and Scott).
    Compare two by the profile of these two alone.

    Parameters
    ----------
    seconds : instances x solvers, at least zero; NaN or inf where a solver failed. Any other cost will do.
    resolution : above zero; a lower cost counts as this one.

    Source: Dolan and More (2002), section 2; Gould and Scott (2016).
    """
    least = real_number("resolution", resolution, strict=True)
    times = np.maximum(measured("seconds", seconds, ndim=2), least)  # keeps NaN
    ratios = times / np.fmin.reduce(times, axis=1)[:, None]
    solved = [np.sort(column[~np.isnan(column)]) for column in ratios.T]
    at = np.unique(np.concatenate([[1.0], *solved]))
    counts = [np.searchsorted(column, at, side="right") for column in solved]
    return Profile(at, np.array(counts, dtype=np.float64) / len(times), len(times))
