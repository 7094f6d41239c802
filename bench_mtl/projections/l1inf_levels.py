"""The levels at which the rows of a matrix are cut by the l1,inf projection and proximal operator: the way to the compiled kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.projections.matrix_rows import MatrixRows
from bench_mtl.projections.scratch import own_scratch
from bench_mtl.projections.threads import run_together
from bench_mtl.types import AnyArray, Array


class Levels(NamedTuple):
    """Where each row is cut. (`values` may be memory that the next call uses again.)"""

    values: Array
    theta: float
    passes: int
    inside: bool = False
    """Nothing is cut at all."""


def newton(rows: MatrixRows, radius: float, theta0: float | None, nonneg: bool, workers: int) -> Levels | None:
    """Levels of the projection by `kernels.l1inf`; None where there is NaN or inf."""
    from bench_mtl.kernels import l1inf as kernel

    if rows.d == 0 or rows.data.size == 0:
        return _nothing(rows)
    state = _state(rows)
    guess = -1.0 if theta0 is None else theta0
    status, theta, passes = _search(rows, radius, guess, state, _flag(nonneg), workers)
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, passes, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, radius, lambda scaled, size: newton(scaled, size, None, nonneg, workers))
    if status == kernel.TINY_RADIUS:
        return _tiny_ball(rows, radius, state, nonneg)
    if status == kernel.UNFINISHED:
        return merge(rows, radius, nonneg)
    return Levels(state[kernel.LEVEL], theta, passes)


def merge(rows: MatrixRows, radius: float, nonneg: bool) -> Levels | None:
    """Levels of the projection by the published algorithm, `kernels.l1inf_merge`; None where there is NaN or inf."""
    from bench_mtl.kernels import l1inf as kernel
    from bench_mtl.kernels.l1inf_merge import merge_levels

    if rows.d == 0 or rows.data.size == 0:
        return _nothing(rows)
    state = _state(rows)
    status = _first_look(rows, radius, state, _flag(nonneg))
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, 1, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, radius, lambda scaled, size: merge(scaled, size, nonneg))
    excess = kernel.excess(state, radius)
    magnitudes = _magnitudes(rows, nonneg)
    start = np.arange(0, rows.d * rows.m + 1, rows.m) if rows.indptr is None else rows.indptr.astype(np.int64)
    levels = np.empty(rows.d)
    theta = merge_levels(magnitudes, start, excess, levels)
    kernel.settle(levels, radius)
    return Levels(levels, theta, 1)


def fixed(rows: MatrixRows, theta: float, nonneg: bool, workers: int) -> Levels | None:
    """Levels above which each row has theta >= 0 in all, 0 where it has less; None where there is NaN or inf."""
    from bench_mtl.kernels import l1inf as kernel

    if rows.d == 0 or rows.data.size == 0 or theta == 0.0:
        return _nothing(rows) if statistics(rows) is not None else None
    state = _state(rows)
    status = _levels_at(rows, theta, state, _flag(nonneg), workers)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, theta, lambda scaled, size: fixed(scaled, size, nonneg, workers))
    return Levels(state[kernel.LEVEL], theta, 1)


def statistics(rows: MatrixRows) -> Array | None:
    """Sums and maxima of the rows' magnitudes, as the first rows of a kernel's state; None where one is not finite."""
    from bench_mtl.kernels import l1inf as kernel

    state = _state(rows)
    prediction = np.full(kernel.COEFFICIENTS, np.nan)
    finite = kernel.first_pass(*rows.layout, 1, 0, rows.d, 0.0, prediction, state, None) >= 0
    return state if finite else None


def clip(rows: MatrixRows, levels: Array, nonneg: bool, workers: int, result: AnyArray) -> None:
    """Write the data, cut at the levels, into `result`, laid out alike."""
    from bench_mtl.kernels.l1inf_passes import clip as kernel

    def part(bounds: tuple[int, int]) -> None:
        kernel(rows.data, rows.indptr, rows.lanes, rows.m, *bounds, levels, _flag(nonneg), result)

    run_together(part, _shares(rows.d, workers))


def _search(rows: MatrixRows, radius: float, guess: float, state: Array, nonneg: Any, workers: int) -> tuple[int, float, int]:
    """`kernels.l1inf.search`, the passes of which several workers share; the rest is the same."""
    from bench_mtl.kernels import l1inf as kernel

    if workers == 1:
        return kernel.search(*rows.layout, rows.d, radius, guess, state, nonneg)
    prediction = np.empty(kernel.COEFFICIENTS)
    theta = kernel.prepare(*rows.layout, rows.d, radius, guess, prediction, state, nonneg)
    unsettled = _first_pass(rows, theta, prediction, state, nonneg, workers)
    status = kernel.assess(state, unsettled, radius)
    if status != kernel.PROJECTED:
        return status, theta, 1
    for passes in range(1, kernel.MAX_PASSES + 1):
        following = kernel.following_theta(state, theta, radius, passes == 1, unsettled)
        if following < 0.0:
            kernel.settle(state[kernel.LEVEL], radius)
            return kernel.PROJECTED, theta, passes
        unsettled = _next_pass(rows, theta, following, state, nonneg, workers)
        theta = following
    return kernel.UNFINISHED, theta, kernel.MAX_PASSES


def _levels_at(rows: MatrixRows, theta: float, state: Array, nonneg: Any, workers: int) -> int:
    from bench_mtl.kernels import l1inf as kernel

    prediction = np.empty(kernel.COEFFICIENTS)
    kernel.prepare(*rows.layout, rows.d, 0.0, theta, prediction, state, nonneg)
    unsettled = _first_pass(rows, theta, prediction, state, nonneg, workers)
    if kernel.assess(state, unsettled, 0.0) == kernel.OUT_OF_SCALE:
        return kernel.OUT_OF_SCALE
    if unsettled > 0:
        _next_pass(rows, theta, theta, state, nonneg, workers)
    return kernel.PROJECTED


def _first_look(rows: MatrixRows, radius: float, state: Array, nonneg: Any) -> int:
    from bench_mtl.kernels import l1inf as kernel

    return kernel.assess(state, _first_pass(rows, 0.0, np.full(kernel.COEFFICIENTS, np.nan), state, nonneg, 1), radius)


def _first_pass(rows: MatrixRows, theta: float, prediction: Array, state: Array, nonneg: Any, workers: int) -> int:
    from bench_mtl.kernels import l1inf as kernel

    def part(bounds: tuple[int, int]) -> int:
        return kernel.first_pass(*rows.layout, 1, *bounds, theta, prediction, state, nonneg)

    unsettled = run_together(part, _shares(rows.d, workers))
    return -1 if min(unsettled) < 0 else sum(unsettled)


def _next_pass(rows: MatrixRows, old: float, theta: float, state: Array, nonneg: Any, workers: int) -> int:
    from bench_mtl.kernels import l1inf as kernel

    def part(bounds: tuple[int, int]) -> int:
        return kernel.next_pass(rows.data, rows.indptr, rows.lanes, rows.m, 1, *bounds, old, theta, state, nonneg)

    return sum(run_together(part, _shares(rows.d, workers)))


def _shares(d: int, workers: int) -> list[tuple[int, int]]:
    """The rows 0 ... d - 1 in as many parts, whole groups of lanes each."""
    from bench_mtl.kernels.levels import LANES

    size = -(-d // (workers * LANES)) * LANES if workers > 1 else max(d, 1)
    return [(lo, min(lo + size, d)) for lo in range(0, max(d, 1), size)]


def _rescaled(rows: MatrixRows, size: float, find: Callable[[MatrixRows, float], Levels | None]) -> Levels | None:
    """Levels of a matrix that is too large or too small to be summed and squared: those of its multiple by a power of two."""
    largest = float(np.abs(rows.data).max(initial=0.0))
    if not largest < np.inf:
        return None
    if largest == 0.0:
        return _nothing(rows)
    exponent = math.frexp(largest)[1]
    try:
        size = math.ldexp(size, -exponent)
    except OverflowError:
        size = math.inf
    levels = find(replace(rows, data=np.ldexp(rows.data, -exponent)), size)
    assert levels is not None
    values = np.ldexp(levels.values, exponent)
    rounded_up = np.ldexp(values, -exponent) > levels.values  # subnormal ones can be
    values[rounded_up] = np.nextafter(values[rounded_up], 0.0)
    try:
        theta = math.ldexp(levels.theta, exponent)
    except OverflowError:
        theta = math.inf
    return levels._replace(values=values, theta=theta)


def _tiny_ball(rows: MatrixRows, radius: float, state: Array, nonneg: bool) -> Levels:
    """Levels where the radius is lost in the rounding of the rows' sums.

    Works with delta = (largest sum) - theta instead of theta: mu_j = max(0, max_k (delta - gap_jk) / k), gap_jk the largest sum less
    that of the k largest entries of row j. Only rows with a sum within m radius of the largest have a level above zero.
    """
    from bench_mtl.kernels import l1inf as kernel

    totals = state[kernel.TOTAL]
    largest = float(totals.max())
    near = np.flatnonzero(largest - totals <= rows.m * radius)
    descending = _sorted_rows(rows, near, nonneg)
    width = descending.shape[1]
    tails = np.cumsum(descending[:, :0:-1], axis=1)[:, ::-1]  # what the k largest leave out, k = 1 .. width - 1
    gaps = np.hstack([tails, np.zeros((len(near), 1))]) + (largest - totals[near])[:, None]
    count = np.arange(1.0, width + 1.0)
    levels, delta = np.zeros(rows.d), min(largest, width * radius)  # the sum of the levels is at least delta / width
    for _ in range(kernel.MAX_PASSES):
        lines = (delta - gaps) / count
        best = lines.argmax(axis=1)
        values = np.maximum(np.take_along_axis(lines, best[:, None], axis=1)[:, 0], 0.0)
        slope = float((1.0 / count[best[values > 0.0]]).sum())
        step = (float(values.sum()) - radius) / slope if slope > 0.0 else 0.0
        if step <= 0.0 or delta - step == delta:  # from the right, Newton's method falls until rounding
            break
        delta = max(delta - step, radius / len(near))
    levels[near] = values
    kernel.settle(levels, radius)
    return Levels(levels, largest - delta, 1)


def _sorted_rows(rows: MatrixRows, chosen: Any, nonneg: bool) -> Array:
    """Magnitudes of the chosen rows, largest first, those of sparse rows padded with zeros."""
    if rows.indptr is None:
        across, along = rows.lanes or (rows.m, 1)
        data = rows.data[chosen[:, None] * across + np.arange(rows.m) * along]
    else:
        length = np.diff(rows.indptr)[chosen]
        place = np.arange(length.max(initial=1))
        inside = place < length[:, None]
        data = np.zeros(inside.shape)
        data[inside] = rows.data[(rows.indptr[chosen][:, None] + place)[inside]]
    magnitudes = np.maximum(data, 0.0) if nonneg else np.abs(data)
    return -np.sort(-magnitudes.astype(np.float64), axis=1)


def _magnitudes(rows: MatrixRows, nonneg: bool) -> Array:
    """Magnitudes of all rows, one after the other."""
    data = rows.data
    if rows.lanes is not None and rows.lanes[1] != 1:
        data = data.reshape(rows.m, rows.d).T.reshape(-1)
    return np.maximum(data, 0.0).astype(np.float64) if nonneg else np.abs(data).astype(np.float64)


def _nothing(rows: MatrixRows) -> Levels:
    return Levels(np.zeros(rows.d), 0.0, 0, inside=True)


def _state(rows: MatrixRows) -> Array:
    from bench_mtl.kernels.l1inf_passes import STATE_ROWS

    return own_scratch("l1inf", STATE_ROWS * rows.d).reshape(STATE_ROWS, rows.d)


def _flag(nonneg: bool) -> Any:
    return True if nonneg else None  # None is compiled away
