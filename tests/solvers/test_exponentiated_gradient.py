"""Exponentiated gradient: against plain products in a loop, on every kind of simplex; its starts and ends."""

import math
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import proven

from bench_mtl.core.designs import frozen
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems import L1BallGLM, Portfolio
from bench_mtl.solvers.exponentiated_gradient import ExponentiatedGradient

RNG = np.random.default_rng(0)
X = DENSE = RNG.standard_normal((25, 6))
Y = X @ (RNG.standard_normal((6, 3)) * (RNG.random((6, 3)) < 0.5)) + 0.2 * RNG.standard_normal((25, 3))
SIGNS = np.where(RNG.random((6, 3)) < 0.5, 1.0, -1.0)


class Twin:
    """Products of exponentials, divided by their sums."""

    def __init__(self, form: SimplexForm, shape: tuple[int, ...]) -> None:
        self.form, self.axis = form, 0 if form.balls == "task" else (0, 1)
        self.n = (shape[0] if form.balls == "task" else math.prod(shape)) * (2 if form.signed else 1) + form.slack
        self.units = form.mass * (np.ones(shape) if form.orientation is None else form.orientation)
        self.plus = np.full(shape, 1.0 / self.n)
        self.minus = self.plus * form.signed
        self.slack = form.slack / self.n * np.ones_like(self.plus.sum(axis=self.axis, keepdims=True))

    def point(self) -> Array:
        return self.units * (self.plus - self.minus)

    def largest_range(self, G: Array) -> float:
        prices = np.stack([self.units * G, -self.units * G if self.form.signed else self.units * G])
        axis, ends = (0, 1) if self.axis == 0 else (0, 1, 2), {"initial": 0.0} if self.form.slack else {}
        return float((prices.max(axis=axis, **ends) - prices.min(axis=axis, **ends)).max())

    def step(self, G: Array, eta: float) -> None:
        self.plus, self.minus = self.plus * np.exp(-eta * self.units * G), self.minus * np.exp(eta * self.units * G)
        total = (self.plus + self.minus).sum(axis=self.axis, keepdims=True) + self.slack
        self.plus, self.minus, self.slack = self.plus / total, self.minus / total, self.slack / total


@pytest.mark.parametrize("kind", ["shared", "few entries", "far", "per task", "one ball", "nonneg", "oriented"])
def test_drawn_steps_are_plain_products(kind: str) -> None:
    """Far steps are those after which weights have to be divided by their sums; with few entries most weights wait."""
    rate = 40.0 if kind == "far" else 0.1
    X = np.where(RNG.random(DENSE.shape) < 0.2, DENSE, 0.0) if kind == "few entries" else DENSE
    data = TaskData.shared(sp.csr_array(X) if kind == "few entries" else X, Y)
    rows = [slice(0, 25)] * 3
    if kind == "per task":
        rows = [slice(0, 4), slice(4, 13), slice(13, 25)]
        data = TaskData.per_task([X[part] for part in rows], [Y[part, k] for k, part in enumerate(rows)])
    data = replace(data, orientation=frozen(SIGNS) if kind == "oriented" else None)
    problem = L1BallGLM(data, radius=1.0, balls="all" if kind == "one ball" else "task", nonneg=kind in ("nonneg", "oriented"))
    twin = Twin(problem.form(SimplexForm), problem.point_shape)
    _, G = problem.value_and_gradient(twin.point())
    eta0 = rate * np.sqrt(np.log(twin.n)) / twin.largest_range(G)
    rng = np.random.default_rng(7)
    points, etas = [], []
    for t in range(1, 21):
        W = twin.point()
        points.append(W)
        etas.append(eta0 / np.sqrt(t))
        G = np.zeros((6, 3))
        for i, k in product(rng.integers(25, size=3), range(3)):
            if rows[k].start <= i < rows[k].stop:
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
