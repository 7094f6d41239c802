"""Passes over a matrix that keep, for every row, its level at theta and the line the level follows as theta changes.

A `matrix` is a tuple (data, bits, mask, indptr, m): its entries in one array, the same memory as integers, what takes the sign off these,
the row pointer if it is CSR, else None, and its number of columns. `lanes` is None where each row lies together and is searched by itself; or
(across, along) where entry (j, k) is at j * across + k * along, and rows are searched side by side.

`nonneg` is None or True; a None is compiled away. All functions work on rows lo ... hi - 1 of every `step`-th row of the matrix, and on the
columns lo ... hi - 1 of the state, so that threads share nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.kernels.jit import exact, selecting
from bench_mtl.kernels.levels import (
    LANES,
    lane_levels,
    lane_magnitudes,
    lane_maxima,
    predicted_level,
    row_level,
    row_statistics,
)

#: Rows of the state: sum, largest and sum of squares of a row's magnitudes, its level, minus the derivative of the level by theta, and
#: the levels between which that derivative stays the same (HIGH is -1 where the level is only a lower bound).
TOTAL, MAXIMUM, SQUARES, LEVEL, SLOPE, LOW, HIGH = range(7)
STATE_ROWS = 7

#: Newton steps on a row in a first pass with a prediction: enough for most rows; the next pass settles the others.
_FIRST_STEPS = 2


@exact
def first_pass(matrix: Any, lanes: Any, step: int, lo: int, hi: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    """The whole state at theta >= 0; without a prediction (its first coefficient is NaN) with exact levels.

    Returns how many levels are only lower bounds; or -1, and a void state, where there are NaN, inf, or numbers with infinite sums.
    """
    if lanes is None:
        return _first_pass_rows(matrix, step, lo, hi, theta, prediction, state, nonneg)
    else:
        return _first_pass_lanes(matrix, lanes, step, lo, hi, theta, prediction, state, nonneg)


@exact
def next_pass(matrix: Any, lanes: Any, step: int, lo: int, hi: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    """Move the levels from theta `old` to `theta`, exactly; returns how many rows had to be searched again."""
    if lanes is None:
        return _next_pass_rows(matrix, step, lo, hi, old, theta, state, nonneg)
    else:
        return _next_pass_lanes(matrix, lanes, step, lo, hi, old, theta, state, nonneg)


@exact
def row_bounds(indptr: Any, m: int, j: int) -> tuple[int, int]:
    """Where row j begins and ends in the data."""
    if indptr is None:
        return j * m, (j + 1) * m
    else:
        return indptr[j], indptr[j + 1]


@exact
def _set(state: Any, i: int, level: float, slope: float, low: float, high: float) -> None:
    state[LEVEL, i] = level
    state[SLOPE, i] = slope
    state[LOW, i] = low
    state[HIGH, i] = high


@exact
def _first_pass_rows(matrix: Any, step: int, lo: int, hi: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    data, bits, mask, indptr, m = matrix
    worst = mask & 0
    unsettled = 0
    predicts = prediction[0] == prediction[0]
    guess = 0.0
    for i in range(lo, hi):
        begin, end = row_bounds(indptr, m, i * step)
        row = data[begin:end]
        total, squares, largest, magnitude = row_statistics(row, bits[begin:end], mask, nonneg)
        worst = max(worst, magnitude)
        maximum = _number(largest, data)
        state[TOTAL, i] = total
        state[MAXIMUM, i] = maximum
        state[SQUARES, i] = squares
        if total <= theta:
            _set(state, i, 0.0, 0.0, 0.0, 0.0)
        elif theta == 0.0:
            _set(state, i, maximum, 1.0, maximum, maximum)
        else:
            floor = max(maximum - theta, (total - theta) / row.size)
            if predicts:
                guess = predicted_level(prediction, total, maximum, squares, floor)
            elif not floor < guess < maximum:
                guess = floor
            level, count, other, settled = row_level(row, theta, floor, guess, _FIRST_STEPS if predicts else row.size + 2, nonneg)
            unsettled += 0 if settled else 1
            _set(state, i, level, 1.0 / count, min(level, other), max(level, other) if settled else -1.0)
            guess = level  # neighbours are often alike
    return unsettled if _number(worst, data) < np.inf else -1


@exact
def _number(bits: Any, data: Any) -> float:
    """The number with these bits in the type of `data`; 0 for those of a negative one."""
    if data.itemsize == 8:
        return np.int64(max(bits, 0)).view(np.float64)
    return np.float64(np.int32(max(bits, 0)).view(np.float32))


@exact
def _next_pass_rows(matrix: Any, step: int, lo: int, hi: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    data, _, _, indptr, m = matrix
    searched = 0
    change = theta - old
    for start in range(lo, hi, LANES):
        stop = min(start + LANES, hi)
        if _move_along(state[:, start:stop], change, theta) == 0.0:
            continue
        for i in range(start, stop):
            if state[HIGH, i] >= 0.0:
                continue
            searched += 1
            begin, end = row_bounds(indptr, m, i * step)
            row = data[begin:end]
            slope, tangent = state[SLOPE, i], state[LEVEL, i]
            floor = max(tangent, state[MAXIMUM, i] - theta, (state[TOTAL, i] - theta) / row.size)
            # A step further than needed widens the range that is known to hold no entry; the next step is likely to be smaller.
            probe = max(floor - 0.1 * change * slope, 0.0) if change > 0.0 else floor
            level, count, other, _ = row_level(row, theta, floor, probe, row.size + 2, nonneg)
            _set(state, i, level, 1.0 / count, min(level, other), max(level, other))
    return searched


@selecting
def _move_along(state: Any, change: float, theta: float) -> float:
    """Move every row along its line, a lower bound of its level; HIGH is -1 after it where the row may have left the line.

    Returns the number of these rows.
    """
    total, level, slope, low, high = state[TOTAL], state[LEVEL], state[SLOPE], state[LOW], state[HIGH]
    left = 0.0
    for i in range(total.size):
        moved = level[i] - change * slope[i]
        gone = total[i] <= theta
        stays = gone | ((slope[i] > 0.0) & (low[i] <= moved) & (moved <= high[i]))
        left += 0.0 if stays else 1.0
        level[i] = 0.0 if gone else moved
        slope[i] = 0.0 if gone else slope[i]
        high[i] = 0.0 if gone else (high[i] if stays else -1.0)
        low[i] = 0.0 if gone else low[i]
    return left


@exact
def _first_pass_lanes(matrix: Any, lanes: Any, step: int, lo: int, hi: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    data, bits, mask, _, m = matrix
    columns, scratch, rows = _workspace(m)
    total, squares, maximum = scratch[0], scratch[1], scratch[2]
    finite = nonneg is None or _all_finite(bits, mask)  # magnitudes do not show what negative entries hold
    predicts = prediction[0] == prediction[0]
    unsettled = 0
    for start in range(lo, hi, LANES):
        n = min(LANES, hi - start)
        for r in range(n):
            rows[r] = start + r
        _gather(columns, rows, n, data, lanes, m, step)
        lane_magnitudes(columns, total, squares, nonneg)
        lane_maxima(columns, maximum)
        for r in range(n):
            i = start + r
            finite &= total[r] < np.inf
            state[TOTAL, i] = total[r]
            state[SQUARES, i] = squares[r]
            state[MAXIMUM, i] = maximum[r]
            slope = 0.0
            floor = max(maximum[r] - theta, (total[r] - theta) / m)
            guess = floor
            if theta == 0.0 and total[r] > 0.0:
                guess, slope = maximum[r], 1.0
            elif predicts:
                guess = predicted_level(prediction, total[r], maximum[r], squares[r], floor)
            _set(state, i, guess, slope, guess, guess)
        if theta > 0.0:
            unsettled += _search_lanes(columns, scratch, rows, n, m, theta, _FIRST_STEPS if predicts else m + 2, state)
    return unsettled if finite else -1


@exact
def _next_pass_lanes(matrix: Any, lanes: Any, step: int, lo: int, hi: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    data, m = matrix[0], matrix[4]
    columns, scratch, rows = _workspace(m)
    searched = 0
    waiting = 0
    for start in range(lo, hi, LANES):
        stop = min(start + LANES, hi)
        left = _move_along(state[:, start:stop], theta - old, theta) > 0.0
        for i in range(start, stop if left else start):
            if state[HIGH, i] < 0.0:
                rows[waiting] = i
                waiting += 1
                searched += 1
        if waiting >= LANES or (waiting > 0 and stop == hi):
            for first in range(0, waiting, LANES):
                n = min(LANES, waiting - first)
                _gather(columns, rows[first:], n, data, lanes, m, step)
                lane_magnitudes(columns, scratch[0], scratch[1], nonneg)
                _search_lanes(columns, scratch, rows[first:], n, m, theta, m + 2, state)
            waiting = 0
    return searched


@exact
def _workspace(m: int) -> tuple[Any, Any, Any]:
    """Columns for lanes (an even number of them), a few values for each lane, and the rows that are in them or wait."""
    return np.zeros((m + m % 2, LANES)), np.empty((8, LANES)), np.empty(2 * LANES, dtype=np.int64)


@exact
def _gather(columns: Any, rows: Any, n: int, data: Any, lanes: Any, m: int, step: int) -> None:
    """Put the first n of these rows side by side."""
    across, along = lanes
    places = np.empty(LANES, dtype=np.uintp)  # unsigned: no check for negative indices
    for r in range(n):
        places[r] = rows[r] * step * across
    for k in range(m):
        column = columns[k]
        offset = np.uintp(k * along)
        for r in range(n):
            column[r] = data[places[r] + offset]
        for r in range(n, LANES):
            column[r] = 0.0


@exact
def _search_lanes(columns: Any, scratch: Any, rows: Any, n: int, m: int, theta: float, steps: int, state: Any) -> int:
    """Search the n rows in the lanes, each from its level in the state: a guess (slope 0) or its line. Returns how many are not settled."""
    floor, known, level, low, high = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    for r in range(LANES):
        level[r] = np.inf
        floor[r] = np.inf
        known[r] = -1.0
    for r in range(n):
        i = rows[r]
        total, maximum = state[TOTAL, i], state[MAXIMUM, i]
        if total > theta:
            floor[r] = max(maximum - theta, (total - theta) / m)
            level[r] = state[LEVEL, i]
            if state[SLOPE, i] > 0.0 and level[r] >= floor[r]:
                floor[r] = level[r]
                known[r] = np.rint(1.0 / state[SLOPE, i])
            elif not floor[r] < level[r] < maximum:
                level[r] = floor[r]
    lane_levels(columns, theta, steps, floor, known, level, low, high, scratch[:3])
    unsettled = 0
    for r in range(n):
        if level[r] < np.inf:
            _set(state, rows[r], level[r], 1.0 / max(known[r], 1.0), low[r], high[r])
            unsettled += 1 if high[r] < 0.0 else 0
        else:
            _set(state, rows[r], 0.0, 0.0, 0.0, 0.0)
    return unsettled


@selecting
def _all_finite(bits: Any, mask: Any) -> bool:
    worst = mask & 0
    for i in range(bits.size):
        worst = max(worst, bits[i] & mask)
    return worst < (2047 << 52 if bits.itemsize == 8 else 255 << 23)


@exact
def clip(matrix: Any, lanes: Any, lo: int, hi: int, levels: Any, nonneg: Any, out: Any) -> None:
    """Write rows lo ... hi - 1, cut at their level, into `out`, which is laid out as `data`."""
    data, _, _, indptr, m = matrix
    if lanes is None:
        for j in range(lo, hi):
            begin, end = row_bounds(indptr, m, j)
            _clip_row(data[begin:end], _rounded_down(levels[j], data), nonneg, out[begin:end])
    elif lanes[1] == 1:
        for j in range(lo, hi):
            begin, end = j * m, (j + 1) * m
            _clip_row(data[begin:end], _rounded_down(levels[j], data), nonneg, out[begin:end])
    else:
        rounded = np.empty(LANES, dtype=data.dtype)
        for start in range(lo, hi, LANES):
            stop = min(start + LANES, hi)
            for j in range(start, stop):
                rounded[j - start] = _rounded_down(levels[j], data)
            for k in range(m):
                offset = k * lanes[1]
                _clip_column(data[offset + start : offset + stop], rounded, nonneg, out[offset + start : offset + stop])


@selecting
def _clip_row(row: Any, level: Any, nonneg: Any, out: Any) -> None:
    if level == 0:
        for k in range(out.size):
            out[k] = 0
        return
    floor = -level if nonneg is None else level * 0
    for k in range(row.size):
        a = row[k]
        a = a if a < level else level
        out[k] = a if a > floor else floor


@selecting
def _clip_column(column: Any, level: Any, nonneg: Any, out: Any) -> None:
    for k in range(column.size):
        a, top = column[k], level[k]
        floor = -top if nonneg is None else top * 0
        a = a if a < top else top
        out[k] = a if a > floor else floor


@exact
def _rounded_down(level: float, data: Any) -> Any:
    """`level` in the type of `data`, not above it."""
    if data.itemsize == 8:
        return data.dtype.type(level)
    return data.dtype.type(level * (1.0 - 2.0**-24))
