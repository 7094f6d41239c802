"""Newton steps for the logistic loss under an l1 penalty, each found by sweeps of coordinate descent over a quadratic model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact
from bench_mtl.solvers.l1_working_set.kernels import product, subtract

#: Sweeps over one quadratic model at most.
_MOST_SWEEPS = 30

#: A model is solved until no coordinate's step changes its slope by more than this share of the largest violation.
_SHARE = 0.1

#: Armijo's constant, and how often a step is halved at most.
_ARMIJO, _HALVINGS = 0.01, 40

#: Rounding of the objective, relative: a step that seems to raise it by no more is taken.
_ROUNDING = 4e-16

#: What is added to the curvature of a coordinate, as a share of its largest value: at margins of hundreds there is none left.
_LEAST_CURVATURE = 1e-12

NOT_YET, PROVEN, STUCK = range(3)


@exact
def newton_steps(
    values: Any, indices: Any, indptr: Any, y: Any, s: Any, squares: Any, penalty: float, nonneg: bool, tolerance: float, most: float,
    w: Any, t: Any,
) -> tuple[int, float]:  # fmt: skip
    """min_w sum_i s_i log(1 + exp(-y_i x_i.w)) + penalty ||w||_1, w >= 0 where `nonneg`; from w with its predictions t, which change.

    Parameters
    ----------
    values, indices, indptr : of columns, as in CSC form with unsigned indices; or columns one after the other, None and None
    squares : sum_i s_i x_ij^2 of every column
    tolerance : a gap that ends the steps
    most : passes over the columns that end them

    Returns
    -------
    `PROVEN` where the gap is met, `STUCK` where rounding lets no step lower the objective, else `NOT_YET`; and the passes made.
    """
    n, d = y.size, w.size
    r, h, change = np.empty(n), np.empty(n), np.empty(n)
    slopes, step, curvatures, active = np.empty(d), np.zeros(d), np.zeros(d), np.empty(d, dtype=np.int64)
    passes = 0.0
    while True:
        value = _derivatives(y, s, t, r, h)
        highest, norm, worst = 0.0, 0.0, 0.0
        for j in range(d):
            slopes[j] = product(values, indices, indptr, j, r)
            highest = max(highest, slopes[j] if nonneg else abs(slopes[j]))
            norm += abs(w[j])
            worst = max(worst, _violation(slopes[j], w[j], penalty, nonneg))
        passes += 1.0
        objective = value + penalty * norm
        if objective - _dual(y, s, t, min(1.0, penalty / highest) if highest > 0.0 else 1.0) <= tolerance:
            return PROVEN, passes
        if worst == 0.0:
            return STUCK, passes
        if passes >= most:
            return NOT_YET, passes
        count = 0
        for j in range(d):
            if squares[j] > 0.0 and (w[j] != 0.0 or (slopes[j] if nonneg else abs(slopes[j])) > penalty - worst):
                active[count], step[j], count = j, 0.0, count + 1
                curvatures[j] = _curvature(values, indices, indptr, j, h) + _LEAST_CURVATURE * squares[j]
        chosen = active[:count]
        sweeps = _solve_model(values, indices, indptr, chosen, curvatures, penalty, nonneg, h, _SHARE * worst, w, step, r)
        passes += count * (sweeps + 2.0) / d
        along = 0.0
        for j in chosen:
            along += penalty * (abs(w[j] + step[j]) - abs(w[j])) - slopes[j] * step[j]
        if not along < 0.0:
            return STUCK, passes
        change[:] = 0.0
        for j in chosen:
            if step[j] != 0.0:
                subtract(values, indices, indptr, j, -step[j], None, change)
        share = _line_search(y, s, t, change, chosen, w, step, penalty, value, along, _ROUNDING * objective)
        if share == 0.0:
            return STUCK, passes
        for j in chosen:
            w[j] += share * step[j]
        for i in range(n):
            t[i] += share * change[i]


@exact
def _derivatives(y: Any, s: Any, t: Any, r: Any, h: Any) -> float:
    """Write minus the derivatives in the predictions to r and the curvatures to h; return the loss."""
    total = 0.0
    for i in range(y.size):
        margin = y[i] * t[i]
        small = math.exp(-abs(margin))
        r[i] = s[i] * y[i] * (small if margin > 0.0 else 1.0) / (1.0 + small)
        h[i] = s[i] * small / (1.0 + small) ** 2
        total += s[i] * (math.log1p(small) + max(-margin, 0.0))
    return total


@exact
def _dual(y: Any, s: Any, t: Any, c: float) -> float:
    """sum_i s_i H(c p_i) for the probabilities p_i of the other label, H(p) = -p log p - (1 - p) log(1 - p)."""
    total = 0.0
    for i in range(y.size):
        margin = y[i] * t[i]
        small = math.exp(-abs(margin))
        p = c * (small if margin > 0.0 else 1.0) / (1.0 + small)
        if p > 0.0:
            total -= s[i] * p * math.log(p)
        if p < 1.0:
            total -= s[i] * (1.0 - p) * math.log1p(-p)
    return total


@exact
def _violation(slope: float, w: float, penalty: float, nonneg: bool) -> float:
    """By how much a slope, minus a derivative of the loss, misses its condition: penalty sign(w), or not above it where w = 0."""
    if w > 0.0:
        return abs(slope - penalty)
    if w < 0.0:
        return abs(slope + penalty)
    return max(0.0, (slope if nonneg else abs(slope)) - penalty)


@exact
def _curvature(values: Any, indices: Any, indptr: Any, j: int, h: Any) -> float:
    """sum_i h_i x_ij^2."""
    total = 0.0
    if indptr is None:
        x = values[j * h.size : (j + 1) * h.size]
        for i in range(h.size):
            total += h[i] * x[i] * x[i]
    else:
        x, rows = values[indptr[j] : indptr[j + 1]], indices[indptr[j] : indptr[j + 1]]
        for q in range(x.size):
            total += h[rows[q]] * x[q] * x[q]
    return total


@exact
def _solve_model(
    values: Any, indices: Any, indptr: Any, chosen: Any, curvatures: Any, penalty: float, nonneg: bool, h: Any, tolerance: float,
    w: Any, step: Any, r: Any,
) -> int:  # fmt: skip
    """Sweep over the chosen coordinates of step for the model of second order around w; return how often.

    r are the residuals of the model, and follow the step.
    """
    for sweep in range(_MOST_SWEEPS):
        largest = 0.0
        for j in chosen:
            old = w[j] + step[j]
            new = old + product(values, indices, indptr, j, r) / curvatures[j]
            cut = penalty / curvatures[j]
            new = max(new - cut, 0.0) if nonneg else max(new - cut, 0.0) + min(new + cut, 0.0)
            change = new - old
            if change != 0.0:
                step[j] = new - w[j]
                subtract(values, indices, indptr, j, change, h, r)
                largest = max(largest, abs(change) * curvatures[j])
        if largest <= tolerance:
            return sweep + 1
    return _MOST_SWEEPS


@exact
def _line_search(
    y: Any, s: Any, t: Any, change: Any, chosen: Any, w: Any, step: Any, penalty: float, value: float, along: float, rounding: float
) -> float:
    """Return the first of 1, 1/2, 1/4, ... that lowers the objective enough, 0 where none does.

    `along` is the slope of the loss along the step plus the change of the penalty over it, below 0.
    """
    share = 1.0
    for _ in range(_HALVINGS):
        rise = -value
        for i in range(y.size):
            margin = y[i] * (t[i] + share * change[i])
            rise += s[i] * (math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0))
        for j in chosen:
            rise += penalty * (abs(w[j] + share * step[j]) - abs(w[j]))
        if rise <= _ARMIJO * share * along + rounding:
            return share
        share *= 0.5
    return 0.0


def warm_up() -> None:
    """Compile the steps for dense and for sparse columns."""
    y, s = np.array([1.0, -1.0]), np.full(2, 0.5)
    dense = np.array([1.0, 0.5, 0.25, 1.0]), None, None
    sparse = np.array([1.0, 0.5, 0.25, 1.0]), np.array([0, 1, 0, 1], dtype=np.uint32), np.array([0, 2, 4])
    steps: Any = newton_steps
    for columns in (dense, sparse):
        steps(*columns, y, s, np.ones(2), 0.01, False, 1e-9, 50.0, np.zeros(2), np.zeros(2))
