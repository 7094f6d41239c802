"""The level of a row: the mu >= 0 with sum_k max(a_k - mu, 0) = theta, where a = |row|.

The sum falls with mu, convexly and piecewise linearly, so Newton's method (Michelot 1986) rises to the level from any point on its
left, and lands on its left from any point on its right. The entries above two levels are nested sets: where two of them
have the same size they are the same set, the level is exact, and the search ends. So it takes at most one step more than
there are entries. Each set, exact or not, gives a lower bound of the level, (its sum - theta) / its size, for every theta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined, reordered, selecting

#: Rows searched side by side, where rows are short or not contiguous.
LANES = 128

#: Coefficients of `predicted_level`.
COEFFICIENTS = 4

#: Rows of the state of a pass: sum, largest and sum of squares of a row's magnitudes, its level, minus the derivative of the level by
#: theta, and the levels between which that derivative stays the same (inf and -1 where the level is only a lower bound).
TOTAL, MAXIMUM, SQUARES, LEVEL, SLOPE, LOW, HIGH = range(7)
STATE_ROWS = 7

#: Of rows side by side there are besides: a lower bound of the level, of how many entries it is made, and memory.
FLOOR, KNOWN, SCRATCH = range(7, 10)
LINES = 12


@inlined
def sum_and_count(row: Any, level: float) -> tuple[float, float]:
    """Sum and number of the magnitudes above `level` >= 0."""
    total = 0.0
    count = 0.0
    for k in range(row.size):
        a = abs(row[k])
        above = a > level
        total += a if above else 0.0
        count += 1.0 if above else 0.0
    return total, count


@inlined
def row_statistics(row: Any, bits: Any, mask: Any) -> tuple[float, float, Any]:
    """Sum and sum of squares of the magnitudes, and the bits of the largest.

    Bits of non-negative floats are ordered as the floats are, and integers have a vectorised maximum.
    """
    total = 0.0
    squares = 0.0
    largest = mask & 0
    for k in range(row.size):
        a = abs(row[k])
        total += a
        squares += a * a
        largest = max(largest, bits[k] & mask)
    return total, squares, largest


@selecting
def row_level(
    row: Any, theta: float, floor: float, guess: float, total: float, count: float, steps: int
) -> tuple[float, float, float, bool]:
    """The level of a row with sum above theta > 0, in at most so many Newton steps from a `guess`, any level, and sum and number above it.

    Returns the level, exact to rounding or a lower bound of it, no less than `floor`, which is one; of how many entries it is computed;
    another number, between which and an exact level no entry lies; and whether it is exact.
    """
    if count == 0.0:
        guess = floor
        total, count = sum_and_count(row, guess)
    level = guess
    for _ in range(steps):
        if count == 0.0:  # the floor rounded up to the largest entry
            return guess, 1.0, guess, True
        level = max((total - theta) / count, floor)
        next_total, next_count = sum_and_count(row, level)
        # None is left above where entries are equal and theta is below their rounding.
        if next_count == count or next_count == 0.0:
            return level, count, guess, True
        guess, total, count = level, next_total, next_count
    return max((total - theta) / count, floor), count, level, False


@exact
def predicted_level(prediction: Any, total: float, maximum: float, squares: float, floor: float) -> float:
    """A guess of a level that is linear in what is known of the row, and within the bounds of the level."""
    guess = prediction[0] + prediction[1] * total + prediction[2] * maximum + prediction[3] * np.sqrt(squares)
    return guess if floor < guess < maximum else floor


@exact
def fit_prediction(total: Any, maximum: Any, squares: Any, level: Any, prediction: Any) -> None:
    """Coefficients of `predicted_level` by least squares over the rows with a positive level."""
    n = COEFFICIENTS
    normal = np.zeros((n, n + 1))
    known = np.ones(n + 1)
    for i in range(level.size):
        if level[i] > 0.0:
            known[1], known[2], known[3], known[4] = total[i], maximum[i], np.sqrt(squares[i]), level[i]
            for a in range(n):
                for b in range(n + 1):
                    normal[a, b] += known[a] * known[b]
    for a in range(n):
        normal[a, a] *= 1.0 + 1e-9  # keeps the elimination going where rows are alike; a guess need not be the best
    for a in range(n):
        if normal[a, a] > 0.0:
            for b in range(n):
                if b != a:
                    factor = normal[b, a] / normal[a, a]
                    for c in range(a, n + 1):
                        normal[b, c] -= factor * normal[a, c]
    for a in range(n):
        prediction[a] = normal[a, n] / normal[a, a] if normal[a, a] > 0.0 else 0.0


# Rows side by side: `columns[k, r]` is the k-th magnitude of the row in lane r, padded with zeros. What follows loops over lanes inside,
# and lanes do not depend on each other, so that the compiler handles several rows with one instruction. Two columns are taken at a time,
# so that what is kept for each lane is read and written half as often; with an odd number of columns there is one of zeros besides.


@reordered
def lane_statistics(columns: Any, total: Any, squares: Any, maximum: Any) -> None:
    """Turn entries into magnitudes; their sums, sums of squares (infinite or NaN where one of them is) and maxima."""
    lanes = total.size
    for r in range(lanes):
        total[r] = 0.0
        squares[r] = 0.0
        maximum[r] = 0.0
    for k in range(0, columns.shape[0], 2):
        first, second = columns[k], columns[k + 1]
        for r in range(lanes):
            a, b, best = abs(first[r]), abs(second[r]), maximum[r]
            first[r] = a
            second[r] = b
            total[r] += a + b
            squares[r] += a * a + b * b
            larger = a if a > b else b
            maximum[r] = larger if larger > best else best


@selecting
def lane_guesses(lines: Any, prediction: Any, predicts: bool, theta: float, m: int) -> None:
    """Lower bounds of the levels, and guesses of them as `predicted_level` (inf for rows with a sum of at most theta)."""
    total, squares, maximum = lines[TOTAL], lines[SQUARES], lines[MAXIMUM]
    floor, known, level = lines[FLOOR], lines[KNOWN], lines[LEVEL]
    constant, per_total, per_maximum, per_norm = prediction[0], prediction[1], prediction[2], prediction[3]
    for r in range(total.size):
        s, top = total[r], maximum[r]
        by_mean, by_top = (s - theta) / m, top - theta
        least = by_mean if by_mean > by_top else by_top
        guess = constant + per_total * s + per_maximum * top + per_norm * np.sqrt(squares[r])
        guess = guess if (least < guess) & (guess < top) & predicts else least
        known[r] = -1.0
        floor[r] = least if s > theta else np.inf
        level[r] = guess if s > theta else np.inf


@selecting
def _lane_sums(columns: Any, level: Any, total: Any, count: Any) -> None:
    lanes = level.size
    for r in range(lanes):
        total[r] = 0.0
        count[r] = 0.0
    for k in range(0, columns.shape[0], 2):
        first, second = columns[k], columns[k + 1]
        for r in range(lanes):
            a, b, bound = first[r], second[r], level[r]
            total[r] += (a if a > bound else 0.0) + (b if b > bound else 0.0)
            count[r] += (1.0 if a > bound else 0.0) + (1.0 if b > bound else 0.0)


@selecting
def _lane_neighbours(columns: Any, level: Any, low: Any, high: Any) -> None:
    """The nearest entries, up to and above each level: 0 and inf where there is none."""
    lanes = level.size
    for r in range(lanes):
        low[r] = 0.0
        high[r] = np.inf
    for k in range(0, columns.shape[0], 2):
        first, second = columns[k], columns[k + 1]
        for r in range(lanes):
            a, b, bound, below, above = first[r], second[r], level[r], low[r], high[r]
            lower_a = a if a <= bound else 0.0
            lower_b = b if b <= bound else 0.0
            upper_a = np.inf if a <= bound else a
            upper_b = np.inf if b <= bound else b
            lower = lower_a if lower_a > lower_b else lower_b
            upper = upper_a if upper_a < upper_b else upper_b
            low[r] = lower if lower > below else below
            high[r] = upper if upper < above else above


@selecting
def _lane_step(theta: float, floor: Any, total: Any, count: Any, known: Any, level: Any, previous: Any) -> float:
    """Move the levels whose set has changed; returns how many."""
    moved = 0.0
    for r in range(level.size):
        c, old, bound = count[r], level[r], floor[r]
        settled = (c == known[r]) | (c == 0.0)
        raised = (total[r] - theta) / (c if c > 0.0 else 1.0)
        raised = raised if raised > bound else bound
        moved += 0.0 if settled else 1.0
        previous[r] = previous[r] if settled else old
        level[r] = old if settled else raised
        known[r] = known[r] if settled else c
    return moved


@reordered
def lane_levels(columns: Any, theta: float, steps: int, lines: Any) -> None:
    """The levels of all lanes, as `row_level`, from any of LEVEL (inf: leave the lane alone).

    KNOWN holds how many entries were above the level before (the level is settled if they still are as many), or -1. It is left with how
    many each new level is computed from, and LOW and HIGH with the entries next to it; where a level is not settled, HIGH is -1.
    """
    total, count, previous = lines[SCRATCH], lines[SCRATCH + 1], lines[SCRATCH + 2]
    floor, known, level, low, high = lines[FLOOR], lines[KNOWN], lines[LEVEL], lines[LOW], lines[HIGH]
    for r in range(level.size):
        previous[r] = level[r]
    for _ in range(steps):
        _lane_sums(columns, level, total, count)
        if _lane_step(theta, floor, total, count, known, level, previous) == 0.0:
            break
    _lane_neighbours(columns, level, low, high)
    for r in range(level.size):
        high[r] = high[r] if low[r] <= previous[r] <= high[r] else -1.0
