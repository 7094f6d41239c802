"""The documentation is true: its Python runs, its plug-ins conform, its commands exist, its links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl import InputError, compare
from bench_mtl.cli import cli
from bench_mtl.core.rounding import Interval
from bench_mtl.engine.driver import describe, run
from bench_mtl.engine.places import place_text, places_of, traceback_lines
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.validation.conformance import check_iterates, check_pair, problem_checks

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
#: Every other command of it starts Dask workers. The others are run by make docs.
MARKS = {"more-than-memory": pytest.mark.slow}
#: Whose blocks of Python each run alone.
PAGES_THAT_RUN = ("any-model.md", "estimators.md", "experiments.md", "projections.md", "your-own-data.md", "api/index.md")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in ("docs", "paper", "reports") for page in (ROOT / folder).rglob("*.md"))])


def blocks(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def names_of(page: str) -> dict[str, Any]:
    """Return the names that the Python of a page defines, one block after the other."""
    names: dict[str, Any] = {}
    for block in blocks(DOCS / page):
        exec(compile(block, page, "exec"), names)
    return names


def plugins_of(folder: Path, *pages: str, change: tuple[str, str] = ("", "")) -> Path:
    """Write the plug-ins of guides, with a mistake in one of them, as files of a plug-in folder; one file may have several blocks."""
    for page in pages:
        for block in blocks(DOCS / page):
            (name,) = re.findall(r"\A# my-plugins/(\S+)\n", block)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("a") as file:
                file.write(block.replace(*change) if change[0] else block)
    return folder


GUIDES = ("add-a-solver.md", "add-a-problem.md")


def tiny_examples(registry: Registry, name: str) -> Iterator[Any]:
    return iter(registry.problem(name).examples(np.random.default_rng(0)))


def require_conforming(registry: Registry, name: str, targets: dict[str, float]) -> None:
    """Hold the tiny instances of a problem to all laws, and some solvers to these gaps on them."""
    for tiny in tiny_examples(registry, name):
        for check in problem_checks(registry.problem(name)):
            if check.applies_to(tiny):
                check.check(tiny, np.random.default_rng(1))
        for solver, target in targets.items():
            check_pair(tiny, registry.solver(solver), target=target)


def test_the_examples_of_the_guides_are_plugins_that_conform(tmp_path: Path) -> None:
    registry = load_registry(plugins_of(tmp_path, *GUIDES))
    require_conforming(registry, "ridge_ball", dict.fromkeys(("heavy_ball", "accelerated_gradient", "projected_gradient"), 1e-6))
    solver = registry.solver("heavy_ball")
    refused = [reason for tiny in tiny_examples(registry, "group_boosting") if (reason := solver.incompatibility(tiny))]
    assert any("needs a gradient that is Lipschitz" in str(reason) for reason in refused)
    for tiny in tiny_examples(registry, "sparse_low_rank"):
        check_pair(tiny, solver, target=1e-3)
        check_iterates(tiny, solver)


def test_the_solver_of_the_guide_goes_on_from_its_states_when_it_is_a_stepping_one(tmp_path: Path) -> None:
    (block,) = blocks(DOCS / "add-a-solver.md", "py")
    imports = "from bench_mtl.model.solver_state import Stepper, SteppingSolver\n"
    plain = blocks(DOCS / "add-a-solver.md")[0].replace("(IterativeSolver)", "(SteppingSolver)")
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "heavy_ball.py").write_text(imports + plain[: plain.index("    def steps")] + block)
    registry = load_registry(tmp_path)
    solver = registry.solver("heavy_ball")
    for tiny in tiny_examples(registry, "sparse_low_rank"):
        check_pair(tiny, solver, target=1e-3)
        iterates = list(islice(solver.steps(tiny), 40))
        for ours, undisturbed in zip(islice(solver.resume(tiny, iterates[17]), 20), iterates[17:], strict=False):
            assert ours[2:4] == undisturbed[2:4]
            assert np.array_equal(ours.primal, undisturbed.primal)


def test_what_the_guides_show_of_failures_is_what_is_printed(tmp_path: Path) -> None:
    solver_page, problem_page = ((DOCS / name).read_text() for name in GUIDES)
    registry = load_registry(plugins_of(tmp_path / "a", *GUIDES, change=("value_and_gradient(point)[1]", "value_and_gradiant(point)[1]")))
    record = run(next(tiny_examples(registry, "sparse_low_rank")), registry.solver("heavy_ball"))
    assert f"error: {record.reason} ({place_text(record.places)})\n" in solver_page
    assert "\n".join(["```", *traceback_lines(record.places), "```"]) in solver_page
    registry = load_registry(plugins_of(tmp_path / "b", *GUIDES, change=("(data.design", "(data.features")))
    with pytest.raises(AttributeError) as error:
        next(tiny_examples(registry, "ridge_ball"))
    places = places_of(error.value)[-1:]
    assert f"error (the problem cannot be built: {describe(error.value)}, {place_text(places)})\n" in problem_page
    assert "\n".join(["```", *traceback_lines(places), "```"]) in problem_page


@pytest.mark.parametrize(
    "change",
    [("def steps", "def step"), ("Iterator[Iterate]:", "Iterator[Iterate]"), ("from dataclasses", "import momenta\nfrom dataclasses")],
    ids=["method", "syntax", "import"],
)
def test_what_the_guide_says_of_mistakes_is_what_is_said(tmp_path: Path, change: tuple[str, str]) -> None:
    with pytest.raises(InputError) as error:
        load_registry(plugins_of(tmp_path, *GUIDES, change=change))
    assert f"`{str(error.value).replace(str(tmp_path), 'my-plugins')}`" in (DOCS / "add-a-solver.md").read_text()


def test_the_norm_of_the_guide_makes_a_problem_that_conforms_and_has_the_dual_norm_that_it_says(tmp_path: Path) -> None:
    registry = load_registry(plugins_of(tmp_path, "add-a-norm.md"))
    targets = dict.fromkeys(("accelerated_gradient", "projected_gradient", "conic"), 1e-5)
    require_conforming(registry, "box_least_squares", {**targets, "dual_newton": 1e-9})
    names: dict[str, Any] = {}
    exec(compile(blocks(DOCS / "add-a-norm.md")[0], "add-a-norm.md", "exec"), names)
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

    monkeypatch.setitem(table.BACKENDS, "SCIPY", names_of("rivals.md")["SCIPY"])
    conic, registry = Conic(backend="scipy"), load_registry()
    check_pair(next(tiny_examples(registry, "l1inf_hinge")), conic, target=1e-6)
    assert "SCIPY does not support the squares" in str(conic.incompatibility(next(tiny_examples(registry, "l1inf_glm"))))


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
    (block,) = blocks(DOCS / "suites.md", "toml")
    (tmp_path / "mine.toml").write_text(block)
    cases = expand(read_suite(str(tmp_path / "mine.toml")), load_registry())
    assert f"It has {len(cases)} cases" in (DOCS / "suites.md").read_text()


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """pyplot that draws on no screen, without figures and with the settings of before at the end."""
    import matplotlib
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    with matplotlib.rc_context():
        yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("page", ["../README.md", *(pytest.param(page, marks=pytest.mark.tutorials) for page in PAGES_THAT_RUN)])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert blocks(DOCS / page)
    for block in blocks(DOCS / page):
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
