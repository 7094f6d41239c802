"""Passes over the data of a bilinear coupling <b, X W>: predictions, a step of the dual point in between, and the adjoint.

With one task's predictions its dual entries are known, and with these its column of X^T b; so where tasks have data of their own both
products are made while these are in cache. The data of a pass are five arguments of four kinds, told apart when compiled by what is None:

    (blocks, None, None, None, offsets)       tasks of their own, dense: X_1^T, X_2^T, ... (d x n_k), one after the other; these may be
                                              float32, all else is float64
    (any, X, None, None, offsets)             one dense n x d matrix for all tasks
    (values, None, indices, indptr, offsets)  tasks of their own, sparse: the columns of X_1, X_2, ..., d a task; indices count all examples
    (values, X, indices, indptr, offsets)     the columns of one sparse matrix for all tasks; X is only a mark

All but the second are stored by features: those without a coefficient, and those that are settled, cost nothing then. W and G are d x m in
C order. Dual arrays are flat: task after task, or example by example with m entries each where the data are shared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered, selecting
from bench_mtl.core.kernels.vectors import add_multiple, dot

#: Rows of the array of dual vectors: the point, what it goes back to, the point after a plain step, the predictions at the primal
#: point, at its anchor, and at the extrapolated point; targets (labels) and the box.
POINT, ANCHOR, STEPPED, PREDICTED, PREDICTED_ANCHOR, EXTRAPOLATED, TARGET, LOWER, UPPER = range(9)
DUAL_ROWS = 9


@exact
def forward(values: Any, X: Any, indices: Any, indptr: Any, offsets: Any, W: Any, out: Any) -> None:
    """Predictions X_k w_k, as a flat dual array."""
    d, m = W.shape
    if indptr is None:
        if X is None:
            for k in range(m):
                _block_forward(_block(values, offsets, d, k), W, k, out[offsets[k] : offsets[k + 1]])
        else:
            np.dot(X, W, out.reshape((X.shape[0], m)))
    elif X is None:
        out[:] = 0.0
        for k in range(m):
            _sparse_block_forward(values, indices, indptr, W, k, out)
    else:
        out[:] = 0.0
        by_example = out.reshape((out.size // m, m))
        for j in range(d):
            _sparse_feature_forward(values, indices, indptr[j], indptr[j + 1], W[j], by_example)


@exact
def adjoint(values: Any, X: Any, indices: Any, indptr: Any, offsets: Any, b: Any, G: Any, rows: Any) -> None:
    """The d x m matrix with columns X_k^T b_k; of one dense matrix all of it, else `rows` only, and the others stay as they were."""
    d, m = G.shape
    if indptr is None:
        if X is None:
            for k in range(m):
                _block_adjoint(_block(values, offsets, d, k), b[offsets[k] : offsets[k + 1]], k, G, rows)
        else:
            np.dot(X.T, b.reshape((X.shape[0], m)), G)
    elif X is None:
        for k in range(m):
            _sparse_block_adjoint(values, indices, indptr, b, k, G, rows)
    else:
        by_example = b.reshape((b.size // m, m))
        for i in range(rows.size):
            j = rows[i]
            _sparse_feature_adjoint(values, indices, indptr[j], indptr[j + 1], by_example, G[j])


@exact
def block_norms(blocks: Any, offsets: Any, count: int, V: Any, predictions: Any, norms: Any) -> None:
    """Lower bounds of sigma_max(X_k) for dense tasks of their own, by `count` power iterations from the columns of V, which change."""
    rows = np.arange(V.shape[0])
    for k in range(offsets.size - 1):
        block, out = _block(blocks, offsets, V.shape[0], k), predictions[offsets[k] : offsets[k + 1]]
        for _ in range(count):
            length = max(np.sqrt(np.square(V[:, k]).sum()), np.finfo(np.float64).tiny)
            V[:, k] /= length
            _block_forward(block, V, k, out)
            _block_adjoint(block, out, k, V, rows)
        norms[k] = np.sqrt(np.sqrt(np.square(V[:, k]).sum()))


@exact
def coupled_step(
    values: Any, X: Any, indices: Any, indptr: Any, offsets: Any, E: Any, dual: Any, step_sizes: Any, mix: Any, G: Any, rows: Any,
    first: int, last: int, moves: Any,
) -> None:  # fmt: skip
    """A step of the dual point at the extrapolated point E, and G = X^T (the new dual point), in one pass.

    With u = X E and the step size sigma of the task, b+ = clip(b + sigma (target - u), lower, upper), and then
    b <- mix[0] b+ + mix[1] b + mix[2] anchor, and the predictions at the primal point likewise (see `_dual_step`).

    Parameters
    ----------
    rows : of G only these need to be new (see `adjoint`)
    first, last : of tasks of their own, only first, ..., last - 1 (so that threads can share them)
    moves : what every task adds to sum (b+ - b)^2 / sigma and to <b+ - b, u - X W>, with b and W from before the step; (2, m). Where
        the data are shared it is all in the first column.
    """
    if X is not None:
        forward(values, X, indices, indptr, offsets, E, dual[EXTRAPOLATED])
        moves[:, 0] = _dual_step(dual, 0, dual.shape[1], step_sizes[0], mix)
        adjoint(values, X, indices, indptr, offsets, dual[POINT], G, rows)
    else:
        d = G.shape[0]
        for k in range(first, last):
            begin, end = offsets[k], offsets[k + 1]
            if indptr is None:
                _block_forward(_block(values, offsets, d, k), E, k, dual[EXTRAPOLATED][begin:end])
            else:
                dual[EXTRAPOLATED][begin:end] = 0.0
                _sparse_block_forward(values, indices, indptr, E, k, dual[EXTRAPOLATED])
            moves[:, k] = _dual_step(dual, begin, end, step_sizes[k], mix)
            if indptr is None:
                _block_adjoint(_block(values, offsets, d, k), dual[POINT][begin:end], k, G, rows)
            else:
                _sparse_block_adjoint(values, indices, indptr, dual[POINT], k, G, rows)


@exact
def _dual_step(dual: Any, begin: int, end: int, sigma: float, mix: Any) -> tuple[float, float]:
    # Slices of rows, not rows of a slice: those would not be contiguous to the compiler, and take no vector instructions.
    b, anchor, stepped = dual[POINT][begin:end], dual[ANCHOR][begin:end], dual[STEPPED][begin:end]
    u, predicted, predicted_anchor = dual[EXTRAPOLATED][begin:end], dual[PREDICTED][begin:end], dual[PREDICTED_ANCHOR][begin:end]
    _ascend(b, sigma, dual[TARGET][begin:end], u, dual[LOWER][begin:end], dual[UPPER][begin:end], stepped)
    squares, product = _dual_moves(b, stepped, predicted, u)
    half = 0.5 * mix[0]  # X W+ = (X E + X W) / 2, since E = 2 W+ - W
    combine(stepped, mix[0], b, mix[1], anchor, mix[2], b)
    combine(u, half, predicted, mix[1] + half, predicted_anchor, mix[2], predicted)
    return squares / sigma, product


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


@exact
def _block(blocks: Any, offsets: Any, d: int, k: int) -> Any:
    return blocks[d * offsets[k] : d * offsets[k + 1]].reshape((d, offsets[k + 1] - offsets[k]))


@exact
def _block_forward(block: Any, W: Any, k: int, out: Any) -> None:
    """out = sum_j W_jk x_j over the features with a coefficient, four at a time."""
    out[:] = 0.0
    chosen = np.empty(4, dtype=np.int64)
    waiting = 0
    for j in range(W.shape[0]):
        if W[j, k] != 0.0:
            chosen[waiting] = j
            waiting += 1
            if waiting == 4:
                a, b, c, e = chosen[0], chosen[1], chosen[2], chosen[3]
                _add_four(block[a], W[a, k], block[b], W[b, k], block[c], W[c, k], block[e], W[e, k], out)
                waiting = 0
    for i in range(waiting):
        add_multiple(W[chosen[i], k], block[chosen[i]], out)


@exact
def _block_adjoint(block: Any, b: Any, k: int, G: Any, rows: Any) -> None:
    """G_jk = x_j . b for the features `rows`, four at a time."""
    whole = rows.size - rows.size % 4
    for i in range(0, whole, 4):
        x, y, z, v = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        G[x, k], G[y, k], G[z, k], G[v, k] = _four_dots(block[x], block[y], block[z], block[v], b)
    for i in range(whole, rows.size):
        G[rows[i], k] = dot(block[rows[i]], b)


@reordered
def _add_four(x: Any, p: float, y: Any, q: float, z: Any, r: float, v: Any, s: float, out: Any) -> None:
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


@exact
def _sparse_block_forward(values: Any, indices: Any, indptr: Any, W: Any, k: int, out: Any) -> None:
    """Adds the predictions of task k."""
    for j in range(W.shape[0]):
        if W[j, k] != 0.0:
            _scatter(values, indices, indptr[k * W.shape[0] + j], indptr[k * W.shape[0] + j + 1], W[j, k], out)


@exact
def _sparse_block_adjoint(values: Any, indices: Any, indptr: Any, b: Any, k: int, G: Any, rows: Any) -> None:
    for i in range(rows.size):
        column = k * G.shape[0] + rows[i]
        G[rows[i], k] = _gather(values, indices, indptr[column], indptr[column + 1], b)


@exact
def _scatter(values: Any, indices: Any, begin: int, end: int, w: float, out: Any) -> None:
    for p in range(begin, end):
        out[indices[p]] += values[p] * w


@reordered
def _gather(values: Any, indices: Any, begin: int, end: int, b: Any) -> float:
    total = 0.0
    for p in range(begin, end):
        total += values[p] * b[indices[p]]
    return total


@exact
def _sparse_feature_forward(values: Any, indices: Any, begin: int, end: int, w: Any, out: Any) -> None:
    """Adds what a feature, shared by all tasks, adds to the n x m predictions."""
    for k in range(w.size):
        if w[k] != 0.0:
            for p in range(begin, end):
                add_multiple(values[p], w, out[indices[p]])
            return


@exact
def _sparse_feature_adjoint(values: Any, indices: Any, begin: int, end: int, b: Any, g: Any) -> None:
    g[:] = 0.0
    for p in range(begin, end):
        add_multiple(values[p], b[indices[p]], g)
