"""Exponentiated gradient: against plain products in a loop, on every kind of simplex; its starts and ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import proven

from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.solvers.exponentiated_gradient import ExponentiatedGradient

RNG = np.random.default_rng(0)
X = DENSE = RNG.standard_normal((25, 6))
Y = X @ (RNG.standard_normal((6, 3)) * (RNG.random((6, 3)) < 0.5)) + 0.2 * RNG.standard_normal((25, 3))
SIGNS = np.where(RNG.random((6, 3)) < 0.5, 1.0, -1.0)


class Twin:
    """One weight at a time, as products of exponentials, divided by their sum."""

    def __init__(self, form: SimplexForm, shape: tuple[int, ...]) -> None:
        self.form, self.shape = form, shape
        entries = list(np.ndindex(shape))  # of which each simplex has some
        self.columns = [[e for e in entries if e[1] == k] for k in range(shape[1])] if form.balls == "task" else [entries]
        n = len(self.columns[0]) * (2 if form.signed else 1) + form.slack
        self.n = n
        self.plus, self.minus = [dict.fromkeys(c, 1.0 / n) for c in self.columns], [dict.fromkeys(c, 1.0 / n) for c in self.columns]
        self.slack = [1.0 / n if form.slack else 0.0 for _ in self.columns]

    def sign(self, e: tuple[int, int]) -> float:
        return 1.0 if self.form.orientation is None else float(self.form.orientation[e])

    def point(self) -> Array:
        W = np.zeros(self.shape)
        for plus, minus in zip(self.plus, self.minus, strict=True):
            for e in plus:
                W[e] = self.form.mass * self.sign(e) * (plus[e] - (minus[e] if self.form.signed else 0.0))
        return W

    def largest_range(self, G: Array) -> float:
        ranges = []
        for column in self.columns:
            prices = [self.form.mass * self.sign(e) * G[e] for e in column]
            prices += [-price for price in prices] if self.form.signed else []
            prices += [0.0] if self.form.slack else []
            ranges.append(max(prices) - min(prices))
        return max(ranges)

    def step(self, G: Array, eta: float) -> None:
        for c, column in enumerate(self.columns):
            for e in column:
                price = self.form.mass * self.sign(e) * G[e]
                self.plus[c][e] *= np.exp(-eta * price)
                self.minus[c][e] *= np.exp(eta * price)
            total = sum(self.plus[c].values()) + (sum(self.minus[c].values()) if self.form.signed else 0.0) + self.slack[c]
            for e in column:
                self.plus[c][e] /= total
                self.minus[c][e] /= total
            self.slack[c] /= total


@pytest.mark.parametrize("kind", ["shared", "few entries", "far", "per task", "one ball", "nonneg", "oriented"])
def test_drawn_steps_are_plain_products(kind: str) -> None:
    """Far steps are those after which weights have to be divided by their sums; with few entries most weights wait."""
    rate = 40.0 if kind == "far" else 0.1
    X = np.where(RNG.random(DENSE.shape) < 0.2, DENSE, 0.0) if kind == "few entries" else DENSE
    if kind == "per task":
        sizes = (4, 9, 12)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        blocks = [X[a:b] for a, b in pairwise(starts)]
        data = TaskData.per_task(blocks, [Y[a:b, k] for k, (a, b) in enumerate(pairwise(starts))])
    else:
        data = TaskData.shared(sp.csr_array(X) if kind == "few entries" else X, Y)
    data = replace(data, orientation=frozen(SIGNS) if kind == "oriented" else None)
    problem = L1BallGLM(data, radius=1.0, balls="all" if kind == "one ball" else "task", nonneg=kind in ("nonneg", "oriented"))
    twin = Twin(problem.form(SimplexForm), problem.point_shape)
    _, G = problem.value_and_gradient(twin.point())
    eta0 = rate * np.sqrt(np.log(twin.n)) / twin.largest_range(G)
    rng = np.random.default_rng(7)
    draws = [rng.integers(25, size=3) for _ in range(20)]
    points, etas = [], []
    for t, chosen in enumerate(draws, start=1):
        W = twin.point()
        points.append(W)
        etas.append(eta0 / np.sqrt(t))
        G = np.zeros((6, 3))
        for i in chosen:
            for k in range(3):
                if kind == "per task" and not starts[k] <= i < starts[k + 1]:
                    continue
                G[:, k] += 25 / 3 * X[i] * (X[i] @ W[:, k] - Y[i, k])
        twin.step(G, etas[-1])
    iterates = list(islice(ExponentiatedGradient(batch=3, rates=(rate,), search_iterations=19, seed=7).steps(problem), 3))
    for iterate, steps in zip(iterates[1:], (19, 20), strict=True):
        recent = slice(7, steps)  # steps 8 and later: since the last power of two but one
        expected = np.average(points[recent], axis=0, weights=etas[recent])
        assert iterate.step == steps
        assert np.allclose(iterate.primal, expected, atol=1e-10)


def test_weights_are_not_lost_by_underflow() -> None:
    """The asset that is hopeless for long earns everything in the end: a weight of 0 would stay 0."""
    relatives = np.array([[1.0, 1.0], [1.0, 1e-12]])
    problem = Portfolio(TaskData.shared(np.concatenate([relatives, [[1e-12, 1.0]]]), np.ones(3)))
    proven(problem, ExponentiatedGradient(), 1e-6, np.array([[1.0], [0.0]]), iterations=2000)


def test_a_vertex_is_reached_and_nothing_overflows() -> None:
    relatives = np.ones((10, 4))
    relatives[:, 2] = 1.5
    problem = Portfolio(TaskData.shared(relatives, np.ones(10)))
    *_, last = islice(ExponentiatedGradient().steps(problem), 300)
    assert np.allclose(last.primal[:, 0], [0, 0, 1, 0])
    assert problem.certify(Iterate(last.primal)).gap <= 1e-12
