"""The levels at which the rows of a matrix are cut by the l1,inf projection and proximal operator: the way to the compiled kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
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
    kernel = _kernels()
    if rows.d == 0 or rows.data.size == 0:
        return _nothing(rows)
    state = _state(rows)
    guess = -1.0 if theta0 is None else theta0
    status, theta, passes = _search(rows, radius, guess, state, _flag(nonneg), workers)
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, passes, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, radius, nonneg, lambda scaled, size: newton(scaled, size, None, nonneg, workers))
    if status == kernel.TINY_RADIUS:
        return _tiny_ball(rows, radius, state, nonneg)
    if status == kernel.UNFINISHED:
        return merge(rows, radius, nonneg)
    return Levels(state[kernel.LEVEL], theta, passes)


def merge(rows: MatrixRows, radius: float, nonneg: bool) -> Levels | None:
    """Levels of the projection by the published algorithm, `kernels.l1inf_merge`; None where there is NaN or inf."""
    kernel = _kernels()
    if rows.d == 0 or rows.data.size == 0:
        return _nothing(rows)
    state = _state(rows)
    status = _first_look(rows, radius, state, _flag(nonneg))
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, 1, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, radius, nonneg, lambda scaled, size: merge(scaled, size, nonneg))
    if status == kernel.TINY_RADIUS:
        return _tiny_ball(rows, radius, state, nonneg)
    excess = kernel.excess(state, radius)
    magnitudes = _magnitudes(rows, nonneg)
    start = np.arange(0, rows.d * rows.m + 1, rows.m) if rows.indptr is None else rows.indptr.astype(np.int64)
    levels = np.empty(rows.d)
    theta = kernel.merge_levels(magnitudes, start, excess, levels)
    kernel.settle(levels, radius)
    return Levels(levels, theta, 1)


def fixed(rows: MatrixRows, theta: float, nonneg: bool, workers: int) -> Levels | None:
    """Levels above which each row has theta >= 0 in all, 0 where it has less; None where there is NaN or inf."""
    kernel = _kernels()
    if rows.d == 0 or rows.data.size == 0 or theta == 0.0:
        return _nothing(rows) if norms(rows) is not None else None
    state = _state(rows)
    status = _levels_at(rows, theta, state, _flag(nonneg), workers)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(rows, theta, nonneg, lambda scaled, size: fixed(scaled, size, nonneg, workers))
    return Levels(state[kernel.LEVEL], theta, 1)


def norms(rows: MatrixRows) -> tuple[float, float] | None:
    """Sum of the rows' largest magnitudes, and largest of the rows' sums; None where there is NaN or inf."""
    kernel = _kernels()
    if rows.d == 0 or rows.data.size == 0:
        return 0.0, 0.0
    state = _state(rows)
    if _first_pass(rows, 0.0, np.full(kernel.COEFFICIENTS, np.nan), state, None, 1) < 0:
        if not np.isfinite(rows.data).all():
            return None
        exponent = math.frexp(float(np.abs(rows.data).max()))[1]  # short rows of numbers near the largest there is
        scaled = norms(replace(rows, data=np.ldexp(rows.data.astype(np.float64), -exponent)))
        return None if scaled is None else (_ldexp(scaled[0], exponent), _ldexp(scaled[1], exponent))
    return float(kernel.compensated_sum(state[kernel.MAXIMUM])), float(state[kernel.TOTAL].max())


def clip(rows: MatrixRows, levels: Array, nonneg: bool, workers: int, result: AnyArray) -> None:
    """Write the data, cut at the levels, into `result`, laid out alike."""

    def part(bounds: tuple[int, int]) -> None:
        _kernels().clip(rows.matrix, rows.lanes, *bounds, levels, _flag(nonneg), result)

    run_together(part, _shares(rows.d, workers))


def _search(rows: MatrixRows, radius: float, guess: float, state: Array, nonneg: Any, workers: int) -> tuple[int, float, int]:
    """`kernels.l1inf.search`, the passes of which several workers share. The result is the same to the last bit."""
    kernel = _kernels()
    prediction = own_scratch("prediction", kernel.COEFFICIENTS)
    several = workers > 1
    status, theta, passes = kernel.search(rows.matrix, rows.lanes, rows.d, radius, guess, several, prediction, state, nonneg)
    if not several:
        return status, theta, passes
    unsettled = _first_pass(rows, theta, prediction, state, nonneg, workers)
    status = kernel.assess(state, unsettled, radius)
    fresh = True
    while status == kernel.PROJECTED:
        passes += 1
        following = kernel.following_theta(state, theta, radius, fresh, unsettled)
        if following < 0.0:
            kernel.settle(state[kernel.LEVEL], radius)
            return status, theta, passes
        if passes == kernel.MAX_PASSES:
            return kernel.UNFINISHED, theta, passes
        unsettled = _next_pass(rows, theta, following, state, nonneg, workers)
        theta, fresh = following, False
    return status, theta, passes + 1


def _levels_at(rows: MatrixRows, theta: float, state: Array, nonneg: Any, workers: int) -> int:
    kernel = _kernels()
    prediction = own_scratch("prediction", kernel.COEFFICIENTS)
    kernel.search(rows.matrix, rows.lanes, rows.d, 0.0, theta, True, prediction, state, nonneg)
    unsettled = _first_pass(rows, theta, prediction, state, nonneg, workers)
    if kernel.assess(state, unsettled, 0.0) == kernel.OUT_OF_SCALE:
        return kernel.OUT_OF_SCALE
    if unsettled > 0:
        _next_pass(rows, theta, theta, state, nonneg, workers)
    return kernel.PROJECTED


def _first_look(rows: MatrixRows, radius: float, state: Array, nonneg: Any) -> int:
    kernel = _kernels()
    return kernel.assess(state, _first_pass(rows, 0.0, np.full(kernel.COEFFICIENTS, np.nan), state, nonneg, 1), radius)


def _first_pass(rows: MatrixRows, theta: float, prediction: Array, state: Array, nonneg: Any, workers: int) -> int:
    kernel = _kernels()

    def part(bounds: tuple[int, int]) -> int:
        return kernel.first_pass(rows.matrix, rows.lanes, 1, *bounds, theta, prediction, state, nonneg)

    unsettled = run_together(part, _shares(rows.d, workers))
    return -1 if min(unsettled) < 0 else sum(unsettled)


def _next_pass(rows: MatrixRows, old: float, theta: float, state: Array, nonneg: Any, workers: int) -> int:
    kernel = _kernels()

    def part(bounds: tuple[int, int]) -> int:
        return kernel.next_pass(rows.matrix, rows.lanes, 1, *bounds, old, theta, state, nonneg)

    return sum(run_together(part, _shares(rows.d, workers)))


def _shares(d: int, workers: int) -> list[tuple[int, int]]:
    """The rows 0 ... d - 1 in as many parts, whole groups of lanes each."""
    if workers == 1:
        return [(0, d)]
    lanes = _kernels().LANES
    size = -(-d // (workers * lanes)) * lanes
    return [(lo, min(lo + size, d)) for lo in range(0, d, size)]


def _rescaled(rows: MatrixRows, size: float, nonneg: bool, find: Callable[[MatrixRows, float], Levels | None]) -> Levels | None:
    """Levels of a matrix that is too large or too small to be summed and squared: those of its multiple by a power of two."""
    if not np.isfinite(rows.data).all():
        return None
    largest = float((rows.data if nonneg else np.abs(rows.data)).max())
    if largest <= 0.0:
        return _nothing(rows)
    exponent = math.frexp(largest)[1]
    levels = find(replace(rows, data=np.ldexp(rows.data.astype(np.float64), -exponent)), _ldexp(size, -exponent))
    assert levels is not None, "finite numbers between -1 and 1 are in scale"
    values = np.ldexp(levels.values, exponent)
    rounded_up = np.ldexp(values, -exponent) > levels.values  # subnormal ones can be
    values[rounded_up] = np.nextafter(values[rounded_up], 0.0)
    return levels._replace(values=values, theta=_ldexp(levels.theta, exponent))


def _ldexp(number: float, exponent: int) -> float:
    """number * 2^exponent, inf where that is too large."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf


def _tiny_ball(rows: MatrixRows, radius: float, state: Array, nonneg: bool) -> Levels:
    """Levels where the radius is lost in the rounding of the rows' sums.

    Works with delta = (largest sum) - theta instead of theta: mu_j = max(0, max_k (delta - gap_jk) / k), gap_jk the largest sum less
    that of the k largest entries of row j. Only rows with a sum within m radius of the largest have a level above zero.
    """
    kernel = _kernels()
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
    size = _kernels().STATE_ROWS
    return own_scratch("l1inf", size * rows.d).reshape(size, rows.d)


@cache
def _kernels() -> Any:
    """All kernels, loaded at the first use; an import statement in each function would cost as much as a small projection."""
    from bench_mtl.kernels import l1inf, l1inf_merge, l1inf_passes, levels

    return SimpleNamespace(**{name: value for module in (levels, l1inf_merge, l1inf_passes, l1inf) for name, value in vars(module).items()})


def _flag(nonneg: bool) -> Any:
    return True if nonneg else None  # None is compiled away
