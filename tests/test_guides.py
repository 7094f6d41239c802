"""The examples of the guides do what the guides say: a norm, a backend, a table, a suite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.rounding import Interval
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.validation.conformance import check_pair, problem_checks

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


def names_of(page: str) -> dict[str, Any]:
    """Return the names that the Python of a page defines, one block after the other."""
    names: dict[str, Any] = {}
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_norm_of_the_guide_makes_a_problem_that_conforms(tmp_path: Path) -> None:
    for block in blocks("add-a-norm.md"):  # of which one file has two
        (name,) = re.findall(r"\A# my-plugins/(\S+)\n", block)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("a") as file:
            file.write(block)
    registry = load_registry(tmp_path)
    problem = registry.problem("box_least_squares")
    for tiny in problem.examples(np.random.default_rng(0)):
        for check in problem_checks(problem):
            if check.applies_to(tiny):
                check.check(tiny, np.random.default_rng(1))
        for solver in ("accelerated_gradient", "projected_gradient", "dual_newton", "conic"):
            check_pair(tiny, registry.solver(solver), target=1e-9 if solver == "dual_newton" else 1e-5)


def test_the_norm_of_the_guide_has_the_dual_norm_that_it_says(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("add-a-norm.md")[0], "add-a-norm.md", "exec"), names)
    norm, rng = names["Largest"](), np.random.default_rng(0)
    W, G = rng.standard_normal((2, 5, 3))
    assert float(np.vdot(G, norm.vertex(-G, 2.0))) == pytest.approx(2.0 * norm.dual(G))
    assert norm.value(norm.vertex(-G, 2.0)) == 2.0
    assert norm.enclose(W).ends[0] <= norm.value(W) <= norm.enclose(W).ends[1]
    assert norm.enclose_dual(Interval.exact(G)).ends[0] <= norm.dual(G) <= norm.enclose_dual(Interval.exact(G)).ends[1]
    shrunk = norm.prox(W, 0.5)
    assert norm.value(shrunk) < norm.value(W)
    assert norm.dual(W - shrunk) == pytest.approx(0.5)


def test_the_backend_of_the_guide_solves_linear_programmes_and_refuses_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_mtl.solvers.conic import table
    from bench_mtl.solvers.conic.solver import Conic

    monkeypatch.setitem(table.BACKENDS, "SCIPY", names_of("add-a-backend.md")["SCIPY"])
    conic, registry = Conic(backend="scipy"), load_registry()
    hinge = next(iter(registry.problem("l1inf_hinge").examples(np.random.default_rng(0))))
    check_pair(hinge, conic, target=1e-6)
    squares = next(iter(registry.problem("l1inf_glm").examples(np.random.default_rng(0))))
    assert "SCIPY does not support the squares" in str(conic.incompatibility(squares))


def test_the_table_of_the_guide_is_one_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_mtl.report import registry
    from bench_mtl.results.loading import read_results

    results = read_results(ROOT / "reports" / "quick")
    monkeypatch.setattr(
        registry, "TABLES", {"proof_costs": names_of("add-a-table.md")["PROOF_COSTS"], "measures": registry.TABLES["measures"]}
    )
    table = registry.report_tables(results)["proof_costs"]
    assert list(registry.printed("proof_costs", table).columns) == ["Problem", "Solver", "Solve (s)", "Certify (s)"]
    ran = results.runs[results.runs["status"] != "skipped"]
    assert len(table) == len(ran[["problem_label", "solver_label"]].drop_duplicates())
    first = ran[(ran["problem_label"] == table["problem"][0]) & (ran["solver_label"] == table["solver"][0])]
    assert table["solve_seconds"][0] == np.median(first["solve_seconds"])


def test_the_suite_of_the_guide_has_the_cases_that_the_guide_says(tmp_path: Path) -> None:
    (block,) = blocks("suites.md", "toml")
    (tmp_path / "mine.toml").write_text(block)
    cases = expand(read_suite(str(tmp_path / "mine.toml")), load_registry())
    assert f"It has {len(cases)} cases" in (DOCS / "suites.md").read_text()
