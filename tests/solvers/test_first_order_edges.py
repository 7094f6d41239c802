"""First-order solvers of the hinge on instances at the edge of what a problem can be."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import IterativeSolver
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

#: Each solver and the gap that it proves on all of these within the iterations.
SOLVERS: list[tuple[IterativeSolver, float, int]] = [
    (SmoothedGradient(), 1e-4, 5000),
    (ProjectedSubgradient(), 0.1, 4000),
]


def labels(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, 1.0, -1.0)


def per_task(rng: np.random.Generator, n: int, d: int, m: int, change: Callable[[np.ndarray], object] = np.asarray) -> TaskData:
    W = rng.standard_normal((d, m))
    Xs = [rng.standard_normal((n, d)) for _ in range(m)]
    ys = [np.where(X @ W[:, k] + rng.standard_normal(n) >= 0, 1.0, -1.0) for k, X in enumerate(Xs)]
    return TaskData.per_task([change(X) for X in Xs], ys)


def duplicated(X: np.ndarray) -> np.ndarray:
    return np.asarray(X[np.arange(len(X)) // 2])


def dead_features(X: np.ndarray) -> np.ndarray:
    return np.asarray(X * (np.arange(X.shape[1]) % 2))


INSTANCES: dict[str, Callable[[np.random.Generator], L1InfHinge]] = {
    "one task": lambda rng: L1InfHinge(per_task(rng, 12, 5, 1), radius=1.0),
    "one feature": lambda rng: L1InfHinge(per_task(rng, 12, 1, 4), radius=0.5),
    "one example": lambda rng: L1InfHinge(TaskData.shared(np.ones((1, 3)), np.array([[1.0, -1.0]])), radius=0.2),
    "fewer examples than features": lambda rng: L1InfHinge(per_task(rng, 4, 20, 3), radius=0.3),
    "radius 0": lambda rng: L1InfHinge(per_task(rng, 8, 5, 3), radius=0.0),
    "radius that does not bind": lambda rng: L1InfHinge(per_task(rng, 30, 3, 2), radius=100.0),
    "huge penalty": lambda rng: L1InfHinge(per_task(rng, 8, 5, 3), penalty=1e6),
    "CSR": lambda rng: L1InfHinge(per_task(rng, 9, 6, 3, sp.csr_array), radius=0.8),
    "shared": lambda rng: L1InfHinge(TaskData.shared(rng.standard_normal((15, 6)), labels(rng, 15, 4)), radius=0.8, reduction="sum"),
    "duplicate rows": lambda rng: L1InfHinge(per_task(rng, 12, 5, 3, duplicated), radius=0.8),
    "features that are all zero": lambda rng: L1InfHinge(per_task(rng, 12, 6, 3, dead_features), radius=0.8),
    "nothing but zeros": lambda rng: L1InfHinge(TaskData.shared(np.zeros((4, 3)), labels(rng, 4, 2)), radius=1.0),
}


@pytest.mark.parametrize(("solver", "target", "iterations"), SOLVERS, ids=[solver.label for solver, *_ in SOLVERS])
@pytest.mark.parametrize("name", INSTANCES)
def test_edges(solver: IterativeSolver, target: float, iterations: int, name: str) -> None:
    problem = INSTANCES[name](np.random.default_rng(0))
    if (reason := solver.incompatibility(problem)) is not None:
        pytest.skip(reason)
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=30.0, iterations=iterations))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize(("solver", "target", "iterations"), SOLVERS, ids=[solver.label for solver, *_ in SOLVERS])
@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_units(solver: IterativeSolver, target: float, iterations: int, size: float) -> None:
    """X -> s X with C -> C / s is the same problem; nothing overflows, and whoever takes no step size from the user solves it as well."""
    data = per_task(np.random.default_rng(0), 10, 5, 3, lambda X: size * X)
    problem = L1InfHinge(data, radius=0.8 / size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=30.0, iterations=iterations))
    scale_free = isinstance(solver, SmoothedGradient)
    assert record.status is (Status.VERIFIED if scale_free else record.status)
    assert not record.status.is_failure, record.reason


@pytest.mark.parametrize(("solver", "target", "iterations"), SOLVERS, ids=[solver.label for solver, *_ in SOLVERS])
def test_without_a_penalty_the_point_is_right_though_no_bound_can_prove_it(solver: IterativeSolver, target: float, iterations: int) -> None:
    """The dual point would have to be orthogonal to all features exactly."""
    y = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    problem = L1InfHinge(TaskData.shared(np.ones((5, 1)), np.column_stack([y, -y])), penalty=0.0)
    if (reason := solver.incompatibility(problem)) is not None:
        pytest.skip(reason)
    optimum = 2 * min(np.maximum(0.0, 1.0 - y * w).mean() for w in np.linspace(-3, 3, 601))
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(iterations=iterations))
    assert record.best is not None
    assert record.best.primal == pytest.approx(optimum, rel=10 * target)
