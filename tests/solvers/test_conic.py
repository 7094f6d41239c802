"""Generic solvers: what they are asked, what is made of their answers, and what they cannot take."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.composite_problem import model_unit
from bench_mtl.model.protocols import Answer
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.solvers.conic import Conic

LINEAR = [("ECOS", None), ("SCS", None), ("CLARABEL", None), ("PDLP", None)]
LINEAR += [("HIGHS", method) for method in (None, "simplex", "ipx", "hipo", "pdlp", "hipdlp")]


@pytest.fixture(scope="module")
def hinge() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)


@pytest.fixture(scope="module")
def larger() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=10, features=40, examples=30), radius="truth")


def fitting(problem: L1InfHinge, backend: str, method: str | None, **options: Any) -> Conic:
    solver = Conic(backend=backend, method=method, **options)
    reason = solver.incompatibility(problem)
    if reason is not None:
        pytest.skip(reason)
    return solver


def answered(solver: Conic, problem: Any, tolerance: float, seconds: float | None = 30.0) -> Answer:
    return solver.solve(solver.compile(solver.build(problem)), tolerance, seconds)


def test_conic_passes_options_on_and_reports_versions(hinge: L1InfHinge) -> None:
    solver = Conic(backend="SCS", ladder=(1e-2, 1e-4, 1e-3), options={"max_iters": 1})
    assert solver.tolerances == (1e-2, 1e-3, 1e-4)
    answer = answered(solver, hinge, 1e-9)
    assert answer.iterate is not None
    assert answer.iterate.step <= 1
    assert not answer.claims_optimal
    assert not answer.out_of_time
    assert "cvxpy" in solver.version


def test_a_backend_that_is_not_installed_is_skipped_by_name(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for backend, package in (("ECOS", "ecos"), ("PDLP", "ortools")):
        assert Conic(backend=backend).incompatibility(hinge) == f"{backend} is not installed (package {package})"
        assert Conic(backend=backend).version == "not installed"


def test_pdlp_has_a_process_of_its_own_and_may_lose_it(hinge: L1InfHinge) -> None:
    """OR-tools and highspy bring libraries of one name: a process that has loaded one cannot load the other."""
    solver = fitting(hinge, "PDLP", None)
    program = solver.compile(solver.build(hinge))
    assert answered(Conic(backend="HIGHS"), hinge, 1e-6).claims_optimal
    assert solver.solve(program, 1e-6, 30.0).claims_optimal
    assert "ortools.pdlp.python" not in sys.modules
    process = next(child for child in psutil.Process().children() if any(part.endswith("pdlp_process.py") for part in child.cmdline()))
    process.kill()
    answer = solver.solve(program, 1e-6, 30.0)
    assert (answer.iterate, answer.message) == (None, "RuntimeError: the process of PDLP died")


@pytest.mark.parametrize(("backend", "method"), LINEAR)
def test_the_ladder_starts_loose_and_ends_tight(larger: L1InfHinge, backend: str, method: str | None) -> None:
    """The first rung is cheaper than the last one, and what it leaves the last one reaches."""
    solver = fitting(larger, backend, method)
    program = solver.compile(solver.build(larger))
    answers = [solver.solve(program, tolerance, 30.0) for tolerance in (solver.tolerances[0], 1e-7)]
    steps, gaps = [], []
    for answer in answers:
        assert answer.iterate is not None
        assert answer.claims_optimal
        assert not answer.out_of_time
        assert answer.info["backend_solve_seconds"] > 0.0
        assert answer.setup_seconds >= 0.0
        steps.append(answer.iterate.step)
        gaps.append(larger.certify(answer.iterate).relative_gap)
    assert 0 < steps[0] <= steps[1]
    assert gaps[0] < 0.2
    assert gaps[1] < 1e-4
    if method not in (None, "simplex"):
        assert steps[0] < steps[1]


#: ECOS has no limit of time, and HiGHS's PDLP looks at the clock too rarely for so small a problem.
LIMITED = [entry for entry in LINEAR if entry not in (("ECOS", None), ("HIGHS", "pdlp"), ("HIGHS", "hipdlp"))]


@pytest.mark.parametrize(("backend", "method"), LIMITED)
def test_a_time_limit_is_told_from_other_ends(larger: L1InfHinge, backend: str, method: str | None) -> None:
    solver = fitting(larger, backend, method)
    program = solver.compile(solver.build(larger))
    assert solver.solve(program, 1e-9, 1e-4).out_of_time
    assert not solver.solve(program, 1e-2, 30.0).out_of_time


def test_an_iteration_limit_is_no_time_limit(larger: L1InfHinge) -> None:
    answer = answered(Conic(backend="HIGHS", method="simplex", options={"simplex_iteration_limit": 3}), larger, 1e-6)
    assert not answer.out_of_time
    assert not answer.claims_optimal


def test_exponential_cones_are_known() -> None:
    class Logistic(L1InfHinge):
        conic_forms = {"lp": frozenset({"linear", "quadratic", "exponential"})}

    problem = Logistic(synthetic_l1inf(tasks=2, features=3, examples=4), radius=1.0)
    assert all(Conic(backend=backend).incompatibility(problem) is None for backend in ("ECOS", "SCS", "CLARABEL"))
    assert "does not support the exponential" in str(Conic(backend="HIGHS").incompatibility(problem))


def test_the_unit_of_a_model_can_be_chosen_and_is_told() -> None:
    """So that a suite can run a rival both ways: on data in a tiny unit, the model as it stands does not get there."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 4)), np.sign(rng.standard_normal((20, 2)))
    problem = L1InfHinge(TaskData.shared(1e-8 * X, y), radius=1e8)
    limits = Limits(seconds=60.0)
    chosen, as_it_is = (
        run(problem, Conic(backend="CLARABEL", unit=unit), tolerance=Tolerance(1e-4), limits=limits) for unit in (None, 1.0)
    )
    assert chosen.status is Status.VERIFIED
    assert dict(chosen.info)["unit_of_coefficients"] == model_unit(problem.design)
    assert as_it_is.status is not Status.VERIFIED
    assert "unit_of_coefficients" not in dict(as_it_is.info)
    assert Conic(backend="CLARABEL", unit=1.0).label == "clarabel_unit1"
    portfolio = next(Portfolio.examples(rng))
    assert "no unit to choose" in str(Conic(unit=1.0).incompatibility(portfolio))
    with pytest.raises(InputError, match="unit"):
        Conic(unit=0.0)


@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_rare_and_absent_features_do_not_make_sparse_data_small(scale: float) -> None:
    """Most words of a text are in few documents, and some in none of those that are used."""
    rare, n, absent = 25, 4000, 100
    X = sp.csr_array((np.full(rare, 0.1 * scale), (np.arange(rare), np.arange(rare))), shape=(n, rare + absent))
    dense = TaskData.shared(0.1 * scale * np.ones((n, 2)), np.ones(n))
    assert model_unit(TaskData.shared(X, np.ones(n)).design) == model_unit(dense.design)
    assert (model_unit(dense.design) == 1.0) == (scale == 1.0)
