"""Nesterov smoothing with continuation: its formulas, and a round norm."""

from itertools import islice

import numpy as np
import pytest
from solver_data import proven

from bench_mtl.data import synthetic_l1inf
from bench_mtl.problems import L1InfHinge, L12Hinge
from bench_mtl.projections import project_l1inf_ball, prox_l1inf
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.validation.tiny_instances import tiny_instances

DATA = synthetic_l1inf(tasks=3, features=8, examples=10)
FORMS = {"radius": L1InfHinge(DATA, radius=2.0), "penalty": L1InfHinge(DATA, penalty=0.05)}


def gradient_by_hand(problem: L1InfHinge, W: np.ndarray, mu: float) -> np.ndarray:
    """Of the Huber-like hinge: 0, quadratic over a width of mu, then linear."""
    gradient = np.zeros_like(W)
    for k in range(W.shape[1]):
        X, y = problem.design.block(k), problem.design.task_outputs(problem.fit.targets, k)
        gradient[:, k] = -X.T @ (y * np.clip((1.0 - y * (X @ W[:, k])) / mu, 0.0, 1.0)) / len(y)
    return gradient


@pytest.mark.parametrize("form", FORMS)
def test_steps_are_those_of_the_accelerated_method(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.smoothed_gradient._CHECK_EVERY", 1000)
    problem, mu = FORMS[form], 0.5
    L = max(np.linalg.norm(problem.design.block(k), 2) ** 2 / 10 for k in range(3)) / mu
    W = V = np.zeros((8, 3))
    t = 1.0
    # No check falls within these steps, so neither does mu; from zero the start itself asks for no less smoothing than 0.5.
    iterates = list(islice(SmoothedGradient(smoothing=mu, step_rule="lipschitz").steps(problem), 61))
    restarts = 0
    for iterate in iterates[1:]:
        target = V - gradient_by_hand(problem, V, mu) / L
        new = project_l1inf_ball(target, 2.0) if form == "radius" else prox_l1inf(target, 0.05 / L)
        if ((V - new) * (new - W)).sum() > 0:
            V, t = new, 1.0
            restarts += 1
        else:
            following = (1 + np.sqrt(1 + 4 * t * t)) / 2
            V, t = new + (t - 1) / following * (new - W), following
        W = new
        assert np.allclose(iterate.primal, W, atol=1e-12)
    assert restarts > 0


@pytest.mark.slow
def test_under_a_round_norm_smoothing_becomes_tiny() -> None:
    """The tests of pairs ask for 1e-2 of this, for which it takes far fewer steps."""
    for tiny in tiny_instances(L12Hinge, 0):
        proven(tiny, SmoothedGradient(), 1e-4, seconds=600.0)
