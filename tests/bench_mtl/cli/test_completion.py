"""What a shell completes, and that it does not wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from bench_mtl.cli import cli


def completed(*words: str) -> list[str]:
    """The words that may stand for the last one; those that the shell completes by files end in ``(file)``."""
    *before, incomplete = words
    found = ShellComplete(cli, {}, "bench-mtl", "_BENCH_MTL_COMPLETE").get_completions(list(before), incomplete)
    return [item.value if item.type == "plain" else f"{item.value}({item.type})" for item in found]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["r"], ["report", "run"]),
        (["run", "qui"], ["quick", "qui(file)"]),
        (["solve", "l1inf_"], ["l1inf_glm", "l1inf_hinge"]),
        (["path", "l1inf_hinge", "cl"], ["clarabel"]),
        (["solve", "l1inf_hinge", "pd"], ["pdhg", "pdlp"]),
        (["list", "s"], ["solvers", "suites"]),
        (["solve", "l1inf_hinge", "scs", "--data", "dig"], ["digits", "dig(file)"]),
        (["run", "quick", "--isolation", "in"], ["inline"]),
        (["run", "quick", "--on"], ["--only"]),
        (["shard", "dig"], ["digits", "dig(file)"]),
        (["sha"], ["shard"]),
    ],
)
def test_names_are_completed(words: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    assert completed(*words) == names


def test_data_sets_of_the_data_directory_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dig_own.npz").touch()
    asked = ["solve", "l1inf_hinge", "scs", "--data-dir", str(tmp_path), "--data", "dig"]
    assert completed(*asked) == ["digits", "dig_own", "dig(file)"]
    monkeypatch.setenv("BENCH_MTL_DATA", str(tmp_path / "nowhere"))
    assert completed("solve", "l1inf_hinge", "scs", "--data", "dig") == ["dig(file)"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_ask(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_BENCH_MTL_COMPLETE", f"{shell}_source")
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", staticmethod(lambda: None))
    with pytest.raises(SystemExit) as end:
        cli.main([], prog_name="bench-mtl", standalone_mode=False)
    assert end.value.code == 0
    assert f"_BENCH_MTL_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_nothing_heavy_is_imported_for_it() -> None:
    script = (
        "import atexit, sys\n"
        "heavy = {'cvxpy', 'numba', 'pandas', 'sklearn', 'matplotlib', 'rich', 'dask', 'ecos', 'scs', 'clarabel'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "from bench_mtl.cli import main\nmain()\n"
    )
    asked = {"_BENCH_MTL_COMPLETE": "fish_complete", "COMP_WORDS": "bench-mtl solve l1inf_hinge sc", "COMP_CWORD": "sc"}
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | asked, timeout=60, check=True)
    assert "plain,scs\n" in result.stdout
    assert result.stderr == "[]\n"
