"""The compiled halves of a primal-dual step against slow twins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign
from bench_mtl.projections import project_l1_ball, project_l1inf_ball, project_l2_ball, prox_l1inf
from bench_mtl.projections.kernels.l1inf_passes import STATE_ROWS
from bench_mtl.projections.kernels.levels import COEFFICIENTS
from bench_mtl.solvers.pdhg.kernels import saddle, saddle_balls, saddle_passes
from bench_mtl.solvers.pdhg.run import kernel_data

KINDS = ("per task", "per task, single", "per task, unequal", "per task CSR", "shared", "shared CSR")


def design(kind: str, d: int, m: int, n: int = 9) -> Design:
    rng = np.random.default_rng(d * m)
    sizes = [n + k % 3 if kind == "per task, unequal" else n for k in range(m)]
    blocks = [rng.standard_normal((size, d)).astype(np.float32).astype(float) * (rng.random((size, d)) < 0.6) for size in sizes]
    if kind == "shared":
        return SharedDesign(blocks[0], m)
    if kind == "shared CSR":
        return SharedDesign(sp.csr_array(blocks[0]), m)
    return PerTaskDesign([sp.csr_array(block) for block in blocks] if kind == "per task CSR" else blocks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "m"), [(1, 1), (7, 3), (6, 40)])
def test_passes_are_the_products_of_the_design(kind: str, d: int, m: int) -> None:
    X, rng = design(kind, d, m), np.random.default_rng(1)
    data = kernel_data(X, np.float32 if "single" in kind else np.float64)
    W = rng.standard_normal((d, m)) * (rng.random((d, m)) < 0.7)
    out, G = np.empty(X.n_examples), np.empty((d, m))
    saddle_passes.forward(*data, W, out)
    assert np.allclose(out, X.forward(W).ravel(), rtol=1e-13, atol=1e-13)
    b = rng.standard_normal(X.n_examples)
    saddle_passes.adjoint(*data, b, G, np.arange(d))
    assert np.allclose(G, X.adjoint(b.reshape(X.output_shape)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("rows", [range(11), (0, 2, 3, 5, 9, 10), ()])
@pytest.mark.parametrize("kind", KINDS)
def test_a_coupled_step_is_its_formula(kind: str, rows: Sequence[int]) -> None:
    d, m = 11, 4
    X, rng = design(kind, d, m), np.random.default_rng(2)
    E, G = rng.standard_normal((2, d, m))
    old = G.copy()
    dual = rng.standard_normal((saddle_passes.DUAL_ROWS, X.n_examples))
    dual[saddle_passes.LOWER], dual[saddle_passes.UPPER] = -0.3, 0.6
    sigma = np.full(m, 0.7) if X.is_shared else rng.uniform(0.1, 1.0, m)
    p, q, r = mix = np.array([1.2, -0.6, 0.4])
    before = dual.copy()
    moves = np.zeros((2, m))
    data = kernel_data(X, np.float32 if "single" in kind else np.float64)
    for first, last in ((0, 3), (3, m)) if not X.is_shared else ((0, m),):
        saddle_passes.coupled_step(*data, E, dual, sigma, mix, G, np.array(rows, dtype=np.int64), first, last, moves)
    squares, product = moves.sum(axis=1)

    b, b0, predicted, predicted0 = before[[0, 1, 3, 4]]
    u = X.forward(E).ravel()
    steps = np.broadcast_to(X.per_example(sigma), X.output_shape).ravel()
    stepped = np.clip(b + steps * (before[saddle_passes.TARGET] - u), -0.3, 0.6)
    point = p * stepped + q * b + r * b0
    assert np.allclose(dual[saddle_passes.STEPPED], stepped)
    assert np.allclose(dual[saddle_passes.POINT], point)
    assert np.allclose(dual[saddle_passes.PREDICTED], p * (u + predicted) / 2 + q * predicted + r * predicted0)
    chosen = np.isin(np.arange(d), rows)
    assert np.allclose(G[chosen], X.adjoint(point.reshape(X.output_shape))[chosen])
    if kind != "shared":
        assert np.array_equal(G[~chosen], old[~chosen])
    assert squares == pytest.approx(((stepped - b) ** 2 / steps).sum())
    assert product == pytest.approx(((stepped - b) * (u - predicted)).sum())
    for unchanged in (saddle_passes.ANCHOR, saddle_passes.PREDICTED_ANCHOR, saddle_passes.TARGET):
        assert np.array_equal(dual[unchanged], before[unchanged])


@pytest.mark.parametrize("m", [1, 5, 33])
@pytest.mark.parametrize("theta", [0.0, 0.5, 100.0])
def test_a_primal_step_projects_from_any_theta(m: int, theta: float) -> None:
    d, tau, rng = 11, 0.3, np.random.default_rng(m)
    primal = rng.standard_normal((saddle.PRIMAL_PLANES, d, m))
    point, anchor, _, _, G = primal.copy()
    memory = np.empty((STATE_ROWS, d)), np.empty(COEFFICIENTS), np.empty((d, m))
    p, q, r = mix = np.array([1.2, -0.6, 0.4])
    for radius, penalised in ((0.0, False), (2.0, False), (1e3, False), (0.0, True)):
        primal[saddle.POINT] = point
        after, moved = saddle.primal_step(primal, tau, radius, penalised, theta, mix, *memory)
        W = prox_l1inf(point + tau * G, theta) if penalised else project_l1inf_ball(point + tau * G, radius)
        assert after >= 0.0
        assert np.allclose(primal[saddle.STEPPED], W, rtol=1e-12, atol=1e-13)
        assert penalised or np.abs(primal[saddle.STEPPED]).max(axis=1).sum() <= radius * (1 + 1e-15)
        assert np.allclose(primal[saddle.EXTRAPOLATED], 2 * W - point)
        assert np.allclose(primal[saddle.POINT], p * W + q * point + r * anchor)
        assert moved == pytest.approx(((W - point) ** 2).sum())


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("d", "m"), [(1, 1), (7, 3), (50, 4)])
def test_a_primal_step_with_balls_is_its_formula(norm: str, d: int, m: int) -> None:
    rng = np.random.default_rng(3)
    primal = rng.standard_normal((saddle.PRIMAL_PLANES, d, m))
    radii, thresholds = rng.exponential(size=m), rng.exponential(size=m)
    p, q, r = mix = np.array([1.2, -0.6, 0.4])
    for _ in range(3):  # from thresholds on either side, then from the last ones
        W, anchor, G = (primal[plane].copy() for plane in (saddle.POINT, saddle.ANCHOR, saddle.GRADIENT))
        moved = saddle_balls.ball_step(primal, 0.7, norm == "l1", radii, thresholds, mix)
        project = project_l1_ball if norm == "l1" else project_l2_ball
        stepped = np.column_stack([project(W[:, k] + 0.7 * G[:, k], radii[k]) for k in range(m)])
        assert np.allclose(primal[saddle.STEPPED], stepped, rtol=1e-13, atol=1e-14)
        assert np.allclose(primal[saddle.EXTRAPOLATED], 2.0 * stepped - W, rtol=1e-13, atol=1e-14)
        assert np.allclose(primal[saddle.POINT], p * stepped + q * W + r * anchor, rtol=1e-13, atol=1e-14)
        assert moved == pytest.approx(float(((stepped - W) ** 2).sum()))


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.0, 1e-6, 0.1, 1.0, 30.0]), st.sampled_from([0.0, 0.3, 1e9]))
def test_column_projections_are_those_of_the_library(seed: int, size: int, radius: float, threshold: float) -> None:
    v = np.random.default_rng(seed).standard_normal(size)
    v[::3] = np.round(v[::3])  # zeros and ties
    for project, kernel in ((project_l1_ball, saddle_balls.project_l1), (project_l2_ball, saddle_balls.project_l2)):
        w = v.copy()
        found = kernel(w, radius, threshold) if project is project_l1_ball else kernel(w, radius)
        assert found >= 0.0
        assert np.allclose(w, project(v, radius), rtol=1e-12, atol=1e-15)
    huge = np.full(size + 1, 1e308)
    assert saddle_balls.project_l1(huge.copy(), 1.0, 0.0) == -1.0
    assert not saddle_balls.project_l2(huge.copy(), 1.0)


def test_what_is_outside_an_l1_ball_by_rounding_alone_is_no_fault() -> None:
    """The sum of sizes is taken in two orders, so that the excess may come out below 0."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        v = rng.standard_normal(rng.integers(1, 200))
        radius = float(np.abs(v).sum()) * (1.0 - rng.integers(0, 6) * 1.1e-16)
        w = v.copy()
        assert saddle_balls.project_l1(w, radius, 0.0) >= 0.0
        np.testing.assert_allclose(w, v, atol=1e-13)
