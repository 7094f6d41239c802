"""`bench-mtl compare` as a user meets it: its output and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

FAST = [{"seed": seed, "seconds": 1.0 + 0.01 * seed} for seed in range(8)]
SLOW = [{"seed": seed, "seconds": 2.0 + 0.02 * (seed % 3)} for seed in range(8)]


def test_a_result_and_itself(command):
    result = command("compare", ROOT / "reports" / "quick", ROOT / "reports" / "quick")
    assert (result.code, result.err) == (0, [])
    assert "Nothing changed" in "\n".join(result.out)


def test_a_slowdown_is_exit_code_1_unless_it_is_accepted(command, make_results):
    a, b = make_results("a", FAST), make_results("b", SLOW)
    result = command("compare", a, b)
    assert (result.code, result.err) == (1, [])
    said = "\n".join(result.out)
    assert "**Regression**: 3 of 3 ratios tested say slower by more than 10 %." in said
    assert "slower |" in said
    accepted = command("compare", a, b, "--threshold", "1.5")
    assert accepted.code == 0
    assert "**No regression**" in "\n".join(accepted.out)
    assert command("compare", b, a).code == 0


def test_a_lost_verified_is_exit_code_1(command, make_results):
    result = command("compare", make_results("a", FAST), make_results("b", [*FAST[1:], {"seed": 0, "status": "error"}]))
    assert result.code == 1
    assert "- verified -> error: 1 (hinge seed 0 | pg)" in "\n".join(result.out)


def test_another_machine_is_refused_in_a_line(command, make_results):
    a, b = make_results("a", FAST), make_results("b", [{**run, "environment": {"processor": "slow one"}} for run in FAST])
    result = command("compare", a, b)
    assert (result.code, result.out) == (2, [])
    (line,) = result.err
    assert "processor (quick one in A, slow one in B)" in line
    assert "--anyway" in line
    told = command("compare", a, b, "--anyway")
    assert told.code == 0
    assert "- machine: processor quick one -> slow one" in "\n".join(told.out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "nowhere"], "no results in nowhere"),
        (["reports/quick"], "Missing argument 'B'"),
        (["reports/quick", "reports/quick", "--threshold", "-1"], "--threshold must be"),
        (["reports/quick", "reports/scene"], "no case in common"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(command, arguments, words, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = command("compare", *arguments)
    assert result.code == 2
    (line,) = result.err
    assert words in line
