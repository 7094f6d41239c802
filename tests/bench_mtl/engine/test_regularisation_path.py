"""Regularisation paths: proven point by point, the same with and without warm starts, and cheaper with them."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Status, Tolerance
from bench_mtl.data import synthetic_l1inf, synthetic_sparse_low_rank
from bench_mtl.engine.regularisation_path import PathPoint, regularisation_path, structure
from bench_mtl.engine.stopping import BySteps
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient

HINGE = synthetic_l1inf(tasks=3, features=10, examples=12)
LOW_RANK = synthetic_sparse_low_rank(tasks=6, features=10, examples=20, rank=2, zero_features=3, zero_tasks=1)
FAIR = Tolerance(1e-4)

FAMILIES: dict[str, Callable[[float], Problem]] = {
    "tau": lambda tau: SparseLowRank(LOW_RANK, penalty=2.0, radius=tau),
    "gamma": lambda gamma: SparseLowRank(LOW_RANK, penalty=gamma, radius=3.0),
}


def total_steps(points: list[PathPoint]) -> int:
    return sum(point.record.samples[-1].step for point in points)


@pytest.mark.parametrize("parameter", FAMILIES)
def test_warm_and_cold_paths_prove_the_same_optima_and_warm_ones_are_shorter(parameter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tests at certain steps, for what a timed run does between two of its tests depends on the time that they take.
    monkeypatch.setattr("bench_mtl.engine.driver.ByWork", lambda *_, **__: BySteps())
    values = np.geomspace(1.0, 8.0, 8)
    solver = AcceleratedGradient(restart="gradient")
    warm = regularisation_path(FAMILIES[parameter], values, solver, tolerance=FAIR)
    cold = regularisation_path(FAMILIES[parameter], values, solver, tolerance=FAIR, warm_start=False)
    for a, b in zip(warm, cold, strict=True):
        assert a.value == b.value
        assert a.record.status is b.record.status is Status.VERIFIED
        first, second = a.record.best, b.record.best
        rounding = 1e-9 * first.primal
        assert max(first.dual, second.dual) <= min(first.primal, second.primal) + rounding
    assert total_steps(warm) < 0.9 * total_steps(cold)


def test_a_path_goes_from_sparse_to_dense() -> None:
    loose = Limits(iterations=1)
    solver = ProjectedSubgradient()
    radii = regularisation_path(lambda radius: L1InfHinge(HINGE, radius=radius), [2.0, 0.5, 1.0, 2.0], solver, limits=loose)
    assert [point.value for point in radii] == [0.5, 1.0, 2.0]
    weights = regularisation_path(lambda weight: L1InfHinge(HINGE, penalty=weight), [2.0, 0.5, 1.0], solver, limits=loose)
    assert [point.value for point in weights] == [2.0, 1.0, 0.5]


class Resumer(IterativeSolver):
    """Yields where it was started; remembers what it was given."""

    name = "resumer"
    requires = frozenset()

    def __init__(self) -> None:
        self.starts: list[Iterate | None] = []

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        self.starts.append(None)
        yield Iterate(problem.repair(problem.zero() if start is None else start), np.full(problem.dual_shape, 0.01))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        self.starts.append(start)
        yield Iterate(problem.repair(start.primal), start.dual)


def test_a_solver_resumes_from_the_last_point_and_its_dual() -> None:
    solver = Resumer()
    points = regularisation_path(lambda radius: L1InfHinge(HINGE, radius=radius), [0.5, 1.0], solver)
    assert solver.starts[0] is None
    assert solver.starts[1].primal is points[0].record.solution
    assert np.array_equal(solver.starts[1].dual, np.full(36, 0.01))  # type: ignore[arg-type]
    assert regularisation_path(lambda radius: L1InfHinge(HINGE, radius=radius), [0.5, 1.0], solver, warm_start=False)
    assert solver.starts[2:] == [None, None]


def test_a_failed_value_does_not_end_the_path() -> None:
    class Fragile(Resumer):
        def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
            self.starts.append(start)
            if len(self.starts) == 2:
                raise RuntimeError("no")
            yield start

    solver = Fragile()
    told: list[PathPoint] = []
    points = regularisation_path(lambda radius: L1InfHinge(HINGE, radius=radius), [1.0, 2.0, 3.0], solver, on_point=told.append)
    assert [point.record.status for point in points] == [Status.INACCURATE, Status.ERROR, Status.INACCURATE]
    assert solver.starts[2] is not None
    assert told == points


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "at least one"), ([-1.0], "at least 0"), ([np.nan], "finite"), (["1"], "values must be a number"),
        ([float(value) for value in range(10_001)], "values must be at most 10000, not 10001"),
    ],
    ids=["none", "negative", "nan", "word", "many"],
)  # fmt: skip
def test_bad_values_are_refused_before_a_problem_is_made(values: list[float], words: str) -> None:
    def make(value: float) -> Problem:
        raise AssertionError("a problem was made")

    with pytest.raises(InputError, match=words):
        regularisation_path(make, values, AcceleratedGradient())


def test_structure() -> None:
    W = np.zeros((4, 3))
    W[1, 2] = W[3, 0] = 1.0
    assert structure(W) == {"rows": 2}
    assert structure(np.stack([W, np.outer(np.ones(4), np.ones(3))])) == {"non-zeros": 2, "rank": 1}
    assert structure(np.stack([W, np.ones((4, 3))]), ("B", "S")) == {"B non-zeros": 2, "S non-zeros": 12}


def test_the_problems_of_a_path_are_not_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they compute of their data is part of the runs: tiny ones like them are."""
    warmed: list[object] = []
    monkeypatch.setattr(SparseLowRank, "warm_up", warmed.append)
    regularisation_path(FAMILIES["tau"], [1.0, 2.0], AcceleratedGradient(), limits=Limits(iterations=1))
    assert all(problem.dimensions["n"] < 20 for problem in warmed)  # type: ignore[attr-defined]
