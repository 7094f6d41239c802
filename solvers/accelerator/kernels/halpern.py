"""Restarted reflected Halpern steps of the primal-dual hybrid gradient method, see `bench_mtl.solvers.pdhg`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench_mtl.solvers.accelerator.kernels import parts
from bench_mtl.solvers.accelerator.kernels.parts import Data, Kind
from bench_mtl.solvers.accelerator.kernels.thresholds import Thresholds

#: Steps from one look at gap and residual to the next; power iterations, and the factor of the norms that they give.
STEPS, POWERS, MARGIN = 8, 12, 1.05
#: Rounding alone may leave the squared residual this far below zero, relative to its parts; beyond it the norms are enlarged so much.
_ROUNDING, _ENLARGED = 1e-9, 1.05**5
#: The norm of a task counts as at least this share of the largest.
_SMALLEST_NORM = 1e-3
#: When a run restarts (arXiv:2407.16144, section 4), and how the weight is adapted then (arXiv:2507.14051, section 3.3), as in `pdhg`, in a
#: narrower range: a step of 1e8 leaves W no more than eight digits, and a point outside of its ball.
_SUFFICIENT, _NECESSARY, _ARTIFICIAL = 0.2, 0.8, 0.36
_PROPORTIONAL, _INTEGRAL, _NO_DISTANCE, _ONE_SIDED, _WEIGHT_RANGE = 0.99, 0.01, 1e-10, 10.0, 1e6


class Point(NamedTuple):
    """Primal and dual point with their products; steps, residuals and restarts are linear in all four."""

    W: Any
    b: Any
    """The dual point times the labels."""
    predicted: Any
    """X W."""
    G: Any
    """X^T b."""


class State(NamedTuple):
    """Where a run is."""

    z: Point
    anchor: Point
    stepped: Point
    """T(z), which is feasible."""
    norms: Any
    thresholds: Thresholds
    weight: Any
    first_weight: Any
    error_sum: Any
    residual: Any
    first_residual: Any
    length: Any
    """Steps since the last restart."""
    steps: Any
    gap: Any


def begin(kind: Kind, data: Data, W: Any, directions: Any, b: Any, has_dual: Any) -> State:
    """Return the first state at W and, with `has_dual`, b; else at the dual point of the subgradient at W."""
    d = W.shape[0]
    norms = MARGIN * parts.largest_values(kind, data, directions, POWERS)
    largest = norms.max()
    norms = jnp.where(largest > 0.0, jnp.maximum(norms, _SMALLEST_NORM * largest), 1.0)
    scale = norms.max()
    ends = data.y * data.w
    predicted = parts.forward(kind, data, W)
    b = jnp.where(has_dual, jnp.clip(b, jnp.minimum(ends, 0.0), jnp.maximum(ends, 0.0)), jnp.where(data.y * predicted < 1.0, ends, 0.0))
    z = Point(W, b, predicted, parts.adjoint(kind, data, b, d))
    # A point along X^T b of the size to expect of a solution, as in `Hinges.far_point`.
    G, total = parts.adjoint(kind, data, ends, d), jnp.abs(ends).sum()
    sizes = parts.norm_value(kind.norm, G)
    sizes = jnp.where(sizes > 0.0, sizes, 1.0)
    reach = total / data.size if kind.is_penalty else data.size
    length = jnp.sqrt(((G * (jnp.minimum(reach, sizes / scale**2) / sizes)) ** 2).sum())
    weight = jnp.where(length > 0.0, _dual_length(kind, norms, ends) / (jnp.where(length > 0.0, length, 1.0) * jnp.sqrt(scale)), 1.0)
    zero, far = jnp.zeros(()), jnp.full((), jnp.inf)
    return State(z, z, z, norms, Thresholds.zero(kind.norm, W.shape), weight, weight, zero, far, far, zero, zero, far)


def advance(kind: Kind, data: Data, state: State, aim: Any, rounds: Any) -> State:
    """Take so many rounds of `STEPS` steps, or fewer where the gap comes to the aim."""
    return parts.repeated(lambda now: _round(kind, data, now), state, aim, rounds)


def _round(kind: Kind, data: Data, state: State) -> State:
    """Take `STEPS` steps; then see how far they have come, and perhaps restart from T(z)."""
    before, had = state.residual, state.length

    def step(_: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
        return _step(kind, data, *carry)

    state, is_short = jax.lax.fori_loop(0, STEPS, step, (state, jnp.zeros((), dtype=bool)))
    T = state.stepped
    gap = parts.relative_gap(kind, data, (T.W, T.predicted), (T.b, T.G))
    falls_no_longer = (state.residual <= _NECESSARY * state.first_residual) & (state.residual > before) & (had > 0.0)
    is_due = (state.residual <= _SUFFICIENT * state.first_residual) | falls_no_longer | (state.length >= _ARTIFICIAL * state.steps)
    weight, error_sum = _adapted(kind, state)
    restarts, adapts = is_due | is_short, is_due & ~is_short

    def chosen(new: Any, old: Any, where: Any = restarts) -> Any:
        return jax.tree.map(lambda one, other: jnp.where(where, one, other), new, old)

    return state._replace(
        z=chosen(T, state.z), anchor=chosen(T, state.anchor), length=chosen(0.0, state.length),
        norms=chosen(_ENLARGED * state.norms, state.norms, is_short), weight=chosen(weight, state.weight, adapts),
        error_sum=chosen(error_sum, state.error_sum, adapts), gap=gap,
    )  # fmt: skip


def _step(kind: Kind, data: Data, state: State, is_short: Any) -> tuple[State, Any]:
    """z <- p T(z) + q z + r z0, and the residual ||z - T(z)|| in the metric of the method."""
    z, k = state.z, state.length
    scale = state.norms.max()
    tau, sigma = 1.0 / (state.weight * scale), parts.spread(kind, state.weight * scale / state.norms**2)
    ends = data.y * data.w
    W, thresholds = parts.shrunk(kind, data, z.W + tau * z.G, tau, state.thresholds)
    predicted = parts.forward(kind, data, W)
    b = jnp.clip(z.b + sigma * (data.y - (2.0 * predicted - z.predicted)), jnp.minimum(ends, 0.0), jnp.maximum(ends, 0.0))
    T = Point(W, b, predicted, parts.adjoint(kind, data, b, W.shape[0]))
    moved, dual_moved = T.W - z.W, T.b - z.b
    lengths = (moved**2).sum() / tau + (dual_moved**2 / sigma).sum()
    metric = lengths + 2.0 * (dual_moved * (T.predicted - z.predicted)).sum()
    residual = jnp.sqrt(jnp.maximum(metric, 0.0))
    p, q, r = 2.0 * (k + 1.0) / (k + 2.0), -(k + 1.0) / (k + 2.0), 1.0 / (k + 2.0)
    new = Point(*(p * one + q * two + r * three for one, two, three in zip(T, z, state.anchor, strict=True)))
    state = state._replace(
        z=new, stepped=T, thresholds=thresholds, residual=residual, first_residual=jnp.where(k == 0.0, residual, state.first_residual),
        length=k + 1.0, steps=state.steps + 1.0,
    )  # fmt: skip
    return state, is_short | (metric < -_ROUNDING * lengths)


def _dual_length(kind: Kind, norms: Any, b: Any) -> Any:
    """Return ||b|| in the metric L_k^2 / L."""
    return jnp.sqrt((parts.of_tasks(kind, b**2) * norms**2 / norms.max()).sum())


def _adapted(kind: Kind, state: State) -> tuple[Any, Any]:
    """Return the weight that lets primal and dual points move equally far between restarts, and the new sum of errors."""
    primal = state.weight * jnp.sqrt(state.norms.max()) * jnp.sqrt(((state.stepped.W - state.anchor.W) ** 2).sum())
    dual = _dual_length(kind, state.norms, state.stepped.b - state.anchor.b)
    moves = jnp.isfinite(primal + dual) & (primal + dual > 0.0)
    both = moves & (jnp.minimum(primal, dual) > _NO_DISTANCE * jnp.maximum(primal, dual))
    error = jnp.where(both, jnp.log(jnp.where(both, primal, 1.0) / jnp.where(both, dual, 1.0)), 0.0)
    error_sum = state.error_sum + error
    by_one_side = jnp.where(moves, jnp.where(dual < primal, 1.0 / _ONE_SIDED, _ONE_SIDED), 1.0)
    factor = jnp.where(both, jnp.exp(-(_PROPORTIONAL * error + _INTEGRAL * error_sum)), by_one_side)
    weight = jnp.clip(state.weight * factor, state.first_weight / _WEIGHT_RANGE, state.first_weight * _WEIGHT_RANGE)
    return weight, error_sum
