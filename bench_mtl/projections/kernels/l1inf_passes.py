"""Passes over a matrix that keep, for every row, its level at theta and the line the level follows as theta changes.

A `matrix` is a tuple (data, bits, mask, indptr, m): its entries row after row, the same memory as integers, what takes the sign off these,
the row pointer if it is CSR, else None, and its number of columns. Short rows are searched side by side (`lanes` is anything but None),
others each by itself. Passes work on every `step`-th row of the matrix; column i of the state is that of row i * step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined, reordered, selecting
from bench_mtl.projections.kernels.levels import (
    FLOOR,
    HIGH,
    KNOWN,
    LANES,
    LEVEL,
    LINES,
    LOW,
    MAXIMUM,
    SLOPE,
    SQUARES,
    STATE_ROWS,
    TOTAL,
    lane_guesses,
    lane_levels,
    lane_statistics,
    predicted_level,
    row_level,
    row_statistics,
    sum_and_count,
)

#: Newton steps on a row in a first pass with a prediction: enough for most rows; the next pass settles the others.
_FIRST_STEPS = 2


class Aim(NamedTuple):
    """What a pass is for: levels at `theta`, after a change of it; the first one at a theta fills the whole state."""

    theta: float
    change: float
    prediction: Any
    predicts: bool
    first: bool


@exact
def first_pass(matrix: Any, lanes: Any, step: int, theta: float, prediction: Any, state: Any, _: Any) -> int:
    """Fill the whole state at theta >= 0; without a prediction (its first coefficient is NaN) with exact levels.

    Returns how many levels are only lower bounds; or -1, and a void state, where there are NaN, inf, or numbers with infinite sums.
    """
    _pass(matrix, lanes, step, Aim(theta, 0.0, prediction, prediction[0] == prediction[0], True), state)
    infinite, unsettled = _unusual(state[TOTAL], state[MAXIMUM], state[HIGH])
    return -1 if infinite > 0.0 else int(unsettled)


@reordered
def _unusual(total: Any, maximum: Any, high: Any) -> tuple[float, float]:
    """How many rows have no finite sum or entries, and of how many the level is only a bound."""
    infinite = 0.0
    unsettled = 0.0
    for i in range(total.size):
        infinite += 0.0 if total[i] + maximum[i] < np.inf else 1.0
        unsettled += 1.0 if high[i] < 0.0 else 0.0
    return infinite, unsettled


@exact
def next_pass(matrix: Any, lanes: Any, step: int, old: float, theta: float, state: Any, _: Any) -> int:
    """Move the levels from theta `old` to `theta`, exactly; returns how many rows had to be searched again."""
    return _pass(matrix, lanes, step, Aim(theta, theta - old, state[0], False, False), state)


@exact
def both_passes(matrix: Any, lanes: Any, theta: float, prediction: Any, state: Any) -> int:
    """Fill the whole state at theta, with exact levels in any case; -1 where `first_pass` returns it."""
    unsettled = first_pass(matrix, lanes, 1, theta, prediction, state, None)
    if unsettled > 0:
        next_pass(matrix, lanes, 1, theta, theta, state, None)
    return unsettled


@exact
def _pass(matrix: Any, lanes: Any, step: int, aim: Any, state: Any) -> int:
    """Search the levels of all rows at first, then of those that leave their line; returns of how many."""
    m, first = matrix[4], aim.first
    columns = np.zeros((m + m % 2 if lanes is not None else 0, LANES))  # an even number
    lines, rows = np.empty((LINES, LANES)), np.empty(2 * LANES, dtype=np.int64)
    searched = 0
    waiting = 0
    for start in range(0, state.shape[1], LANES):
        stop = min(start + LANES, state.shape[1])
        left = first or _move_along(state[:, start:stop], aim.change, aim.theta) > 0.0
        for i in range(start, stop if left else start):
            rows[waiting] = i
            waiting += 1 if first or state[HIGH, i] < 0.0 else 0
        if waiting >= LANES or (waiting > 0 and stop == state.shape[1]):
            for begin in range(0, waiting, LANES):
                some = rows[begin : min(begin + LANES, waiting)]
                if lanes is None:
                    _search_rows(matrix, some, step, aim, state)
                else:
                    _gather(columns, some, matrix[0], m, step)
                    _search_lanes(columns, lines, some, m, aim, state)
            searched += waiting
            waiting = 0
    return searched


@exact
def row_of(data: Any, indptr: Any, m: int, j: int) -> Any:
    """The entries of row j."""
    if indptr is None:
        return data[j * m : (j + 1) * m]
    else:
        return data[indptr[j] : indptr[j + 1]]


@inlined
def _set(state: Any, i: int, level: float, slope: float, low: float, high: float) -> None:
    state[LEVEL, i] = level
    state[SLOPE, i] = slope
    state[LOW, i] = low
    state[HIGH, i] = high


@exact
def _move_along(state: Any, change: float, theta: float) -> float:
    """Move every row along its line, a lower bound of its level; HIGH is -1 after it where the row may have left the line.

    Returns the number of these rows.
    """
    return _move_lines(state[TOTAL], state[LEVEL], state[SLOPE], state[LOW], state[HIGH], change, theta)


@selecting
def _move_lines(total: Any, level: Any, slope: Any, low: Any, high: Any, change: float, theta: float) -> float:
    """`_move_along`, in products of 0 and 1, as `and` would branch. A row whose sum is at most theta has vanished, whatever its line."""
    left = 0.0
    for i in range(total.size):
        moved = level[i] - change * slope[i]
        inside = (1.0 if low[i] <= moved else 0.0) * (1.0 if moved <= high[i] else 0.0)
        alive = total[i] > theta
        left += 1.0 - inside if alive else 0.0
        upper = high[i] if inside > 0.0 else -1.0
        level[i] = moved if alive else 0.0
        slope[i] = slope[i] if alive else 0.0
        low[i] = low[i] if alive else np.inf
        high[i] = upper if alive else 0.0
    return left


@selecting
def _search_rows(matrix: Any, rows: Any, step: int, aim: Any, state: Any) -> None:
    """Search rows one by one."""
    data, bits, mask, indptr, m = matrix
    theta, change, first, predicts = aim.theta, aim.change, aim.first, aim.predicts
    for i in rows:
        row = row_of(data, indptr, m, i * step)
        if first:
            total, squares, largest = row_statistics(row, row_of(bits, indptr, m, i * step), mask)
            state[TOTAL, i] = total
            state[MAXIMUM, i] = np.int64(largest).view(np.float64)
            state[SQUARES, i] = squares
        total, maximum = state[TOTAL, i], state[MAXIMUM, i]
        tangent, slope = (-np.inf, 0.0) if first or state[SLOPE, i] == 0.0 else (state[LEVEL, i], state[SLOPE, i])
        if total <= theta:
            _set(state, i, 0.0, 0.0, np.inf, 0.0)
            continue
        if theta == 0.0:
            _set(state, i, maximum, 1.0, maximum, maximum)
            continue
        floor = max(tangent, maximum - theta, (total - theta) / row.size)
        # From a little below: the range found without entries then holds the next level too, as steps get smaller and go up.
        guess = max(floor - 0.1 * abs(change) * slope, 0.0)
        if predicts:
            guess = predicted_level(aim.prediction, total, maximum, state[SQUARES, i], floor)
        above, count = sum_and_count(row, guess)
        if change > 0.0 and floor == tangent and count == np.rint(1.0 / slope) and state[LOW, i] < np.inf:
            _set(state, i, tangent, slope, guess, tangent + change * slope)  # no entry between the old level and the guess
            continue
        level, count, other, settled = row_level(row, theta, floor, guess, above, count, _FIRST_STEPS if predicts else row.size + 2)
        if settled:
            _set(state, i, level, 1.0 / count, min(level, other), max(level, other))
        else:
            _set(state, i, level, 1.0 / count, np.inf, -1.0)


@exact
def _gather(columns: Any, rows: Any, data: Any, m: int, step: int) -> None:
    """Put these rows side by side."""
    places = np.empty(LANES, dtype=np.uintp)  # unsigned: no check for negative indices
    for r in range(rows.size):
        places[r] = rows[r] * step * m
    for k in range(m):
        column = columns[k]
        offset = np.uintp(k)
        for r in range(rows.size):
            column[r] = data[places[r] + offset]
        for r in range(rows.size, LANES):
            column[r] = 0.0


@exact
def _search_lanes(columns: Any, lines: Any, rows: Any, m: int, aim: Any, state: Any) -> None:
    """Search the rows in the lanes; `lines` are as many columns of a state, and some more memory."""
    theta, first, predicts = aim.theta, aim.first, aim.predicts
    floor, known, level = lines[FLOOR], lines[KNOWN], lines[LEVEL]
    lane_statistics(columns, lines[TOTAL], lines[SQUARES], lines[MAXIMUM])
    lane_guesses(lines, aim.prediction, predicts, theta, m)
    for r in range(0 if first else rows.size):
        i = rows[r]
        if state[SLOPE, i] > 0.0 and state[LEVEL, i] >= floor[r]:  # the line is a tangent
            floor[r] = level[r] = state[LEVEL, i]
            known[r] = np.rint(1.0 / state[SLOPE, i]) if state[LOW, i] < np.inf else -1.0
    if theta > 0.0:
        lane_levels(columns, theta, _FIRST_STEPS if predicts else m + 2, lines)
    _finish(lines, theta)
    if first:
        for kind in range(STATE_ROWS):
            _copy(lines[kind, : rows.size], state[kind, rows[0] : rows[0] + rows.size])
    else:
        for r in range(rows.size):
            _set(state, rows[r], level[r], lines[SLOPE, r], lines[LOW, r], lines[HIGH, r])


@exact
def _copy(values: Any, out: Any) -> None:
    for r in range(values.size):
        out[r] = values[r]


@selecting
def _finish(lines: Any, theta: float) -> None:
    """Slopes, and the lines of rows of which nothing is cut and of those that have vanished."""
    total, known, level, slope, low, high = lines[TOTAL], lines[KNOWN], lines[LEVEL], lines[SLOPE], lines[LOW], lines[HIGH]
    for r in range(total.size):
        alive = total[r] > theta
        level[r] = level[r] if alive else 0.0
        slope[r] = 1.0 / max(known[r], 1.0) if alive else 0.0
        lower, upper = (low[r], high[r]) if theta > 0.0 else (level[r], level[r])
        low[r] = lower if alive else np.inf
        high[r] = upper if alive else 0.0


@selecting
def clip(matrix: Any, _: Any, levels: Any, __: Any, out: Any) -> None:
    """Write all rows, cut at their level (none is left where that is negative), into `out`, which is laid out as the data."""
    data, _, _, indptr, m = matrix
    for j in range(levels.size):
        begin, size = _bounds(indptr, m, j)
        level = max(levels[j], 0.0)
        floor = -level if level > 0.0 else 0.0
        for k in range(size):
            a = data[begin + k]
            a = a if a < level else level
            out[begin + k] = a if a > floor else floor


@exact
def _bounds(indptr: Any, m: int, j: int) -> tuple[Any, Any]:
    """Where row j begins, and how long it is; unsigned, so that indices need no check."""
    if indptr is None:
        return np.uintp(j * m), np.uintp(m)
    else:
        return np.uintp(indptr[j]), np.uintp(indptr[j + 1] - indptr[j])
