"""Norms: dual norms by corners, their models, and what a norm of a regulariser proves and is nearest to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.rounding import Interval
from bench_mtl.model.norms import L1, L12, FeatureNorm, L1Inf, Norm, Trace
from bench_mtl.model.regularisers import Constraint, Penalty, Regulariser, Stacked
from bench_mtl.model.squared_norms import PenaltyAndRidge, SquaredNorms
from bench_mtl.model.task_balls import L1TaskBalls, L2TaskBalls

pytestmark = pytest.mark.numerics

D, M = 4, 3
SIGNS = np.where(np.random.default_rng(1).random((D, M)) < 0.5, 1.0, -1.0)
FACTORS = np.array([[0.5], [1.0], [3.0], [0.1]])
NORMS: dict[str, Norm] = {
    "l1inf": L1Inf(),
    "l12": L12(),
    "l1": L1(),
    "l1 of tasks": L1("task"),
    "l1, nonneg": L1("all", True),
    "l1 of tasks, oriented": L1("task", True, SIGNS),
    "trace": Trace(),
    "l1inf, nonnegative": FeatureNorm(L1Inf(), np.ones((D, 1)), True),
    "l12, factors, nonnegative": FeatureNorm(L12(), FACTORS, True),
    "l1, oriented, factors": FeatureNorm(L1("all", True, SIGNS), FACTORS),
}
ALL = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)


@ALL
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-300, 1e-3, 1.0, 1e150]))
def test_corners_attain_the_dual_norm_and_no_point_exceeds_it(norm: Norm, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    G = scale * rng.standard_normal((D, M))
    vertex = norm.vertex(-G, 2.0)
    assert norm.value(vertex) <= 2.0 * (1 + 1e-12)
    assert norm.outside_cone(vertex) == 0.0
    assert float(np.vdot(G, vertex)) == pytest.approx(2.0 * norm.dual(G), rel=1e-9)
    W = norm.to_cone(rng.standard_normal((D, M)))
    assert float(np.vdot(G, W)) <= norm.dual(G) * norm.value(W) * (1 + 1e-12)


@ALL
def test_a_direction_of_zeros_has_no_dual_norm(norm: Norm) -> None:
    zero = np.zeros((D, M))
    assert norm.dual(zero) == 0.0
    assert norm.value(norm.vertex(zero, 2.0)) <= 2.0 * (1 + 1e-12)


REGULARISERS: dict[str, Regulariser] = {
    **{f"{name} ball": Constraint(norm, 0.8) for name, norm in NORMS.items() if "factors" not in name},
    **{f"{name} penalty": Penalty(norm, 0.3) for name, norm in NORMS.items() if "tasks" not in name},
    **{f"{name} penalty and ridge": PenaltyAndRidge(Penalty(norm, 0.3), 0.7) for name, norm in NORMS.items() if "tasks" not in name},
    "free rows": PenaltyAndRidge(Penalty(FeatureNorm(L12(), FACTORS * [[0.0], [1.0], [1.0], [1.0]], True), 0.3), 0.7),
    "nothing but free rows": PenaltyAndRidge(Penalty(FeatureNorm(L1Inf(), 0.0 * FACTORS), 0.3), 0.7),
    "ridge": SquaredNorms(0.4, half=1.0),
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
    if not part.is_homogeneous:  # whose support is attained where the gradient of R is G
        best = part.prox(1e9 * G, 1e9)
        assert float(np.vdot(G, best)) - part.value(best) == pytest.approx(support, rel=1e-6)
    vertex = part.vertex(-G)
    if vertex is not None:
        assert float(np.vdot(G, vertex)) == pytest.approx(support, rel=1e-9)
