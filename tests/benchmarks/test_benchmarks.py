"""The benchmarks run, write what they say they write, and their NumPy rivals compute the same thing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

RIVALS = """
import numpy as np
from bench_mtl.projections import norm_l1inf, project_l1inf_ball
from benchmarks.grids import SAMPLERS, sample
from benchmarks.numpy_sort import plain, tuned
for data in ("gauss", "uniform", "zero rows", "low rank"):
    A = sample(data, (60, 11))
    for ratio in (0.001, 0.1, 0.9, 1.1):
        B = project_l1inf_ball(A, ratio * norm_l1inf(A))
        for rival in (plain, tuned):
            assert np.abs(rival(A, ratio * norm_l1inf(A), np.empty_like(A)) - B).max() <= 1e-12, (data, ratio, rival)
assert all(np.isfinite(sample(data, (1000,))).all() for data in SAMPLERS if data not in ("zero rows", "low rank"))
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow  # to compile, most of all
def test_a_tiny_grid_is_measured_and_written(tmp_path: Path) -> None:
    result = python("-m", "benchmarks", "--grid", "smoke", "--out", str(tmp_path / "new"))
    assert result.returncode == 0, result.stderr
    written = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert {cell["family"] for cell in written["cells"]} == {"l1inf", "l1", "trace"}
    for cell in written["cells"]:
        assert {"copy", "newton" if cell["family"] != "trace" else "auto"} <= set(cell["times"])
        for timing in cell["times"].values():
            assert 0 < timing["cpu"] <= timing["cpu_median"]
            assert 0 < timing["wall"] <= timing["wall_median"]
    assert written["environment"]["packages"]["numba"]
    assert {bar["met"] for bar in written["bars"]} <= {True, False, None}
    bar = next(bar for bar in written["bars"] if bar["name"].startswith("l1: newton over pivot"))
    assert bar["value"] == pytest.approx(max(bar["figures"].values()))
    table = (tmp_path / "new" / "bench.md").read_text()
    assert all(bar["name"] in table and bar["name"] in result.stdout for bar in written["bars"])


def test_the_rivals_compute_the_same_projection() -> None:
    result = python("-c", RIVALS)
    assert result.returncode == 0, result.stderr


def test_online_steps_are_measured() -> None:
    result = python("-m", "benchmarks.online", "--quick")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("| array, d = 1e+0") == 3
    assert "dense sort / tree" in result.stdout


def test_fits_of_estimators_are_measured(data_dir: Path) -> None:
    result = python("-m", "benchmarks.fits", "--quick", "--data-dir", str(data_dir))
    assert result.returncode == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith(("| References", "| Yeast"))]
    assert len(rows) == 6
    assert all(float(row.split("|")[6]) <= 1e-3 for row in rows)
