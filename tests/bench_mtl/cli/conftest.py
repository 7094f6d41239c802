"""Commands as a user gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench_mtl.cli import main


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: object
    out: list[str]
    err: list[str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs a command in this process: a new one takes longer to start than these commands to end."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("bench_mtl.cli._end_soon", lambda code: None)

    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr("sys.argv", ["bench-mtl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Result(end.value.code, said.out.splitlines(), said.err.splitlines())

    return run
