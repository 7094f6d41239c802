"""The documentation is true: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench_mtl.cli import cli
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import IterativeSolver
from bench_mtl.validation.conformance import check_iterates, check_pair, problem_checks

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in ("docs", "paper", "reports") for page in (ROOT / folder).rglob("*.md"))])


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_examples_of_the_guides_are_plugins_that_conform(tmp_path: Path) -> None:
    import numpy as np

    for page in ("add-a-solver.md", "add-a-problem.md"):
        for block in python_blocks(ROOT / "docs" / page):
            folder, name = re.match(r"# my-plugins/(\w+)/(\w+\.py)\n", block).groups()  # type: ignore[union-attr]
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(block)
    registry = load_registry(tmp_path)
    problem = registry.problem("ridge_ball")
    for tiny in problem.examples(np.random.default_rng(0)):
        for check in problem_checks(problem):
            if check.applies_to(tiny):
                check.check(tiny, np.random.default_rng(1))
        for name in ("heavy_ball", "accelerated_gradient", "projected_gradient"):
            check_pair(tiny, registry.solver(name), target=1e-6)
    solver = registry.solver("heavy_ball")
    assert isinstance(solver, IterativeSolver)
    for tiny in registry.problem("sparse_low_rank").examples(np.random.default_rng(0)):
        check_pair(tiny, solver, target=1e-3)
        check_iterates(tiny, solver)


@pytest.mark.parametrize("page", ["README.md", "docs/estimators.md", "docs/experiments.md", "docs/your-own-data.md"])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(ROOT / page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    for line in re.findall(r"^bench-mtl (\S+)", page.read_text(), flags=re.MULTILINE):
        assert line in cli.commands or line.startswith("-"), f"{page.name} shows bench-mtl {line}"
