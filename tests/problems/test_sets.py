"""The sets of single problems: the trace ball; and a model that a solver reads wrongly."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl import Status, run
from bench_mtl.core.designs import leading_pair
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.registry import Registry
from bench_mtl.problems import L1InfHinge, TraceNormGLM
from bench_mtl.projections import project_trace_ball, prox_trace
from bench_mtl.solvers.conic import Conic

pytestmark = pytest.mark.numerics


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.sampled_from([1e-250, 1.0, 1e250]))
def test_leading_pairs_attain_the_spectral_norm(seed: int, d: int, m: int, scale: float) -> None:
    A = np.random.default_rng(seed).standard_normal((d, m))
    u, v = leading_pair(scale * A)
    assert (np.linalg.norm(u), np.linalg.norm(v)) == (pytest.approx(1.0), pytest.approx(1.0))
    assert u @ A @ v == pytest.approx(np.linalg.norm(A, ord=2), rel=1e-12)


@pytest.mark.parametrize("parameters", [{"radius": 1.5}, {"penalty": 0.4}])
@pytest.mark.parametrize("kept", [0, 1, 4, 15])
def test_rows_of_zeros_stay_and_change_nothing(parameters: dict[str, float], kept: int) -> None:
    point = np.zeros((20, 3))
    point[2 : 2 + kept] = np.random.default_rng(0).standard_normal((kept, 3))
    problem = TraceNormGLM(TaskData.shared(np.eye(20), np.ones((20, 3))), **parameters)  # type: ignore[arg-type]
    whole = project_trace_ball(point, 1.5) if "radius" in parameters else prox_trace(point, 2.0 * 0.4)
    assert np.allclose(problem.prox(point, 2.0), whole, rtol=1e-12, atol=1e-13)
    assert not problem.prox(point, 2.0)[2 + kept :].any()


def test_cvxpys_trap_ends_as_wrong(faults: Registry) -> None:
    """CVXPY 1.9.0 to 1.9.3 with HiGHS says optimal, 0 iterations, W = 0 for ``pos(1 - multiply(y, X @ w))``."""
    data = synthetic_l1inf(tasks=3, features=10, examples=8)
    problem = faults.problem("trapped_hinge")(data, radius="truth")  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 * inf in its bounds
        record = run(problem, Conic(backend="HIGHS"))
    if record.status is Status.VERIFIED:
        pytest.skip("the installed CVXPY solves the trapped form right")
    assert record.status is Status.WRONG
    assert "but its objective is 3 and a feasible point has 1.909" in record.reason
    assert run(L1InfHinge(data, radius="truth"), Conic(backend="HIGHS")).status is Status.VERIFIED
