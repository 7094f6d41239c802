"""Pegasos: subgradient steps with step size 1 / (lambda t) on hinges plus lambda/2 ||w||^2, at the cost of the examples' non-zeros.

A point is w = scale v, so that what shrinks all of w touches one number; and so is the sum of the points before each step, see `LazySum`.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from bench_mtl.core.kernels.jit import reordered
from bench_mtl.solvers.kernels.lines import add_to_both, product

#: A scale below is multiplied out.
_SMALLEST_SCALE = 1e-5

#: lambda; weights of the examples times their number, as the labels are; radii of the balls, one a task, 0 for none.
Rule = namedtuple("Rule", "regularisation factors radii")

#: Of every task v, its scale and ||v||^2, and the lazy sum; how often an example was drawn, and had a margin below 1; room for a batch.
State = namedtuple("State", "V scales squares late totals past visited hit margins")


@reordered
def _multiply_out(v: Any, late: Any, past: Any, scale: float, total: float) -> None:
    """past <- past + total v - late, late <- 0, v <- scale v."""
    for j in range(v.size):
        past[j] += total * v[j] - late[j]
        late[j] = 0.0
        v[j] *= scale


@reordered
def _shrink(k: int, factor: float, state: Any) -> None:
    """w_k <- factor w_k, factor in [0, 1]."""
    scales, totals = state.scales, state.totals
    scales[k] *= factor
    if scales[k] < _SMALLEST_SCALE:
        _multiply_out(state.V[k], state.late[k], state.past[k], scales[k], totals[k])
        state.squares[k] *= scales[k] * scales[k]
        totals[k] = 0.0
        scales[k] = 1.0


@reordered
def steps(rows: Any, draws: Any, t: int, rule: Any, state: Any) -> None:
    """For each of the draws in turn: w_k <- (1 - 1/t) w_k + 1/(lambda t) 1/B sum_b factors_i y_i x_i [y_i x_i.w_k < 1], into its ball.

    Draws are examples of their task, steps x m x B, after t steps.
    """
    values, indices, indptr, firsts, places, stride, labels = rows
    regularisation, factors, radii = rule
    V, scales, squares, all_late, totals, _, visited, hit, margins = state
    for s in range(draws.shape[0]):
        t += 1
        eta = 1.0 / (regularisation * t)
        for k in range(draws.shape[1]):
            v, late = V[k], all_late[k]
            totals[k] += scales[k]
            for b in range(draws.shape[2]):
                label = labels[places[k] + stride * draws[s, k, b]]
                margins[b] = label * scales[k] * product(values, indices, indptr, firsts[k] + draws[s, k, b], v)
            _shrink(k, 1.0 - 1.0 / t, state)
            for b in range(draws.shape[2]):
                row, i = firsts[k] + draws[s, k, b], places[k] + stride * draws[s, k, b]
                visited[i] += 1.0
                if margins[b] >= 1.0:
                    continue
                hit[i] += 1.0
                change = eta / draws.shape[2] * factors[i] * labels[i] / scales[k]
                squares[k] += add_to_both(values, indices, indptr, row, (change, change * totals[k]), v, late)
            if radii[k] > 0.0:
                norm = scales[k] * max(squares[k], 0.0) ** 0.5
                if norm > radii[k]:
                    _shrink(k, radii[k] / norm, state)
