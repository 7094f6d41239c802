"""`bench-mtl solve --cluster`."""

from __future__ import annotations

import subprocess
import sys

ARGUMENTS = ["--data", "digits", "--param", "nu=0.3 max", "--target", "0.5", "--seconds", "20", "--cluster", "local"]


def _refused(*arguments: str) -> str:
    command = [sys.executable, "-m", "bench_mtl", "solve", "group_boosting", *arguments, *ARGUMENTS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 2
    return result.stderr.strip()


def test_solvers_that_use_none_say_so() -> None:
    said = _refused("admm")
    assert "--cluster: admm runs on this machine alone" in said
    assert "\n" not in said


def test_an_unknown_solver_is_still_named() -> None:
    assert "admmm" in _refused("admmm")
