"""The compiled halves of a primal-dual step against slow twins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.forms import Hinges
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.regularisers import Constraint
from bench_mtl.projections import project_l1_ball, project_l1inf_ball, project_l2_ball, prox_l1inf
from bench_mtl.solvers.kernels import weighted_norms
from bench_mtl.solvers.pdhg import kernels
from bench_mtl.solvers.pdhg.run import Run, columns

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


def steps(X: Design, single: bool) -> Run:
    ones = np.ones(X.output_shape)
    run = Run(Hinges(LinearFit(X, ones, Hinge(), ones), Constraint(L1Inf(), 1.0)))
    run.data = columns(X, single=single)
    return run


def steady(W: Array, W0: Array, stepped: Array, step: kernels.Step) -> Array:
    return step.p * stepped + step.q * W + step.r * W0


@pytest.mark.parametrize("rows", [range(11), (0, 2, 3, 5, 9, 10), ()])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_coupled_step_is_its_formula(kind: str, rows: Sequence[int], threads: int) -> None:
    d, m = 11, 4
    X, rng = design(kind, d, m), np.random.default_rng(2)
    run = steps(X, "single" in kind)
    run.threads = threads
    for array in (*run.primal, *run.dual):
        array[:] = rng.standard_normal(array.shape)
    run.dual.lower[:], run.dual.upper[:] = -0.3, 0.6
    step = kernels.Step(0.3, np.full(m, 0.7) if X.is_shared else rng.uniform(0.1, 1.0, m), 1.2, -0.6, 0.4)
    primal, dual = (type(arrays)(*(array.copy() for array in arrays)) for arrays in (run.primal, run.dual))
    squares, product = run._coupled_step(step, np.array(rows, dtype=np.int64))

    u = X.forward(primal.extrapolated).ravel()
    sigma = np.broadcast_to(X.per_example(step.sigma), X.output_shape).ravel()
    stepped = np.clip(dual.point + sigma * (dual.target - u), -0.3, 0.6)
    point = steady(dual.point, dual.anchor, stepped, step)
    assert np.allclose(run.dual.stepped, stepped)
    assert np.allclose(run.dual.point, point)
    assert np.allclose(run.dual.predicted, steady(dual.predicted, dual.predicted_anchor, (u + dual.predicted) / 2, step))
    chosen = np.isin(np.arange(d), rows)
    assert np.allclose(run.primal.gradient[chosen], X.adjoint(point.reshape(X.output_shape))[chosen])
    if kind != "shared":
        assert np.array_equal(run.primal.gradient[~chosen], primal.gradient[~chosen])
    assert squares == pytest.approx(((stepped - dual.point) ** 2 / sigma).sum())
    assert product == pytest.approx(((stepped - dual.point) * (u - dual.predicted)).sum())
    for name in ("anchor", "predicted_anchor", "target"):
        assert np.array_equal(getattr(run.dual, name), getattr(dual, name))


def require_step(primal: kernels.Primal, before: kernels.Primal, W: Array, step: kernels.Step, moved: float) -> None:
    assert np.allclose(primal.stepped, W, rtol=1e-12, atol=1e-13)
    assert np.allclose(primal.extrapolated, 2 * W - before.point, rtol=1e-12, atol=1e-13)
    assert np.allclose(primal.point, steady(before.point, before.anchor, W, step), rtol=1e-12, atol=1e-13)
    assert moved == pytest.approx(((W - before.point) ** 2).sum())


@pytest.mark.parametrize("m", [1, 5, 33])
@pytest.mark.parametrize("theta", [0.0, 0.5, 100.0])
def test_a_primal_step_projects_from_any_theta(m: int, theta: float) -> None:
    d, rng, step = 11, np.random.default_rng(m), kernels.Step(0.3, np.ones(m), 1.2, -0.6, 0.4)
    before = kernels.Primal(*rng.standard_normal((5, d, m)))
    V = before.point + 0.3 * before.gradient
    for radius, penalised in ((0.0, False), (1e-9, False), (2.0, False), (1e3, False), (0.0, True)):
        planes = np.stack(before)
        primal = kernels.Primal(*planes)
        after, moved = kernels.norm_step(planes, step, kernels.norm_of(None, (d, m), radius, penalised), theta)
        assert after >= 0.0
        assert penalised or np.abs(primal.stepped).max(axis=1).sum() <= radius * (1 + 1e-14)
        require_step(primal, before, prox_l1inf(V, theta) if penalised else project_l1inf_ball(V, radius), step, moved)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("d", "m"), [(1, 1), (7, 3), (50, 4)])
def test_a_primal_step_with_balls_is_its_formula(norm: str, d: int, m: int) -> None:
    rng, step = np.random.default_rng(3), kernels.Step(0.7, np.ones(m), 1.2, -0.6, 0.4)
    planes = rng.standard_normal((5, d, m))
    primal = kernels.Primal(*planes)
    balls = kernels.Balls(np.ones(d), norm == "l1", rng.exponential(size=m), rng.exponential(size=m))
    project = project_l1_ball if norm == "l1" else project_l2_ball
    for _ in range(3):  # from thresholds on either side, then from the last ones
        before = kernels.Primal(*(array.copy() for array in primal))
        moved = kernels.ball_step(planes, step, balls)
        V = before.point + 0.7 * before.gradient
        require_step(primal, before, np.column_stack([project(v, r) for v, r in zip(V.T, balls.radii, strict=True)]), step, moved)


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([0.0, 1e-6, 0.1, 1.0, 30.0]), st.sampled_from([0.0, 0.3, 1e9]))
def test_column_projections_are_those_of_the_library(seed: int, size: int, radius: float, theta: float) -> None:
    v = np.random.default_rng(seed).standard_normal(size)
    v[::3] = np.round(v[::3])  # zeros and ties
    by_l1 = partial(weighted_norms.project_weighted_l1, theta=theta)
    for project, kernel in ((project_l1_ball, by_l1), (project_l2_ball, weighted_norms.project_weighted_l2)):
        w = v.copy()
        assert kernel(w, radius, np.ones(size)) >= 0.0
        assert np.allclose(w, project(v, radius), rtol=1e-12, atol=1e-15)
        assert kernel(np.full(size + 1, 1e308), 1.0, np.ones(size + 1)) == -1.0


def test_what_is_outside_an_l1_ball_by_rounding_alone_is_no_fault() -> None:
    """The sum of sizes is taken in two orders, so that the excess may come out below 0."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        v = rng.standard_normal(rng.integers(1, 200))
        radius = float(np.abs(v).sum()) * (1.0 - rng.integers(0, 6) * 1.1e-16)
        w = v.copy()
        assert weighted_norms.project_weighted_l1(w, radius, np.ones(len(v)), 0.0) >= 0.0
        np.testing.assert_allclose(w, v, atol=1e-13)
