"""Accelerated proximal gradient steps with restart, see `bench_mtl.solvers.accelerated_gradient`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench_mtl.solvers.accelerator.kernels import parts
from bench_mtl.solvers.accelerator.kernels.parts import Data, Kind
from bench_mtl.solvers.accelerator.kernels.thresholds import Thresholds

#: Steps from one look at the gap to the next; power iterations, and the factor of the norms that they give.
STEPS, POWERS, MARGIN = 8, 12, 1.05
#: Where the loss turns out to be steeper than L says, by more than rounding, L grows so much.
_ROUNDING, _ENLARGED = 1e-9, 1.25
#: What rounding may leave of a change of predictions, squared and relative to the predictions.
_NO_CHANGE = 1e-27
_CURVATURES = {"squared": 1.0, "logistic": 0.25}


class State(NamedTuple):
    """Where a run is."""

    point: Any
    previous: Any
    predicted: Any
    """X times the point."""
    predicted_before: Any
    dual: Any
    """Minus the derivatives of the loss where the last step began."""
    lipschitz: Any
    momentum_before: Any
    momentum: Any
    thresholds: Thresholds
    steps: Any
    gap: Any


def begin(kind: Kind, data: Data, W: Any, directions: Any) -> State:
    """Return the first state at W."""
    norms = MARGIN * parts.largest_values(kind, data, directions, POWERS)
    steepest = data.w.max(axis=1 if kind.is_apart else 0) * norms**2
    lipschitz = _CURVATURES[kind.loss] * steepest.max() * (2.0 if kind.norm == "split" else 1.0)  # whose halves share a gradient
    predicted = parts.forward(kind, data, W)
    lipschitz = jnp.where(lipschitz > 0.0, lipschitz, 1.0)
    zero, one, thresholds = jnp.zeros(()), jnp.ones(()), Thresholds.zero(kind.norm, W.shape)
    dual = -parts.slopes(kind, data, predicted)
    return State(W, W, predicted, predicted, dual, lipschitz, zero, one, thresholds, zero, jnp.full((), jnp.inf))


def advance(kind: Kind, data: Data, state: State, aim: Any, rounds: Any) -> State:
    """Take so many rounds of `STEPS` steps, or fewer where the gap comes to the aim."""
    return parts.repeated(lambda now: _round(kind, data, now), state, aim, rounds)


def _round(kind: Kind, data: Data, state: State) -> State:
    """Take `STEPS` steps; then see how far they have come, by the dual point of the last, whose products are there."""

    def step(_: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
        return _step(kind, data, carry[0])

    state, G = jax.lax.fori_loop(0, STEPS, step, (state, jnp.zeros(state.point.shape[-2:])))
    gap = parts.relative_gap(kind, data, (state.point, state.predicted), (state.dual, G))
    return state._replace(gap=gap)


def _step(kind: Kind, data: Data, state: State) -> tuple[State, Any]:
    """T <- prox(S + G / L), S the point ahead, and G = X^T r, r the dual point at S.

    The momentum ends where it points uphill, that is where <S - T, T - T_before> > 0 (O'Donoghue, Candes, 2015), and where the loss is
    steeper between S and T than L says: L is an estimate from below, enlarged.
    """
    ahead = (state.momentum_before - 1.0) / state.momentum
    S = state.point + ahead * (state.point - state.previous)
    predicted = state.predicted + ahead * (state.predicted - state.predicted_before)
    dual, L = -parts.slopes(kind, data, predicted), state.lipschitz
    G = parts.adjoint(kind, data, dual, S.shape[-2])
    T, thresholds = parts.shrunk(kind, data, S + G / L, 1.0 / L, state.thresholds)
    new = parts.forward(kind, data, T)
    steepness = _CURVATURES[kind.loss] * (data.w * (new - predicted) ** 2).sum()
    is_steep = steepness > L * ((T - S) ** 2).sum() * (1.0 + _ROUNDING) + _NO_CHANGE * (data.w * predicted**2).sum()
    drops = (((S - T) * (T - state.point)).sum() > 0.0) | is_steep
    t = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * state.momentum**2))
    state = State(
        T, jnp.where(drops, T, state.point), new, jnp.where(drops, new, state.predicted), dual, jnp.where(is_steep, _ENLARGED * L, L),
        jnp.where(drops, 0.0, state.momentum), jnp.where(drops, 1.0, t), thresholds, state.steps + 1.0, state.gap,
    )  # fmt: skip
    return state, G
