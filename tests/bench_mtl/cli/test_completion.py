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
        (["solve", "l1inf_hinge", "scs", "--param", "r"], ["radius=", "reduction="]),
        (["path", "l1inf_hinge", "scs", "--over", "ra"], ["radius="]),
        (["solve", "l1inf_hinge", "scs", "--option", "me"], ["method="]),
        (["solve", "l1inf_hinge", "nobody", "--option", "me"], []),
        (["solve", "l1inf_hinge", "scs", "--data", "synthetic_l1inf", "--data-option", "ta"], ["tasks="]),
        (["solve", "l1inf_hinge", "scs", "--data", "nothing.csv", "--data-option", "ta"], []),
        (["solve", "l1inf_hinge", "scs", "--preprocess", "s"], ["standardise", "svd:", "stumps:"]),
        (["run", "quick", "--only", "s"], ["solver=", "seed="]),
        (["report", "results/quick", "--select", "pro"], ["problem="]),
        (["report", "results/quick", "--format", "p"], ["parquet", "pdf", "png"]),
        (["run", "quick", "--isolation", "in"], ["inline"]),
        (["run", "quick", "--on"], ["--only"]),
        (["shard", "dig"], ["digits", "dig(file)"]),
        (["shard", "nothing.csv", "--data-option", "la"], []),
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


def test_options_of_a_file_that_is_written_in_shards_are_completed(tmp_path: Path) -> None:
    (tmp_path / "own.csv").touch()
    assert completed("shard", str(tmp_path / "own.csv"), "--data-option", "") == [
        "labels=", "targets=", "class_column=", "drop=", "header=", "separator=", "most_frequent="
    ]  # fmt: skip


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
