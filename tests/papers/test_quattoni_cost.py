"""The costs that Quattoni et al. claim: what a cell measures."""

import math

import numpy as np
import pytest

from bench_mtl import BenchError, load_registry, make_problem
from bench_mtl.data import synthetic_l1inf
from bench_mtl.projections import norm_l1inf, project_l1inf_ball
from papers.quattoni import cost_cell
from papers.quattoni.cost_cell import MATRICES, MEMORY, MERGE, PIVOT, SORT, SPARSE, STEPS, TIME, compute
from papers.quattoni.cost_memory import peak_bytes


@pytest.mark.parametrize("method", [MERGE, PIVOT, SORT])
@pytest.mark.parametrize("matrix", MATRICES)
def test_a_time_is_of_a_projection_of_as_many_entries_as_are_said(matrix: str, method: str) -> None:
    A = cost_cell.drawn(matrix, 1000, 0)
    count = A.nnz if matrix == SPARSE else A.size
    assert count == pytest.approx(1000, rel=0.05)
    found = compute({"part": TIME, "matrix": matrix, "method": method, "size": 1000, "seed": 0}, None)
    assert found.values["entries"] == count
    assert found.values["best_seconds"] > 0.0
    assert found.status == "inaccurate"
    assert (cost_cell.drawn(matrix, 1000, 1) != A).sum() > 0
    if matrix == SPARSE:
        assert A.shape[0] * A.shape[1] == 10 * count
        assert A.has_canonical_format


def test_the_peak_holds_what_the_algorithm_must_have_at_once() -> None:
    entries = 500 * 1000
    found = compute({"part": MEMORY, "matrix": "square", "method": MERGE, "size": entries, "seed": 0}, None).values
    assert found["entries"] == pytest.approx(entries, rel=0.01)
    each = found["peak_bytes"] / found["entries"]
    assert 15.0 < each < 40.0  # the sorted magnitudes and their sums, 8 bytes each; and at most three more such arrays
    with pytest.raises(BenchError, match="method"):
        peak_bytes(10, 10, "fast", 0.1, 0)


def test_steps_to_an_accuracy_against_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_cell, "BASE", {"tasks": 6, "features": 100, "examples": 10})
    monkeypatch.setattr(cost_cell, "TRIAL", 10)
    monkeypatch.setattr(cost_cell, "LENGTH", 30)
    found = compute({"part": STEPS, "examples": 30, "seed": 3}, None)
    assert found.status == "verified"
    data = synthetic_l1inf(tasks=6, features=100, examples=30, seed=3)
    problem = make_problem(load_registry().problem("l1inf_hinge"), data, {"radius": "truth"})
    radius = norm_l1inf(data.truth["W"])
    paths = {}
    for eta0 in cost_cell.ETAS:
        W, values = np.zeros((100, 6)), []
        for t in range(1, 31):
            values.append(problem.objective(W))
            G = np.zeros_like(W)
            for k in range(6):
                X, y = data.task(k)
                G[:, k] = -(X.T @ (y * (y * (X @ W[:, k]) < 1.0))) / len(y)
            W = project_l1inf_ball(W - eta0 / math.sqrt(t) * G, radius, method=MERGE)
        paths[eta0] = values
    chosen = min(paths, key=lambda eta0: min(paths[eta0][:10]))
    assert found.values["eta0"] == chosen
    assert found.values["reached"], "nothing is compared where no accuracy is reached"
    for eps, t in zip(found.values["ladder"], found.values["reached"], strict=False):
        within = [value <= found.values["bound"] * (1.0 + eps) for value in paths[chosen]]
        assert within.index(True) == t
    missed = found.values["ladder"][len(found.values["reached"]) :]
    assert missed, "nothing is compared where all accuracies are reached"
    assert all(min(paths[chosen]) > found.values["bound"] * (1.0 + eps) for eps in missed)
