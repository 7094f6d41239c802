"""`bench-mtl validate`: everything shipped is covered, and what is wrong is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl import InputError, projections
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.validation.validate import EXACT_TOLERANCE, Check, operators, validate

EMPTY = Registry({}, {})

KINDS = ("agrees with CVXPY", "agrees with long double")


def checks_of(name: str, **kernels: Callable[..., Any]) -> list[Check]:
    """The checks of the one operator that has a kernel `name`, with other kernels."""
    operator = next(operator for operator in operators() if name in operator.kernels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench_mtl.validation.validate.operators", lambda: (replace(operator, kernels=kernels or operator.kernels),))
        return list(validate(EMPTY, cases=8))


def test_every_projection_and_prox_is_covered_with_every_method() -> None:
    covered = {name for operator in operators() for name in operator.kernels}
    public = {name for name in projections.__all__ if name.startswith(("project_", "prox_", "soft_"))}
    assert {name.split()[0] for name in covered} == public
    assert {name.removeprefix("project_l1_ball ") for name in covered if name.startswith("project_l1_ball")} == {
        "newton", "sort", "pivot",
    }  # fmt: skip


def test_what_is_shipped_passes() -> None:
    for check in validate(EMPTY, cases=3):
        assert check.failures == 0, check
        assert check.cases >= (3 if check.what == "agrees with CVXPY" else 1)


def test_a_wrong_kernel_is_found_by_both_comparisons() -> None:
    def off(A: np.ndarray, radius: float, **keywords: Any) -> np.ndarray:
        return np.asarray(projections.project_l1inf_ball(A, 0.99 * radius, **keywords))

    small, larger = checks_of("project_l1inf_ball newton", off=off)
    assert small.what == "agrees with CVXPY"
    assert larger.what == "agrees with long double"
    assert small.failures > 0
    assert larger.failures > 0
    assert "off by" in small.message
    assert "nonneg=True" in small.message or "parameter" in small.message


def test_a_slightly_wrong_kernel_is_found_by_the_reference() -> None:
    def off(A: np.ndarray, threshold: float) -> np.ndarray:
        return np.asarray(projections.soft_threshold(A, threshold)) + 1e-10

    small, larger = checks_of("soft_threshold", off=off)
    assert small.failures == 0
    assert larger.failures == larger.cases
    assert larger.worst > EXACT_TOLERANCE


def test_a_kernel_that_raises_fails_its_cases_with_its_message() -> None:
    def broken(A: np.ndarray, threshold: float) -> np.ndarray:
        raise RuntimeError("no such luck")

    for check in checks_of("soft_threshold", broken=broken):
        assert check.failures == check.cases
        assert "no such luck" in check.message
        assert check.worst == np.inf


def test_bounds_are_held_to_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """False bounds are found, and told."""
    whole = load_registry()
    registry = Registry({"l1inf_hinge": whole.problems["l1inf_hinge"]}, {})

    def exact(cases: int) -> Check:
        return next(check for check in validate(registry, cases=cases, only=["l1inf_hinge"]) if check.what == "exact arithmetic")

    honestly = exact(3)
    assert (honestly.cases, honestly.failures) == (3, 0)
    honest = L1InfHinge.dual_bound
    monkeypatch.setattr(L1InfHinge, "dual_bound", lambda self, point, dual: 10.0 + honest(self, point, dual))
    found = exact(1)
    assert found.failures > 0
    assert "above F" in found.message


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[tuple[str, str]]]:
    """What is checked of two problems, two solvers and all operators, by subject and check, without the checks."""
    whole = load_registry()
    names = {"problems": ("ridge_hinge", "l1inf_hinge"), "solvers": ("pegasos", "pdhg")}
    registry = Registry(*({name: getattr(whole, kind)[name] for name in of_kind} for kind, of_kind in names.items()))  # type: ignore[arg-type]
    stubs: dict[str, Callable[..., Any]] = {
        "_check_operator": lambda operator, what, cases, tolerance: (Check(name, what, 1, 0, None) for name in operator.kernels),
        "_small_cases": lambda *_: iter(()),
        "_larger_cases": lambda *_: iter(()),
        "_check_problem": lambda problem, cases, seed: iter([Check(problem.name, "problem", 1, 0, None)]),
        "_verdicts": lambda registry, name, cases, seed: [""],
        "_check_pairs": lambda problem, solver, seed: iter([Check(f"{problem.name} / {solver.name}", "pair", 1, 0, None)]),
    }
    for name, stub in stubs.items():
        monkeypatch.setattr(f"bench_mtl.validation.validate.{name}", stub)
    return lambda *only: {(check.subject, check.what) for check in validate(registry, cases=1, only=only)}


def test_only_what_belongs_to_a_name_is_checked(subjects: Callable[..., set[tuple[str, str]]]) -> None:
    of_pdhg = {("ridge_hinge / pdhg", "pair"), ("l1inf_hinge / pdhg", "pair")}
    of_ridge = {
        ("ridge_hinge", "problem"),
        ("ridge_hinge", "exact arithmetic"),
        ("ridge_hinge / pegasos", "pair"),
        ("ridge_hinge / pdhg", "pair"),
    }
    simplex = {(f"project_simplex {method}", what) for method in ("newton", "sort", "pivot") for what in KINDS}
    assert subjects("pdhg") == of_pdhg
    assert subjects("ridge_hinge", "pdhg") == of_ridge | of_pdhg
    assert subjects("project_simplex", "pdhg") == simplex | of_pdhg
    assert subjects() > of_ridge | of_pdhg | simplex


def test_a_name_that_is_none_is_refused_before_anything_is_checked(subjects: Callable[..., set[tuple[str, str]]]) -> None:
    for name, near in {"pdgh": "pdhg", "ridge_hing": "ridge_hinge", "project_simplx": "project_simplex"}.items():
        with pytest.raises(InputError, match=f"unknown problem, solver or projection '{name}': did you mean '{near}'"):
            validate(EMPTY if name == "project_simplx" else load_registry(), cases=1, only=(name,))


ODD = """
from dataclasses import dataclass
from bench_mtl.model.protocols import IterativeSolver

@dataclass(frozen=True)
class Odd(IterativeSolver):
    where: str = "steps"
    name = "odd"
    requires = frozenset()

    @classmethod
    def variants(cls):
        return [cls(), cls("warm_up"), cls("incompatibility")]

    @property
    def label(self):
        return f"odd_{self.where}"

    def warm_up(self):
        if self.where == "warm_up":
            raise KeyError("warm")

    def incompatibility(self, problem):
        if self.where == "incompatibility":
            raise KeyError("unfit")

    def steps(self, problem, start=None):
        raise KeyError("cold")
        yield
"""

ODD_PROBLEM = """
from bench_mtl.problems.ridge_hinge import RidgeHinge

class Odd(RidgeHinge):
    name = "odd_problem"
    offers = RidgeHinge.offers

    @classmethod
    def examples(cls, rng):
        raise KeyError("none")
"""


def test_a_check_that_raises_says_where_and_the_others_go_on(tmp_path: Path) -> None:
    for folder, text in {"solvers": ODD, "problems": ODD_PROBLEM}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "odd.py").write_text(text)
    loaded = load_registry(tmp_path)
    problems = {name: loaded.problems[name] for name in ("odd_problem", "ridge_hinge")}
    registry = Registry(problems, {"odd": loaded.solvers["odd"]})
    said = {(check.subject, check.what): check.message for check in validate(registry, cases=1, only=["odd"]) if check.failures}
    wanted = {
        ("ridge_hinge / odd_steps", "proves a gap of 0.05"): ("cold", "solvers/odd.py", ODD),
        ("ridge_hinge / odd_warm_up", "proves a gap of 0.05"): ("warm", "solvers/odd.py", ODD),
        ("ridge_hinge / odd", "tells what it fits"): ("unfit", "solvers/odd.py", ODD),
        ("odd_problem", "has examples"): ("none", "problems/odd.py", ODD_PROBLEM),
    }
    for check, (word, file, text) in wanted.items():
        line = text[: text.index(f'KeyError("{word}")')].count("\n") + 1
        assert said[check].endswith(f"KeyError: '{word}' ({file}:{line})"), check
    assert {subject for subject, _ in said} == {subject for subject, _ in wanted}
