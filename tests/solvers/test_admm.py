"""`ADMM` against its textbook form, on awkward data, and its options."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from low_rank_cases import AWKWARD

from bench_mtl.data import synthetic_sparse_low_rank
from bench_mtl.driver import run
from bench_mtl.errors import InputError
from bench_mtl.projections import project_trace_ball, soft_threshold
from bench_mtl.types import Limits, Status, Tolerance
from problems.l1inf_hinge import L1InfHinge
from problems.sparse_low_rank import SparseLowRank
from solvers.admm import ADMM


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compiling is off every clock."""
    ADMM().warm_up()


@pytest.mark.parametrize("name", AWKWARD)
def test_reaches_a_tight_gap(name: str) -> None:
    record = run(AWKWARD[name], ADMM(), tolerance=Tolerance(1e-8), limits=Limits(seconds=20.0, iterations=20_000))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize(
    "name", ["shared", "fewer examples than features", "per task", "per task, few examples", "more tasks than features"]
)
def test_is_the_textbook_method(name: str) -> None:
    """The joint least-squares step is solved for (P', Q') as one dense system a task."""
    problem, penalty, relaxation = AWKWARD[name], 0.7, 1.5
    _, d, m = problem.point_shape
    rho = np.repeat([penalty, 3.0 * penalty], d)
    Z, U = np.zeros((2 * d, m)), np.zeros((2 * d, m))
    iterates = list(islice(ADMM(relaxation=relaxation, penalty=penalty, balance=False).steps(problem), 5))
    for iterate in iterates[1:]:
        for _ in range(5):
            ahead = np.empty_like(Z)
            for k in range(m):
                X, y = np.asarray(problem.design.block(k)), problem.design.task_outputs(problem.targets, k)
                double = np.hstack([X, X])
                right = double.T @ y + rho * (Z - U)[:, k]
                ahead[:, k] = np.linalg.solve(double.T @ double + np.diag(rho), right)
            relaxed = relaxation * ahead + (1 - relaxation) * Z + U
            Z = np.vstack([soft_threshold(relaxed[:d], problem.gamma / penalty), project_trace_ball(relaxed[d:], problem.tau)])
            U = relaxed - Z
        assert np.allclose(iterate.primal, Z.reshape(2, d, m), atol=1e-10)
        assert np.allclose(iterate.dual, problem.targets - problem.design.forward(ahead[:d] + ahead[d:]), atol=1e-10)


def test_balancing_makes_up_for_a_bad_penalty() -> None:
    data = synthetic_sparse_low_rank(tasks=5, features=10, examples=20, rank=2, zero_features=2, zero_tasks=1)
    problem = SparseLowRank(data, gamma=2.0, tau=3.0)
    steps = {}
    for balance in (True, False):
        record = run(problem, ADMM(penalty=2e3, balance=balance), tolerance=Tolerance(1e-6), limits=Limits(iterations=20_000))
        steps[balance] = record.samples[-1].step
    assert steps[True] < 0.3 * steps[False]


def test_says_what_it_cannot_take() -> None:
    from bench_mtl.data import synthetic_l1inf

    hinge = L1InfHinge(synthetic_l1inf(tasks=2, features=4, examples=5), radius=1.0)
    assert ADMM().misfit(AWKWARD["shared"]) is None
    assert "admm needs split" in str(ADMM().misfit(hinge))


def test_refuses_a_design_too_large_to_factorise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.normal_equations.LARGEST_FACTOR", 4)
    assert "too large" in str(ADMM().misfit(AWKWARD["shared"]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"relaxation": 0.0}, "relaxation must be finite and above 0"),
        ({"relaxation": 2.0}, "relaxation must be below 2"),
        ({"penalty": -1.0}, "penalty must be finite and above 0"),
        ({"balance": 1}, "balance must be true or false"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ADMM(**options)  # type: ignore[arg-type]
