"""`bench-mtl compare` as a user meets it: its output and its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

FAST = [{"seed": seed, "seconds": 1.0 + 0.01 * seed} for seed in range(8)]
SLOW = [{"seed": seed, "seconds": 2.0 + 0.02 * (seed % 3)} for seed in range(8)]


def compare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench_mtl", "compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_result_and_itself(tmp_path):
    result = compare(ROOT / "reports" / "quick", ROOT / "reports" / "quick")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Nothing changed" in result.stdout


def test_a_slowdown_is_exit_code_1_unless_it_is_accepted(make_results):
    a, b = make_results("a", FAST), make_results("b", SLOW)
    result = compare(a, b)
    assert (result.returncode, result.stderr) == (1, "")
    assert "**Regression**: 3 of 3 ratios tested say slower by more than 10 %." in result.stdout
    assert "slower |" in result.stdout
    accepted = compare(a, b, "--threshold", "1.5")
    assert accepted.returncode == 0
    assert "**No regression**" in accepted.stdout
    assert compare(b, a).returncode == 0


def test_a_lost_verified_is_exit_code_1(make_results):
    result = compare(make_results("a", FAST), make_results("b", [*FAST[1:], {"seed": 0, "status": "error"}]))
    assert result.returncode == 1
    assert "- verified -> error: 1 (hinge seed 0 | pg)" in result.stdout


def test_another_machine_is_refused_in_a_line(make_results):
    a, b = make_results("a", FAST), make_results("b", [{**run, "environment": {"processor": "slow one"}} for run in FAST])
    result = compare(a, b)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "processor (quick one in A, slow one in B)" in result.stderr
    assert "--anyway" in result.stderr
    told = compare(a, b, "--anyway")
    assert told.returncode == 0
    assert "- machine: processor quick one -> slow one" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "nowhere"], "no results in nowhere"),
        (["reports/quick"], "Missing argument 'B'"),
        (["reports/quick", "reports/quick", "--threshold", "-1"], "--threshold must be"),
        (["reports/quick", "reports/scene"], "no case in common"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(arguments, words, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = compare(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr
