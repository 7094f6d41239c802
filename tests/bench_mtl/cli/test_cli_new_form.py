"""A plug-in folder with a form of its own, a problem that has it and a solver that takes it: bench_mtl knows none of the three."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_mtl
from bench_mtl.core.errors import BenchError
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.source_digest import source_modules
from bench_mtl.model.protocols import IterativeSolver, NotOfferedError
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.validation.conformance import check_iterates, check_pair, check_resumes, problem_checks
from bench_mtl.validation.tiny_instances import tiny_instances

SUITE = """
name = "new-form"
description = "a form of a plug-in"
targets = [1e-9]
[limits]
seconds = 20

[[problems]]
name = "ridge_logistic"
data = { name = "synthetic_l1inf", features = 6, tasks = 2, examples = 12 }

[[solvers]]
name = "newton"

[[solvers]]
name = "admm"
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(__file__).resolve().parents[2] / "plugins" / "new_form"


@pytest.fixture
def registry(folder: Path) -> Registry:
    return load_registry(folder)


def test_the_checks_run_on_it_and_can_fail(registry: Registry) -> None:
    problem = registry.problem("ridge_logistic")
    checks = problem_checks(problem)
    assert {"gradient", "RidgeLogisticForm", "declared forms"} <= {check.what for check in checks}
    for tiny in tiny_instances(problem, 0):
        for check in checks:
            assert check.applies_to(tiny)
            check.check(tiny, np.random.default_rng(0))
        (form,) = tiny.make_forms()
        wrong: Any = replace(form, ridge=1.01 * form.ridge)  # type: ignore[type-var, attr-defined]
        with pytest.raises(AssertionError, match="the form says"):
            wrong.check(tiny, np.random.default_rng(0))


def test_the_solver_proves_small_gaps(registry: Registry) -> None:
    solver = registry.solver("newton")
    assert isinstance(solver, IterativeSolver)
    for tiny in tiny_instances(registry.problem("ridge_logistic"), 0):
        check_pair(tiny, solver, target=1e-9)
        check_pair(tiny, registry.solver("accelerated_gradient"), target=1e-6)
        check_iterates(tiny, solver, steps=5)
        check_resumes(tiny, solver)


def test_what_does_not_fit_is_said(registry: Registry) -> None:
    own = tiny_instances(registry.problem("ridge_logistic"), 0)[0]
    other = tiny_instances(L1InfHinge, 0)[0]
    assert registry.solver("newton").incompatibility(other) == "newton takes RidgeLogisticForm; l1inf_hinge has hinge loss under L1Inf"
    taken = "hinge loss under L1Inf or hinge loss under TaskBalls"
    assert registry.solver("pdhg").incompatibility(own) == f"pdhg takes {taken}; ridge_logistic has RidgeLogisticForm"
    with pytest.raises(NotOfferedError, match="problem 'l1inf_hinge' has no RidgeLogisticForm: it has hinge loss under L1Inf"):
        other.form(type(own.make_forms()[0]))


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_a_suite_of_it_is_verified(isolation: str, folder: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE)
    result = command("run", suite, "--out", tmp_path / "out", "--plugins", folder, "--isolation", isolation)
    assert result.code == 0, result.err
    said = "\n".join(result.out + result.err)
    assert "newton: verified" in said
    assert "admm: skipped (admm takes squared loss under L1 + Trace or GroupForm; ridge_logistic has RidgeLogisticForm)" in said


def test_it_is_listed(folder: Path, command: Callable[..., Any]) -> None:
    assert "  forms: RidgeLogisticForm" in command("list", "problems", "--plugins", folder).out
    assert "  takes: RidgeLogisticForm" in command("list", "solvers", "--plugins", folder).out


def test_the_digest_covers_what_plugins_share_and_no_other_plugin(registry: Registry) -> None:
    for name, cls in {**registry.problems, **registry.solvers}.items():
        own = {module for module in source_modules(cls) if module.startswith("bench_mtl_plugins")}
        expected = {"ridge_logistic": {"bench_mtl_plugins.problems.ridge_logistic"}, "newton": {"bench_mtl_plugins.solvers.newton"}}
        assert own == (expected[name] | {"bench_mtl_plugins.forms"} if name in expected else set())


def test_another_folder_takes_the_place_of_the_first(folder: Path, tmp_path: Path) -> None:
    load_registry(folder)
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "_lost.py").write_text("from ..forms import RidgeLogisticForm\n")
    with pytest.raises(BenchError, match="ModuleNotFoundError"):
        load_registry(tmp_path)
    (tmp_path / "forms.py").write_text("RidgeLogisticForm = 1\n")
    assert set(load_registry(tmp_path).solvers) == set(load_registry().solvers)
    assert sys.modules["bench_mtl_plugins.forms"].RidgeLogisticForm == 1


def test_nothing_of_the_framework_names_the_form() -> None:
    package = Path(bench_mtl.__file__).parent
    files = [file for part in (package, package / "problems", package / "solvers") for file in part.rglob("*.py")]
    assert len(files) > 200
    assert [file for file in files if "RidgeLogistic" in file.read_text() or "ridge_logistic" in file.read_text()] == []
