"""Backends by name: which are known, what they are told, what is said of those that are not there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate
from bench_mtl.data import synthetic_l1inf
from bench_mtl.model.protocols import ConicModel, Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.conic import Conic, lookup, solver
from bench_mtl.solvers.conic.backend import Package
from bench_mtl.solvers.conic.table import BACKENDS, FREE


@pytest.fixture(scope="module")
def hinge() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)


@pytest.fixture(autouse=True)
def no_memory_of_licences() -> Iterator[None]:
    solver._has_licence.cache_clear()
    solver._warm_up.cache_clear()
    yield
    solver._has_licence.cache_clear()
    solver._warm_up.cache_clear()


def proven(problem: Problem, conic: Conic, tolerance: float) -> tuple[Iterate, float]:
    answer = conic.solve(conic.compile(conic.build(problem)), tolerance, 30.0)
    assert answer.iterate is not None, answer.message
    return answer.iterate, problem.certify(answer.iterate).relative_gap


def fitting(problem: Problem, conic: Conic) -> Conic:
    reason = conic.incompatibility(problem)
    if reason is not None:
        pytest.skip(reason)
    return conic


def test_names_are_read_in_any_case_and_near_ones_suggested() -> None:
    assert Conic(backend="Osqp").backend == "OSQP"
    assert Conic(backend="clarabel") == Conic()
    assert Conic(backend="piqp").label == "piqp"
    with pytest.raises(InputError, match="unknown backend 'CLARABLE': did you mean 'CLARABEL'"):
        Conic(backend="clarable")
    with pytest.raises(InputError, match="unknown backend 'MOSEKK': did you mean 'MOSEK'"):
        Conic(backend="MOSEKK")
    with pytest.raises(InputError, match="backend must be the name of a solver"):
        Conic(backend=3)  # type: ignore[arg-type]


def test_a_backend_in_no_table_says_what_it_needs(hinge: L1InfHinge) -> None:
    with pytest.raises(InputError, match="which options of backend SCIPY take the tolerance is not known here"):
        Conic(backend="scipy")
    names = tuple(f"scipy_options/{kind}_feasibility_tolerance" for kind in ("primal", "dual"))
    scipy = Conic(backend="scipy", tolerance_options=names)
    assert scipy.incompatibility(hinge) is None
    assert scipy.version.startswith("(cvxpy")
    assert proven(hinge, scipy, 1e-8)[1] < 1e-6
    with pytest.raises(InputError, match="tolerance_options must be a list of names"):
        Conic(tolerance_options=("",))
    assert Conic(backend="SCS", tolerance_options=["eps_rel"]).tolerance_options == ("eps_rel",)  # type: ignore[arg-type]


def test_every_entry_is_a_solver_that_cvxpy_has() -> None:
    assert set(BACKENDS) <= set(lookup._solver_names())
    for name, backend in BACKENDS.items():
        assert Conic(backend=name).tolerances
        assert backend.options(1e-4, 5.0, 2)
        assert lookup.interfaces_of(name, BACKENDS["SCS"])


@pytest.mark.parametrize("name", FREE)
def test_a_program_is_solved_again_and_again(name: str, hinge: L1InfHinge) -> None:
    """Some interfaces of CVXPY write into the data that they are given."""
    if name == "PROXQP":
        pytest.skip("PROXQP does not get there on linear programmes")
    conic = fitting(hinge, Conic(backend=name))
    program = conic.compile(conic.build(hinge))
    first, second = (conic.solve(program, 1e-3, 30.0) for _ in range(2))
    assert first.iterate is not None
    assert second.iterate is not None
    np.testing.assert_array_equal(first.iterate.primal, second.iterate.primal)


def test_methods_of_highs_have_names_that_nothing_installed_changes() -> None:
    with pytest.raises(InputError, match="method must be 'ipx' or 'hipo', not 'ipm'"):
        Conic(backend="HIGHS", method="ipm")
    assert BACKENDS["HIGHS"].methods["ipx"].options["solver"] == "ipx"


def test_hipo_is_skipped_by_name_without_its_package(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "highspy_extras" else find_spec(name))
    hipo = Conic(backend="HIGHS", method="hipo")
    assert hipo.incompatibility(hinge) == "hipo of HIGHS is not installed (package highspy-extras)"
    assert hipo.version == "not installed"
    assert Conic(backend="HIGHS", method="ipx").incompatibility(hinge) is None


def test_a_commercial_solver_is_skipped_without_its_package_or_licence(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Package, "is_installed", False)
    assert Conic(backend="mosek").incompatibility(hinge) == "MOSEK is not installed (package mosek)"
    monkeypatch.setattr(Package, "is_installed", True)
    monkeypatch.setattr(solver, "missing_cones", lambda *given: [])
    monkeypatch.setattr(solver, "_warm_up", failing("rescode.err_missing_license_file(1008): Licence cannot be located"))
    assert Conic(backend="MOSEK").incompatibility(hinge) == "no licence for MOSEK"
    solver._has_licence.cache_clear()
    monkeypatch.setattr(solver, "_warm_up", failing("something else"))
    assert Conic(backend="MOSEK").incompatibility(hinge) is None


def test_a_backend_that_would_ignore_its_tolerance_is_refused(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Package, "is_installed", True)
    assert "CVXPY passes no options on to CUCLARABEL" in str(Conic(backend="CUCLARABEL", tolerance_options=("tol",)).incompatibility(hinge))


def failing(words: str) -> Any:
    def fail(*given: Any, **options: Any) -> Any:
        raise RuntimeError(words)

    fail.cache_clear = lambda: None  # type: ignore[attr-defined]
    return fail


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Model too large for size-limited license", "no licence for SCS: Model too large"),
        ("no convergence", "RuntimeError: no convergence"),
    ],
)
def test_trouble_of_a_backend_is_an_answer_without_a_point(
    hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    conic = Conic(backend="SCS")
    program = conic.compile(conic.build(hinge))
    monkeypatch.setattr(sys.modules["scs"], "solve", failing(words))
    answer = conic.solve(program, 1e-3, 1.0)
    assert answer.iterate is None
    assert answer.message.startswith(message)


def test_a_backend_that_does_not_tell_its_time_is_charged_for_all_of_it(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    import cvxpy as cp

    monkeypatch.setattr(cp.Problem, "solver_stats", property(lambda self: cp.problems.problem.SolverStats("X")))
    x = cp.Variable()
    conic = Conic()
    model = ConicModel(cp.Problem(cp.Minimize(x), [x >= 1]), lambda: (np.atleast_1d(x.value), None))
    answer = conic.solve(conic.compile(model), 1e-6, None)
    assert answer.setup_seconds == 0.0
    assert answer.iterate is not None
    assert answer.iterate.step == 0
