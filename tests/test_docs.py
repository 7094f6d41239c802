"""The documentation is true: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.cli import cli
from bench_mtl.comparing import compare
from bench_mtl.core.errors import InputError
from bench_mtl.engine.driver import describe, run
from bench_mtl.engine.places import place_text, places_of, traceback_lines
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import IterativeSolver
from bench_mtl.validation.conformance import check_iterates, check_pair, problem_checks

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = [ROOT / "docs" / "start.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
#: Of the last, every other command starts Dask workers. The others are run by make docs.
MARKS = {"start": [], "more-than-memory": pytest.mark.slow}
GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
#: Whose blocks of Python each run alone.
PAGES_THAT_RUN = (
    "docs/any-model.md",
    "docs/estimators.md",
    "docs/experiments.md",
    "docs/projections.md",
    "docs/your-own-data.md",
    "docs/api/index.md",
)
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in ("docs", "paper", "reports") for page in (ROOT / folder).rglob("*.md"))])


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """pyplot that draws on no screen, without figures and with the settings of before at the end."""
    import matplotlib
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    with matplotlib.rc_context():
        yield pyplot
    pyplot.close("all")


def test_the_examples_of_the_guides_are_plugins_that_conform(tmp_path: Path) -> None:
    import numpy as np

    registry = load_registry(plugins_of_the_guides(tmp_path))
    problem = registry.problem("ridge_ball")
    for tiny in problem.examples(np.random.default_rng(0)):
        for check in problem_checks(problem):
            if check.applies_to(tiny):
                check.check(tiny, np.random.default_rng(1))
        for name in ("heavy_ball", "accelerated_gradient", "projected_gradient"):
            check_pair(tiny, registry.solver(name), target=1e-6)
    solver = registry.solver("heavy_ball")
    assert isinstance(solver, IterativeSolver)
    refused = [tiny for tiny in registry.problem("group_boosting").examples(np.random.default_rng(0)) if solver.incompatibility(tiny)]
    assert any("needs a gradient that is Lipschitz" in str(solver.incompatibility(tiny)) for tiny in refused)
    for tiny in registry.problem("sparse_low_rank").examples(np.random.default_rng(0)):
        check_pair(tiny, solver, target=1e-3)
        check_iterates(tiny, solver)


def test_the_solver_of_the_guide_goes_on_from_its_states_when_it_is_a_stepping_one(tmp_path: Path) -> None:
    import numpy as np

    page = (ROOT / "docs" / "add-a-solver.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    imports = "from bench_mtl.model.solver_state import Stepper, SteppingSolver\n"
    plain = python_blocks(ROOT / "docs" / "add-a-solver.md")[0].replace("(IterativeSolver)", "(SteppingSolver)")
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "heavy_ball.py").write_text(imports + plain[: plain.index("    def steps")] + block)
    registry = load_registry(tmp_path)
    solver = registry.solver("heavy_ball")
    assert isinstance(solver, IterativeSolver)
    for tiny in registry.problem("sparse_low_rank").examples(np.random.default_rng(0)):
        check_pair(tiny, solver, target=1e-3)
        iterates = list(islice(solver.steps(tiny), 40))
        for ours, undisturbed in zip(islice(solver.resume(tiny, iterates[17]), 20), iterates[17:], strict=False):
            assert ours[2:4] == undisturbed[2:4]
            assert np.array_equal(ours.primal, undisturbed.primal)


def plugins_of_the_guides(folder: Path, *change: str) -> Path:
    """Write the plug-ins of the guides, with a mistake in one of them, as files of a plug-in folder."""
    for page in ("add-a-solver.md", "add-a-problem.md"):
        for block in python_blocks(ROOT / "docs" / page):
            kind, name = re.match(r"# my-plugins/(\w+)/(\w+\.py)\n", block).groups()  # type: ignore[union-attr]
            (folder / kind).mkdir(parents=True, exist_ok=True)
            (folder / kind / name).write_text(block.replace(*change) if change else block)
    return folder


def test_what_the_guides_show_of_failures_is_what_is_printed(tmp_path: Path) -> None:
    import numpy as np

    solver_page, problem_page = ((ROOT / "docs" / name).read_text() for name in ("add-a-solver.md", "add-a-problem.md"))
    registry = load_registry(plugins_of_the_guides(tmp_path / "a", "value_and_gradient(point)[1]", "value_and_gradiant(point)[1]"))
    tiny = next(iter(registry.problem("sparse_low_rank").examples(np.random.default_rng(0))))
    record = run(tiny, registry.solver("heavy_ball"))
    assert f"error: {record.reason} ({place_text(record.places)})\n" in solver_page
    assert "\n".join(["```", *traceback_lines(record.places), "```"]) in solver_page
    registry = load_registry(plugins_of_the_guides(tmp_path / "b", "(data.design", "(data.features"))
    with pytest.raises(AttributeError) as error:
        next(iter(registry.problem("ridge_ball").examples(np.random.default_rng(0))))
    places = places_of(error.value)[-1:]
    assert f"error (the problem cannot be built: {describe(error.value)}, {place_text(places)})\n" in problem_page
    assert "\n".join(["```", *traceback_lines(places), "```"]) in problem_page


@pytest.mark.parametrize(
    "change",
    [("def steps", "def step"), ("Iterator[Iterate]:", "Iterator[Iterate]"), ("from dataclasses", "import momenta\nfrom dataclasses")],
    ids=["method", "syntax", "import"],
)
def test_what_the_guide_says_of_mistakes_is_what_is_said(tmp_path: Path, change: tuple[str, str]) -> None:
    page = (ROOT / "docs" / "add-a-solver.md").read_text()
    with pytest.raises(InputError) as error:
        load_registry(plugins_of_the_guides(tmp_path, *change))
    assert f"`{str(error.value).replace(str(tmp_path), 'my-plugins')}`" in page


def test_the_readme_is_read_in_a_minute_or_two() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


@pytest.mark.parametrize("page", ["README.md", *(pytest.param(page, marks=pytest.mark.tutorials) for page in PAGES_THAT_RUN)])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(ROOT / page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=MARKS.get(page.stem, pytest.mark.tutorials), id=page.stem) for page in TUTORIALS]
)
def test_a_tutorial_runs_from_top_to_bottom(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pyplot: Any) -> None:
    """A block that begins with the name of a file becomes that file, other Python goes on from block to block, commands are run.

    Solvers run in this process: those of their own take seconds to start, and have tests.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("bench_mtl.comparing.compare", partial(compare, isolation="inline"))
    names: dict[str, Any] = {}
    ran = 0
    for language, block in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), flags=re.DOTALL):
        named = re.match(r"# (\S+\.(?:py|toml))\n", block)
        if named:
            (tmp_path / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / named[1]).write_text(block)
        elif language == "python":
            exec(compile(block, page.name, "exec"), names)
        for line in block.splitlines():
            if line.startswith("bench-mtl "):
                run_command(line)
        ran += language == "python" or bool(named)
    assert ran


def run_command(line: str) -> None:
    """Run a command of a page, which ends with 0 unless a comment says with what.

    A comparison of times may also end with 1, which says that something has become slower.
    """
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "run":
        words += ["--isolation", "inline"]
    code = cli.main(words, prog_name="bench-mtl", standalone_mode=False) or 0
    said = re.search(r"# exit code (\d+)$", line)
    assert code in ((int(said[1]),) if said else (0, 1) if words[0] == "compare" else (0,)), line


def test_the_examples_of_the_gallery_are_short_and_say_what_they_show() -> None:
    assert [fault for script in GALLERY for fault in faults_of_an_example(script)] == []


def faults_of_an_example(script: Path) -> Iterator[str]:
    text = script.read_text()
    title, empty, *intro = (ast.get_docstring(ast.parse(text)) or "\n").split("\n")
    cells = text.split("\n# %%\n")[1:]
    holds = {
        "its docstring begins with a title": title.startswith("# ") and not empty,
        "its docstring says what it shows": len(" ".join(intro)) > 80,
        "it has fewer than 60 lines": len([line for line in text.splitlines() if line.strip()]) < 60,
        "it has two cells": len(cells) >= 2,
        "every cell begins with a comment": all(cell.startswith("# ") for cell in cells),
    }
    yield from (f"{script.name}: not so: {rule}" for rule, is_kept in holds.items() if not is_kept)


def test_the_gallery_has_examples_and_an_introduction() -> None:
    assert len(GALLERY) >= 14
    assert (ROOT / "docs" / "gallery" / "README.md").read_text().startswith("# ")


def test_the_solvers_that_take_shards_are_those_that_the_page_names() -> None:
    page = (ROOT / "docs" / "your-own-data.md").read_text()
    (listed,) = re.findall(r"take shards: (.*?); the rest is skipped", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == {name for name, kind in load_registry().solvers.items() if kind.takes_shards}


def lines_of_pages() -> Iterator[tuple[Path, str, str]]:
    """Yield every line of every page, with its place."""
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), start=1):
            yield page, f"{page.relative_to(ROOT)}:{number}", line


def test_links_lead_somewhere() -> None:
    assert [
        f"{place} links to {target}"
        for page, place, line in lines_of_pages()
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", line)
        if not target.startswith("http") and not (page.parent / target).exists()
    ] == []


def test_commands_exist() -> None:
    assert [
        f"{place} shows bench-mtl {name}"
        for _, place, line in lines_of_pages()
        for name in re.findall(r"^bench-mtl (\S+)", line)
        if name not in cli.commands and not name.startswith("-")
    ] == []
