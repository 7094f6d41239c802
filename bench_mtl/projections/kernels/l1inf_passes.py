"""Passes over a matrix that keep, for every row, its level at theta and the line the level follows as theta changes.

A `matrix` is a tuple (data, bits, mask, indptr, m): its entries in one array, the same memory as integers, what takes the sign off these,
the row pointer if it is CSR, else None, and its number of columns. `lanes` is None where a row lies together and is searched by itself; or
(across, along) where entry (j, k) is at j * across + k * along, and rows are searched side by side.

`nonneg` is None or True; a None is compiled away. Passes work on every `step`-th row of the matrix; column i of the state is that of row
i * step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, selecting
from bench_mtl.projections.kernels.levels import (
    LANES,
    lane_guesses,
    lane_levels,
    lane_statistics,
    predicted_level,
    row_level,
    row_statistics,
    sum_and_count,
)

#: Rows of the state: sum, largest and sum of squares of a row's magnitudes, its level, minus the derivative of the level by theta, and
#: the levels between which that derivative stays the same (inf and -1 where the level is only a lower bound).
TOTAL, MAXIMUM, SQUARES, LEVEL, SLOPE, LOW, HIGH = range(7)
STATE_ROWS = 7

#: Newton steps on a row in a first pass with a prediction: enough for most rows; the next pass settles the others.
_FIRST_STEPS = 2


@exact
def first_pass(matrix: Any, lanes: Any, step: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    """Fill the whole state at theta >= 0; without a prediction (its first coefficient is NaN) with exact levels.

    Returns how many levels are only lower bounds; or -1, and a void state, where there are NaN, inf, or numbers with infinite sums.
    """
    if lanes is None:
        return _first_pass_rows(matrix, step, theta, prediction, state, nonneg)
    else:
        return _first_pass_lanes(matrix, lanes, step, theta, prediction, state, nonneg)


@exact
def next_pass(matrix: Any, lanes: Any, step: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    """Move the levels from theta `old` to `theta`, exactly; returns how many rows had to be searched again."""
    if lanes is None:
        return _next_pass_rows(matrix, step, old, theta, state, nonneg)
    else:
        return _next_pass_lanes(matrix, lanes, step, old, theta, state, nonneg)


@exact
def row_bounds(indptr: Any, m: int, j: int) -> tuple[int, int]:
    """The places in the data where row j begins and ends."""
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
def _first_pass_rows(matrix: Any, step: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    data, bits, mask, indptr, m = matrix
    worst = mask & 0
    unsettled = 0
    predicts = prediction[0] == prediction[0]
    for i in range(state.shape[1]):
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
            guess = predicted_level(prediction, total, maximum, squares, floor) if predicts else floor
            above, count = sum_and_count(row, guess, nonneg)
            steps = _FIRST_STEPS if predicts else row.size + 2
            level, count, other, settled = row_level(row, theta, floor, guess, above, count, steps, nonneg)
            if settled:
                _set(state, i, level, 1.0 / count, min(level, other), max(level, other))
            else:
                unsettled += 1
                _set(state, i, level, 1.0 / count, np.inf, -1.0)
    return unsettled if _number(worst, data) < np.inf else -1


@exact
def _number(bits: Any, data: Any) -> float:
    """The number with these bits in the type of `data`; 0 for those of a negative one."""
    if data.itemsize == 8:
        return np.int64(max(bits, 0)).view(np.float64)
    return np.float64(np.int32(max(bits, 0)).view(np.float32))


@exact
def _next_pass_rows(matrix: Any, step: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    data, _, _, indptr, m = matrix
    searched = 0
    change = theta - old
    for start in range(0, state.shape[1], LANES):
        stop = min(start + LANES, state.shape[1])
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
            # From a little below: the range found without entries then holds the next level too, as steps get smaller and go up.
            probe = max(floor - 0.1 * abs(change) * slope, 0.0)
            above, count = sum_and_count(row, probe, nonneg)
            if change > 0.0 and floor == tangent and count == np.rint(1.0 / slope) and state[LOW, i] < np.inf:
                _set(state, i, tangent, slope, probe, tangent + change * slope)  # no entry between the old level and the probe
            else:
                level, count, other, _ = row_level(row, theta, floor, probe, above, count, row.size + 2, nonneg)
                _set(state, i, level, 1.0 / count, min(level, other), max(level, other))
    return searched


@exact
def _move_along(state: Any, change: float, theta: float) -> float:
    """Move every row along its line, a lower bound of its level; HIGH is -1 after it where the row may have left the line.

    Returns the number of these rows.
    """
    left, gone = _move_lines(state[TOTAL], state[LEVEL], state[SLOPE], state[LOW], state[HIGH], change, theta)
    if gone > 0.0:
        for i in range(state.shape[1]):
            if state[TOTAL, i] <= theta:
                _set(state, i, 0.0, 0.0, 0.0, 0.0)
    return left


@selecting
def _move_lines(total: Any, level: Any, slope: Any, low: Any, high: Any, change: float, theta: float) -> tuple[float, float]:
    """`_move_along` for rows that stay on their line; return how many may have left it, and how many have vanished.

    (Products of 0 and 1, as `and` would branch.)
    """
    left = 0.0
    gone = 0.0
    for i in range(total.size):
        moved = level[i] - change * slope[i]
        alive = 1.0 if slope[i] > 0.0 else 0.0
        above = 1.0 if low[i] <= moved else 0.0
        below = 1.0 if moved <= high[i] else 0.0
        vanishes = 1.0 if total[i] <= theta else 0.0
        stays = alive * above * below
        stays = stays if stays > vanishes else vanishes
        left += 1.0 - stays
        gone += vanishes * alive
        level[i] = moved * (1.0 - vanishes)
        upper = high[i]
        high[i] = upper if stays > 0.0 else -1.0
    return left, gone


@exact
def _first_pass_lanes(matrix: Any, lanes: Any, step: int, theta: float, prediction: Any, state: Any, nonneg: Any) -> int:
    data, m = matrix[0], matrix[4]
    columns, scratch, rows = _workspace(m)
    total, squares, maximum, floor = scratch[0], scratch[1], scratch[2], scratch[3]
    known, level, low, high = scratch[4], scratch[5], scratch[6], scratch[7]
    finite = True
    predicts = prediction[0] == prediction[0]
    guessing = prediction if predicts else np.array([np.inf, 0.0, 0.0, 0.0])  # no guess is below the largest entry, so the floor is
    unsettled = 0
    for start in range(0, state.shape[1], LANES):
        n = min(LANES, state.shape[1] - start)
        for r in range(n):
            rows[r] = start + r
        _gather(columns, rows, n, data, lanes, m, step)
        lane_statistics(columns, total, squares, maximum, nonneg)
        part = state[:, start : start + n]
        finite &= _keep_statistics(total, squares, maximum, part)
        if theta == 0.0:
            for r in range(n):
                _set(part, r, maximum[r], 1.0 if total[r] > 0.0 else 0.0, maximum[r], maximum[r])
        else:
            lane_guesses(total, squares, maximum, guessing, theta, m, floor, level)
            for r in range(LANES):
                known[r] = -1.0
            lane_levels(columns, theta, _FIRST_STEPS if predicts else m + 2, floor, known, level, low, high, scratch[8:])
            unsettled += int(_keep_levels(level, known, low, high, part))
    return unsettled if finite else -1


@exact
def _keep_statistics(total: Any, squares: Any, maximum: Any, state: Any) -> bool:
    """Store what is known of rows besides their levels; whether their sums are finite."""
    sums, largest, of_squares = state[TOTAL], state[MAXIMUM], state[SQUARES]
    bad = 0
    for r in range(sums.size):
        bad += 0 if total[r] < np.inf else 1
        sums[r] = total[r]
        of_squares[r] = squares[r]
        largest[r] = maximum[r]
    return bad == 0


@selecting
def _keep_levels(level: Any, known: Any, low: Any, high: Any, state: Any) -> float:
    """Store the levels of rows in the lanes; returns how many are not settled."""
    levels, slopes, lows, highs = state[LEVEL], state[SLOPE], state[LOW], state[HIGH]
    unsettled = 0.0
    for r in range(levels.size):
        gone = level[r] == np.inf
        count = known[r] if known[r] > 1.0 else 1.0
        levels[r] = 0.0 if gone else level[r]
        slopes[r] = 0.0 if gone else 1.0 / count
        lows[r] = 0.0 if gone else low[r]
        highs[r] = 0.0 if gone else high[r]
        unsettled += 1.0 if (high[r] < 0.0) & (not gone) else 0.0
    return unsettled


@exact
def _next_pass_lanes(matrix: Any, lanes: Any, step: int, old: float, theta: float, state: Any, nonneg: Any) -> int:
    data, m = matrix[0], matrix[4]
    columns, scratch, rows = _workspace(m)
    searched = 0
    waiting = 0
    for start in range(0, state.shape[1], LANES):
        stop = min(start + LANES, state.shape[1])
        left = _move_along(state[:, start:stop], theta - old, theta) > 0.0
        for i in range(start, stop if left else start):
            if state[HIGH, i] < 0.0:
                rows[waiting] = i
                waiting += 1
                searched += 1
        if waiting >= LANES or (waiting > 0 and stop == state.shape[1]):
            for first in range(0, waiting, LANES):
                n = min(LANES, waiting - first)
                _gather(columns, rows[first:], n, data, lanes, m, step)
                _search_again(columns, scratch, rows[first : first + n], m, theta, state, nonneg)
            waiting = 0
    return searched


@exact
def _workspace(m: int) -> tuple[Any, Any, Any]:
    """Columns for lanes (an even number of them), a few values for each lane, and the rows that are in them or wait."""
    return np.zeros((m + m % 2, LANES)), np.empty((11, LANES)), np.empty(2 * LANES, dtype=np.int64)


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
def _search_again(columns: Any, scratch: Any, rows: Any, m: int, theta: float, state: Any, nonneg: Any) -> None:
    """Search the rows in the lanes, each from its line at the new theta."""
    total, squares, maximum, floor = scratch[0], scratch[1], scratch[2], scratch[3]
    known, level, low, high = scratch[4], scratch[5], scratch[6], scratch[7]
    lane_statistics(columns, total, squares, maximum, nonneg)
    for r in range(LANES):
        level[r] = np.inf
        floor[r] = np.inf
        known[r] = -1.0
    for r in range(rows.size):
        i = rows[r]
        floor[r] = max(maximum[r] - theta, (total[r] - theta) / m)
        level[r] = floor[r]
        if state[SLOPE, i] > 0.0 and state[LEVEL, i] >= floor[r]:  # the line is a tangent
            level[r] = state[LEVEL, i]
            floor[r] = level[r]
            known[r] = np.rint(1.0 / state[SLOPE, i]) if state[LOW, i] < np.inf else -1.0
    lane_levels(columns, theta, m + 2, floor, known, level, low, high, scratch[8:])
    for r in range(rows.size):
        _set(state, rows[r], level[r], 1.0 / max(known[r], 1.0), low[r], high[r])


@exact
def clip(matrix: Any, lanes: Any, levels: Any, nonneg: Any, out: Any) -> None:
    """Write all rows, cut at their level, into `out`, which is laid out as `data`."""
    data, _, _, indptr, m = matrix
    if lanes is None:
        for j in range(levels.size):
            begin, end = row_bounds(indptr, m, j)
            _clip_row(data[begin:end], _rounded_down(levels[j], data), nonneg, out[begin:end])
    elif lanes[1] == 1:
        _clip_short_rows(data.reshape((-1, m)), levels, nonneg, out.reshape((-1, m)))
    else:
        rounded = np.empty(LANES, dtype=data.dtype)
        for start in range(0, levels.size, LANES):
            stop = min(start + LANES, levels.size)
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
def _clip_short_rows(A: Any, levels: Any, nonneg: Any, out: Any) -> None:
    for j in range(levels.size):
        level = _rounded_down(levels[j], A)
        if level == 0:
            for k in range(A.shape[1]):
                out[j, k] = 0
            continue
        floor = -level if nonneg is None else level * 0
        for k in range(A.shape[1]):
            a = A[j, k]
            a = a if a < level else level
            out[j, k] = a if a > floor else floor


@selecting
def _clip_column(column: Any, level: Any, nonneg: Any, out: Any) -> None:
    for k in range(column.size):
        a, top = column[k], level[k]
        floor = -top if nonneg is None else top * 0
        a = a if a < top else top
        a = a if a > floor else floor
        out[k] = a if top > 0 else top  # not -0


@exact
def _rounded_down(level: float, data: Any) -> Any:
    """`level` in the type of `data`, not above it."""
    rounded = data.dtype.type(level)
    if data.itemsize < 8 and np.float64(rounded) > level:
        rounded = data.dtype.type(np.nextafter(rounded, data.dtype.type(0.0)))
    return rounded
