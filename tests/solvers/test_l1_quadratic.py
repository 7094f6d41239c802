"""Quadratics over weighted l1 balls: the conditions of optimality, on weights of like and unlike size."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.core.types import Array
from bench_mtl.solvers.l1_quadratic import L1Quadratic

SIZE, BALLS = 12, np.arange(12) % 3


def _quadratic(seed: int, spread: float, radius: float | None, penalty: float, signs: float = 0.0) -> L1Quadratic:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((SIZE, SIZE))
    weights = 10.0 ** rng.uniform(-spread, spread, SIZE)
    inside = rng.standard_normal(SIZE) / weights
    v0 = np.zeros(SIZE)
    if radius is not None:  # on the sphere of ball 0, inside ball 1, at 0 in ball 2
        for ball, share in ((0, 1.0), (1, 0.5)):
            own = ball == BALLS
            v0[own] = inside[own] * share * radius / np.sum(weights[own] * np.abs(inside[own]))
    v0 = np.abs(v0) if signs else v0
    return L1Quadratic(
        A @ A.T + 0.1 * np.eye(SIZE), 5.0 * rng.standard_normal(SIZE), v0, weights, BALLS, radius, penalty, np.full(SIZE, signs)
    )


def _slopes(q: L1Quadratic, v: Array) -> Array:
    return np.asarray(q.g + q.H @ (v - q.v0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("radius", [1e-3, 0.5, 1e3, 1e9])
@pytest.mark.parametrize("signs", [0.0, 1.0])
def test_minimiser_over_balls_leaves_no_gap(seed: int, spread: float, radius: float, signs: float) -> None:
    """The largest fall of <slopes, u - v> over feasible u bounds what the value is above the minimum."""
    q = _quadratic(seed, spread, radius, 0.0, signs)
    v = q.minimise(20 * SIZE)
    slopes = _slopes(q, v)
    gains = np.maximum(-slopes, 0.0) if signs else np.abs(slopes)
    gap = float(slopes @ v)
    for ball in range(3):
        own = ball == BALLS
        assert np.sum(q.weights[own] * np.abs(v[own])) <= radius * (1.0 + 1e-9)
        gap += radius * float((gains[own] / q.weights[own]).max())
    # Each product of the slopes is in error by rounding of the terms of H (v - v0).
    terms = np.abs(q.g) + np.abs(q.H) @ (np.abs(v) + np.abs(q.v0))
    rounding = 1e-11 * float(terms @ np.abs(v) + radius * (terms / q.weights).max())
    assert -rounding <= gap <= rounding + 1e-8 * abs(float(q.g @ (v - q.v0)))
    assert signs == 0.0 or v.min() >= 0.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_minimiser_with_a_penalty_is_stationary(seed: int, spread: float) -> None:
    q = _quadratic(seed, spread, None, 2.0)
    v = q.minimise(20 * SIZE)
    slopes, held = _slopes(q, v), 2.0 * q.weights
    assert np.allclose(slopes[v != 0.0], -held[v != 0.0] * np.sign(v[v != 0.0]), rtol=1e-8, atol=1e-8)
    assert np.all(np.abs(slopes) <= held * (1.0 + 1e-8) + 1e-8)
    assert spread == 0.0 or np.any(v != 0.0)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_stopped_early_it_is_feasible_and_no_worse(most: int) -> None:
    q = _quadratic(0, 1.0, 0.5, 0.0)
    v = q.minimise(most)
    d = v - q.v0
    assert q.g @ d + 0.5 * d @ q.H @ d <= 0.0
    assert np.bincount(BALLS, q.weights * np.abs(v)).max() <= 0.5 * (1.0 + 1e-12)
