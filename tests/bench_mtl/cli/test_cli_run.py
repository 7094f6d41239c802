"""`bench-mtl run` as a user meets it: what workers are given, what is refused, when the report is written again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.results import FILE_NAME
from bench_mtl.runner import Setting

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
"""


@pytest.fixture
def suite(tmp_path: Path, plugins: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite file in the current folder, where the plug-ins are too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    (tmp_path / "plugins").symlink_to(plugins)
    (tmp_path / "tiny.toml").write_text(SUITE)
    return tmp_path / "tiny.toml"


@pytest.mark.parametrize("by_variable", [False, True])
def test_workers_are_given_absolute_paths(
    command: Callable[..., Any], suite: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    (suite.parent / "data").mkdir()
    given: list[Setting] = []

    def note(setting: Setting, **_: object) -> None:
        given.append(setting)
        raise InputError("that will do")

    monkeypatch.setattr("bench_mtl.runner.executor_for", note)
    if by_variable:
        monkeypatch.setenv("BENCH_MTL_DATA", "data")
    option = [] if by_variable else ["--data-dir", "data"]
    result = command("run", "tiny.toml", "--plugins", "plugins", "--cluster", "local", *option)
    assert (result.code, result.err) == (2, ["bench-mtl: that will do"])
    (setting,) = given
    assert (setting.plugins, setting.data_dir) == (suite.parent / "plugins", suite.parent / "data")


@pytest.mark.usefixtures("without_report")
def test_words_that_do_not_go_together_are_refused_before_and_after_the_run(command: Callable[..., Any], suite: Path) -> None:
    run = ("run", suite, "--plugins", "plugins", "--out", "out")
    refused = {
        ("--cluster", ""): "--cluster is local",
        ("--cluster", " "): "--cluster is local",
        ("--cluster", "tcp://x", "--slots", "2"): "--cluster is local",
        ("--isolation", "inline", "--slots", "2"): "neither --slots nor --cluster goes with it",
        ("--isolation", "inline", "--cluster", "local"): "neither --slots nor --cluster goes with it",
        ("--slots", "10000"): "10000 slots of 1 thread need 10000 processors",
    }
    for nothing_left in (False, True):
        if nothing_left:
            assert command(*run, "--isolation", "inline").code == 0
        for words, reason in refused.items():
            result = command(*run, *words)
            assert (result.code, len(result.err)) == (2, 1), words
            assert reason in result.err[0]
            assert Path("out").exists() == nothing_left


def test_a_report_is_written_again_where_changes_may_wait(command: Callable[..., Any], suite: Path) -> None:
    run = ("run", suite, "--plugins", "plugins", "--out", "out", "--isolation", "inline")
    assert command(*run).code == 0
    report, results = Path("out/report.md"), Path("out") / FILE_NAME
    assert command(*run).out[-1] == "nothing to run; report: out/report.md"
    report.write_text("an old report")
    os.utime(report, (results.stat().st_mtime + 1000,) * 2)
    assert command(*run).out[-1] == "nothing to run; report: out/report.md"
    assert report.read_text() == "an old report"
    with closing(sqlite3.connect(results)) as somebody:
        somebody.execute("PRAGMA journal_mode = WAL")
        somebody.execute("CREATE TABLE other (id)")  # waits in the WAL as long as this is open
        somebody.commit()
        assert results.with_name(f"{FILE_NAME}-wal").exists()
        os.utime(report, (results.stat().st_mtime + 1000,) * 2)
        assert command(*run).out[-1] == "report: out/report.html, out/report.md"
    assert report.read_text() != "an old report"


@pytest.mark.usefixtures("without_report")
def test_the_fastest_solvers_are_run_again_once(command: Callable[..., Any], suite: Path) -> None:
    suite.write_text("repeat_fastest = 1\n" + SUITE)

    def rows() -> list[tuple[str, int, str]]:
        with closing(sqlite3.connect(suite.parent / "results" / "tiny" / FILE_NAME)) as connection:
            query = "SELECT solver_label, repetition, status FROM runs ORDER BY solver_label, repetition"
            return connection.execute(query).fetchall()

    said = command("run", "tiny.toml", "--plugins", "plugins", "--isolation", "inline")
    assert any("the fastest solvers again" in line for line in said.err + said.out), said
    first = rows()
    assert {status for _, _, status in first} == {"verified"}
    repeated = [(solver, repetition) for solver, repetition, _ in first if repetition]
    assert repeated
    again = command("run", "tiny.toml", "--plugins", "plugins", "--isolation", "inline")
    assert any("nothing to run" in line for line in again.err + again.out), again
    assert rows() == first


@pytest.mark.usefixtures("without_report")
def test_a_dry_run_says_what_waits_and_writes_nothing(command: Callable[..., Any], suite: Path) -> None:
    arguments = ("run", "tiny.toml", "--plugins", "plugins", "--isolation", "inline")
    dry = command(*arguments, "--dry-run")
    assert (dry.code, dry.out) == (0, ["tiny seed 0 | projected_gradient", "1 of 1 case would be run"])
    assert not Path("results").exists()
    assert command(*arguments).code == 0
    assert command(*arguments, "--dry-run").out == ["0 of 1 case would be run"]
    assert command(*arguments, "--dry-run", "--force").out[-1] == "1 of 1 case would be run"
    assert command(*arguments, "--dry-run").out == ["0 of 1 case would be run"]
