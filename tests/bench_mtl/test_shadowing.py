"""Folders and packages of users that are named `problems` or `solvers` get in nobody's way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TRAP = "raise RuntimeError('the package of a user was imported')\n"

SUITE = """
name = "tiny"
targets = [1e-3]
[[problems]]
name = "sparse_low_rank"
data = { name = "synthetic_sparse_low_rank", features = 5, tasks = 3, examples = 8, rank = 1, zero_features = 0, zero_tasks = 0 }
parameters = { gamma = 0.1, tau = 1.0 }
[[solvers]]
name = "admm"
"""

FIT_AND_RUN = """
import sys
import numpy as np
import bench_mtl.cli.run
from bench_mtl.cli import main
from bench_mtl.estimators import L1InfClassifier
X = np.random.default_rng(0).standard_normal((20, 3))
Y = (X[:, :2] > 0).astype(int)
print(L1InfClassifier(radius=1.0).fit(X, Y).score(X, Y))
sys.argv = ["bench-mtl", "run", "tiny.toml", "--out", "out"]
bench_mtl.cli.run._reported = lambda *_, **__: (0, ())  # which takes longer than all the rest
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with packages of both names, of which one falls over when it is imported."""
    for name in ("problems", "solvers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(TRAP)
    (tmp_path / "tiny.toml").write_text(SUITE)
    return tmp_path


def python(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, which it then looks for modules in before anywhere else, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_estimators_the_command_and_its_workers_run_beside_packages_of_the_same_names(folder: Path) -> None:
    score, row = python(folder, "-c", FIT_AND_RUN).splitlines()
    assert float(score) > 0.5
    assert row.startswith("[1/1] ")
    assert ": verified" in row


@pytest.mark.slow
def test_type_checkers_find_problems_and_solvers(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from bench_mtl.solvers.pdhg import PDHG\nfrom bench_mtl.problems.portfolio import Portfolio\nPDHG(sliders=2)\n"
    )
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    command = [sys.executable, "-m", "mypy", "--follow-imports", "silent", "--no-incremental", "own.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert 'Unexpected keyword argument "sliders" for "PDHG"' in done.stdout, done.stdout + done.stderr
    assert "Found 1 error" in done.stdout
