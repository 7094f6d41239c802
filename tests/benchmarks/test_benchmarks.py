"""The benchmarks run and write what they say they write, and NumPy's rival computes the same thing."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench_mtl.projections import norm_l1inf, project_l1inf_ball
from benchmarks.__main__ import main
from benchmarks.grids import sample, sorted_rows


@pytest.mark.slow  # to compile, most of all
def test_a_tiny_grid_is_measured_and_written(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--grid", "smoke", "--out", str(tmp_path / "new")], catch_exceptions=False)
    written = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert {cell["family"] for cell in written["cells"]} == {"l1inf", "l1", "trace", "sparse"}
    for cell in written["cells"]:
        first = {"trace": {"copy", "auto"}, "sparse": {"array", "tree", "dense newton"}}.get(cell["family"], {"copy", "newton"})
        assert first <= set(cell["times"])
        for timing in cell["times"].values():
            assert 0 < timing["cpu"] <= timing["cpu_median"]
            assert 0 < timing["wall"] <= timing["wall_median"]
    assert written["environment"]["packages"]["numba"]
    assert {bar["met"] for bar in written["bars"]} <= {True, False, None}
    bar = next(bar for bar in written["bars"] if bar["name"].startswith("l1: newton over pivot"))
    assert bar["value"] == pytest.approx(max(bar["figures"].values()))
    table = (tmp_path / "new" / "bench.md").read_text()
    assert all(bar["name"] in table and bar["name"] in result.stdout for bar in written["bars"])


@pytest.mark.parametrize("data", ["gauss", "uniform", "zero rows", "low rank"])
def test_the_rival_computes_the_same_projection(data: str) -> None:
    A = sample(data, (60, 11))
    for ratio in (0.001, 0.1, 0.9, 1.1):
        B = project_l1inf_ball(A, ratio * norm_l1inf(A))
        assert np.abs(sorted_rows(A, ratio * norm_l1inf(A), np.empty_like(A)) - B).max() <= 1e-12
