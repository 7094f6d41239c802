"""Compiled parts of a step of PDHG: passes over the data of a bilinear coupling <b, X W>, and where both points go on to.

With one task's predictions its dual entries are known, and with these its column of X^T b; so where tasks have data of their own both
products are made while these are in cache. All is float64, but dense data of tasks of their own may be float32. W and G are d x m in C
order. Dual arrays are flat: task after task, or example by example with m entries each where the data are shared.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined, reordered, selecting
from bench_mtl.core.kernels.vectors import add_multiple, dot, squared_distance
from bench_mtl.core.types import Array
from bench_mtl.projections.kernels.l1inf import INSIDE, OUT_OF_SCALE, PROJECTED, search
from bench_mtl.projections.kernels.l1inf_passes import clip, first_pass
from bench_mtl.projections.kernels.levels import COEFFICIENTS, LEVEL, STATE_ROWS
from bench_mtl.solvers.kernels.weighted_norms import project_rows, project_weighted_l1, project_weighted_l2

#: Longest rows that a projection searches side by side.
_SHORT_ROW = 32

#: What norms of 0 are divided by.
_TINY = 2.0**-1022


class Columns(NamedTuple):
    """Data stored by features: those without a coefficient, and those that are settled, cost nothing then."""

    values: Any
    """X_1^T, X_2^T, ... (d x n_k), one after the other; of sparse data the columns of X_1, X_2, ..., d a task, or those of the shared X."""
    indices: Any
    """Of sparse data the examples, all tasks counted; otherwise None."""
    indptr: Any
    """Of sparse data where the columns begin; otherwise None, by which the compiler tells the two."""
    offsets: Any
    """Where the examples of the tasks begin."""


class Primal(NamedTuple):
    """Primal matrices: z, its anchor z0, T(z), 2 T(z) - z, and G = X^T b. They are planes of one array: handing over five takes time."""

    point: Array
    anchor: Array
    stepped: Array
    extrapolated: Array
    gradient: Array


class Norm(NamedTuple):
    """What the primal half of a step projects on or shrinks by."""

    units: Any
    """Of the features, or None: an array where they are unlike."""
    radius: float
    penalised: bool
    levels: Array
    prediction: Array
    """Memory of the search."""


class Balls(NamedTuple):
    """A ball for every column of W."""

    units: Array
    one_norm: bool
    """l1 balls, else l2."""
    radii: Array
    thresholds: Array
    """Where the searches begin, and what they end at."""


class Dual(NamedTuple):
    """Dual vectors: z, its anchor, T(z), predictions at the primal z, at its anchor, and extrapolated; targets (labels) and the box.

    They are rows of one array.
    """

    point: Array
    anchor: Array
    stepped: Array
    predicted: Array
    predicted_anchor: Array
    extrapolated: Array
    target: Array
    lower: Array
    upper: Array


_POINT, _ANCHOR, _STEPPED, _PREDICTED, _PREDICTED_ANCHOR, _EXTRAPOLATED, _TARGET, _LOWER, _UPPER = range(9)


class Step(NamedTuple):
    """A step from z to p T(z) + q z + r z0."""

    tau: float
    sigma: Array
    """The dual step size of every task."""
    p: float
    q: float
    r: float


def norm_of(units: Array | None, shape: tuple[int, int], radius: float | None, penalised: bool) -> Norm:
    return Norm(units, radius or 0.0, penalised, np.empty((STATE_ROWS, shape[0])), np.empty(COEFFICIENTS))


@inlined
def _primal(planes: Any) -> Any:
    return Primal(planes[0], planes[1], planes[2], planes[3], planes[4])


@exact
def norm_step(planes: Any, step: Any, norm: Any, theta: float) -> tuple[float, float]:
    """The primal half of a step under an l1,inf norm; returns theta for the next step and ||T(z) - z||^2.

    The search begins at theta, which with a penalty is tau times that; -1 is returned where the numbers are out of scale.
    """
    primal = _primal(planes)
    _ascend_primal(primal, step)
    V = primal.stepped
    if V.shape[1] <= _SHORT_ROW:
        theta = _project(V, norm.units, (V.shape[1], np.int64(1)), norm, theta)
    else:
        theta = _project(V, norm.units, None, norm, theta)
    return theta, _go_on(primal, step)


@exact
def _project(V: Any, units: Any, lanes: Any, norm: Any, theta: float) -> float:
    """V <- its projection, or its proximal point; returns theta: 0 where V is inside, -1 where it is out of scale."""
    if units is not None:
        return project_rows(V, norm.radius, norm.penalised, theta, units)
    else:
        data = V.reshape(-1)
        matrix = (data, data.view(np.int64), np.int64(0x7FFFFFFFFFFFFFFF), None, V.shape[1])
        if norm.penalised:
            norm.prediction[0] = np.nan
            one: Any = np.int64(1)  # a bare 1 would be a type of its own, and all that it is passed to would be compiled again for it
            if first_pass(matrix, lanes, one, theta, norm.prediction, norm.levels, None) < 0:
                return -1.0
        else:
            status, theta, _ = search(matrix, lanes, norm.radius, theta, False, norm.prediction, norm.levels)
            if status == OUT_OF_SCALE:
                return -1.0
            if status == INSIDE:
                return 0.0
            if status != PROJECTED:  # a tiny radius
                return project_rows(V, norm.radius, False, 0.0, np.ones(len(V)))
        clip(matrix, lanes, norm.levels[LEVEL], None, data)
        return theta


@exact
def ball_step(planes: Any, step: Any, balls: Any) -> float:
    """The primal half of a step with a ball for every task; returns ||T(z) - z||^2, or -1 where the numbers are out of scale."""
    primal = _primal(planes)
    _ascend_primal(primal, step)
    column = np.empty(len(primal.stepped))
    for k in range(primal.stepped.shape[1]):
        column[:] = primal.stepped[:, k]
        if balls.one_norm:
            theta = project_weighted_l1(column, balls.radii[k], balls.units, balls.thresholds[k])
        else:
            theta = project_weighted_l2(column, balls.radii[k], balls.units)
        if theta < 0.0:
            return -1.0
        primal.stepped[:, k], balls.thresholds[k] = column, theta
    return _go_on(primal, step)


@exact
def _ascend_primal(primal: Any, step: Any) -> None:
    G, V = primal.gradient.reshape(-1), primal.stepped.reshape(-1)
    combine(primal.point.reshape(-1), 1.0, G, step.tau, G, 0.0, V)


@exact
def _go_on(primal: Any, step: Any) -> float:
    """2 T(z) - z, and where the point goes on to; returns ||T(z) - z||^2."""
    point, anchor, stepped = primal.point.reshape(-1), primal.anchor.reshape(-1), primal.stepped.reshape(-1)
    combine(stepped, 2.0, point, -1.0, point, 0.0, primal.extrapolated.reshape(-1))
    moved = squared_distance(stepped, point)
    combine(stepped, step.p, point, step.q, anchor, step.r, point)
    return moved


@exact
def dual_step(rows: Any, begin: int, end: int, step: Any, k: int) -> tuple[float, float]:
    """b <- p T(b) + q b + r b0 with T(b) = clip(b + sigma (target - u)) at the predictions u, and the predictions at W likewise.

    Returns ||T(b) - b||^2 / sigma and <T(b) - b, u - X W> with the W from before.
    """
    # Slices of rows, not a slice of all: that would not be contiguous to the compiler, and take no vector instructions.
    b, anchor, stepped = rows[_POINT][begin:end], rows[_ANCHOR][begin:end], rows[_STEPPED][begin:end]
    predicted, predicted_anchor = rows[_PREDICTED][begin:end], rows[_PREDICTED_ANCHOR][begin:end]
    u, target, lower, upper = rows[_EXTRAPOLATED][begin:end], rows[_TARGET][begin:end], rows[_LOWER][begin:end], rows[_UPPER][begin:end]
    _ascend(b, step.sigma[k], target, u, lower, upper, stepped)
    squares, product = _dual_moves(b, stepped, predicted, u)
    half = 0.5 * step.p  # X T(W) = (X (2 T(W) - W) + X W) / 2
    combine(stepped, step.p, b, step.q, anchor, step.r, b)
    combine(u, half, predicted, step.q + half, predicted_anchor, step.r, predicted)
    return squares / step.sigma[k], product


# Few arrays in a loop, and one that is written: with more, the compiler does not check whether they overlap, and takes no vectors.


@selecting
def _ascend(b: Any, sigma: float, target: Any, u: Any, lower: Any, upper: Any, out: Any) -> None:
    for i in range(out.size):
        moved = b[i] + sigma * (target[i] - u[i])
        moved = moved if moved > lower[i] else lower[i]
        out[i] = moved if moved < upper[i] else upper[i]


@reordered
def _dual_moves(b: Any, stepped: Any, predicted: Any, u: Any) -> tuple[float, float]:
    squares = 0.0
    product = 0.0
    for i in range(b.size):
        move = stepped[i] - b[i]
        squares += move * move
        product += move * (u[i] - predicted[i])
    return squares, product


@reordered
def combine(x: Any, p: float, y: Any, q: float, z: Any, r: float, out: Any) -> None:
    """out = p x + q y + r z, which may be one of them."""
    for i in range(out.size):
        out[i] = p * x[i] + q * y[i] + r * z[i]


# Tasks with data of their own.


@exact
def coupled_step(data: Any, planes: Any, duals: Any, step: Any, rows: Any, tasks: Any, moves: Any) -> None:
    """A dual step at the extrapolated primal point, and these rows of G = X^T (the new dual point), in one pass.

    Only for tasks first, ..., last - 1, so that threads can share them; `moves`, 2 x m, are what every task adds to those of `dual_step`.
    """
    primal = _primal(planes)
    for k in range(tasks[0], tasks[1]):
        _task_forward(data, data.indptr, primal.extrapolated, k, duals[_EXTRAPOLATED])
        moves[:, k] = dual_step(duals, data.offsets[k], data.offsets[k + 1], step, k)
        _task_adjoint(data, data.indptr, duals[_POINT], k, primal.gradient, rows)


@exact
def forward(data: Any, W: Any, out: Any) -> None:
    """Predictions X_k w_k."""
    for k in range(W.shape[1]):
        _task_forward(data, data.indptr, W, k, out)


@exact
def adjoint(data: Any, b: Any, G: Any, rows: Any) -> None:
    """These rows of the d x m matrix with columns X_k^T b_k; the others stay as they were."""
    for k in range(G.shape[1]):
        _task_adjoint(data, data.indptr, b, k, G, rows)


@exact
def power_iterations(data: Any, unit: float, count: int, V: Any, predictions: Any, rows: Any) -> None:
    """v_k <- X_k^T X_k v_k / (unit ||v_k||), so many times while a task is in cache: then (unit ||v_k||)^(1/2) <= sigma_max(X_k)."""
    for k in range(V.shape[1]):
        for _ in range(count):
            squares = 0.0
            for j in range(V.shape[0]):
                squares += V[j, k] * V[j, k]
            norm = max(math.sqrt(squares), _TINY)
            for j in range(V.shape[0]):
                V[j, k] = V[j, k] / norm / unit
            _task_forward(data, data.indptr, V, k, predictions)
            _task_adjoint(data, data.indptr, predictions, k, V, rows)


@exact
def _task_forward(data: Any, indptr: Any, W: Any, k: int, out: Any) -> None:
    d = W.shape[0]
    out[data.offsets[k] : data.offsets[k + 1]] = 0.0
    if indptr is None:
        _block_forward(_block(data, d, k), W, k, out[data.offsets[k] : data.offsets[k + 1]])
    else:
        for j in range(d):
            if W[j, k] != 0.0:
                for p in range(indptr[k * d + j], indptr[k * d + j + 1]):
                    out[data.indices[p]] += data.values[p] * W[j, k]


@exact
def _task_adjoint(data: Any, indptr: Any, b: Any, k: int, G: Any, rows: Any) -> None:
    d = G.shape[0]
    if indptr is None:
        _block_adjoint(_block(data, d, k), b[data.offsets[k] : data.offsets[k + 1]], k, G, rows)
    else:
        for j in rows:
            begin, end = indptr[k * d + j], indptr[k * d + j + 1]
            G[j, k] = _gather(data.values[begin:end], data.indices[begin:end], b)


@exact
def _block(data: Any, d: int, k: int) -> Any:
    begin, end = data.offsets[k], data.offsets[k + 1]
    return data.values[d * begin : d * end].reshape((d, end - begin))


@exact
def _block_forward(block: Any, W: Any, k: int, out: Any) -> None:
    """Adds the features with a coefficient, four at a time."""
    chosen = np.empty(4, dtype=np.int64)
    waiting = 0
    for j in range(W.shape[0]):
        if W[j, k] != 0.0:
            chosen[waiting] = j
            waiting += 1
            if waiting == 4:
                x, y, z, v = chosen[0], chosen[1], chosen[2], chosen[3]
                _add_four((block[x], block[y], block[z], block[v]), (W[x, k], W[y, k], W[z, k], W[v, k]), out)
                waiting = 0
    for i in range(waiting):
        add_multiple(W[chosen[i], k], block[chosen[i]], out)


@exact
def _block_adjoint(block: Any, b: Any, k: int, G: Any, rows: Any) -> None:
    """G_jk = x_j . b for the features `rows`, four at a time."""
    fours = rows.size - rows.size % 4
    for i in range(0, fours, 4):
        x, y, z, v = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        G[x, k], G[y, k], G[z, k], G[v, k] = _four_dots(block[x], block[y], block[z], block[v], b)
    for i in range(fours, rows.size):
        G[rows[i], k] = dot(block[rows[i]], b)


@reordered
def _add_four(columns: Any, factors: Any, out: Any) -> None:
    x, y, z, v = columns
    p, q, r, s = factors
    for i in range(out.size):
        out[i] += p * x[i] + q * y[i] + r * z[i] + s * v[i]


@reordered
def _four_dots(x: Any, y: Any, z: Any, v: Any, b: Any) -> tuple[float, float, float, float]:
    p = 0.0
    q = 0.0
    r = 0.0
    s = 0.0
    for i in range(b.size):
        p += x[i] * b[i]
        q += y[i] * b[i]
        r += z[i] * b[i]
        s += v[i] * b[i]
    return p, q, r, s


@reordered
def _gather(values: Any, indices: Any, b: Any) -> float:
    total = 0.0
    for p in range(values.size):
        total += values[p] * b[indices[p]]
    return total


# One sparse matrix for all tasks; predictions and dual points are n x m here.


@exact
def shared_forward(data: Any, W: Any, out: Any) -> None:
    """Predictions X W."""
    out[:] = 0.0
    for j in range(W.shape[0]):
        if W[j].any():
            for p in range(data.indptr[j], data.indptr[j + 1]):
                add_multiple(data.values[p], W[j], out[data.indices[p]])


@exact
def shared_adjoint(data: Any, b: Any, G: Any, rows: Any) -> None:
    """These rows of X^T b; the others stay as they were."""
    for j in rows:
        G[j] = 0.0
        for p in range(data.indptr[j], data.indptr[j + 1]):
            add_multiple(data.values[p], b[data.indices[p]], G[j])
