"""The levels at which the rows of a matrix are cut by the l1,inf projection and proximal operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.projections.l1inf_passes import Passes, kernels
from bench_mtl.projections.matrix_rows import MatrixRows


class Levels(NamedTuple):
    """The level at which each row is cut. (The next call may use the memory of `values` again.)"""

    values: Array
    theta: float
    passes: int
    inside: bool = False
    """Nothing is cut at all."""


def newton(passes: Passes, radius: float, theta0: float | None) -> Levels | None:
    """Levels of the projection by `kernels.l1inf`; None where there is NaN or inf."""
    kernel, state = kernels(), passes.state
    if passes.rows.data.size == 0:
        return _uncut(passes)
    status, theta, count = passes.search(radius, -1.0 if theta0 is None else theta0)
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, count, inside=True)
    if status == kernel.PROJECTED:
        return Levels(state[kernel.LEVEL], theta, count)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(passes, radius, lambda scaled, size: newton(scaled, size, None))
    if status == kernel.TINY_RADIUS:
        return _tiny_ball(passes, radius)
    return merge(passes, radius)


def merge(passes: Passes, radius: float) -> Levels | None:
    """Levels of the projection by the published algorithm, `kernels.l1inf_merge`; None where there is NaN or inf."""
    kernel, rows, state = kernels(), passes.rows, passes.state
    if rows.data.size == 0:
        return _uncut(passes)
    passes.prediction[0] = np.nan
    status = kernel.assess(state, passes.first(0.0), radius)
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, 1, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return _rescaled(passes, radius, merge)
    if status == kernel.TINY_RADIUS:
        return _tiny_ball(passes, radius)
    start = np.arange(0, rows.d * rows.m + 1, rows.m) if rows.indptr is None else rows.indptr.astype(np.int64)
    levels = np.empty(rows.d)
    theta = kernel.merge_levels(_magnitudes(passes), start, kernel.excess(state, radius), levels)
    kernel.settle(levels, radius)
    return Levels(levels, theta, 1)


def fixed(passes: Passes, theta: float) -> Levels | None:
    """Levels above which each row has theta >= 0 in all, 0 where it has less; None where there is NaN or inf."""
    kernel, rows, state = kernels(), passes.rows, passes.state
    if rows.data.size == 0 or theta == 0.0:
        return _uncut(passes) if norms(rows) is not None else None
    passes.search(0.0, theta, only_prepare=True)
    unsettled = passes.first(theta)
    if kernel.assess(state, unsettled, 0.0) == kernel.OUT_OF_SCALE:
        return _rescaled(passes, theta, fixed)
    if unsettled > 0:
        passes.following(theta, theta)
    return Levels(state[kernel.LEVEL], theta, 1)


def norms(rows: MatrixRows) -> tuple[float, float] | None:
    """Sum of the rows' largest magnitudes, and largest of the rows' sums; None where there is NaN or inf."""
    kernel = kernels()
    if rows.data.size == 0:
        return 0.0, 0.0
    passes = Passes.of(rows, False, rows.data)
    passes.prediction[0] = np.nan
    if passes.first(0.0) < 0:
        if not np.isfinite(rows.data).all():
            return None
        exponent = math.frexp(float(np.abs(rows.data).max()))[1]  # the sums are infinite
        scaled = norms(replace(rows, data=np.ldexp(rows.data.astype(np.float64), -exponent)))
        return None if scaled is None else (_ldexp(scaled[0], exponent), _ldexp(scaled[1], exponent))
    return float(kernel.compensated_sum(passes.state[kernel.MAXIMUM])), float(passes.state[kernel.TOTAL].max())


def _rescaled(passes: Passes, size: float, find: Callable[[Passes, float], Levels | None]) -> Levels | None:
    """Levels of a matrix that is too large or too small to be summed and squared: those of its multiple by a power of two."""
    data = passes.rows.data
    if not np.isfinite(data).all():
        return None
    if passes.nonneg:
        data = np.maximum(data, 0.0)  # what is below may be too large for the scale of the rest
    largest = float(np.abs(data).max())
    if largest <= 0.0:
        return _uncut(passes)
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(data.astype(np.float64), -exponent)
    levels = find(Passes.of(replace(passes.rows, data=scaled), bool(passes.nonneg), scaled), _ldexp(size, -exponent))
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


def _tiny_ball(passes: Passes, radius: float) -> Levels:
    """Levels where the radius is lost in the rounding of the rows' sums.

    Works with delta = (largest sum) - theta instead of theta: mu_j = max(0, max_k (delta - gap_jk) / k), gap_jk the largest sum less
    that of the k largest entries of row j. The row with the largest sum alone keeps delta below its length times the radius, and only
    rows that are as near to it have a level above zero.
    """
    kernel, rows = kernels(), passes.rows
    totals, levels = passes.state[kernel.TOTAL], np.zeros(rows.d)
    first = int(totals.argmax())
    largest = float(totals[first])
    if radius == 0.0:
        return Levels(levels, largest, 1)
    length = np.full(rows.d, rows.m) if rows.indptr is None else np.diff(rows.indptr)
    delta = min(largest, float(length[first]) * radius)
    near = np.flatnonzero(largest - totals <= delta)
    groups = [_Gaps.of(passes, near[length[near] == n], largest - totals) for n in np.unique(length[near])]
    for _ in range(kernel.MAX_PASSES):
        total = slope = 0.0
        for group in groups:
            values, slopes = group.levels(delta)
            levels[group.rows] = values
            total, slope = total + float(values.sum()), slope + float(slopes.sum())
        step = (total - radius) / slope if slope > 0.0 else 0.0
        if step <= 0.0 or delta - step == delta:  # from the right, Newton's method falls until rounding
            break
        delta = max(delta - step, radius / len(near))
    kernel.settle(levels, radius)
    while math.fsum(levels) > radius:  # subnormal levels are not made smaller by a share of themselves
        levels = np.nextafter(levels, 0.0)
    return Levels(levels, largest - delta, 1)


class _Gaps(NamedTuple):
    """gap_jk of `_tiny_ball` for rows of equal length."""

    rows: Any
    gaps: Array

    @classmethod
    def of(cls, passes: Passes, chosen: Any, behind: Array) -> _Gaps:
        rows = passes.rows
        if rows.indptr is None:
            across, along = rows.lanes or (rows.m, 1)
            data = rows.data[chosen[:, None] * across + np.arange(rows.m) * along]
        else:
            data = rows.data[rows.indptr[chosen][:, None] + np.arange(rows.indptr[chosen[0] + 1] - rows.indptr[chosen[0]])]
        magnitudes = (np.maximum(data, 0.0) if passes.nonneg else np.abs(data)).astype(np.float64)
        magnitudes.sort(axis=1)
        left_out = np.cumsum(magnitudes[:, :-1], axis=1)[:, ::-1]  # by the k largest, k = 1 .. n - 1
        return cls(chosen, np.hstack([left_out, np.zeros((len(chosen), 1))]) + behind[chosen][:, None])

    def levels(self, delta: float) -> tuple[Array, Array]:
        """The rows' levels and their derivatives by delta."""
        count = np.arange(1.0, self.gaps.shape[1] + 1.0)
        lines = (delta - self.gaps) / count
        best = lines.argmax(axis=1)
        values = np.take_along_axis(lines, best[:, None], axis=1)[:, 0]
        return np.maximum(values, 0.0), np.where(values > 0.0, 1.0 / count[best], 0.0)


def _magnitudes(passes: Passes) -> Array:
    """Magnitudes of all rows, one after the other."""
    rows, data = passes.rows, passes.rows.data
    if rows.lanes is not None and rows.lanes[1] != 1:
        data = data.reshape(rows.m, rows.d).T.reshape(-1)
    return np.maximum(data, 0.0).astype(np.float64) if passes.nonneg else np.abs(data).astype(np.float64)


def _uncut(passes: Passes) -> Levels:
    """The levels of a matrix of which nothing is cut."""
    return Levels(np.zeros(passes.rows.d), 0.0, 0, inside=True)
