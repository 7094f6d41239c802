"""Projection onto the l1,inf ball by Newton's method: the search for theta.

Each row's level mu_j(theta) (see `levels`) falls with theta, convexly and piecewise linearly, and so does their sum; Newton's method
on sum_j mu_j(theta) = radius therefore rises to the root from any point on its left, and lands on its left from any on its right. A pass
leaves every row's level, its line, and the range in which the row stays on that line (see `l1inf_passes`). The next theta is the
root of the sum of all lines, each cut at zero; there, only rows that have left their range are searched again. When none has, the
sum was linear in between, and theta is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, selecting
from bench_mtl.projections.kernels.l1inf_passes import first_pass, next_pass, row_of
from bench_mtl.projections.kernels.levels import LEVEL, MAXIMUM, SLOPE, SQUARES, TOTAL, fit_prediction, sum_and_count
from bench_mtl.projections.kernels.sums import compensated_parts, compensated_sum, two_sum

#: The status of a search.
PROJECTED, INSIDE, OUT_OF_SCALE, UNFINISHED, PREPARED = range(5)

#: Passes after which the search gives up (the merge method, which has no iterations, then takes over).
MAX_PASSES = 100

_U = 2.0**-53
_CHUNK = 256
_SAMPLED_ROWS = 16
_SAMPLE_PASSES = 8
_SMALLEST_NORMAL = 2.0**-1022


@exact
def search(matrix: Any, lanes: Any, radius: float, theta: float, only_prepare: bool, prediction: Any, state: Any) -> tuple[int, float, int]:
    """Find theta and leave the levels in the state; return the status, theta and the number of passes over all or some rows.

    First a sample of the rows and their share of the radius give a theta to start from, unless one is given (a negative number is none),
    and a prediction of the rows' levels there, with which a search that is `only_prepare` ends; then follow all rows. (One loop does both:
    a pass is much code, and the time to compile it is the user's.)
    """
    d = state.shape[1]
    step = max(1, d // min(max(_SAMPLED_ROWS, d // 32), 1024))
    n = d // step
    share = radius * n / d
    prediction[0] = np.nan
    guessed = theta >= 0.0
    old = theta = max(theta, 0.0)
    sampling = fresh = True
    for passes in range(1, MAX_PASSES + 1):
        rows = state.reshape(-1)[: len(state) * n].reshape(len(state), n)  # together: what all passes are compiled for, once
        if fresh:
            unsettled = first_pass(matrix, lanes, step, theta, prediction, rows, None)
        else:
            unsettled = next_pass(matrix, lanes, step, old, theta, rows, None)
        old = theta
        if unsettled < 0:
            return OUT_OF_SCALE, theta, passes
        if sampling:
            good = guessed
            if not guessed and passes == 1:  # theta was 0: so far only sums and maxima are known
                theta = _typical_excess(matrix, step, n, share, rows)
                good = theta == 0.0
            elif not guessed:
                change = newton_step(rows, share)
                theta = max(theta + change, 0.0)
                good = abs(change) <= 0.1 * theta or passes > _SAMPLE_PASSES
                fresh = False
            if good:
                fit_prediction(rows[TOTAL], rows[MAXIMUM], rows[SQUARES], rows[LEVEL], prediction)
                if only_prepare:
                    return PREPARED, theta, passes
                sampling, fresh, step, n = False, True, 1, d
        else:
            if fresh:
                status = assess(state, unsettled, radius)
                if status != PROJECTED:
                    return status, theta, passes
            following = following_theta(state, theta, radius, fresh, unsettled)
            if following < 0.0:
                all_to_largest(state[LEVEL], state[TOTAL], radius)
                settle(state[LEVEL], radius)
                return PROJECTED, theta, passes
            theta, fresh = following, False
    return UNFINISHED, theta, MAX_PASSES


@selecting
def _typical_excess(matrix: Any, step: int, n: int, share: float, sample: Any) -> float:
    """The mean over rows of their sums above a level that all share: theta, if rows were alike. 0 for a sample inside the ball."""
    data, _, _, indptr, m = matrix
    norm = 0.0
    rows = 0
    for i in range(n):
        norm += sample[MAXIMUM, i]
        rows += 1 if sample[TOTAL, i] > 0.0 else 0
    if not share < norm < np.inf:
        return 0.0
    level = share / rows
    excess = 0.0
    for i in range(n):
        total, count = sum_and_count(row_of(data, indptr, m, i * step), level)
        excess += total - level * count
    return excess / rows


@exact
def assess(state: Any, unsettled: int, radius: float) -> int:
    """The status after the first pass: PROJECTED where a search has to go on."""
    if unsettled < 0:
        return OUT_OF_SCALE
    norm = compensated_sum(state[MAXIMUM])
    if norm <= radius:
        return INSIDE
    largest = 0.0
    for i in range(state.shape[1]):
        largest = max(largest, state[TOTAL, i])
    return PROJECTED if 1e-140 < largest < 1e140 else OUT_OF_SCALE  # squares are taken


@exact
def excess(state: Any, radius: float) -> float:
    """||A||_{1,inf} - radius."""
    norm, rest = compensated_parts(state[MAXIMUM])
    return (norm - radius) + rest


@exact
def following_theta(state: Any, theta: float, radius: float, first: bool, unsettled: int) -> float:
    """The next theta; -1 where the present one is exact to rounding.

    Of `unsettled` rows only a bound of the level is known after a first pass; after a later one they have left their line.
    """
    change = newton_step(state, radius)
    if first:
        following = theta + change
        if change < 0.0:  # rows that are zero at too large a theta have no line, so a step to the left may go too far
            following = max(following, excess(state, radius) / state.shape[1])
        return -1.0 if unsettled == 0 and abs(following - theta) <= 2.0 * _U * theta else following
    # From the left, steps go up until rounding; and a step along lines that no row has left was exact.
    return -1.0 if unsettled == 0 or change <= 2.0 * _U * theta else theta + change


@exact
def newton_step(state: Any, radius: float) -> float:
    """The change of theta at which the rows' lines, each cut at zero, sum to the radius: at most the change to the root."""
    level, slope = state[LEVEL], state[SLOPE]
    change = 0.0
    steepness = np.inf
    for _ in range(level.size + 1):
        before = steepness
        height = -radius
        error = 0.0
        steepness = 0.0
        for start in range(0, level.size, _CHUNK):
            h, s = _line_sums(level[start : start + _CHUNK], slope[start : start + _CHUNK], change)
            height, lost = two_sum(height, h)
            error += lost
            steepness += s
        if steepness == 0.0:
            return change if change > 0.0 else -np.inf  # no row is left, and none tells how far back to go
        change += (height + error) / steepness
        # Each step up ends lines and begins none, so the sum gets flatter; where it does not, only rounding moves.
        if steepness >= before or change <= 0.0:
            break
    return change


@selecting
def _line_sums(level: Any, slope: Any, change: float) -> tuple[float, float]:
    height = 0.0
    steepness = 0.0
    for i in range(level.size):
        value = level[i] - change * slope[i]
        positive = value > 0.0
        height += value if positive else 0.0
        steepness += slope[i] if positive else 0.0
    return height, steepness


@exact
def all_to_largest(levels: Any, totals: Any, radius: float) -> None:
    """Give the radius to the row with the largest sum where no level is left, as the radius is lost in the rounding of theta."""
    if levels.max() <= 0.0:
        levels[totals.argmax()] = radius


@exact
def settle(levels: Any, radius: float) -> None:
    """Scale the levels so that their sum, taken exactly, is the radius to rounding, and not above it.

    The sum is known to 2 u, u = 2**-53; the factor is rounded thrice and each product once. So with 10 u taken off, the exact sum
    ends below the radius, and by enough that its computed value does too.
    """
    total = compensated_sum(levels)
    if total > 0.0 and (total > radius * (1.0 - 4.0 * _U) or total < radius * (1.0 - 16.0 * _U)):
        factor = radius / total * (1.0 - 10.0 * _U)
        for i in range(levels.size):
            levels[i] *= factor
            if levels[i] < _SMALLEST_NORMAL:  # numbers below round by absolute amounts, which add up
                levels[i] = np.nextafter(levels[i], 0.0)
