"""Whatever a run leaves behind in its process is named, and only that; what it replaces of what judges it voids it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import PLUGINS, run_suite, some_plugins, suite_of

from bench_mtl.core.types import Certificate, Limits
from bench_mtl.engine import driver, proofs, stopping
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.model.protocols import Problem
from bench_mtl.runner import executors
from bench_mtl.runner.confinement import landlock_version
from bench_mtl.runner.gathered import LEFT_BEHIND
from bench_mtl.runner.identities import Identities
from bench_mtl.runner.inprocess import _some
from bench_mtl.runner.leftovers import differences

HERE = Path(__file__).resolve().parent

#: What names each deed of the plug-in `leaves`; more may be named, for some settings are seen in two places.
NAMES = {
    "memory": "MiB of memory", "thread": "1 thread", "raw_thread": "1 thread", "place": "working directory", "processors": "processors",
    "limit_cpu": "RLIMIT_CPU", "limit_fsize": "RLIMIT_FSIZE", "limit_as": "RLIMIT_AS", "limit_nofile": "RLIMIT_NOFILE",
    "everything_open": "RLIMIT_NOFILE", "timer_real": "ITIMER_REAL", "timer_virtual": "ITIMER_VIRTUAL", "timer_prof": "ITIMER_PROF",
    "timer_posix": "POSIX timers", "timer_faulthandler": "timer of faulthandler", "blas_threads": "threads of libraries",
    "trace": "gettrace", "profile": "getprofile", "trace_of_threads": "tracing of threads", "stack_of_threads": "stack of threads",
    "recursion": "getrecursionlimit", "switching": "getswitchinterval", "no_gc": "garbage collector (enabled)",
    "rare_gc": "garbage collector (thresholds)", "callback_of_gc": "callbacks of the garbage collector", "frozen": "gc.freeze",
    "rounding": "rounding mode", "traps": "floating-point traps", "seterr": "numpy.seterr", "seterrcall": "numpy.seterrcall",
    "buffer_size": "numpy.setbufsize", "print_options": "numpy.set_printoptions", "generator": "numpy.random", "locale": "locale",
    "decimals": "decimal context", "warnings": "warnings", "nice": "nice", "idle": "scheduler",
    "input_priority": "priority of input and output", "umask": "Umask", "environment": "BENCH_MTL_LEFT", "mask": "blocked signals",
    "handler": "SIGUSR2", "handler_in_real_time": "handlers of signals", "path": "sys.path", "finder": "sys.meta_path",
    "hook_of_path": "sys.path_hooks", "module": "sys.modules (json)", "stdout": "stdout", "excepthook": "excepthook",
    "descriptor": "open descriptor (/dev/null)", "memfd": "memfd:left", "closed": "closed or changed descriptors (0)",
    "shared_memory": "shared memory", "child": "1 process", "timer_slack": "timer slack", "no_new_privileges": "NoNewPrivs",
    "death_signal": "signal at the end of the parent", "timeout_of_sockets": "timeout of sockets",
}  # fmt: skip

#: Deeds that not every system has the means for, or permits.
_CONDITIONS = {"processors": len(os.sched_getaffinity(0)) > 1, "timer_posix": Path("/proc/self/timers").exists()}


def test_what_each_deed_leaves_behind_is_named_and_nothing_else() -> None:
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    command = [sys.executable, str(HERE / "deeds_apart.py"), str(PLUGINS / "solvers" / "leaving.py")]
    left = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)
    for path in Path("/dev/shm").glob("bench_mtl_test_*"):
        path.unlink()
    assert left.keys() == NAMES.keys() | {"nothing"}
    named = {deed: [each for each in words if not _is_of_others(each)] for deed, words in left.items() if words is not None}
    assert named.pop("nothing") == []
    permitted = {deed: words for deed, words in named.items() if _CONDITIONS.get(deed, True)}
    assert len(permitted) > len(NAMES) / 2
    assert {deed: words for deed, words in permitted.items() if NAMES[deed] not in ", ".join(words)} == {}
    most = {"everything_open": 8}
    assert {deed: words for deed, words in permitted.items() if len(words) > most.get(deed, 2)} == {}


def _is_of_others(words: str) -> bool:
    """Whether other programs of the same user have shared memory meanwhile."""
    return words.startswith("shared memory") and "bench_mtl_test" not in words


def test_what_is_replaced_is_named_and_what_is_added_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    identities = Identities()
    identities.hold()
    assert identities.changes() == ()
    replaced: list[tuple[Any, str, str]] = [
        (time, "perf_counter", "time.perf_counter"),
        (time, "monotonic", "time.monotonic"),
        (np, "dot", "numpy.dot"),
        (np.linalg, "norm", "numpy.linalg.norm"),
        (driver, "certified", "bench_mtl.engine.driver.certified"),
        (stopping, "SAMPLE_GROWTH", "bench_mtl.engine.stopping.SAMPLE_GROWTH"),
        (proofs, "np", "bench_mtl.engine.proofs.np"),
        (Certificate, "gap", "bench_mtl.core.types.Certificate.gap"),
        (Problem, "certify_repaired", "bench_mtl.model.protocols.Problem.certify_repaired"),
    ]
    for owner, name, words in replaced:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *_: 0.0)
            assert identities.changes() == (words,)
    with monkeypatch.context() as patch:
        patch.setattr(np, "of_somebody", print, raising=False)
        patch.setitem(sys.modules, "bench_mtl.new", types.ModuleType("bench_mtl.new"))
        assert identities.changes() == ()
        identities.hold()
    assert identities.changes() == ()


def test_a_method_that_hides_an_inherited_one_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_mtl.problems.l1_ball_glm import L1BallGLM

    identities = Identities()
    identities.hold()
    assert "certify_repaired" not in vars(L1BallGLM)
    with monkeypatch.context() as patch:
        patch.setattr(L1BallGLM, "certify_repaired", lambda self, iterate: None)
        assert identities.changes() == (f"{L1BallGLM.__module__}.L1BallGLM.certify_repaired",)
    assert identities.changes() == ()


_STEPS = "seconds = 20.0, iterations = 30"

#: What once did most harm to the run after it.
_WORST = ["thread", "limit_cpu", "timer_prof", "rounding"]


@pytest.mark.parametrize("deeds", [_WORST, pytest.param(sorted(NAMES), marks=pytest.mark.slow)], ids=["worst", "all"])
def test_the_next_run_in_a_shared_process_is_the_same_as_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deeds: list[str]) -> None:
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    deeds = [deed for deed in deeds if _CONDITIONS.get(deed, True) and deed != "processors"]  # of which a worker has one
    if landlock_version():  # for which a worker has given up new privileges itself
        deeds = [deed for deed in deeds if deed != "no_new_privileges"]
    # What a folder calls a problem is loaded wherever solvers of the package run.
    plugins = some_plugins(tmp_path / "plugins")
    shutil.copy(PLUGINS / "solvers" / "leaving.py", plugins / "problems")
    monkeypatch.setattr(executors, "_owner", lambda case: "")
    honest = [
        f'name = "projected_gradient"\noptions = {{ step_rule = "line_search", initial_lipschitz = {number} }}\nlabel = "after {deed}"'
        for number, deed in enumerate(deeds, 1)
    ]
    done = [f'name = "leaves"\noptions = {{ leaves = "{deed}" }}\nlabel = "{deed}"' for deed in deeds]
    alone = run_suite(tmp_path / "alone", suite_of(*honest, limits=_STEPS), plugins)
    both = [table for pair in zip(done, honest, strict=True) for table in pair]
    runs = run_suite(tmp_path / "after", suite_of(*both, limits=_STEPS), plugins)
    for path in Path("/dev/shm").glob("bench_mtl_test_*"):
        path.unlink()
    for deed in deeds:
        row, after, before = runs.loc[deed], runs.loc[f"after {deed}"], alone.loc[f"after {deed}"]
        assert row["status"] == "inaccurate", (deed, row["reason"])
        assert NAMES[deed] in json.loads(row["info"]).get("left behind", ""), (deed, row["info"])
        for column in ("status", "reason", "primal", "dual", "iterations", "info"):
            assert after[column] == before[column], (deed, column, after[column])
    assert set(alone["info"]) == {"{}"}


@pytest.mark.slow
def test_no_solver_of_the_package_leaves_anything(tmp_path: Path) -> None:
    """Otherwise the honest would be blamed, and each of their runs would cost a new process."""
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    suite = read_suite("quick")
    suite = dataclasses.replace(suite, limits=Limits(seconds=2.0, memory_gib=suite.limits.memory_gib), curves=False)
    runs = run_suite(tmp_path, suite)
    assert len(runs) > 50
    left = runs[runs["info"].str.contains(LEFT_BEHIND, regex=False)]
    assert left.empty, left["info"].to_dict()


def test_freezing_is_seen_where_much_is_frozen_already_too() -> None:
    code = """
import gc, os
from bench_mtl.runner.leftovers import Freezing
if os.fork() == 0:  # the other half is looked at in this one's parent
    gc.freeze()
    is_first = False
else:
    is_first = True
seen = Freezing()
assert not seen.has_happened
gc.collect()
assert not seen.has_happened
gc.freeze()
assert seen.has_happened
assert not is_first or os.wait()[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_library_that_a_run_loads_is_no_change_of_the_others() -> None:
    """CVXPY loads three, even where it only tells which cones a solver takes."""
    name = "threads of libraries"
    assert list(differences({name: {"blas": 1}}, {name: {"blas": 1, "openmp": 2}})) == []
    assert list(differences({name: {"blas": 1}}, {name: {"blas": 2, "openmp": 2}})) == [f"{name} (blas)"]
    assert list(differences({"environment": {"A": "1"}}, {"environment": {"A": "1", "B": "2"}})) == ["environment (B)"]


def test_a_few_of_many_names_are_shown() -> None:
    names = tuple("abcde")
    assert [_some(names[:count]) for count in (1, 3, 4, 5)] == ["a", "a, b, c", "a, b, c and 1 more", "a, b, c and 2 more"]
