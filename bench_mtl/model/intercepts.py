"""Free intercepts: a number b_k that is added to all predictions of task k, and that no norm sees.

A problem with intercepts is one of W alone, F(W) = min_b f(X W + b) + R(W). With the squared loss that is the problem of centred data.
At the best b the multipliers of a task add up to 0, and a dual point proves something only where that holds, exactly: b is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench_mtl.core.designs import Design, dense, divided, frozen, leading_value, spectral_norm
from bench_mtl.core.rounding import UNIT
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.task_data import TaskData

#: Sparse features are centred, which makes them dense, where they have at most so many entries in all (8 MiB), or so many for each stored.
MOST_CENTRED, _MOST_GROWTH = 2**20, 4
#: Intercepts of smooth losses: steps at most, and how little of a task's derivative may be left, of the largest there is.
_STEPS, _REST = 80, 1e-16
#: What is left of a column without its mean is rounding up to this share of its entries.
_ROUNDING_OF_MEANS = 8.0 * UNIT

#: Shares of examples that are as near to 0 or 1 are.
_ALMOST_WHOLE = 1e-9

#: Columns whose largest entry is not between this and its inverse are centred in other units: sums or products could leave the range.
_NEAR = 2.0**-500
#: Integers up to this one are doubles, and so are sums of them; multiples of what is far below 1 are, from entries of this size on.
_EXACT, _LEAST_TOP = 2.0**52, 1e-280


@dataclass(frozen=True)
class Centres:
    """What was taken from features and targets."""

    features: Array
    """d x m, or d x 1 where all tasks have the same examples."""
    targets: Array
    """m numbers."""

    def intercepts(self, W: Array) -> Array:
        """Return the best intercepts for coefficients W (d x m) of the centred data, m numbers."""
        return np.asarray(self.targets - (self.features * W).sum(axis=0))


def can_centre(design: Design, weights: Array | None = None) -> bool:
    """Whether centred features, which are dense, hardly take more than there is: of dense data in memory, and of small sparse ones.

    Where examples that tasks share have other weights in each task, so have their means, and they cannot be centred for all.
    """
    if design.is_in_shards or (weights is not None and design.is_shared and np.any(weights != weights[:, :1])):
        return False
    rows = design.sizes[0] if design.is_shared else design.n_examples
    return not design.is_sparse or rows * design.n_features <= max(MOST_CENTRED, _MOST_GROWTH * design.n_stored)


def centred(data: TaskData, weights: Callable[[int], Array | None] = lambda k: None) -> tuple[TaskData, Centres]:
    """Return data whose features and targets have mean 0 in every task, and the means.

    `weights` returns for the number of a task the weights of its examples in the means; None means equal ones.
    """
    design = data.design
    if design.is_shared:
        X, x_mean = centred_columns(design.block(0), weights(0))
        Y, y_mean = centred_columns(data.targets, weights(0))
        made = TaskData.shared(X, Y, name=data.name)
        return replace(data, design=made.design, targets=made.targets), Centres(frozen(x_mean[:, None]), frozen(y_mean))
    blocks, ys, x_means, y_means = [], [], [], []
    for k in range(data.n_tasks):
        block, y = data.task(k)
        X, x_mean = centred_columns(block, weights(k))
        Y, y_mean = centred_columns(y[:, None], weights(k))
        blocks.append(X)
        x_means.append(x_mean)
        y_means.append(float(y_mean[0]))
        ys.append(Y[:, 0])
    made = TaskData.per_task(blocks, ys, name=data.name)
    return replace(data, design=made.design, targets=made.targets), Centres(frozen(np.stack(x_means, axis=1)), frozen(np.array(y_means)))


def centred_norms(design: Design) -> Array:
    """Return the spectral norms of the designs without their column means, m numbers, or of those as they are where they are very large.

    Under intercepts the curvature of f in W is no more than that of the squares of these, times the largest second derivative.
    """
    if design.is_in_shards:
        return design.norms()
    is_dense = can_centre(design)
    blocks = (design.block(k) for k in range(1 if design.is_shared else design.n_tasks))
    norms = [spectral_norm(centred_columns(X)[0]) if is_dense else _sparse_norm(X) for X in blocks]
    return np.full(design.n_tasks, norms)


def _sparse_norm(X: Any) -> float:
    """Return the norm of X - 1 mean^T, of which only products are made, as `spectral_norm` does beyond what it decomposes."""
    from scipy.sparse.linalg import LinearOperator

    if min(X.shape) < 3:
        return spectral_norm(X)
    scale = float(np.abs(X.data).max(initial=0.0)) or 1.0
    X = divided(X, scale)
    mean = np.asarray(X.mean(axis=0)).ravel()
    products = {"matvec": lambda v: X @ v.ravel() - mean @ v.ravel(), "rmatvec": lambda u: X.T @ u.ravel() - mean * u.sum()}
    largest = leading_value(LinearOperator(X.shape, dtype=np.float64, **products))
    return scale * (spectral_norm(X) if largest is None else largest)


def centred_columns(X: Matrix, weights: Array | None = None) -> tuple[Array, Array]:
    """Return a matrix without the means of its columns, and these. A column that is constant is 0.

    Means are those of the distances to the entry that is nearest to a rough mean. So they are not off by the rounding of a long sum, and no
    distance is much larger than what is left of it: a few outliers cost the other entries no digits.
    """
    rows = dense(X)
    top = np.abs(rows).max(axis=0, initial=0.0)
    shift = np.where((top > _NEAR) & (top < 1.0 / _NEAR), 0, np.frexp(top)[1])
    rows = np.ldexp(rows, -shift) if shift.any() else rows
    shares = None if weights is None else weights / weights.max()
    nearest = np.zeros(rows.shape[1])
    if len(rows):
        distances = rows - np.average(rows, axis=0, weights=shares)
        nearest = np.take_along_axis(rows, np.abs(distances, out=distances).argmin(axis=0)[None, :], axis=0)[0]
    rest = rows - nearest
    beyond = np.asarray(np.average(rest, axis=0, weights=shares))
    if shift.any():
        return np.ldexp(rest - beyond, shift), np.ldexp(nearest + beyond, shift)
    return rest - beyond, nearest + beyond


def root_of_falling(value_and_slope: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, scale: Array) -> Array:
    """Return, for every task, the root of a function that falls from above 0 at `low` to below 0 at `high`; an end where it does not.

    Newton steps, halves of the interval where they leave it. `value_and_slope` returns the functions of all tasks at their numbers, and
    minus their derivatives; a value is 0 where rounding could have made it, of values of this `scale`.
    """
    b = np.clip(0.0, low, high)
    low, high = low.copy(), high.copy()
    for _ in range(_STEPS):
        value, slope = value_and_slope(b)
        low, high = np.where(value > 0.0, b, low), np.where(value < 0.0, b, high)
        with np.errstate(all="ignore"):
            following = b + value / slope
        following = np.where((following > low) & (following < high), following, 0.5 * (low + high))
        open_ = (np.abs(value) > _REST * scale) & (following != b)
        if not open_.any():
            break
        b = np.where(open_, following, b)
    return b


def kinked_intercepts(rest: Array, weights: Array, rises: Array, design: Design) -> Array:
    """Return for every task a b that minimises sum_i w_i max(h_i z_i, (h_i - 1) z_i), z_i = rest_i - b, in the middle of all of them.

    The slope of the sum rises by w_i at each rest_i, from minus the sum of the w_i h_i.
    """
    b = np.empty(design.n_tasks)
    totals = design.task_sums(weights * rises)
    for k in range(design.n_tasks):
        places = design.task_outputs(rest, k)
        order = np.argsort(places, kind="stable")
        sums, total = np.cumsum(design.task_outputs(weights, k)[order]), float(totals[k])
        slack = _ROUNDING_OF_MEANS * sums[-1] * max(1.0, len(sums) / 64.0)
        # Between these the total is reached: the same place twice where it is crossed there.
        first, last = (min(int(np.searchsorted(sums, end)), len(sums) - 1) for end in (total - slack, total + slack))
        b[k] = 0.5 * (places[order[first]] + places[order[last]])
    return b


def kinked_slopes(rest: Array, weights: Array, rises: Array, design: Design) -> Array:
    """Return the slopes in z_i of the functions of `kinked_intercepts` at the best b, whose weighted sum is 0 in every task.

    They are h_i, or h_i - 1 where rest_i is below b. Of examples just at b the order of the examples decides; one may be between.
    """
    slopes = np.empty(design.output_shape)
    for k in range(design.n_tasks):
        w, high = design.task_outputs(weights, k), design.task_outputs(rises, k)
        order = np.argsort(design.task_outputs(rest, k), kind="stable")
        below, own = np.empty(len(w)), w[order]
        shares = np.clip(((w * high).sum() - (np.cumsum(own) - own)) / own, 0.0, 1.0)
        whole = np.rint(shares)
        below[order] = np.where(np.abs(shares - whole) <= _ALMOST_WHOLE, whole, shares)
        design.task_outputs(slopes, k)[:] = high - below
    return slopes


def smoothed_intercepts(rest: Array, weights: Array, rises: Array, smoothing: float, design: Design) -> Array:
    """Return the best b of the functions of `kinked_intercepts` with slopes z_i / smoothing, clipped to h_i - 1 and h_i."""
    reach = np.full(design.n_tasks, float(np.abs(rest).max(initial=0.0)) + smoothing)

    def value_and_slope(b: Array) -> tuple[Array, Array]:
        slopes = (rest - design.per_example(b)) / smoothing
        inside = (slopes > rises - 1.0) & (slopes < rises)
        return design.task_sums(weights * np.clip(slopes, rises - 1.0, rises)), design.task_sums(weights * inside / smoothing)

    return root_of_falling(value_and_slope, -reach, reach, design.task_sums(weights))


def scaled_to_balance(dual: Array, design: Design) -> Array:
    """Return the dual point with the heavier sign of every task scaled down to the sum of the lighter one, up to rounding."""
    positive, negative = design.task_sums(np.maximum(dual, 0.0)), design.task_sums(np.maximum(-dual, 0.0))
    least = np.minimum(positive, negative)
    up, down = (np.where(total > 0.0, least / np.where(total > 0.0, total, 1.0), 0.0) for total in (positive, negative))
    return np.asarray(np.where(dual > 0.0, design.per_example(up), design.per_example(down)) * dual)


def exactly_balanced(dual: Array, design: Design) -> Array:
    """Return a dual point next to this one whose entries of every task add up to 0 in exact arithmetic; none is larger in magnitude.

    Entries are rounded towards 0 to multiples of a power of two, such that all sums of them are doubles; what is then missing is taken
    from the largest entry of the heavier sign. A task in which none is large enough gets zeros.
    """
    near = scaled_to_balance(dual, design)
    found = np.zeros(design.output_shape)
    for k in range(design.n_tasks):
        r = design.task_outputs(near, k)
        top = float(np.abs(r).max(initial=0.0))
        if not _LEAST_TOP < top < np.inf:
            continue
        _, exponent = np.frexp(top * (2.0 * len(r) / _EXACT))
        units = np.trunc(np.ldexp(r, -exponent))  # whole numbers whose moduli add up to less than 2^52
        over = float(units.sum())
        place = int(np.argmax(units * np.sign(over))) if over else 0
        if np.sign(over) * units[place] < abs(over):
            continue
        units[place] -= over
        design.task_outputs(found, k)[:] = np.ldexp(units, exponent)
    return found
