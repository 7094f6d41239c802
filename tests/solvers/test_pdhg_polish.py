"""The polish step of the primal-dual hybrid gradient method: to the vertex from near it, and never to anything worse."""

from __future__ import annotations

from itertools import islice
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import bench_mtl.solvers.pdhg.polish as pdhg_polish
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import HingeForm
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.pdhg.polish import ActiveSet, enclosure, exchange, polish
from bench_mtl.solvers.pdhg.polish_system import Block, Factor, System


def tasks(d: int = 8, m: int = 4, n: int = 12, scale: float = 1.0, kind: str = "dense") -> TaskData:
    rng = np.random.default_rng(3)
    w = rng.standard_normal(d)
    Xs = [scale * rng.standard_normal((n, d)) for _ in range(m)]
    ys = [np.where(X @ w + scale * rng.standard_normal(n) > 0, 1.0, -1.0) for X in Xs]
    if "CSR" in kind:
        Xs = [sp.csr_array(X * (rng.random(X.shape) < 0.6)) for X in Xs]
    if "shared" in kind:
        return TaskData.shared(Xs[0], np.stack(ys, axis=1))
    if kind == "duplicates":
        Xs, ys = [np.repeat(X, 2, axis=0) for X in Xs], [np.repeat(y, 2) for y in ys]
    if kind == "zeros":
        Xs[0][:] = 0.0
        for X in Xs:
            X[:, -3:] = 0.0
    return TaskData.per_task(Xs, ys)


CASES: dict[str, tuple[TaskData, dict[str, Any]]] = {
    "radius": (synthetic_l1inf(tasks=5, features=12, examples=15), {"radius": 2.0}),
    "penalty": (tasks(), {"penalty": 0.2}),
    "sum": (tasks(), {"radius": 1.0, "reduction": "sum"}),
    "shared": (tasks(kind="shared"), {"radius": 0.8}),
    "CSR": (tasks(kind="CSR"), {"penalty": 0.1}),
    "shared CSR": (tasks(kind="shared CSR"), {"radius": 0.8}),
    "one task": (tasks(m=1), {"radius": 1.0}),
    "one feature": (tasks(d=1), {"radius": 0.3}),
    "many features": (tasks(d=40, n=6), {"radius": 0.4}),
}

#: Where the vertex is not unique, or there is nothing to find: only the end-to-end test.
HARD: dict[str, tuple[TaskData, dict[str, Any]]] = {
    "one of all": (tasks(d=1, m=1, n=1), {"radius": 0.3}),
    "radius 0": (tasks(), {"radius": 0.0}),
    "radius not binding": (tasks(n=40), {"radius": 1e3}),
    "no penalty": (tasks(d=40, n=4), {"penalty": 0.0}),
    "huge penalty": (tasks(), {"penalty": 1e6}),
    "duplicates": (tasks(kind="duplicates"), {"radius": 0.8}),
    "zeros": (tasks(kind="zeros"), {"radius": 0.8}),
    "small data": (tasks(scale=1e-8), {"radius": 1e8}),
    "large data": (tasks(scale=1e8), {"radius": 1e-8}),
}


def optimum(problem: L1InfHinge) -> tuple[Array, Array]:
    model = problem.to_cvxpy("lp")
    model.problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    W, dual = model.recover()
    assert dual is not None
    return np.array(problem.repair(W)), np.clip(dual, 0.0, problem.weights)


def relative_gap(problem: L1InfHinge, W: Array, dual: Array) -> float:
    certificate = problem.certify(Iterate(W, dual))
    return certificate.gap / max(abs(certificate.primal), 1e-300)


@pytest.mark.parametrize("case", CASES)
def test_finds_the_optimum_from_near_it(case: str) -> None:
    data, parameters = CASES[case]
    problem = L1InfHinge(data, **parameters)
    W, dual = optimum(problem)
    rng = np.random.default_rng(1)
    near = np.array(problem.repair(W + 1e-4 * np.abs(W).max() * rng.standard_normal(W.shape)))
    dual = np.clip(dual + 1e-4 * problem.weights * rng.standard_normal(dual.shape), 0.0, problem.weights)
    before = near.copy(), dual.copy()
    polished = polish(problem.form(HingeForm), near, dual)
    assert polished is not None
    assert abs(relative_gap(problem, *polished)) <= 1e-12
    assert problem.infeasibility(polished[0]) <= 1e-12
    assert np.array_equal(near, before[0])
    assert np.array_equal(dual, before[1])


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in HARD)])
def test_what_is_no_better_is_not_accepted(case: str) -> None:
    data, parameters = (CASES | HARD)[case]
    problem = L1InfHinge(data, **parameters)
    form, rng = problem.form(HingeForm), np.random.default_rng(2)
    size = parameters.get("radius", 1.0)
    for _ in range(2):
        W = np.array(problem.repair(size * rng.standard_normal(problem.point_shape)))
        dual = np.array(problem.weights * rng.random(problem.dual_shape))
        polished = polish(form, W, dual)
        if polished is not None:
            assert problem.infeasibility(polished[0]) <= 1e-12
            assert np.all((polished[1] >= 0.0) & (polished[1] <= problem.weights))
            assert np.subtract(*enclosure(form, *polished)) < np.subtract(*enclosure(form, W, dual))


@pytest.mark.parametrize("case", [*CASES, *HARD])
def test_proves_tight_gaps_end_to_end(case: str) -> None:
    data, parameters = (CASES | HARD)[case]
    problem = L1InfHinge(data, **parameters)
    record = run(problem, PDHG(), tolerance=Tolerance(1e-9), limits=Limits(seconds=60.0, iterations=50_000))
    assert record.status is Status.VERIFIED, record.reason


def test_is_accurate_long_before_the_steps_are() -> None:
    problem = L1InfHinge(synthetic_l1inf(tasks=20, features=60, examples=30), radius="truth")
    limits = Limits(seconds=60.0, iterations=2000)
    assert run(problem, PDHG(), tolerance=Tolerance(1e-9), limits=limits).status is Status.VERIFIED
    assert run(problem, PDHG(polish=False), tolerance=Tolerance(1e-9), limits=limits).status is not Status.VERIFIED


def test_a_vertex_needs_no_exchange_and_stays_as_it_is() -> None:
    problem = L1InfHinge(CASES["radius"][0], radius=2.0)
    vertex = polish(problem.form(HingeForm), *optimum(problem))
    assert vertex is not None
    state = ActiveSet(problem.form(HingeForm), *vertex)
    assert state.solve(np.inf)
    assert not state.improve()
    assert np.allclose(state.W, vertex[0], atol=1e-12)
    assert np.allclose(state.a, vertex[1], atol=1e-12)


@pytest.mark.parametrize("case", ["penalty", "CSR", "sum"])
def test_one_exchange_corrects_whatever_single_error(case: str) -> None:
    data, parameters = CASES[case]
    problem = L1InfHinge(data, **parameters)
    form, point = problem.form(HingeForm), optimum(problem)
    right = ActiveSet(form, *point)
    for i in range(right.on.size):
        state = ActiveSet(form, *point)
        state.on.flat[i] = not right.on.flat[i]
        state.upper.flat[i] = False
        solved_after(1, state)
    for j, k in np.argwhere(right.inside):
        state = ActiveSet(form, *point)
        state.inside[j, k], state.sign[j, k] = False, np.sign(state.W[j, k])
        solved_after(1, state)


def solved_after(rounds: int, state: ActiveSet) -> None:
    for _ in range(rounds):
        assert state.solve(np.inf)
        assert state.improve()
    assert state.solve(np.inf)
    assert not state.improve()
    objective, bound = enclosure(state.form, *state.candidate())
    assert objective - bound <= 1e-11


@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7)])
@pytest.mark.parametrize("rank", [2, 4])
def test_factor_is_the_pseudoinverse(shape: tuple[int, int], rank: int) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    factor, inverse = Factor(A), np.linalg.pinv(A)
    b, c = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    assert np.allclose(factor.solve(b), inverse @ b)
    assert np.allclose(factor.solve_transposed(c), inverse.T @ c)
    nothing = Factor(np.zeros(shape))
    assert not nothing.solve(b).any()
    assert not nothing.solve_transposed(c).any()


@pytest.mark.parametrize("with_last", [True, False])
@pytest.mark.parametrize("shapes", [[(3, 2), (2, 2), (4, 1)], [(1, 3), (0, 2), (4, 0)], [(3, 1), (4, 1)]])
def test_system_is_least_squares_with_the_whole_matrix(shapes: list[tuple[int, int]], with_last: bool) -> None:
    rng, n_shared = np.random.default_rng(0), 3
    blocks = []
    for shape in shapes:
        own = rng.standard_normal(shape)
        blocks.append(Block(own, rng.standard_normal((shape[0], n_shared)), Factor(own, complement=True) if min(shape) else None))
    last = np.ones(n_shared) if with_last else None
    system = System(blocks, last, n_shared)
    A = np.array([system.apply(unit) for unit in np.eye(sum(shape[1] for shape in shapes) + n_shared)]).T
    b, c = rng.standard_normal(A.shape[0]), rng.standard_normal(A.shape[1])
    assert np.allclose(system.apply_transposed(b), A.T @ b)
    rest = b - A @ system.solve(b)
    assert np.allclose(A.T @ rest, 0.0)
    rest = c - A.T @ system.solve_transposed(c)
    direction = system.null_direction(rest)
    assert np.allclose(A @ direction, 0.0)
    if np.linalg.matrix_rank(A) == A.shape[1]:
        assert np.allclose(rest, 0.0)
    else:
        assert rest @ direction > 0.0


def test_work_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = L1InfHinge(CASES["radius"][0], radius=2.0)
    form = problem.form(HingeForm)
    *_, iterate = islice(PDHG(polish=False).steps(problem), 8)
    assert iterate.dual is not None
    free = exchange(form, iterate.primal, iterate.dual, 1.0)
    for budget in (0.0, 5.0, 10.0):
        assert exchange(form, iterate.primal, iterate.dual, 1.0, budget).work <= budget + 3.0
    assert free.work > 5.0
    plain = {iterate.step: iterate for iterate in islice(PDHG(polish=False).steps(problem), 60)}
    *_, last = islice(PDHG().steps(problem), 60)
    share = pdhg_polish._SHARE
    assert last.work <= max(plain.values(), key=lambda iterate: iterate.step).work / (1.0 - share) + 3.0
    monkeypatch.setattr(pdhg_polish, "MOST_UNKNOWNS", 0)
    assert polish(form, iterate.primal, iterate.dual) is None


def test_bad_option_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="polish"):
        PDHG(polish=1)  # type: ignore[arg-type]
