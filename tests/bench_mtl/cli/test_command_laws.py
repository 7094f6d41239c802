"""Laws of all commands: each has help, a line in the documentation, one JSON document, and a mistake is one line."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import HINGE, ROOT, SMALL, Command, document, refused, suite_of
from plugin_text import iterative

from bench_mtl import __version__
from bench_mtl.cli import cli
from bench_mtl.cli.asked import key_values
from bench_mtl.cli.console import to_json
from bench_mtl.core.types import Certificate, Status
from bench_mtl.validation.ahead_of_time import Compiled
from bench_mtl.validation.doctor import Finding
from bench_mtl.validation.validate import Check

PAGE = (ROOT / "docs" / "command-line.md").read_text()
RUNS = [{"seed": seed, "seconds": 1.0} for seed in range(3)]

#: A call of each command that is right; {} is another word at every call, and {plugins} the folder of the plug-ins.
CALLS = {
    "run": ["tiny.toml", "--plugins", "{plugins}", "--isolation", "inline", "--out", "{}"],
    "report": ["old", "--format", "md", "--out", "{}"],
    "publish": ["old", "--out", "{}"],
    "compare": ["old", "old"],
    "export": ["old", "--format", "csv", "--out", "{}"],
    "merge": ["old", "other", "-o", "{}"],
    "check": ["old"],
    "list": ["data"],
    "solve": [*HINGE, "--param", "radius=1", "--save", "{}"],
    "path": [*HINGE, "--over", "radius=1,2", "--csv", "{}"],
    "certify": ["model.py:problem", "--solver", "ECOS"],
    "shard": ["own.csv", "--data-option", "labels=red", "--rows", "4", "--out", "{}"],
    "skill": [],
    "validate": ["--only", "soft_threshold", "--cases", "2"],
    "doctor": [],
}
MODEL = "import cvxpy\nx = cvxpy.Variable(2, name='x')\nproblem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [x >= 1])\n"


@pytest.fixture
def told(command: Command, here: Path, plugins: Path, make_results: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the right call of a command, in a folder with all that it needs; nothing is looked at by `doctor`, which takes seconds."""
    (here / "tiny.toml").write_text(suite_of("projected_gradient"))
    (here / "own.csv").write_text("a,b,red\n" + 5 * "0.5,1,0\n1.5,2,1\n")
    (here / "model.py").write_text(MODEL)
    make_results("old", RUNS)
    make_results("other", RUNS)
    findings = [Finding("machine", "python", "3.11"), Finding("clock", "goes forward", "always", True)]
    monkeypatch.setattr("bench_mtl.cli.listing.look", lambda *_, **__: iter(findings))
    outs = iter(range(100))
    return lambda name, *more: command(name, *[word.format(f"out-{next(outs)}", plugins=plugins) for word in CALLS[name]], *more)


@pytest.mark.usefixtures("without_report", "undrawn")
@pytest.mark.parametrize("name", cli.commands)
def test_every_command_speaks_in_the_same_ways(command: Command, told: Command, name: str) -> None:
    assert f"\n| `{name} " in PAGE or f"\n| `{name}`" in PAGE
    shown = command(name, "--help")
    assert (shown.code, shown.err) == (0, [])
    assert str(cli.commands[name].help) in " ".join(shown.text.split())
    assert "Example" in shown.text
    assert re.search(rf"^  {name} ", command("--help").text, re.MULTILINE)
    plain = told(name)
    assert (plain.code, plain.err) == (0, [])
    assert plain.out
    with_json = told(name, "--json")
    assert (with_json.code, with_json.err) == (0, [])
    assert {f"`{key}`" for key in document(with_json)} <= set(re.findall(r"`\w+`", PAGE))
    assert ("--quiet" in shown.text) == (name in {"run", "solve", "path", "publish", "shard", "validate", "doctor", "certify"})
    if "--quiet" in shown.text:
        quiet = told(name, "--quiet")
        assert (quiet.code, quiet.err) == (0, [])
        assert len(quiet.out) < len(plain.out)
    for more in ([], ["--json"]):
        assert "No such option" in refused(command(name, "--nonsense", *more))


def test_values_are_json() -> None:
    text = to_json(
        {
            "nan": math.nan, "inf": math.inf, "low": -math.inf, "numpy": np.float64(0.5), "whole": np.int64(3), "flag": np.bool_(True),
            "array": np.eye(2), "path": Path("a/b"), "status": Status.VERIFIED, "tuple": Certificate(1.0, 0.5, 0.0), "set": {"b", "a"},
            Status.WRONG: None, "check": Check("a", "b", 1, 0, None), "text": "\x1b[2J\x7f\ud800ü\u202e",
        }
    )  # fmt: skip
    assert set(text) - {"\n"} <= {chr(code) for code in range(32, 127)}
    found = json.loads(text)
    assert (found["nan"], found["inf"], found["low"]) == (None, "inf", "-inf")
    assert (found["numpy"], found["whole"], found["flag"], found["array"]) == (0.5, 3, True, [[1.0, 0.0], [0.0, 1.0]])
    assert (found["path"], found["status"], found["tuple"], found["set"]) == ("a/b", "verified", [1.0, 0.5, 0.0, 0.0], ["a", "b"])
    assert (found["wrong"], found["check"]["worst"], found["text"]) == (None, None, "\x1b[2J\x7f\\ud800ü\u202e")


def test_what_solvers_print_is_no_part_of_the_document(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In Python and in C."""
    (here / "solvers").mkdir()
    steps = 'print("from Python")\nos.write(1, b"from C\\n")\nyield Iterate(problem.zero())'
    (here / "solvers" / "loud.py").write_text(iterative("loud", steps, at_import='print("imported")'))
    asked = ["solve", "l1inf_hinge", "loud", *SMALL, "--param", "radius=1", "--plugins", str(here), "--json"]
    assert cli.main(asked, prog_name="bench-mtl", standalone_mode=False) == 1
    said = capfd.readouterr()
    assert json.loads(said.out)["label"] == "loud"
    assert {"imported", "from Python", "from C"} <= set(said.err.splitlines())
    os.write(1, b"back")
    assert capfd.readouterr().out == "back"


def test_a_process_has_a_version_and_characters_that_its_output_does_not_have_are_escaped(new_process: Command) -> None:
    assert new_process("--version") == (0, [f"bench-mtl, version {__version__}"], [])
    assert r"\u03bb.toml does not exist" in refused(new_process("run", "λ.toml", PYTHONIOENCODING="latin-1"))


def test_a_reader_that_goes_away_ends_no_command(here: Path) -> None:
    words = [sys.executable, "-m", "bench_mtl", "list", "suites"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_bare_call_is_the_help_and_a_bug_has_a_code_of_its_own(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command() == command("--help")
    monkeypatch.setattr("bench_mtl.cli.listing.found", lambda *_, **__: 1 / 0)
    result = command("list", "data")
    assert (result.code, result.err[0][:9]) == (4, "Traceback")
    assert result.err[-1].startswith("bench-mtl: this is a bug of bench-mtl")


def test_a_tilde_at_the_front_of_a_path_is_the_home(command: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    assert f"{here}/nowhere" in refused(command("report", "~/nowhere"))
    assert f"{here}/nowhere.csv" in refused(command("solve", "l1inf_hinge", "scs", "--data=~/nowhere.csv", "--param", "radius=1"))


def test_names_of_columns_need_no_brackets() -> None:
    texts = ("labels=red, green", "drop=name", "separator=,", 'targets="a,b"', "nu=1,2.5", "n=[3]", "empty=", "title=a, b")
    assert key_values(texts, "--data-option") == {
        "labels": ["red", "green"], "drop": "name", "separator": ",", "targets": "a,b", "nu": [1, 2.5], "n": [3], "empty": "",
        "title": "a, b",
    }  # fmt: skip


def test_a_line_more_is_no_other_key() -> None:
    assert key_values(("radius=5\npenalty=3",), "--param") == {"radius": "5\npenalty=3"}


def test_lists_have_what_is_asked_for(command: Command) -> None:
    rows = {row["name"]: row for row in document(command("list", "solvers", "--json"))["solvers"]}
    assert rows["pdhg"]["takes"] == ["hinge loss under L1Inf", "hinge loss under TaskBalls"]
    assert {"scs", "ecos", "clarabel", "highs", "osqp", "piqp", "proxqp", "qoco", "pdlp", "moreau"} <= set(rows["conic"]["aliases"])
    text = command("list", "solvers").text
    assert "  takes: hinge loss under L1Inf or hinge loss under TaskBalls\n  options: step_rule='preconditioned'" in text
    assert "  forms: Hinges\n  parameters: radius=None, penalty=None, reduction='mean'" in command("list", "problems").text
    assert "quick" in command("list", "suites").text


def test_doctor_counts_what_is_broken(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("machine", "python", "3.11"), Finding("limits", "memory", "+0 %", False)]
    monkeypatch.setattr("bench_mtl.cli.listing.look", lambda *_, **__: iter(findings))
    assert (command("doctor").code, command("doctor").out[-1]) == (1, "1 broken")
    assert [line.split() for line in command("doctor", "--quiet").out] == [["memory", "BROKEN", "+0", "%"]]
    parts = [Compiled("pdhg", 2.0, 3), Compiled("admm", 1.0, 0), Compiled("sick", 0.1, 0, "library not found")]
    monkeypatch.setattr("bench_mtl.cli.listing.compile_all", lambda plugins: iter(parts))
    compiled = command("doctor", "--compile")
    assert compiled.code == 1
    assert "pdhg" in compiled.text
    assert "admm" not in compiled.text  # nothing was left to compile


@pytest.mark.slow
def test_validate_passes(command: Command) -> None:
    result = command("validate", "--cases", "5")
    assert result.code == 0, result.text


@pytest.mark.slow
def test_validate_fails_when_something_is_wrong(command: Command, here: Path) -> None:
    (here / "solvers").mkdir()
    (here / "solvers" / "lazy.py").write_text(iterative("lazy", "yield Iterate(problem.zero())"))
    result = command("validate", "--cases", "1", "--plugins", here, "--only", "lazy")
    assert result.code == 1
    assert "the solver ended by itself" in result.text
