"""Mutants have a place or are gone; one is planted into a copy, killed, and taken out again; the stored matrix is well formed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutants import AREAS, EQUIVALENT, KILLED, SURVIVED, UNTRIED, Mutant, read, write
from benchmarks.mutations import Mutation, file_of, mutated
from benchmarks.planting import Imports

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
"""A toy."""
from __future__ import annotations


def larger(a: int, b: int | None = None) -> int:
    """Return a, or b where that is larger - if there is one."""
    if b is None or not a < b:
        raise ValueError(f"{a + 1} is as large")
    for _ in range(3):
        print(a - b)
    return max(a, b)
'''


def test_a_mutant_follows_its_line_and_is_gone_with_it() -> None:
    mutation = Mutation("extreme", "larger", "return max(a, b)", "return min(a, b)", 0)
    moved = "# a line more\n" + SOURCE.replace("def larger", "def largest")
    assert mutated(moved, mutation) == moved.replace("max", "min")
    assert file_of(mutation, "old.py", {"new.py": SOURCE, "other.py": moved}) == "new.py"
    assert file_of(mutation, "old.py", {"other.py": SOURCE.replace("max", "sum")}) is None


def test_the_matrix_is_well_formed_and_fits_the_tree() -> None:
    mutants, code = read(ROOT / "benchmarks" / "mutants.json"), Imports(ROOT).code()
    assert len({mutant.name for mutant in mutants}) == len(mutants) >= 120
    there = 0
    for mutant in mutants:
        assert mutant.area in AREAS
        assert mutant.status in (UNTRIED, KILLED, SURVIVED, EQUIVALENT)
        assert bool(mutant.killers) == (mutant.status == KILLED), mutant.name
        assert bool(mutant.reason) == (mutant.status == EQUIVALENT), mutant.name
        place = file_of(mutant.mutation, mutant.file, code)
        if place is not None:
            there += 1
            changed = mutated(code[place], mutant.mutation)
            compile(changed, place, "exec")
    assert there >= 100, "most have gone: write new ones"


TESTS = """
from bench_mtl.stats.larger import larger

def test_larger():
    assert larger(1, 2) == 2

def test_no_more():
    larger(-1, 1)
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A tree with one function, tests that see half of it, and two mutants."""
    root = tmp_path / "toy"
    files = {
        "bench_mtl/__init__.py": "",
        "bench_mtl/stats/__init__.py": "",
        "bench_mtl/stats/larger.py": "def larger(a, b):\n    if a < 0:\n        a = 0\n    return max(a, b)\n",
        "tests/bench_mtl/stats/test_larger.py": TESTS,
        "pytest.ini": "[pytest]\nmarkers = slow\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    file = "bench_mtl/stats/larger.py"
    seen = Mutant("stats-01", "stats", file, Mutation("extreme", "larger", "return max(a, b)", "return min(a, b)", 0))
    unseen = Mutant("stats-02", "stats", file, Mutation("boundary", "larger", "if a < 0:", "if a <= 0:", 0))
    write(root / "matrix.json", [seen, unseen])
    return root


def command(toy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.mutants", "--root", str(toy), "--matrix", str(toy / "matrix.json"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_a_mutant_that_loses_its_tests_is_reported(toy: Path) -> None:
    code, tests = (toy / name for name in ("bench_mtl/stats/larger.py", "tests/bench_mtl/stats/test_larger.py"))
    before = code.read_bytes()
    result = command(toy, "--update")
    assert result.returncode == 0, result.stderr
    stored = [(mutant.status, mutant.killers) for mutant in read(toy / "matrix.json")]
    assert stored == [(KILLED, ("tests/bench_mtl/stats/test_larger.py::test_larger",)), (SURVIVED, ())], result.stdout
    assert code.read_bytes() == before
    tests.write_text(TESTS.replace("== 2", "> 0"))
    result = command(toy)
    assert result.returncode == 1
    assert "lost: stats-01" in result.stdout


def test_a_mutant_without_its_line_is_gone(toy: Path) -> None:
    (toy / "bench_mtl/stats/larger.py").write_text("def larger(a, b):\n    if a < 0:\n        a = 0\n    return b if a < b else a\n")
    assert "return max(a, b)` -> `return min(a, b)`: gone" in command(toy, "--list").stdout
