"""`bench-mtl doctor` as a user meets it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bench_mtl.cli import cli
from bench_mtl.validation.ahead_of_time import Compiled
from bench_mtl.validation.doctor import Finding


@pytest.mark.parametrize(("works", "code", "last"), [(True, 0, "all works"), (False, 1, "1 broken")])
def test_what_is_broken_is_counted_and_makes_the_exit_code(monkeypatch: pytest.MonkeyPatch, works: bool, code: int, last: str) -> None:
    seen = [
        Finding("machine", "python", "3.11"),
        Finding("clock", "goes forward", "always", True),
        Finding("limits", "memory", "+0 %", works),
    ]
    monkeypatch.setattr("bench_mtl.validation.doctor.findings", lambda plugins, data_dir: iter(seen))
    result = CliRunner().invoke(cli, ["doctor"], standalone_mode=False)
    assert result.return_value == code
    lines = result.stdout.splitlines()
    assert lines[0] == "machine"
    assert lines[-1] == last
    assert ("BROKEN" in result.stdout) == (not works)


def test_compiling_says_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Compiled("pdhg", 2.0, 3), Compiled("admm", 1.0, 0), Compiled("sick", 0.1, 0, "library not found")]
    monkeypatch.setattr("bench_mtl.validation.ahead_of_time.compile_all", lambda plugins: iter(parts))
    result = CliRunner().invoke(cli, ["doctor", "--compile"], standalone_mode=False)
    assert result.return_value == 1
    assert "pdhg" in result.output
    assert "3 functions" in result.output
    assert "admm" not in result.output  # nothing was left to compile
    assert "does not work: library not found" in result.output
