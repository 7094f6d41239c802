"""`auto`: what it picks, when it changes its mind, and what it says."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from solver_data import proven

from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.dirty_model import DirtyModel
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.l12_glm import L12GLM
from bench_mtl.problems.l12_hinge import L12Hinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.working_set import WorkingSet


@pytest.fixture(scope="module")
def wide() -> L1InfHinge:
    """Many features and examples in few tasks: an iteration of the interior-point method is expensive."""
    return L1InfHinge(synthetic_l1inf(tasks=4, features=200, examples=190), radius=50.0)


@pytest.fixture(scope="module")
def correlated() -> L1InfHinge:
    """Shared examples with few directions of any size: hard for a first-order method, small for the other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40)) * np.logspace(0, -2, 40) @ np.linalg.qr(rng.standard_normal((40, 40)))[0]
    return L1InfHinge(TaskData.shared(X, np.where(X @ rng.standard_normal((40, 3)) + 0.05 > 0.0, 1.0, -1.0)), radius=20.0)


def note_of(problem: Problem, solver: Auto, gap: float) -> str:
    return str(dict(proven(problem, solver, gap).info)["note"])


def test_an_easy_target_is_left_to_the_first_order_method(wide: L1InfHinge) -> None:
    assert note_of(wide, Auto(), 0.3).startswith("pdhg")


def test_a_close_target_is_left_to_the_working_sets(wide: L1InfHinge) -> None:
    assert note_of(wide, Auto(), 1e-6) == "working_set: the target 1e-06 is close"
    begun = list(islice(WorkingSet().steps(wide), 6))
    for a, b in zip(Auto(target=1e-6).steps(wide), begun, strict=False):
        assert np.array_equal(a.primal, b.primal)
        assert (a.step, a.work) == (b.step, b.work)


def test_it_changes_over_where_the_first_order_method_would_take_longer(correlated: L1InfHinge) -> None:
    iterates = list(islice(Auto(target=2e-3).steps(correlated), 60))
    notes = [iterate.note.split(" ")[0].rstrip(":") for iterate in iterates]
    change = notes.index("working_set")
    assert set(notes[1:change]) == {"pdhg"}
    assert set(notes[change : change + 8]) == {"working_set"}
    steps, work = [iterate.step for iterate in iterates], [iterate.work for iterate in iterates]
    assert steps[change] == steps[change - 1] + 1
    assert work[change] > work[change - 1]
    begun = list(islice(PDHG().steps(correlated), change))
    assert all(np.array_equal(a.primal, b.primal) for a, b in zip(iterates, begun, strict=False))


def test_asked_for_more_than_its_target_it_takes_the_working_sets() -> None:
    several = L1InfHinge(synthetic_l1inf(tasks=4, features=200, examples=190), radius=20.0)
    note = note_of(several, Auto(target=0.3), 1e-9)
    assert note.startswith("working_set after")
    assert note.endswith("beyond 0.3")


def test_without_memory_for_the_factors_the_first_order_method_goes_on() -> None:
    small = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=30), radius="truth")
    assert note_of(small, Auto(memory_gib=1e-9), 1e-6) == "pdhg after 0 steps, for working_set has ended"


def drawn(n: int, d: int, *, is_shared: bool = True) -> TaskData:
    rng = np.random.default_rng(5)
    Xs, Y = rng.standard_normal((3, n, d)), np.where(rng.standard_normal((n, 3)) > 0.0, 1.0, -1.0)
    return TaskData.shared(Xs[0], Y) if is_shared else TaskData.per_task(list(Xs), list(Y.T))


def low_rank_of(data: TaskData) -> SparseLowRank:
    return SparseLowRank(data, penalty=0.5, radius=2.0)


@pytest.mark.parametrize(
    ("problem", "picked"),
    [
        (L1InfGLM(drawn(40, 12), penalty="0.1 max"), "working_set"),
        (L1InfGLM(drawn(40, 12), radius=2.0, loss="logistic"), "working_set"),
        (DirtyModel(drawn(40, 12), row_penalty="0.1 max", entry_penalty="0.1 max"), "working_set"),
        (L1BallGLM(drawn(40, 12), penalty="0.1 max"), "l1_working_set"),
        (L1BallGLM(drawn(40, 12), radius=2.0, loss="logistic"), "l1_working_set"),
        (low_rank_of(drawn(40, 12)), "admm"),
        (low_rank_of(drawn(10, 100)), "partial_minimisation"),
        (low_rank_of(drawn(10, 12, is_shared=False)), "admm"),
        (low_rank_of(drawn(10, 100, is_shared=False)), "admm"),
    ],
)
def test_other_problems_have_their_solver_by_loss_norm_and_shape(problem: Problem, picked: str) -> None:
    assert note_of(problem, Auto(), 1e-4).startswith(picked)


def test_features_of_unlike_size_go_to_the_method_that_does_not_mind() -> None:
    rng = np.random.default_rng(8)
    X, Y = rng.standard_normal((40, 6)), np.where(rng.standard_normal((40, 2)) > 0.0, 1.0, -1.0)
    steps = [next(islice(Auto().steps(L12GLM(TaskData.shared(X * units, Y), penalty="0.1 max", loss="logistic")), 1, None))
             for units in (1.0, 10.0 ** np.linspace(-2.0, 2.0, 6))]  # fmt: skip
    assert [iterate.note.split(" ")[0] for iterate in steps] == ["accelerated_gradient_restart", "dual_newton"]


def test_hinges_of_unlike_features_go_to_interior_points_on_cones() -> None:
    data = drawn(40, 400)
    unlike = TaskData.shared(data.design.block(0) * 10.0 ** np.linspace(-2.0, 2.0, 400), data.targets)
    notes = [next(islice(Auto().steps(L12Hinge(each, penalty="0.1 max")), 1, None)).note for each in (data, unlike)]
    assert notes == ["graph_admm", "cone_interior_point"]


def test_sets_that_become_large_put_the_accelerated_method_on_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and work add up, both methods go on where they were, and the one that is expected to need more is left."""
    rng = np.random.default_rng(6)
    data = TaskData.shared(rng.standard_normal((60, 200)), rng.standard_normal((60, 3)))
    problem = L1InfGLM(data, penalty="0.05 max")
    monkeypatch.setattr("bench_mtl.solvers.auto.races._LEAST_STEPS", 0.0)
    iterates = list(islice(Auto(target=1e-9).steps(problem), 150))
    names = ["accelerated" if "accelerated" in iterate.note.split(" ")[0] else "sets" for iterate in iterates[1:]]
    assert [iterate.step for iterate in iterates] == list(range(len(iterates)))
    assert (np.diff([iterate.work for iterate in iterates]) > 0.0).all()
    assert set(names) == {"accelerated", "sets"}
    alone = {
        "accelerated": list(islice(AcceleratedGradient(restart="gradient").steps(problem), 1, names.count("accelerated") + 1)),
        "sets": list(islice(WorkingSet().steps(problem), 1, names.count("sets") + 1)),
    }
    for iterate, name in zip(iterates[1:], names, strict=True):
        assert np.array_equal(iterate.primal, alone[name].pop(0).primal)


def test_where_the_sets_end_the_accelerated_method_goes_on() -> None:
    rng = np.random.default_rng(7)
    problem = L1InfGLM(TaskData.shared(rng.standard_normal((60, 200)), rng.standard_normal((60, 3))), penalty="0.1 max")
    assert "accelerated_gradient" in note_of(problem, Auto(memory_gib=1e-5), 1e-5)


def test_along_a_path_l1_norms_keep_their_columns() -> None:
    along: Any = Auto().along_path()
    assert along == along.along_path()
    assert along.aimed_at(1e-6).l1_solver.memory is along.l1_solver.memory is not None


def test_features_are_not_looked_at_where_newton_is_too_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = L1InfGLM(TaskData.shared(np.eye(4), np.ones((4, 2))), penalty=0.1)
    for name in ("_NEWTON_PRODUCTS", "_NEWTON_PRODUCTS_BY_TASKS"):
        monkeypatch.setattr(f"bench_mtl.solvers.auto.solver.{name}", 0.0)
    monkeypatch.setattr("bench_mtl.solvers.auto.solver.feature_units", lambda design: pytest.fail("the data were read"))
    assert next(iter(Auto().steps(problem))).step == 0
