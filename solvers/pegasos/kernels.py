"""Pegasos: subgradient steps with step size 1 / (lambda t) on hinges plus lambda/2 ||w||^2, at the cost of the examples' non-zeros.

A point is w = scale v, so that what shrinks all of w touches one number. So is the sum of the points before each step, scale_t v_t summed:
it is past + total v - late, total = sum_t scale_t, where what is added to v is added to `late` times the total so far. That loses as many
digits as the scale has fallen by, so every few decades it is multiplied out, and the sum so far put into `past`.
"""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import reordered

#: A scale below is multiplied out.
_SMALLEST_SCALE = 1e-5


@reordered
def multiply_out(scale: float, total: float, v: Any, late: Any, past: Any) -> None:
    """past <- past + total v - late, late <- 0, v <- scale v."""
    for j in range(v.size):
        past[j] += total * v[j] - late[j]
        late[j] = 0.0
        v[j] *= scale


@reordered
def shrink(k: int, factor: float, V: Any, late: Any, past: Any, scales: Any, totals: Any, squares: Any) -> None:
    """w_k <- factor w_k, factor in [0, 1]."""
    scales[k] *= factor
    if scales[k] < _SMALLEST_SCALE:
        multiply_out(scales[k], totals[k], V[k], late[k], past[k])
        squares[k] *= scales[k] * scales[k]
        totals[k] = 0.0
        scales[k] = 1.0


@reordered
def dense_steps(
    X: Any, draws: Any, rows: Any, places: Any, stride: int, labels: Any, factors: Any, t: int, regularisation: float, radii: Any,
    V: Any, late: Any, past: Any, scales: Any, totals: Any, squares: Any, visited: Any, hit: Any, margins: Any,
) -> None:  # fmt: skip
    """For each of the draws in turn: w_k <- (1 - 1/t) w_k + 1/(lambda t) 1/B sum_b factors_i y_i x_i [y_i x_i.w_k < 1], into its ball.

    Parameters
    ----------
    draws : examples of their task, steps x m x B
    rows, places, stride : example r of task k is row rows_k + r of X, and entry places_k + stride r of labels and factors
    t : steps before
    radii : of the balls, one a task; 0 for none
    V, late, past, scales, totals, squares : of every task v, the sum's other parts, scale, total, and ||v||^2 (only where there is a ball)
    visited, hit : how often an example was drawn, and had a margin below 1
    margins : room for B
    """
    for s in range(draws.shape[0]):
        t += 1
        eta = 1.0 / (regularisation * t)
        for k in range(draws.shape[1]):
            v, sums = V[k], late[k]
            totals[k] += scales[k]
            for b in range(draws.shape[2]):
                x, i = X[rows[k] + draws[s, k, b]], places[k] + stride * draws[s, k, b]
                product = 0.0
                for j in range(x.size):
                    product += x[j] * v[j]
                margins[b] = labels[i] * scales[k] * product
            shrink(k, 1.0 - 1.0 / t, V, late, past, scales, totals, squares)
            for b in range(draws.shape[2]):
                i = places[k] + stride * draws[s, k, b]
                visited[i] += 1.0
                if margins[b] >= 1.0:
                    continue
                hit[i] += 1.0
                x = X[rows[k] + draws[s, k, b]]
                change = eta / draws.shape[2] * factors[i] * labels[i] / scales[k]
                if radii[k] > 0.0:
                    product, square = 0.0, 0.0
                    for j in range(x.size):
                        product += x[j] * v[j]
                        square += x[j] * x[j]
                    squares[k] += change * (2.0 * product + change * square)
                late_change = change * totals[k]
                for j in range(x.size):
                    v[j] += change * x[j]
                    sums[j] += late_change * x[j]
            if radii[k] > 0.0:
                norm = scales[k] * max(squares[k], 0.0) ** 0.5
                if norm > radii[k]:
                    shrink(k, radii[k] / norm, V, late, past, scales, totals, squares)


@reordered
def sparse_steps(
    data: Any, indices: Any, indptr: Any, draws: Any, rows: Any, places: Any, stride: int, labels: Any, factors: Any, t: int,
    regularisation: float, radii: Any, V: Any, late: Any, past: Any, scales: Any, totals: Any, squares: Any, visited: Any, hit: Any,
    margins: Any,
) -> None:  # fmt: skip
    """`dense_steps` for a CSR design."""
    for s in range(draws.shape[0]):
        t += 1
        eta = 1.0 / (regularisation * t)
        for k in range(draws.shape[1]):
            v, sums = V[k], late[k]
            totals[k] += scales[k]
            for b in range(draws.shape[2]):
                row, i = rows[k] + draws[s, k, b], places[k] + stride * draws[s, k, b]
                product = 0.0
                for p in range(indptr[row], indptr[row + 1]):
                    product += data[p] * v[indices[p]]
                margins[b] = labels[i] * scales[k] * product
            shrink(k, 1.0 - 1.0 / t, V, late, past, scales, totals, squares)
            for b in range(draws.shape[2]):
                i = places[k] + stride * draws[s, k, b]
                visited[i] += 1.0
                if margins[b] >= 1.0:
                    continue
                hit[i] += 1.0
                row = rows[k] + draws[s, k, b]
                change = eta / draws.shape[2] * factors[i] * labels[i] / scales[k]
                late_change = change * totals[k]
                for p in range(indptr[row], indptr[row + 1]):
                    x, j = data[p], indices[p]
                    squares[k] += change * x * (2.0 * v[j] + change * x)
                    v[j] += change * x
                    sums[j] += late_change * x
            if radii[k] > 0.0:
                norm = scales[k] * max(squares[k], 0.0) ** 0.5
                if norm > radii[k]:
                    shrink(k, radii[k] / norm, V, late, past, scales, totals, squares)
