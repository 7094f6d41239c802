"""`bench-mtl doctor` as a user meets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench_mtl.validation.ahead_of_time import Compiled
from bench_mtl.validation.doctor import Finding


@pytest.mark.parametrize(("works", "code", "last"), [(True, 0, "all works"), (False, 1, "1 broken")])
def test_what_is_broken_is_counted_and_makes_the_exit_code(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, works: bool, code: int, last: str
) -> None:
    seen = [
        Finding("machine", "python", "3.11"),
        Finding("clock", "goes forward", "always", True),
        Finding("limits", "memory", "+0 %", works),
    ]
    monkeypatch.setattr("bench_mtl.validation.doctor.findings", lambda *_, **__: iter(seen))
    result = command("doctor")
    assert (result.code, result.out[0], result.out[-1]) == (code, "machine", last)
    assert ("BROKEN" in result.text) == (not works)


def test_compiling_says_what_it_takes(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Compiled("pdhg", 2.0, 3), Compiled("admm", 1.0, 0), Compiled("sick", 0.1, 0, "library not found")]
    monkeypatch.setattr("bench_mtl.validation.ahead_of_time.compile_all", lambda plugins: iter(parts))
    result = command("doctor", "--compile")
    assert result.code == 1
    assert "pdhg" in result.text
    assert "3 functions" in result.text
    assert "admm" not in result.text  # nothing was left to compile
    assert "does not work: library not found" in result.text
