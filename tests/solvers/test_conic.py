"""Generic solvers: what they are asked, what is made of their answers, and what they cannot take."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Status, TaskData, run
from bench_mtl.data import synthetic_l1inf
from bench_mtl.model.fit_problem import model_unit
from bench_mtl.model.protocols import Answer, ConicModel, Problem
from bench_mtl.problems import L1InfHinge, Portfolio, RidgeHinge
from bench_mtl.solvers.conic import Conic, lookup
from bench_mtl.solvers.conic import solver as conic_solver
from bench_mtl.solvers.conic.backend import Package
from bench_mtl.solvers.conic.table import BACKENDS

LINEAR = [("ECOS", None), ("SCS", None), ("CLARABEL", None), ("PDLP", None)]
LINEAR += [("HIGHS", method) for method in (None, "simplex", "ipx", "hipo", "pdlp", "hipdlp")]


@pytest.fixture(scope="module")
def hinge() -> L1InfHinge:
    return L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=10), radius=2.0)


@pytest.fixture(autouse=True)
def no_memory_of_licences() -> Iterator[None]:
    conic_solver._has_licence.cache_clear()
    conic_solver._warm_up.cache_clear()
    yield
    conic_solver._has_licence.cache_clear()
    conic_solver._warm_up.cache_clear()


def fitting(problem: Problem, backend: str, method: str | None, **options: Any) -> Conic:
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
    assert answer.iterate.step <= 1
    assert (answer.out_of_time, answer.claims_optimal) == (False, False)
    assert "cvxpy" in solver.version


@pytest.mark.parametrize(
    ("backend", "method", "package"),
    [("ECOS", None, "ecos"), ("PDLP", None, "ortools"), ("mosek", None, "mosek"), ("HIGHS", "hipo", "highspy-extras")],
)
def test_a_backend_that_is_not_installed_is_skipped_by_name(
    hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch, backend: str, method: str | None, package: str
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package.replace("-", "_") else find_spec(name))
    solver = Conic(backend=backend, method=method)
    assert solver.incompatibility(hinge) == f"{f'{method} of ' if method else ''}{solver.backend} is not installed (package {package})"
    assert solver.version == "not installed"
    assert Conic(backend="HIGHS", method="ipx").incompatibility(hinge) is None


def is_of_pdlp(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # one that ends while it is looked at
        return any(part.endswith("pdlp_process.py") for part in process.cmdline())
    return False


def test_pdlp_has_a_process_of_its_own_and_may_lose_it(hinge: L1InfHinge) -> None:
    """OR-tools and highspy bring libraries of one name: a process that has loaded one cannot load the other."""
    solver = fitting(hinge, "PDLP", None)
    program = solver.compile(solver.build(hinge))
    assert answered(Conic(backend="HIGHS"), hinge, 1e-6).claims_optimal
    assert solver.solve(program, 1e-6, 30.0).claims_optimal
    assert "ortools.pdlp.python" not in sys.modules
    next(filter(is_of_pdlp, psutil.Process().children())).kill()
    answer = solver.solve(program, 1e-6, 30.0)
    assert (answer.iterate, answer.message) == (None, "RuntimeError: the process of PDLP died")


#: ECOS has no limit of time, and HiGHS's PDLP looks at the clock too rarely for so small a problem.
UNLIMITED = (("ECOS", None), ("HIGHS", "pdlp"), ("HIGHS", "hipdlp"))


@pytest.mark.parametrize(("backend", "method"), LINEAR)
def test_the_ladder_starts_loose_and_ends_tight_and_a_time_limit_is_told_from_other_ends(backend: str, method: str | None) -> None:
    """The first rung is cheaper than the last one, and what it leaves the last one reaches."""
    problem = L1InfHinge(synthetic_l1inf(tasks=10, features=40, examples=30), radius="truth")
    solver = fitting(problem, backend, method)
    program = solver.compile(solver.build(problem))
    steps = []
    for tolerance, gap in ((solver.tolerances[0], 0.2), (1e-7, 1e-4)):
        answer = solver.solve(program, tolerance, 30.0)
        assert (answer.claims_optimal, answer.out_of_time) == (True, False)
        assert answer.info["backend_solve_seconds"] > 0.0 <= answer.setup_seconds
        assert problem.certify(answer.finish()).relative_gap < gap
        steps.append(answer.iterate.step)
    assert 0 < steps[0] <= steps[1] - (method not in (None, "simplex"))
    assert (backend, method) in UNLIMITED or solver.solve(program, 1e-9, 1e-4).out_of_time


def test_an_iteration_limit_is_no_time_limit(hinge: L1InfHinge) -> None:
    answer = answered(Conic(backend="HIGHS", method="simplex", options={"simplex_iteration_limit": 3}), hinge, 1e-6)
    assert (answer.out_of_time, answer.claims_optimal) == (False, False)


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
    chosen, as_it_is = (run(problem, Conic(backend="CLARABEL", unit=unit), tolerance=1e-4) for unit in (None, 1.0))
    assert chosen.status is Status.VERIFIED
    assert dict(chosen.info)["unit_of_coefficients"] == model_unit(problem.design)
    assert as_it_is.status is not Status.VERIFIED
    assert "unit_of_coefficients" not in dict(as_it_is.info)
    assert Conic(backend="CLARABEL", unit=1.0).label == "clarabel_unit1"
    assert "no unit to choose" in str(Conic(unit=1.0).incompatibility(next(Portfolio.examples(rng))))


@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_rare_and_absent_features_do_not_make_sparse_data_small(scale: float) -> None:
    """Most words of a text are in few documents, and some in none of those that are used."""
    rare, n, absent = 25, 4000, 100
    X = sp.csr_array((np.full(rare, 0.1 * scale), (np.arange(rare), np.arange(rare))), shape=(n, rare + absent))
    dense = TaskData.shared(0.1 * scale * np.ones((n, 2)), np.ones(n))
    assert model_unit(TaskData.shared(X, np.ones(n)).design) == model_unit(dense.design)
    assert (model_unit(dense.design) == 1.0) == (scale == 1.0)


# Backends by name: which are known, what they are told, what is said of those that are not there


def test_names_are_read_in_any_case_and_near_ones_suggested() -> None:
    assert Conic(backend="Osqp").backend == "OSQP"
    assert Conic(backend="clarabel") == Conic()
    assert Conic(backend="piqp").label == "piqp"
    with pytest.raises(InputError, match="unknown backend 'CLARABLE': did you mean 'CLARABEL'"):
        Conic(backend="clarable")


def test_a_backend_in_no_table_says_what_it_needs(hinge: L1InfHinge) -> None:
    with pytest.raises(InputError, match="which options of backend SCIPY take the tolerance is not known here"):
        Conic(backend="scipy")
    names = tuple(f"scipy_options/{kind}_feasibility_tolerance" for kind in ("primal", "dual"))
    scipy = Conic(backend="scipy", tolerance_options=names)
    assert scipy.incompatibility(hinge) is None
    assert scipy.version.startswith("(cvxpy")
    answer = answered(scipy, hinge, 1e-8)
    assert hinge.certify(answer.finish()).relative_gap < 1e-6
    with pytest.raises(InputError, match="tolerance_options must be a list of names"):
        Conic(tolerance_options=("",))
    assert Conic(backend="SCS", tolerance_options=["eps_rel"]).tolerance_options == ("eps_rel",)  # type: ignore[arg-type]


def test_every_entry_is_a_solver_that_cvxpy_has() -> None:
    """Or one whose interface is made here."""
    assert set(BACKENDS).difference(*lookup._maps()) == {"CUPDLPX"}
    for name, backend in BACKENDS.items():
        assert Conic(backend=name).tolerances
        assert backend.options(1e-4, 5.0, 2)
        assert name == "CUPDLPX" or lookup.interfaces_of(name, BACKENDS["SCS"])


def test_proxqp_proves_a_gap_again_and_again() -> None:
    """Of squares: most linear programmes it takes for infeasible."""
    problem = RidgeHinge(synthetic_l1inf(tasks=3, features=8, examples=10), ridge=0.1)
    conic = fitting(problem, "PROXQP", None)
    program = conic.compile(conic.build(problem))
    first, second = (conic.solve(program, 1e-7, 30.0).finish() for _ in range(2))
    np.testing.assert_array_equal(first.primal, second.primal)
    assert problem.certify(first).relative_gap < 1e-4


def test_methods_of_highs_have_names_that_nothing_installed_changes() -> None:
    with pytest.raises(InputError, match="method must be 'ipx' or 'hipo', not 'ipm'"):
        Conic(backend="HIGHS", method="ipm")
    assert BACKENDS["HIGHS"].methods["ipx"].options["solver"] == "ipx"


def test_a_commercial_solver_is_skipped_without_a_licence(hinge: L1InfHinge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Package, "is_installed", True)
    monkeypatch.setattr(conic_solver, "missing_cones", lambda *given: [])
    monkeypatch.setattr(conic_solver, "_warm_up", failing("rescode.err_missing_license_file(1008): Licence cannot be located"))
    assert Conic(backend="MOSEK").incompatibility(hinge) == "no licence for MOSEK"
    conic_solver._has_licence.cache_clear()
    monkeypatch.setattr(conic_solver, "_warm_up", failing("something else"))
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
    assert answer.iterate.step == 0
