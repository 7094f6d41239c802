"""`--json` and `--quiet`: one document on standard output, or nothing but what was asked for; exit codes and warnings stay."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.cli import cli, console
from bench_mtl.cli.documents import to_json
from bench_mtl.core.types import Certificate, Status
from bench_mtl.validation.ahead_of_time import Compiled
from bench_mtl.validation.doctor import Finding
from bench_mtl.validation.validate import Check

Command = Callable[..., Any]

HINGE = ["l1inf_hinge", "projected_subgradient", "--data", "synthetic_l1inf"]
SMALL = ["--data-option", "tasks=3", "--data-option", "features=8", "--data-option", "examples=10", "--target", "1e-2"]

SUITE = """
name = "tiny"
targets = [1e-2]
limits = { seconds = 10.0 }

[[problems]]
name = "box"
label = "tiny"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }

[[solvers]]
name = "projected_gradient"

[[solvers]]
name = "pdhg"
"""

#: What prints wherever it can, in Python and in C.
LOUD = """
import os
from dataclasses import dataclass
from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import IterativeSolver

@dataclass(frozen=True)
class Loud(IterativeSolver):
    '''Prints.'''
    name = "loud"
    requires = frozenset()

    def steps(self, problem, start=None):
        print("from Python")
        os.write(1, b"from C\\n")
        yield Iterate(problem.zero())
"""


def document(result: Any) -> dict[str, Any]:
    """The one document on standard output: strict JSON, a table."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found = json.loads("\n".join(result.out), parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def test_every_command_has_json_and_those_that_go_on_can_be_quiet() -> None:
    for name, command in cli.commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, name
        assert ("--quiet" in options) == (name in {"run", "solve", "path", "paper", "publish", "shard", "validate", "doctor"}), name


def test_values_are_json() -> None:
    text = to_json(
        {
            "nan": math.nan, "inf": math.inf, "low": -math.inf, "numpy": np.float64(0.5), "whole": np.int64(3), "flag": np.bool_(True),
            "array": np.eye(2), "path": Path("a/b"), "status": Status.VERIFIED, "tuple": Certificate(1.0, 0.5, 0.0), "set": {"b", "a"},
            Status.WRONG: None, "check": Check("a", "b", 1, 0, None), "text": "\x1b[2J\x7f\ud800ü\u202e",
        }
    )  # fmt: skip
    assert text.isascii()
    assert text.isprintable() or set(text) - {"\n"} <= {chr(code) for code in range(32, 127)}
    found = json.loads(text)
    assert (found["nan"], found["inf"], found["low"]) == (None, "inf", "-inf")
    assert (found["numpy"], found["whole"], found["flag"], found["array"]) == (0.5, 3, True, [[1.0, 0.0], [0.0, 1.0]])
    assert (found["path"], found["status"], found["tuple"], found["set"]) == ("a/b", "verified", [1.0, 0.5, 0.0, 0.0], ["a", "b"])
    assert (found["wrong"], found["check"]["worst"], found["text"]) == (None, None, "\x1b[2J\x7f\\ud800ü\u202e")


@pytest.mark.parametrize("what", ["problems", "solvers", "suites", "data"])
def test_lists(command: Command, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    result = command("list", what, "--json")
    assert (result.code, result.err) == (0, [])
    rows = document(result)[what]
    assert all(row["name"] for row in rows)
    if what == "solvers":
        by_name = {row["name"]: row for row in rows}
        assert by_name["pdhg"]["takes"] == ["hinge loss under L1Inf", "hinge loss under TaskBalls"]
        assert {"scs", "ecos", "clarabel", "highs", "osqp", "piqp", "proxqp", "qoco", "pdlp", "moreau"} <= set(by_name["conic"]["aliases"])
        assert "  aliases: ecos, scs, clarabel, highs, " in "\n".join(command("list", "solvers").out)


def test_solve(command: Command, tmp_path: Path) -> None:
    result = command("solve", *HINGE, *SMALL, "--param", "radius=1", "--json", "--save", tmp_path / "W.npz")
    assert (result.code, result.err) == (0, [])
    found = document(result)
    assert (found["problem"], found["solver"], found["status"], found["target"]) == ("l1inf_hinge", HINGE[1], "verified", 1e-2)
    assert found["dimensions"] == {"n": 30, "d": 8, "m": 3}
    assert found["dual_bound"] <= found["objective"]
    assert 0.0 <= found["relative_gap"] <= 1e-2
    assert found["seconds"] > 0.0
    assert found["samples"][-1]["iteration"] == found["iterations"]
    assert found["saved"] == str(tmp_path / "W.npz")
    assert (tmp_path / "W.npz").is_file()


def test_solve_by_an_alias_says_what_it_stands_for(command: Command) -> None:
    result = command("solve", "l1inf_hinge", "ECOS", *HINGE[2:], *SMALL, "--param", "radius=1", "--json")
    assert (result.code, result.err) == (0, [])
    found = document(result)
    assert (found["solver"], found["options"], found["label"], found["status"]) == ("conic", {"backend": "ECOS"}, "ecos", "verified")


def test_solve_that_misses_its_target_or_does_not_fit_exits_1(command: Command) -> None:
    missed = command("solve", *HINGE, *SMALL, "--param", "radius=1", "--iterations", "1", "--json")
    assert (missed.code, document(missed)["status"]) == (1, "inaccurate")
    skipped = command("solve", "l1inf_hinge", "projected_gradient", *HINGE[2:], *SMALL, "--param", "radius=1", "--json")
    assert skipped.code == 1
    found = document(skipped)
    assert (found["status"], found["objective"], found["iterations"], found["samples"]) == ("skipped", None, None, [])


def test_a_mistake_has_no_document(command: Command) -> None:
    result = command("solve", "l1inf_hing", *HINGE[1:], *SMALL, "--param", "radius=1", "--json")
    assert (result.code, result.out, len(result.err)) == (2, [], 1)
    assert "did you mean 'l1inf_hinge'" in result.err[0]


def test_path(command: Command) -> None:
    result = command("path", *HINGE, *SMALL, "--over", "radius=2,1", "--json")
    assert (result.code, result.err) == (0, [])
    found = document(result)
    assert (found["over"], [point["value"] for point in found["points"]]) == ("radius", [1.0, 2.0])
    assert {point["status"] for point in found["points"]} == {"verified"}
    assert all(1 <= point["structure"]["rows"] <= 8 for point in found["points"])


def test_quiet_leaves_what_was_asked_for(command: Command) -> None:
    solved = command("solve", *HINGE, *SMALL, "--param", "radius=1", "--quiet")
    assert (solved.code, len(solved.out), solved.err) == (0, 1, [])
    assert solved.out[0].startswith("verified: ")
    path = command("path", *HINGE, *SMALL, "--over", "radius=1,2", "--quiet")
    assert [line.split()[0] for line in path.out] == ["radius", "1", "2"]


@pytest.fixture
def suite(tmp_path: Path, plugins: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that run a suite in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    Path("tiny.toml").write_text(SUITE)
    return ["run", "tiny.toml", "--plugins", str(plugins), "--isolation", "inline"]


def test_run_and_what_is_made_of_its_results(command: Command, suite: list[str]) -> None:
    waiting = document(command(*suite, "--dry-run", "--json"))
    assert waiting["cases"] == 2
    assert [case["solver"] for case in waiting["waiting"]] == ["projected_gradient", "pdhg"]
    result = command(*suite, "--json")
    assert (result.code, result.err) == (0, [])
    found = document(result)
    assert (found["suite"], found["made"], found["cases"], found["contradictions"]) == ("tiny", 2, 2, [])
    assert found["statuses"] == {"verified": 1, "skipped": 1}
    verified, skipped = found["runs"]
    assert (verified["solver"], verified["seed"], verified["repetition"], verified["target"]) == ("projected_gradient", 0, 0, 1e-2)
    assert (skipped["status"], skipped["objective"]) == ("skipped", None)
    assert found["report"] == ["results/tiny/report.html", "results/tiny/report.md"]
    again = document(command(*suite, "--json"))
    assert (again["made"], again["runs"], again["contradictions"]) == (0, found["runs"], None)

    folder = "results/tiny"
    reported = document(command("report", folder, "--format", "md", "--json"))
    assert (reported["report"], reported["statuses"]) == ([f"{folder}/report.md"], found["statuses"])
    exported = document(command("export", folder, "--format", "csv", "--json"))["files"]
    assert {Path(entry["path"]).name: entry["rows"] for entry in exported}["runs.csv"] == 2
    merged = document(command("merge", folder, "-o", "small", "--without-proofs", "--json"))
    assert (merged["folder"], merged["merged"]["runs"], len(merged["merged"]["machines"])) == ("small", 2, 1)
    compared = document(command("compare", folder, "small", "--json"))
    assert (compared["has_regressed"], compared["comparison"]["pairs"]) == (False, 2)
    assert compared["verdict"].startswith("**Nothing changed**")
    checked = command("check", folder, "nowhere", "--json")
    assert (checked.code, len(checked.err)) == (2, 1)
    whole, missing = document(checked)["folders"]
    assert (whole["checked"]["rows"], whole["checked"]["damaged"], whole["error"]) == (2, [], None)
    assert missing["error"].startswith("no results in nowhere")


def test_a_quiet_run_says_nothing_and_a_quiet_dry_run_what_waits(command: Command, suite: list[str]) -> None:
    assert command(*suite, "--dry-run", "--quiet").out[-1] == "2 of 2 cases would be run"
    result = command(*suite, "--quiet")
    assert (result.code, result.out, result.err) == (0, [], [])
    assert Path("results/tiny/report.md").is_file()


def test_shards(command: Command, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b,red\n" + 5 * "0.5,1,0\n1.5,2,1\n")
    asked = ["shard", tmp_path / "own.csv", "--data-option", "labels=red", "--rows", "4"]
    result = command(*asked, "--out", tmp_path / "one", "--json")
    assert (result.code, result.err) == (0, [])
    found = document(result)
    assert (found["manifest"], found["name"], found["notes"]) == (str(tmp_path / "one" / "shards.json"), "own", ["The labels are red."])
    assert [found[key] for key in ("shards", "rows", "features", "tasks", "stored")] == [3, 10, 2, 1, 20]
    assert found["bytes"] == sum(file.stat().st_size for file in (tmp_path / "one").glob("*.npy"))
    quiet = command(*asked, "--out", tmp_path / "two", "--name", "mine", "--quiet")
    summary = f"{tmp_path / 'two' / 'shards.json'}: 3 shards, 10 rows, 2 features, 1 task, {found['bytes']:,} bytes"
    assert (quiet.code, quiet.out, quiet.err) == (0, [summary], [])
    loud = command(*asked, "--out", tmp_path / "three")
    assert (loud.code, loud.out[-1].partition(": ")[2], loud.err) == (0, summary.partition(": ")[2], [])
    assert "3 shards written, 10 of 10 rows" in loud.out
    again = command(*asked, "--out", tmp_path / "three")
    assert (again.code, again.err) == (2, [f"bench-mtl: {tmp_path / 'three'} exists: shards are written to a new folder"])


def test_where_nothing_fits_a_run_exits_1(command: Command, suite: list[str]) -> None:
    Path("tiny.toml").write_text(SUITE.replace('"projected_gradient"', '"pegasos"'))
    result = command(*suite, "--quiet")
    assert (result.code, result.out) == (1, [])
    assert result.err == ["no solver fits its problem: all 2 runs were skipped"]


def test_a_checked_report(command: Command) -> None:
    result = command("report", Path(__file__).resolve().parents[3] / "reports" / "quick", "--check", "--json")
    (checked,) = document(result)["reports"]
    assert result.code == (1 if checked["faults"] else 0)
    assert checked["lines"] > 5


def test_what_solvers_print_is_no_part_of_the_document(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "loud.py").write_text(LOUD)
    asked = ["solve", "l1inf_hinge", "loud", *HINGE[2:], *SMALL, "--param", "radius=1", "--plugins", str(tmp_path), "--json"]
    assert cli.main(asked, prog_name="bench-mtl", standalone_mode=False) == 1
    said = capfd.readouterr()
    assert json.loads(said.out)["label"] == "loud"
    assert {"from Python", "from C"} <= set(said.err.splitlines())
    os.write(1, b"back")
    assert capfd.readouterr().out == "back"


@pytest.mark.parametrize("works", [True, False])
def test_doctor(command: Command, monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    seen = [Finding("machine", "python", "3.11"), Finding("limits", "memory", "+0 %", works)]
    monkeypatch.setattr("bench_mtl.validation.doctor.findings", lambda *_, **__: iter(seen))
    result = command("doctor", "--json")
    assert result.code == (0 if works else 1)
    found = document(result)
    assert (found["broken"], [finding["works"] for finding in found["findings"]]) == (0 if works else 1, [None, works])
    quiet = command("doctor", "--quiet")
    assert [line.split() for line in quiet.out] == ([] if works else [["memory", "BROKEN", "+0", "%"]])
    parts = [Compiled("pdhg", 2.0, 3), Compiled("sick", 0.1, 0, "library not found")]
    monkeypatch.setattr("bench_mtl.validation.ahead_of_time.compile_all", lambda plugins: iter(parts))
    compiled = document(command("doctor", "--compile", "--json"))
    assert (compiled["broken"], compiled["functions"], len(compiled["parts"])) == (1, 3, 2)


def test_validate(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def checks(registry: Any, *, cases: int, seed: int, only: tuple[str, ...]) -> Iterator[Check]:
        yield Check("good", "agrees", cases, 0, 1e-9)
        yield Check("bad", "agrees", cases, 2, math.inf, "why")

    monkeypatch.setattr("bench_mtl.validation.validate.validate", checks)
    result = command("validate", "--json")
    assert result.code == 1
    found = document(result)
    assert found["failures"] == 2
    assert [(check["subject"], check["worst"]) for check in found["checks"]] == [("good", 1e-9), ("bad", "inf")]
    quiet = command("validate", "--quiet")
    assert (quiet.code, len(quiet.out), quiet.out[1]) == (1, 2, "    why")


def test_outside_of_a_command_all_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("on the way")
    console.answer("the answer")
    console.answer_json(lambda: pytest.fail("nobody has asked for it"))
    assert capsys.readouterr().out.splitlines() == ["on the way", "the answer"]
