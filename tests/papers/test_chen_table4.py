"""Table IV of Chen, Liu and Ye: a run to the stopping rule against plain loops, and the bounds of the theorems."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl import TaskData
from papers.chen.table4 import bound
from papers.chen.table4_cell import RACE, RACE_CHANGE, SOLVERS, Variant, compute

PG, AG = SOLVERS
GAMMA, TAU = 0.5, 1.5


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    """A folder with a small set of that name."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((30, 5))
    Y = (X @ generator.standard_normal((5, 3)) > 0.0).astype(np.int8)
    np.savez(tmp_path / "scene.npz", X=X, Y=Y)
    return tmp_path


def by_loops(folder: Path, *, accelerated: bool, change: float) -> tuple[int, list[float]]:
    """Algorithms 1 and 2 of the paper written out: iterations until the rule stops, and all objectives."""
    with np.load(folder / "scene.npz") as file:
        X, Y = np.asarray(file["X"]), 2.0 * file["Y"] - 1.0

    def smooth(T: Any) -> float:
        return 0.5 * float(((X @ (T[0] + T[1]) - Y) ** 2).sum())

    def objective(T: Any) -> float:
        return smooth(T) + GAMMA * float(abs(T[0]).sum())

    def step(S: Any, L: float) -> tuple[Any, Any]:
        G = X.T @ (X @ (S[0] + S[1]) - Y)
        P, A = S[0] - G / L, S[1] - G / L
        U, values, Vt = np.linalg.svd(A, full_matrices=False)
        low, high = 0.0, values[0]
        for _ in range(100):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if np.maximum(values - theta, 0.0).sum() > TAU else (low, theta)
        Q = A if values.sum() <= TAU else (U * np.maximum(values - high, 0.0)) @ Vt
        return np.stack([np.sign(P) * np.maximum(abs(P) - GAMMA / L, 0.0), Q]), G

    T = previous = np.zeros((2, 5, 3))
    L, t_before, t = 1.0, 0.0, 1.0
    objectives = [objective(T)]
    while True:
        S = T + (t_before - 1.0) / t * (T - previous) if accelerated else T
        while True:
            new, G = step(S, L)
            if smooth(new) <= smooth(S) + float((G * (new - S).sum(axis=0)).sum()) + 0.5 * L * float(((new - S) ** 2).sum()) + 1e-12:
                break
            L *= 2.0
        t_before, t = t, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        previous, T = T, new
        objectives.append(objective(T))
        if abs(objectives[-1] - objectives[-2]) < change:
            return len(objectives) - 1, objectives


def settings(solver: str, change: float) -> dict[str, Any]:
    return {"normalisation": "none", "gamma": GAMMA, "tau": TAU, "solver": solver, "change": change}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("change", [1e-1, 1e-3, 1e-6])
def test_a_run_against_the_algorithm_written_out(scene: Path, solver: str, change: float) -> None:
    found = compute(settings(solver, change), scene)
    iterations, objectives = by_loops(scene, accelerated=solver == AG, change=change)
    best = min(by_loops(scene, accelerated=True, change=1e-13)[1])
    values = found.values
    assert found.status == "inaccurate"
    assert values["iterations"] == iterations
    assert values["objective"] == pytest.approx(objectives[-1], rel=1e-9)
    assert values["excess"] == pytest.approx(max(0.0, objectives[-1] - best) / best, abs=2e-9)
    assert values["excess"] <= values["proven_gap"] + 1e-9  # the gap is a proof, so it cannot be smaller
    assert values["run_seconds"] > 0.0


def test_the_race_ends_where_ag_is_first_as_good_as_pg(scene: Path) -> None:
    values = compute(settings(RACE, RACE_CHANGE), scene).values
    slow, objectives = by_loops(scene, accelerated=False, change=RACE_CHANGE)
    _, faster = by_loops(scene, accelerated=True, change=1e-13)
    assert values["pg_iterations"] == slow
    assert values["goal"] == pytest.approx(objectives[-1], rel=1e-9)
    first = next(step for step, objective in enumerate(faster) if objective <= values["goal"])
    assert values["ag_iterations"] == first
    assert values["pg_steps"][0] == values["ag_steps"][0] == 0
    assert (values["pg_steps"][-1], values["ag_steps"][-1]) == (slow, first)
    for name, known in (("pg", objectives), ("ag", faster)):
        expected = [(known[step] - min(faster)) / min(faster) for step in values[f"{name}_steps"]]
        assert values[f"{name}_excess"] == pytest.approx(expected, abs=2e-9)
        assert sorted(set(values[f"{name}_steps"])) == values[f"{name}_steps"]


def test_a_mean_is_a_sum_of_scaled_data() -> None:
    generator = np.random.default_rng(0)
    X, Y = generator.standard_normal((7, 3)), np.where(generator.random((7, 2)) < 0.5, 1.0, -1.0)
    read_as = Variant("mean", "0/1", "centred").read(TaskData.shared(X, Y))
    W, Z = generator.standard_normal((3, 2)), (Y + 1.0) / 2.0
    errors = (X - X.mean(axis=0)) @ W - (Z - Z.mean(axis=0))
    ours = np.asarray(read_as.design.block(0)) @ W - read_as.targets
    assert (ours**2).sum() == pytest.approx((errors**2).sum() / 7)


def test_the_bounds_are_those_of_the_theorems() -> None:
    assert bound("PG", 2.0, 10) == pytest.approx(0.1)  # L ||T*||^2 / (2 k)
    assert bound("AG", 2.0, 10) == pytest.approx(4.0 / 121.0)  # 2 L ||T*||^2 / (k + 1)^2
