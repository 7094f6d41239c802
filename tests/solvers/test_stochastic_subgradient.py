"""Stochastic subgradient steps under an l1,inf norm against a loop over examples."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise_cases import pairwise_cases
from solver_data import LAYOUTS

from bench_mtl.model.forms import Hinges
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.stochastic_subgradient import StochasticSubgradient


def by_hand(problem: L1InfHinge, batch: int, eta0: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The average of W_1 ... W_t by a loop over examples, and the dual point of the visits."""
    form = problem.form(Hinges)
    n, m = form.labels.size, form.design.n_tasks
    blocks = [np.asarray(sp.csr_array(form.design.block(k)).toarray()) for k in range(m)]
    shared = form.design.is_shared
    task = np.tile(np.arange(m), n // m) if shared else np.repeat(np.arange(m), form.design.sizes)
    rows = np.repeat(blocks[0], m, axis=0) if shared else np.concatenate(blocks)
    rng = np.random.default_rng(0)
    W, total = np.zeros((6, m)), np.zeros((6, m))
    visited, hit, latest, before = np.zeros(n), np.zeros(n), np.ones(n), np.zeros((2, n))
    for t in range(1, steps + 1):
        eta = eta0 / np.sqrt(t)
        if t & (t - 1) == 0:
            before, visited, hit = np.stack([visited, hit]), np.zeros(n), np.zeros(n)
        G = np.zeros_like(W)
        for i in rng.integers(n, size=batch):
            latest[i] = form.labels.ravel()[i] * (rows[i] @ W[:, task[i]]) < 1.0
            visited[i] += eta
            hit[i] += eta * latest[i]
            G[:, task[i]] -= latest[i] * n / batch * form.weights.ravel()[i] * form.labels.ravel()[i] * rows[i]
        W = form.prox(W - eta * G, eta)
        total = total + W
    visits, hits = before + np.stack([visited, hit])
    share = np.divide(hits, visits, out=latest, where=visits > 0.0)
    return total / steps, share.reshape(form.labels.shape) * form.weights


@pytest.mark.parametrize(("name", "batch", "form"), pairwise_cases(list(LAYOUTS), [1, 4], [{"radius": 0.5}, {"penalty": 0.05}]))
def test_steps_are_those_of_a_loop_over_examples(name: str, batch: int, form: dict[str, float]) -> None:
    problem = L1InfHinge(LAYOUTS[name], **form)
    solver = StochasticSubgradient(batch=batch, step_size=0.1, averaging="all")
    last = list(islice(solver.steps(problem), 40))[-1]
    average, dual = by_hand(problem, batch, 0.1, last.step)
    assert np.allclose(last.primal, average, atol=1e-12)
    assert np.allclose(last.dual, dual, rtol=1e-12, atol=0.0)
    assert last.work == pytest.approx(last.step * batch / problem.fit.targets.size)
