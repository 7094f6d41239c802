"""`--traceback`: what a plug-in's author sees of where its code has raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SUITE = """
name = "tiny"
targets = [1e-2]
limits = { seconds = 10.0 }

[[problems]]
name = "box"
label = "tiny"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }

[[problems]]
name = "broken"
label = "unbuilt"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }
parameters = { fault = "raises" }

[[solvers]]
name = "faulty"
options = { fault = "raises" }
"""

SOURCE = r'    raise RuntimeError("two lines\nof trouble")'

SOLVE = ("--data", "synthetic_l1inf", "--data-option", "tasks=2", "--data-option", "features=5", "--data-option", "examples=6")


def line_of(file: Path, text: str) -> int:
    """The number of the first line of a file that holds a text."""
    return next(number for number, line in enumerate(file.read_text().splitlines(), start=1) if text in line)


@pytest.fixture
def lines(plugins: Path) -> tuple[str, str]:
    """Where the solver raises, and where the problem does."""
    files = ("solvers/faulty.py", "problems/boxes.py")
    solver, problem = (f"{file}:{line_of(plugins / file, 'raise RuntimeError(')}" for file in files)
    return solver, problem


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)


def test_run_says_where_and_prints_the_lines_when_asked(command: Callable[..., Any], plugins: Path, lines: tuple[str, str]) -> None:
    Path("tiny.toml").write_text(SUITE)
    run = ("run", "tiny.toml", "--plugins", plugins, "--isolation", "inline")
    result = command(*run)
    assert result.code == 1
    assert f"[1/2] tiny seed 0 | faulty_raises: error (RuntimeError: two lines of trouble, {lines[0]})" in result.out[0]
    assert f"(the problem cannot be built: RuntimeError: two lines of trouble, {lines[1]})" in result.out[1]
    assert not [line for line in result.err if SOURCE in line]
    # Also where nothing is left to run.
    result = command(*run, "--traceback")
    assert result.code == 1
    assert result.err[:6] == [
        "tiny | faulty_raises: RuntimeError: two lines of trouble", f"  {lines[0]}, in Faulty.steps", SOURCE,
        "unbuilt | faulty_raises: the problem cannot be built: RuntimeError: two lines of trouble",
        f"  {lines[1]}, in Broken.__init__", SOURCE,
    ]  # fmt: skip
    report = Path("results/tiny/report.md").read_text()
    assert f"| {lines[0]}" in report
    assert f"  {lines[1]}, in Broken.__init__\n{SOURCE}\n" in report


def test_solve_says_where_and_prints_the_lines_when_asked(command: Callable[..., Any], plugins: Path, lines: tuple[str, str]) -> None:
    solve = ("solve", "box", "faulty", *SOLVE, "--plugins", plugins, "--option", "fault=raises")
    result = command(*solve)
    assert (result.code, result.err) == (1, [])
    assert f"error: RuntimeError: two lines of trouble ({lines[0]})" in result.out
    result = command(*solve, "--traceback")
    assert (result.code, result.err) == (1, [f"  {lines[0]}, in Faulty.steps", SOURCE])


def test_documents_have_the_lines(command: Callable[..., Any], plugins: Path, lines: tuple[str, str]) -> None:
    (file, line), (other, of_problem) = (place.split(":") for place in lines)
    place = {"file": file, "line": int(line), "function": "Faulty.steps", "source": SOURCE.strip()}
    result = command("solve", "box", "faulty", *SOLVE, "--plugins", plugins, "--option", "fault=raises", "--json")
    assert json.loads("\n".join(result.out))["places"] == [place]
    Path("tiny.toml").write_text(SUITE)
    result = command("run", "tiny.toml", "--plugins", plugins, "--isolation", "inline", "--json", "--traceback")
    built = {**place, "file": other, "line": int(of_problem), "function": "Broken.__init__"}
    assert [run["places"] for run in json.loads("\n".join(result.out))["runs"]] == [[place], [built]]
    assert result.err.count(SOURCE) == 2


def test_a_problem_that_cannot_be_built_is_one_line(command: Callable[..., Any], plugins: Path, lines: tuple[str, str]) -> None:
    solve = ("solve", "broken", "faulty", *SOLVE, "--plugins", plugins, "--param", "fault=raises")
    said = f"bench-mtl: the problem cannot be built: RuntimeError: two lines of trouble ({lines[1]})"
    result = command(*solve)
    assert (result.code, result.err) == (2, [said])
    result = command(*solve, "--traceback")
    assert (result.code, result.err) == (2, [f"  {lines[1]}, in Broken.__init__", SOURCE, said])


@pytest.mark.parametrize("how", [("solve",), ("path", "--over", "bound=0.1,1")], ids=["solve", "path"])
def test_a_solver_that_cannot_warm_up_is_one_line(command: Callable[..., Any], plugins: Path, how: tuple[str, ...]) -> None:
    name, *options = how
    result = command(name, "box", "odd_raise", *SOLVE, *options, "--plugins", plugins, "--option", "where=warm_up")
    place = f"solvers/odd.py:{line_of(plugins / 'solvers' / 'odd.py', 'raise _RAISED')}"
    assert (result.code, result.err) == (2, [f"bench-mtl: warm-up failed: RuntimeError: two lines of trouble ({place})"])


def test_validate_refuses_a_name_that_is_none(command: Callable[..., Any]) -> None:
    result = command("validate", "--only", "pegasus")
    assert (result.code, result.out, len(result.err)) == (2, [], 1)
    assert "unknown problem, solver or projection 'pegasus': did you mean 'pegasos'?" in result.err[0]
