"""What a shell completes, and that neither it nor who asks for help waits for what solves."""

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
        (["run", "quick", "--isolation", "in"], ["inline"]),
        (["solve", "l1inf_"], ["l1inf_glm", "l1inf_hinge"]),
        (["solve", "l1inf_hinge", "pd"], ["pdhg", "pdlp"]),
        (["path", "l1inf_hinge", "cl"], ["clarabel"]),
        (["solve", "l1inf_hinge", "scs", "--data", "dig"], ["digits", "dig(file)"]),
        (["shard", "dig"], ["digits", "dig(file)"]),
    ],
    ids=" ".join,
)
def test_names_are_completed(words: list[str], names: list[str]) -> None:
    assert completed(*words) == names


def test_data_sets_of_the_data_directory_are_completed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "dig_own.npz").touch()
    assert completed("solve", "l1inf_hinge", "scs", "--data-dir", str(here), "--data", "dig") == ["digits", "dig_own", "dig(file)"]
    monkeypatch.setenv("BENCH_MTL_DATA", str(here / "nowhere"))
    assert completed("solve", "l1inf_hinge", "scs", "--data", "dig") == ["dig(file)"]


@pytest.mark.parametrize("asked", ["complete", "help"])
def test_nothing_heavy_is_imported_for_it(asked: str) -> None:
    heavy = {"cvxpy", "numba", "pandas", "sklearn", "matplotlib", "rich", "dask", "ecos", "scs", "clarabel"}
    heavy |= set() if asked == "complete" else {"numpy", "scipy"}
    script = (
        f"import atexit, sys\natexit.register(lambda: print(sorted({heavy} & set(sys.modules)), file=sys.stderr))\n"
        "from bench_mtl.cli import main\nmain()\n"
    )
    words = {"_BENCH_MTL_COMPLETE": "fish_complete", "COMP_WORDS": "bench-mtl solve l1inf_hinge sc", "COMP_CWORD": "sc"}
    environment = os.environ | (words if asked == "complete" else {})
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert ("plain,scs\n" if asked == "complete" else "Compare specialised") in result.stdout
    assert result.stderr == "[]\n"
