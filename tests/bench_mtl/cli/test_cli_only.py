"""`bench-mtl run --only`: a part of a suite is run, and the folder still lists all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.results import FILE_NAME
from bench_mtl.results.loading import read_results

SUITE = """
name = "tiny"
targets = [1e-2]
limits = { seconds = 10.0 }
repeat_fastest = 1

[[problems]]
name = "box"
label = "small"
data = { name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }

[[problems]]
name = "box"
label = "large"
data = { name = "synthetic_l1inf", tasks = 3, features = 6, examples = 6 }
seeds = [0, 1]

[[solvers]]
name = "projected_gradient"

[[solvers]]
name = "projected_gradient"
label = "searching"
options = { step_rule = "line_search" }
"""

Run = Callable[..., Any]


@pytest.fixture
def run(command: Callable[..., Any], without_report: None, tmp_path: Path, plugins: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the suite with further arguments, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    Path("tiny.toml").write_text(SUITE)
    return lambda *more: command("run", "tiny.toml", "--plugins", plugins, "--isolation", "inline", *more)


def rows(which: str = "IN") -> list[tuple[str, str, int | None, int]]:
    with closing(sqlite3.connect(Path("results/tiny") / FILE_NAME)) as connection:
        query = f"SELECT problem_label, solver_label, seed, repetition FROM run WHERE id {which} (SELECT run_id FROM listing)"
        return sorted(connection.execute(query))


def test_a_dry_run_says_only_what_fits(run: Run) -> None:
    dry = run("--only", "problem=la*", "--only", "solver=sea*", "--only", "solver=nothing", "--dry-run")
    assert (dry.code, dry.out) == (0, ["large seed 0 | searching", "large seed 1 | searching", "2 of 2 cases would be run"])
    assert run("--dry-run").out[-1] == "6 of 6 cases would be run, then the fastest solvers again"
    assert run("--only", "data=synthetic*", "--only", "seed=1", "--dry-run").out[-1] == "2 of 2 cases would be run"
    assert not Path("results").exists()


def test_a_part_is_run_and_the_rest_goes_on_from_there(run: Run) -> None:
    first = run("--only", "problem=small")
    assert first.code == 0, first.err
    assert [line.split("]")[0] for line in first.out[:2]] == ["[1/2", "[2/2"]
    assert rows() == [("small", "projected_gradient", 0, 0), ("small", "searching", 0, 0)]
    assert not any("the fastest solvers again" in line for line in first.out), "cases are missing"
    assert read_results(Path("results/tiny")).missing == 4
    again = run("--only", "problem=small")
    assert "2 of 2 cases are done already" in again.out
    assert again.out[-1].startswith("nothing to run")
    assert run("--only", "problem=small", "--force").code == 0
    assert len(rows("NOT IN")) == 2
    whole = run()
    assert "2 of 6 cases are done already" in whole.out
    assert any("the fastest solvers again" in line for line in whole.out)
    assert len({row[:3] for row in rows()}) == 6
    assert {row[3] for row in rows()} > {0}


def test_the_last_part_chooses_the_fastest_and_runs_again_those_that_fit(run: Run) -> None:
    assert run("--only", "problem=large").code == 0
    last = run("--only", "problem=small")
    assert any("the fastest solvers again" in line for line in last.out)
    repeated = {row[0] for row in rows() if row[3]}
    assert repeated == {"small"}
    assert run().code == 0
    assert {row[0] for row in rows() if row[3]} == {"small", "large"}
    kept = rows()
    assert run("--only", "problem=large", "--only", "seed=1", "--only", "repetition=0", "--force").code == 0
    outdated = rows("NOT IN")
    assert set(outdated) == {("large", "projected_gradient", 1, 0), ("large", "searching", 1, 0)}
    assert {row[:3] for row in rows()} == {row[:3] for row in kept}


@pytest.mark.parametrize(
    ("only", "words"),
    [
        (
            "solver=serching",
            "--only: no case has a solver like serching: did you mean 'searching'? there are projected_gradient, searching",
        ),
        ("problem=zzz*", "--only: no case has a problem like zzz*: there are small, large"),
        (
            "status=verified",
            "--only must be KEY=PATTERN with a key of problem, family, solver, seed, repetition, data, not 'status=verified'",
        ),
        ("solvers=searching", "not 'solvers=searching': did you mean 'solver'?"),
        ("solver", "--only must be KEY=PATTERN"),
        ("solver=", "--only must be KEY=PATTERN"),
    ],
)
def test_what_fits_nothing_is_one_line(run: Run, only: str, words: str) -> None:
    for more in ([], ["--dry-run"]):
        result = run("--only", only, *more)
        assert (result.code, result.out, len(result.err)) == (2, [], 1)
        assert words in result.err[0]
    assert not Path("results").exists()


def test_what_fits_only_apart_is_one_line(run: Run) -> None:
    result = run("--only", "problem=small", "--only", "seed=1")
    assert result.err == ["bench-mtl: --only: no case fits problem=small and seed=1 together"]
