"""The doctor finds what works, and what does not."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench_mtl.core.types import Limits
from bench_mtl.validation import doctor
from bench_mtl.validation.doctor import findings


def test_all_works_here() -> None:
    seen = list(findings())
    topics = {"machine", "packages", "solvers", "threads", "clock", "limits", "storage", "data"}
    assert {finding.topic for finding in seen} == topics
    assert [finding for finding in seen if finding.works is False] == []
    limits = {finding.what: finding.found for finding in seen if finding.topic == "limits"}
    assert limits["time limit, interpreter held"].startswith("timeout after +0.")
    assert limits["memory limit"].startswith("memory after ")
    assert limits["what a solver leaves running"] == "killed"
    (devices,) = [finding.found for finding in seen if finding.what.startswith("jax (")]
    assert re.match(r"\S+, its devices: |not installed: pip install", devices)
    assert [finding for finding in seen if finding.what == "NVIDIA GPUs"]
    assert {"cuopt", "cupdlpx", "moreau_gpu", "mpax_gpu", "qoco_gpu"} <= {finding.what for finding in seen}


def test_limits_that_do_not_hold_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    case = doctor._case
    monkeypatch.setattr("bench_mtl.runner.watch.GRACE_SECONDS", 1.0)
    monkeypatch.setattr(doctor, "_TRIALS", 2)
    monkeypatch.setattr(doctor, "_case", lambda *names, **options: replace(case(*names, **options), limits=Limits(seconds=1.0)))
    limits = {finding.what: finding for finding in doctor._limits()}
    assert limits["time limit, interpreter held"].works is False
    assert limits["memory limit"].works is False
    assert limits["a run in a worker"].works is True


def test_a_solver_that_does_not_work_is_named(tmp_path: Path) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "sick.py").write_text(
        "from dataclasses import dataclass\nfrom bench_mtl.model.protocols import IterativeSolver\n"
        "@dataclass(frozen=True)\nclass Sick(IterativeSolver):\n    name = 'sick'\n    requires = frozenset()\n"
        "    def warm_up(self):\n        raise OSError('library\\nnot found')\n"
        "    def steps(self, problem, start=None):\n        yield\n"
        "from bench_mtl.core.errors import InputError\n@dataclass(frozen=True)\nclass Away(Sick):\n    name = 'away'\n"
        "    def warm_up(self):\n        raise InputError('there is no such device')\n"
    )
    registry = doctor.load_registry(tmp_path)
    tried = {finding.what: finding for finding in doctor._solvers(registry)}
    assert (tried["away"].found, tried["away"].works) == ("cannot run here: there is no such device", None)
    (sick,) = [finding for finding in tried.values() if finding.works is False]
    assert (sick.what, sick.found) == ("sick", "does not work: library not found")
    untried = {finding.what: finding.works for finding in doctor._solvers(registry, compiles=False)}
    assert untried["sick"] is untried["pdhg"] is None


@pytest.mark.slow
def test_what_is_compiled_ahead_of_time_is_there_the_next_time(tmp_path: Path) -> None:
    """In new processes with a cache of their own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = "from bench_mtl.validation.ahead_of_time import compile_part; print(compile_part('simplex_newton').functions)"
    counts = [
        int(subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert counts[0] > 0
    assert counts[1] == 0
