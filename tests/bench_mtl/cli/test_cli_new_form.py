"""A plug-in folder with a form of its own, a problem that has it and a solver that takes it: bench_mtl knows none of the three."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command, suite_of

from bench_mtl.core.errors import BenchError
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.model.protocols import NotOfferedError
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.validation.conformance import check_pair, check_run, problem_checks
from bench_mtl.validation.tiny_instances import tiny_instances

FOLDER = Path(__file__).resolve().parents[2] / "plugins" / "new_form"
PROBLEM = '[[problems]]\nname = "ridge_logistic"\ndata = { name = "synthetic_l1inf", features = 6, tasks = 2, examples = 12 }\n'


@pytest.fixture
def registry() -> Registry:
    return load_registry(FOLDER)


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


def test_the_solver_proves_small_gaps_and_what_does_not_fit_is_said(registry: Registry) -> None:
    solver = registry.solver("newton")
    instances = tiny_instances(registry.problem("ridge_logistic"), 0)
    for tiny in instances:
        check_run(tiny, solver, target=1e-9, steps=5)
        check_pair(tiny, registry.solver("accelerated_gradient"), target=1e-6)
    other = tiny_instances(L1InfHinge, 0)[0]
    assert solver.incompatibility(other) == "newton takes RidgeLogisticForm; l1inf_hinge has hinge loss under L1Inf"
    with pytest.raises(NotOfferedError, match="problem 'l1inf_hinge' has no RidgeLogisticForm: it has hinge loss under L1Inf"):
        other.form(type(instances[0].make_forms()[0]))


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_it_is_listed_and_a_suite_of_it_is_verified(isolation: str, command: Command) -> None:
    Path("tiny.toml").write_text(suite_of("newton", "admm", problems=PROBLEM).replace("1e-2", "1e-9"))
    result = command("run", "tiny.toml", "--plugins", FOLDER, "--isolation", isolation)
    assert result.code == 0, result.err
    assert "newton: verified" in result.text
    assert "admm: skipped (admm takes squared loss under L1 + Trace or GroupForm; ridge_logistic has RidgeLogisticForm)" in result.text
    assert "  forms: RidgeLogisticForm" in command("list", "problems", "--plugins", FOLDER).out
    assert "  takes: RidgeLogisticForm" in command("list", "solvers", "--plugins", FOLDER).out


def test_another_folder_takes_the_place_of_the_first(registry: Registry, here: Path) -> None:
    (here / "solvers").mkdir()
    (here / "solvers" / "_lost.py").write_text("from ..forms import RidgeLogisticForm\n")
    with pytest.raises(BenchError, match="ModuleNotFoundError"):
        load_registry(here)
    (here / "forms.py").write_text("RidgeLogisticForm = 1\n")
    assert set(load_registry(here).solvers) == set(load_registry().solvers)
    assert sys.modules["bench_mtl_plugins.forms"].RidgeLogisticForm == 1
