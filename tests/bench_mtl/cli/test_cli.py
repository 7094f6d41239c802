"""The command line as a user meets it: its output and its exit code, in a process of its own where that matters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl import __version__
from bench_mtl.cli import cli
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.results import FILE_NAME

TINY = """
name = "tiny"
targets = [1e-2, 1e-4]
limits = { seconds = 10.0 }

[[problems]]
name = "l1inf_hinge"
label = "tiny hinge"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }
parameters = { radius = 1.0 }

[[solvers]]
name = "conic"

[[solvers]]
name = "projected_gradient"
"""


Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)


def refused(result: Any) -> str:
    """The one line of an error; asserts exit code 2 and no traceback."""
    assert (result.code, len(result.err)) == (2, 1), result.text
    assert result.err[0].startswith("bench-mtl: ")
    return str(result.err[0])


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_a_bare_call_is_the_help(command: Command) -> None:
    bare = command()
    assert (bare.code, bare.err) == (0, [])
    assert bare.out == command("--help").out


def test_a_tilde_at_the_front_of_a_path_is_the_home(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"{tmp_path}/nowhere" in refused(command("report", "~/nowhere"))
    assert f"{tmp_path}/nowhere.csv" in refused(command("solve", "l1inf_hinge", "scs", "--data=~/nowhere.csv", "--param", "radius=1"))


def test_version_and_help(command: Command, new_process: Command) -> None:
    assert new_process("--version") == (0, [f"bench-mtl, version {__version__}"], [])
    text = command("--help").text
    for name in cli.commands:
        assert name in text
        assert "Example" in command(name, "--help").text


def test_bad_usage_is_one_line_in_a_process_of_its_own(new_process: Command, tmp_path: Path) -> None:
    assert "No such command 'rum'" in refused(new_process("rum", cwd=tmp_path))
    assert not list(tmp_path.iterdir())


def test_every_command_is_documented() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "command-line.md").read_text()
    for name in cli.commands:
        assert f"\n| `{name} " in page or f"\n| `{name}`" in page


@pytest.mark.usefixtures("drawing")
def test_run_report_resume_and_no_other_suite(command: Command, new_process: Command, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = new_process("run", suite, "--out", out)
    assert result.code == 0, result.text
    assert "[1/3] tiny hinge seed 0 | clarabel: verified" in result.text
    assert "[2/3] tiny hinge seed 0 | projected_gradient: skipped" in result.text
    assert "report: " in result.text
    report = (out / "report.md").read_text()
    for name in (FILE_NAME, "runs.csv", "samples.csv", "tables/summary.tex", "figures/tiny-hinge.svg", "figures/tiny-hinge.png"):
        assert (out / name).is_file(), name
    again = command("run", suite, "--out", out)
    assert again.code == 0
    assert "3 of 3 cases are done already" in again.text
    (out / "report.md").unlink()
    assert command("report", out).code == 0
    assert (out / "report.md").read_text() == report
    # Another suite's folder is refused and left alone.
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    suite.write_text(TINY.replace('"tiny"', '"other"'))
    assert "already holds the results of suite 'tiny'" in refused(command("run", suite, "--out", out))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_failed_runs_show_in_the_exit_code(command: Command, tmp_path: Path, suite: Path, plugins: Path) -> None:
    suite.write_text(TINY.replace('"conic"', '"accelerated_gradient"') + '\n[[solvers]]\nname = "liar"\n')
    result = command("run", suite, "--out", tmp_path / "out", "--plugins", plugins, "--isolation", "inline")
    assert result.code == 1
    assert "liar: wrong (claims optimal" in result.text
    assert "1 of 5 runs failed" in result.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("radius = 1.0", "radius = -1.0"), "radius must be finite and at least 0, not -1"),
        (("targets", "target"), "unknown key in the suite 'target': did you mean 'targets'?"),
        (("synthetic_l1inf", "scene"), "BENCH_MTL_DATA"),
        (("tasks = 2", "task = 2"), "'task'"),
        (("tasks = 2", "tasks = 0"), "tasks"),
        (('"conic"', '"konic"'), "unknown solver 'konic': did you mean 'conic'?"),
        (("[[solvers]]", "[[solvers"), "cannot be read"),
    ],
)
def test_bad_suites_are_one_line_and_write_nothing(
    command: Command, suite: Path, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    suite.write_text(TINY.replace(*change))
    assert words in refused(command("run", suite, "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "quik"], "unknown suite 'quik': did you mean 'quick'?"),
        (["run"], "Missing argument 'SUITE'"),
        (["rum"], "No such command 'rum'"),
        (["report", "nowhere"], "no results in nowhere"),
        (["list", "nothing"], "is not one of"),
        (["run", "quick", "--plugins", "nowhere"], "plug-in folder nowhere does not exist"),
        (["list", "data", "--data-dir", "nowhere"], "nowhere"),
        (["solve", "l1inf_hinge", "conic"], "Missing option '--data'"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits"], "exactly one of radius"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius"], "--param must be KEY=VALUE, not 'radius'"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=x"], "radius must be a number"),
        (["solve", "l1inf_hinge", "conic", "--data", "none.npz", "--param", "radius=1"], "none.npz"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--target", "-1"], "--target must be"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--seconds", "nan"], "--seconds must be"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--preprocess", "scale"], "scale"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--save", "no/where.npz"], "--save"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--save", "."], "--save: . is not a file"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=1", "--save", "s" * 300], "--save"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=2020-01-01"], "--param radius must be"),
        (["solve", "l1inf_hinge", "conic", "--data", "digits", "--param", "radius=" + "[" * 5000], "--param radius: nested"),
        (["solve", "l1inf_hinge", "conic", "--data", "n" * 300], "cannot be used"),
        (["run", "n" * 300], "cannot be used"),
        (["run", "quick", "--out", "n" * 300], "cannot be used"),
        (["run", "quick", "--plugins", "n" * 300], "cannot be used"),
        (["report", "n" * 300], "cannot be used"),
        (["list", "data", "--data-dir", "n" * 300], "cannot be used"),
        (["validate", "--cases", "0"], "--cases must be a whole number of at least 1"),
    ],
)
def test_bad_usage_is_one_line(command: Command, arguments: list[str], words: str, tmp_path: Path) -> None:
    assert words in refused(command(*arguments, cwd=tmp_path))
    assert not list(tmp_path.iterdir())


def test_solve_shows_samples_and_saves_a_certified_solution(command: Command, tmp_path: Path) -> None:
    save = tmp_path / "W.npz"
    result = command(
        "solve", "l1inf_hinge", "conic", "--data", "synthetic_l1inf", "--data-option", "tasks=3", "--data-option", "features=8",
        "--data-option", "examples=9", "--param", "radius=truth", "--option", "backend=ECOS", "--save", save,
    )  # fmt: skip
    assert result.code == 0, result.text
    assert "l1inf_hinge: 27 rows of 3 tasks, 8 features" in result.text
    assert "training error: " in result.text
    assert " binds" in result.text
    assert "verified: relative gap" in result.text
    with np.load(save) as file:
        saved = dict(file)
    assert saved["solution"].shape == (8, 3)
    assert saved["relative_gap"] <= 1e-6


def test_a_solution_that_is_not_there_leaves_the_file_as_it_was(command: Command, tmp_path: Path) -> None:
    save = tmp_path / "W.npz"
    save.write_text("mine")
    arguments = ["solve", "l1inf_hinge", "projected_gradient", "--data", "digits", "--param", "radius=1", "--save", save]
    assert "no solution to save" in refused(command(*arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["W.npz"]
    assert save.read_text() == "mine"


def test_characters_that_the_output_does_not_have_end_no_run(new_process: Command, suite: Path, tmp_path: Path) -> None:
    text = TINY.replace('"tiny hinge"', '"tiny λ"').replace('"conic"', '"projected_gradient"', 1)
    suite.write_text(text.rsplit("[[solvers]]", 1)[0])
    result = new_process("run", suite, "--out", tmp_path / "out", PYTHONIOENCODING="latin-1")
    assert result.code == 1, result.text
    assert r"[1/2] tiny \u03bb seed 0 | projected_gradient: skipped" in result.text
    assert result.err == ["no solver fits its problem: all 2 runs were skipped"]


def test_a_reader_that_goes_away_does_not_end_the_run(suite: Path, tmp_path: Path) -> None:
    suite.write_text(TINY.replace('"conic"', '"accelerated_gradient"'))
    words = [sys.executable, "-m", "bench_mtl", "run", suite, "--out", tmp_path / "out"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == "no solver fits its problem: all 4 runs were skipped\n"
    assert process.returncode == 1
    assert (tmp_path / "out" / "report.md").is_file()


def test_solve_says_when_a_pair_does_not_fit(command: Command) -> None:
    result = command("solve", "l1inf_hinge", "projected_gradient", "--data", "digits", "--param", "radius=1")
    assert result.code == 1
    assert "skipped: projected_gradient needs smooth" in result.text


def test_lists(command: Command) -> None:
    solvers = command("list", "solvers").text
    assert "projected_subgradient" in solvers
    assert "  takes: hinge loss under L1Inf or hinge loss under TaskBalls\n  options: variant='halpern'" in solvers
    assert "  forms: Hinges\n  parameters: radius=None, penalty=None, reduction='mean'" in command("list", "problems").text
    assert "quick" in command("list", "suites").text
    text = command("list", "data").text
    assert "digits" in text
    assert "BENCH_MTL_DATA" in text


def test_lists_real_data(command: Command, data_dir: Path) -> None:
    assert "2407 x 294" in command("list", "data", BENCH_MTL_DATA=str(data_dir)).text


@pytest.mark.slow
def test_validate_passes(command: Command) -> None:
    result = command("validate", "--cases", "5")
    assert result.code == 0, result.text
    assert "all checks passed" in result.text


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """No operators, one problem, two solvers, and plug-ins: the rest is for the slow tests here and for those of laws."""

    def load_few(plugins: Path | None = None) -> Registry:
        loaded = load_registry(plugins)
        shipped = load_registry().solvers.keys() - {"conic", "pegasos"}
        solvers = {name: solver for name, solver in loaded.solvers.items() if name not in shipped}
        return Registry({"ridge_hinge": loaded.problems["ridge_hinge"]}, solvers)

    monkeypatch.setattr("bench_mtl.engine.registry.load_registry", load_few)
    monkeypatch.setattr("bench_mtl.validation.validate.operators", lambda: ())


@pytest.mark.usefixtures("few")
def test_validate_passes_on_a_few(command: Command) -> None:
    result = command("validate", "--cases", "1")
    assert result.code == 0, result.text
    assert "ridge_hinge / pegasos" in result.text
    assert "agrees with CVXPY" in result.text
    assert "all checks passed" in result.text


LAZY = (
    "from dataclasses import dataclass\nfrom bench_mtl.model.protocols import IterativeSolver\nfrom bench_mtl.core.types import Iterate\n"
    "@dataclass(frozen=True)\nclass Lazy(IterativeSolver):\n    '''Stays at zero.'''\n    name = 'lazy'\n    requires = frozenset()\n"
    "    def steps(self, problem, start=None):\n        yield Iterate(problem.zero())\n"
)


@pytest.mark.usefixtures("few")
def test_validate_fails_on_a_few_when_something_is_wrong(command: Command, tmp_path: Path) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "lazy.py").write_text(LAZY)
    result = command("validate", "--cases", "1", "--plugins", tmp_path)
    assert result.code == 1
    assert "the solver ended by itself" in result.text
    assert "cases failed" in result.text


@pytest.mark.slow
def test_validate_fails_when_something_is_wrong(command: Command, tmp_path: Path) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "lazy.py").write_text(LAZY)
    result = command("validate", "--cases", "1", "--plugins", tmp_path)
    assert result.code == 1
    assert "the solver ended by itself" in result.text
    assert "cases failed" in result.text
