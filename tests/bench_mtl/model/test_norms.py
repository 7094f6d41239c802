"""Norms: dual norms by corners, projections and proximal operators by CVXPY, and what a norm of a regulariser proves."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.norms import L1, L12, L1Inf, Norm, Trace
from bench_mtl.model.regularisers import Constraint, Penalty, Regulariser, Stacked
from bench_mtl.model.task_balls import L1TaskBalls, L2TaskBalls

pytestmark = pytest.mark.numerics

D, M = 4, 3
SIGNS = np.where(np.random.default_rng(1).random((D, M)) < 0.5, 1.0, -1.0)
NORMS: dict[str, tuple[Norm, Any]] = {
    "l1inf": (L1Inf(), lambda W: cp.sum(cp.max(cp.abs(W), axis=1))),
    "l12": (L12(), lambda W: cp.sum(cp.norm(W, 2, axis=1))),
    "l1": (L1(), lambda W: cp.sum(cp.abs(W))),
    "l1 of tasks": (L1("task"), lambda W: cp.max(cp.sum(cp.abs(W), axis=0))),
    "l1, nonneg": (L1("all", True), cp.sum),
    "l1 of tasks, oriented": (L1("task", True, SIGNS), lambda W: cp.max(cp.sum(cp.abs(W), axis=0))),
    "trace": (Trace(), cp.normNuc),
}
ALL = pytest.mark.parametrize("name", NORMS)


def solved(name: str, W: Array, *, radius: float | None = None, weight: float = 0.0) -> Array:
    """The projection or the proximal operator by its definition."""
    norm, value = NORMS[name]
    V = cp.Variable(W.shape)
    constraints = [] if radius is None else [value(V) <= radius]
    if isinstance(norm, L1) and norm.nonneg:
        constraints.append((cp.multiply(norm.orientation, V) if norm.orientation is not None else V) >= 0.0)
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(V - W) + (weight * value(V) if weight else 0.0)), constraints).solve(solver="CLARABEL")
    return np.asarray(V.value)


@ALL
def test_projections_and_proximal_operators_are_those_of_the_definitions(name: str) -> None:
    norm, value = NORMS[name]
    W = np.random.default_rng(0).standard_normal((D, M))
    inside = norm.to_cone(W)
    assert norm.value(inside) == pytest.approx(float(value(cp.Constant(inside)).value))
    assert norm.outside_cone(inside) == 0.0
    assert np.allclose(norm.project(W, 0.7), solved(name, W, radius=0.7), atol=2e-5)
    if not (isinstance(norm, L1) and norm.balls == "task"):
        assert np.allclose(norm.prox(W, 0.4), solved(name, W, weight=0.4), atol=2e-5)


@ALL
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-300, 1e-3, 1.0, 1e150]))
def test_corners_attain_the_dual_norm_and_no_point_exceeds_it(name: str, seed: int, scale: float) -> None:
    norm, _ = NORMS[name]
    rng = np.random.default_rng(seed)
    G = scale * rng.standard_normal((D, M))
    vertex = norm.vertex(-G, 2.0)
    assert norm.value(vertex) <= 2.0 * (1 + 1e-12)
    assert norm.outside_cone(vertex) == 0.0
    assert float(np.vdot(G, vertex)) == pytest.approx(2.0 * norm.dual(G), rel=1e-9)
    W = norm.to_cone(rng.standard_normal((D, M)))
    assert float(np.vdot(G, W)) <= norm.dual(G) * norm.value(W) * (1 + 1e-12)


@ALL
def test_a_direction_of_zeros_has_no_dual_norm(name: str) -> None:
    norm, _ = NORMS[name]
    zero = np.zeros((D, M))
    assert norm.dual(zero) == 0.0
    assert norm.value(norm.vertex(zero, 2.0)) <= 2.0 * (1 + 1e-12)


@ALL
def test_models_have_the_value_of_the_norm(name: str) -> None:
    norm, _ = NORMS[name]
    W = norm.to_cone(np.random.default_rng(0).standard_normal((D, M)))
    for form in norm.models:
        matrix, value, constraints = norm.model(form, (D, M))
        cp.Problem(cp.Minimize(cp.max(value)), [*constraints, matrix == W]).solve(solver="CLARABEL")
        assert float(np.max(value.value)) == pytest.approx(norm.value(W), rel=1e-5)


REGULARISERS: dict[str, Regulariser] = {
    "constraint": Constraint(L1Inf(), 0.8),
    "penalty": Penalty(L12(), 0.3),
    "balls l1": L1TaskBalls(np.array([0.5, 0.0, 2.0])),
    "balls l2": L2TaskBalls(np.array([0.5, 0.0, 2.0])),
    "penalties": Stacked((Penalty(L1Inf(), 0.5), Penalty(L1(), 0.3))),
    "penalty and constraint": Stacked((Penalty(L1(), 0.3), Constraint(Trace(), 0.7))),
}


@pytest.mark.parametrize("name", REGULARISERS)
@given(seed=st.integers(0, 10**6))
def test_supports_and_limits_bound_every_feasible_point(name: str, seed: int) -> None:
    """min_z <-c G, z> + R(z) >= -c support, for c up to the limit."""
    part, rng = REGULARISERS[name], np.random.default_rng(seed)
    stacked = isinstance(part, Stacked)
    G = rng.standard_normal((D, M))
    enclosed, between = part.enclose_support(Interval.exact(G))
    support, (limit, highest) = float(enclosed.upper), between.ends
    assert limit <= highest
    for _ in range(3):
        z = part.repair(3.0 * rng.standard_normal((2, D, M) if stacked else (D, M)))
        assert part.excess(z) <= 1e-12
        total = z.sum(axis=0) if stacked else z
        for c in (0.1, 1.0) if np.isinf(limit) else (0.5 * limit, limit):
            assert -c * float(np.vdot(G, total)) + part.value(z) >= -c * support - 1e-9
    vertex = part.vertex(-G)
    if vertex is not None:
        assert float(np.vdot(G, vertex)) == pytest.approx(support, rel=1e-9)


@pytest.mark.parametrize("name", REGULARISERS)
@given(seed=st.integers(0, 10**6), step=st.floats(0.01, 10.0))
def test_no_point_near_it_is_better_than_the_prox(name: str, seed: int, step: float) -> None:
    part, rng = REGULARISERS[name], np.random.default_rng(seed)
    shape = (2, D, M) if isinstance(part, Stacked) else (D, M)
    point = rng.standard_normal(shape)
    best = part.prox(point, step)

    def objective(z: Array) -> float:
        return 0.5 * float(((z - point) ** 2).sum()) + step * part.value(z)

    assert part.excess(best) <= 1e-9
    for size in (1e-3, 0.1, 1.0):
        other = part.repair(best + size * rng.standard_normal(shape))
        assert objective(best) <= objective(other) + 1e-9
