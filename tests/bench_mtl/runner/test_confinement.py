"""Solvers cannot reach the results, the command or other processes, where the system offers that."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from runs import PLUGINS, await_that, is_running, run_suite, suite_of

from bench_mtl.results import FILE_NAME
from bench_mtl.runner import Executor, LocalExecutor, Setting
from bench_mtl.runner.confinement import beside, landlock_version

FILES = ("overwrites", "truncates", "removes", "renames", "replaces")
PROCESSES = ("kills", "kills_its_group")
#: From which version of Landlock on signals to others can be given up.
WITH_SIGNALS = 6


def vandal(deed: str, target: object) -> str:
    return f'name = "vandal"\noptions = {{ deed = "{deed}", target = "{target}" }}'


@pytest.mark.skipif(landlock_version() == 0, reason="this system has no Landlock")
def test_a_solver_cannot_touch_the_results_or_the_command(tmp_path: Path) -> None:
    folder, scratch = tmp_path / "results", tmp_path / "scratch"
    scratch.mkdir()
    deeds = [vandal(deed, folder / FILE_NAME) for deed in FILES] + [vandal("traces", os.getpid())]
    deeds += [vandal(deed, os.getpid()) for deed in PROCESSES if landlock_version() >= WITH_SIGNALS]
    allowed = vandal("writes_elsewhere", scratch / "file")
    executor = LocalExecutor(Setting(1, PLUGINS, guarded=folder))
    runs = run_suite(folder, suite_of(*deeds, allowed, 'name = "projected_gradient"'), executor=executor)
    said = {label: json.loads(info).get("said") for label, info in zip(runs.index, runs["info"], strict=True)}
    assert said.pop("writes_elsewhere") == "done"
    assert said.pop("projected_gradient") is None
    assert set(said.values()) == {"PermissionError"}, said
    assert runs.loc["projected_gradient", "status"] == "verified"


def test_every_entry_beside_the_way_to_a_folder_is_found(tmp_path: Path) -> None:
    for name in ("a/results/deep", "a/other", "b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = {Path(entry) for entry in beside(tmp_path / "link" / "results" / "not" / "yet")}
    within = {entry.relative_to(tmp_path.resolve()).as_posix() for entry in found if tmp_path.resolve() in entry.parents}
    assert within == {"a/results/deep", "a/other", "a/file", "b"}
    assert not {tmp_path.resolve(), *tmp_path.resolve().parents} & found


def test_a_child_without_environment_group_or_parent_dies_with_the_run(tmp_path: Path, shared: AbstractContextManager[Executor]) -> None:
    """It is what a worker that has died leaves to the process that it was forked from."""
    target = tmp_path / "pid"
    runs = run_suite(tmp_path / "out", suite_of(vandal("escapes", target), 'name = "projected_gradient"'), executor=shared)
    assert runs["status"].to_dict() == {"escapes": "crashed", "projected_gradient": "verified"}
    assert await_that(lambda: not is_running(int(target.read_text())), 1.0)
