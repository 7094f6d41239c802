"""The levels at which the rows of a matrix are cut by the l1,inf projection and proximal operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.projections.border import ldexp, scratch_buffer

#: Rows of at most this length are searched side by side.
_SHORT_ROW = 32

_SIGN_OFF = np.int64(np.iinfo(np.int64).max)


class Levels(NamedTuple):
    """The level at which each row is cut. (The next call may use the memory of `values` again.)"""

    values: Array
    theta: float
    passes: int
    inside: bool = False
    """Nothing is cut at all."""


class Rows(NamedTuple):
    """A matrix as the kernels take it: its entries row after row, the row pointer if it is CSR, and its shape."""

    data: Array
    indptr: Any
    d: int
    m: int

    @property
    def matrix(self) -> Any:
        """What `kernels/l1inf_passes.py` calls a matrix, in the types that solvers compile it for."""
        return self.data, self.data.view(np.int64), _SIGN_OFF, self.indptr, self.m

    @property
    def lanes(self) -> Any:
        return (self.m, 1) if self.indptr is None and self.m <= _SHORT_ROW else None

    def state(self) -> tuple[Array, Array]:
        """Memory for the state of the rows, and a prediction that predicts nothing."""
        rows = kernels().STATE_ROWS
        return scratch_buffer("l1inf", rows * self.d).reshape(rows, self.d), np.full(kernels().COEFFICIENTS, np.nan)


@cache
def kernels() -> Any:
    """Load the kernels at the first use; an import statement in each function would cost as much as a small projection."""
    from bench_mtl.projections.kernels import l1inf, l1inf_merge, l1inf_passes, levels

    modules = (levels, l1inf_merge, l1inf_passes, l1inf)
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})


#: A search for levels, of a radius or weight; None where numbers are out of scale, NaN or infinite.
Search = Callable[[Rows, float], Levels | None]


def found(search: Search, rows: Rows, size: float) -> Levels | None:
    """What the search finds, for a multiple by a power of two where numbers are out of scale; None where there is NaN or inf."""
    if rows.data.size == 0:
        return Levels(np.zeros(rows.d), 0.0, 0, inside=True)
    levels = search(rows, size)
    if levels is not None or not np.isfinite(rows.data).all():
        return levels
    exponent = math.frexp(float(np.abs(rows.data).max()))[1]
    scaled = float(ldexp(size, -exponent))
    if ldexp(scaled, exponent) > size:  # a subnormal one was rounded up
        scaled = float(np.nextafter(scaled, 0.0))
    levels = search(rows._replace(data=np.ldexp(rows.data, -exponent)), scaled)
    if levels is None:
        return Levels(np.zeros(rows.d), 0.0, 0, inside=True)  # a matrix of zeros
    values = np.ldexp(levels.values, exponent)
    rounded_up = np.ldexp(values, -exponent) > levels.values  # subnormal ones can be
    values[rounded_up] = np.nextafter(values[rounded_up], 0.0)
    return levels._replace(values=values, theta=float(ldexp(levels.theta, exponent)))


def newton(theta0: float | None) -> Search:
    """A search for levels of the projection by `kernels.l1inf.search`, from a guess of theta."""

    def search(rows: Rows, radius: float) -> Levels | None:
        kernel, (state, prediction) = kernels(), rows.state()
        start = -1.0 if theta0 is None else theta0
        status, theta, count = kernel.search(rows.matrix, rows.lanes, radius, start, False, prediction, state)
        if status == kernel.UNFINISHED:
            return merge(rows, radius)
        if status == kernel.INSIDE:
            return Levels(state[kernel.MAXIMUM], 0.0, count, inside=True)
        return Levels(state[kernel.LEVEL], theta, count) if status == kernel.PROJECTED else None

    return search


def merge(rows: Rows, radius: float) -> Levels | None:
    """Levels of the projection by the published algorithm, `kernels.l1inf_merge`."""
    kernel, (state, prediction) = kernels(), rows.state()
    status = kernel.assess(state, kernel.first_pass(rows.matrix, rows.lanes, 1, 0.0, prediction, state, None), radius)
    if status == kernel.INSIDE:
        return Levels(state[kernel.MAXIMUM], 0.0, 1, inside=True)
    if status == kernel.OUT_OF_SCALE:
        return None
    start = np.arange(0, rows.d * rows.m + 1, rows.m) if rows.indptr is None else rows.indptr.astype(np.int64)
    levels = np.empty(rows.d)
    theta = kernel.merge_levels(np.abs(rows.data), start, kernel.excess(state, radius), levels)
    kernel.all_to_largest(levels, state[kernel.TOTAL], radius)
    kernel.settle(levels, radius)
    return Levels(levels, theta, 1)


def fixed(rows: Rows, theta: float) -> Levels | None:
    """Levels above which each row has theta >= 0 in all, at most 0 where it has less."""
    kernel, (state, prediction) = kernels(), rows.state()
    if theta > 0.0:
        kernel.search(rows.matrix, rows.lanes, 0.0, theta, True, prediction, state)
    if kernel.assess(state, kernel.both_passes(rows.matrix, rows.lanes, theta, prediction, state), 0.0) == kernel.OUT_OF_SCALE:
        return None
    return Levels(state[kernel.LEVEL], theta, 1, inside=theta == 0.0)


def norms(rows: Rows, _: float) -> Levels | None:
    """Largest magnitudes of the rows as levels, and as theta the largest of their sums."""
    kernel, (state, prediction) = kernels(), rows.state()
    if kernel.first_pass(rows.matrix, rows.lanes, 1, 0.0, prediction, state, None) < 0:
        return None
    return Levels(state[kernel.MAXIMUM], float(state[kernel.TOTAL].max()), 1)
